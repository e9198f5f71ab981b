"""The source kind of ActiveMQ Classic: the journal in which its broker writes messages and acknowledgements."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from tieout.contracts.scalars import Text
from tieout.contracts.sources.copies import Copy
from tieout.contracts.sources.files import Paths


class KahaDbSource(Copy):
    """A queue as the broker's KahaDB journal has it.

    `path` are the folders of the journal's files: the store's own (`directory`), and where it moves those that it needs
    no longer (`archiveDataLogs` with `directoryArchive`). `destination` is the queue's name. A broker does not write
    down a message that is acknowledged fast enough, unless it is told `concurrentStoreAndDispatchQueues=false`: say
    with `concurrent_store_and_dispatch: false` that it is, or the journal is no record of what the queue was given.
    """

    kind: Literal["kahadb"] = "kahadb"
    path: Paths
    destination: Text
    concurrent_store_and_dispatch: bool = True

    @field_validator("destination")
    @classmethod
    def _is_queue(cls, value: str) -> str:
        """Refuse a destination that is not a queue: the journal has no per-message state of topic subscribers."""
        if value.startswith(("topic://", "temp-topic://", "temp-queue://", "/topic/")):
            raise ValueError(f"expected the name of a queue, found {value}")
        return value.removeprefix("queue://").removeprefix("/queue/")
