"""The source kind of Kafka's share groups: a group's acknowledgements in `__share_group_state`."""

from __future__ import annotations

import re
from typing import Final, Literal, Self

from pydantic import field_validator, model_validator

from tieout.contracts.scalars import ConnectionName, PartitionCount, Text
from tieout.contracts.sources.copies import Copy
from tieout.contracts.sources.files import Paths

STATE_TOPIC: Final = "__share_group_state"
"""The topic in which Kafka keeps the acknowledgements of share groups."""
_TOPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")


class KafkaShareGroupSource(Copy):
    """A share group's acknowledgements in a topic, from `__share_group_state`: its cluster, or its segment files.

    A path is a broker's log directory, or partition folders of `__share_group_state`. The topic's id is that of its own
    folders behind the paths; `topic_id` says it where they are not among them. `partitions` is the broker's
    `share.coordinator.state.topic.num.partitions`. A cluster says all that itself.
    """

    kind: Literal["kafka_share_group"] = "kafka_share_group"
    connection: ConnectionName | None = None
    path: Paths | None = None
    group: Text
    topic: Text
    topic_id: Text | None = None
    partitions: PartitionCount = 50

    @field_validator("topic_id")
    @classmethod
    def _is_id(cls, value: str | None) -> str | None:
        """Refuse a text that is not a topic id as Kafka prints it."""
        if value is not None and not _TOPIC_ID.fullmatch(value):
            raise ValueError(f"expected a topic's id as kafka-topics --describe prints it, found {value}")
        return value

    @model_validator(mode="after")
    def _has_one_of_connection_and_path(self) -> Self:
        if (self.connection is None) == (self.path is None):
            found = "neither" if self.path is None else "both"
            raise ValueError(f"expected either connection or path, found {found}")
        return self
