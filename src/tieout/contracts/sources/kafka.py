"""The source kinds of Kafka: what its brokers keep, and what its tools print of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from tieout.contracts.scalars import Model, Moment, Text
from tieout.contracts.sources.files import Paths

CleanupPolicy = Literal["delete", "compact", "compact,delete"]
PartitionCount = Annotated[int, Field(ge=1)]


class _Copy(Model):
    """Evidence that somebody took out of a cluster, at a time that only they know.

    `taken_at` is `now` where the files are the broker's own and still written to, else the time of the copy. It is when
    the log's bounds were observed, and until when the evidence is complete; without it the evidence says neither.
    """

    taken_at: Moment | None = None

    def taken_time(self, now: datetime) -> datetime | None:
        """Return when the evidence was as it is, where `now` is when it is read; None where nobody says."""
        return now if self.taken_at == "now" else self.taken_at


class KafkaSegmentsSource(_Copy):
    """A topic's log in segment files: behind each path a broker's log directory, partition folders, or segments.

    `partitions` is how many the topic has: without it the highest that is there is taken for the last.
    """

    kind: Literal["kafka_segments"] = "kafka_segments"
    path: Paths
    topic: Text
    partitions: PartitionCount | None = None
    cleanup_policy: CleanupPolicy | None = None
