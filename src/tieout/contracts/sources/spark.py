"""The source kinds of Structured Streaming: a query's checkpoint, and the folder that its file sink writes."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tieout.contracts.scalars import Setting, Text
from tieout.contracts.sources.copies import Copy
from tieout.contracts.sources.options import allowed_options

FileFormat = Literal["jsonl", "csv", "parquet", "orc"]
"""The formats of files that are read as rows."""


class SparkCheckpointSource(Copy):
    """The positions of a query that reads Kafka, batch by batch: the folders `offsets` and `commits` of its checkpoint.

    `source` is the place of the Kafka source among the query's, counted from 0: the folder's name below `sources`.
    """

    kind: Literal["spark_checkpoint"] = "spark_checkpoint"
    path: Text
    source: Annotated[int, Field(ge=0, lt=1 << 31)] = 0


class SparkFilesSource(Copy):
    """The rows that a file sink wrote: those of the files that its manifest `_spark_metadata` names are the output.

    The other files in the folder were never committed, and are evidence for `staged`.
    """

    kind: Literal["spark_files"] = "spark_files"
    path: Text
    format: FileFormat
    options: dict[str, Setting] = Field(default={})

    @model_validator(mode="after")
    def _has_options_that_leave_out_nothing(self) -> Self:
        allowed_options(self.format, self.options)
        return self
