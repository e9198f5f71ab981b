"""The source kinds of Flink: the positions in a job's checkpoints, and the transactions that its sink prepared."""

from __future__ import annotations

from typing import Literal

from tieout.contracts.scalars import Text
from tieout.contracts.sources.copies import Copy
from tieout.contracts.sources.files import Paths


class FlinkCheckpointsSource(Copy):
    """The positions of a job's Kafka source, checkpoint by checkpoint, over all lives of the job.

    Below `path` lie checkpoints and savepoints, such as `execution.checkpointing.dir`. `source` is the uid, the name or
    the id of the operator that reads Kafka, and may be left out where the job has one.
    """

    kind: Literal["flink_checkpoints"] = "flink_checkpoints"
    path: Text
    source: Text | None = None


class FlinkPreparedSource(Copy):
    """The records of the transactions that a job's checkpoints count as written, as the topic's log has them.

    `segments` are paths to the broker's own files of the `topic` that the job's Kafka sink writes. `sink` is the uid or
    the name of the sink, and may be left out where the job has one.
    """

    kind: Literal["flink_prepared"] = "flink_prepared"
    path: Text
    segments: Paths
    topic: Text
    sink: Text | None = None
