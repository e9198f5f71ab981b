"""The source kinds of Kafka Connect: files named by offsets, and the positions of source connectors."""

from __future__ import annotations

import re
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from tieout.contracts.scalars import ConnectionName, Setting, Text
from tieout.contracts.sources.copies import Copy
from tieout.contracts.sources.files import Paths
from tieout.contracts.sources.options import allowed_options
from tieout.contracts.sources.spark import FileFormat

RANGE_NAME: Final = (
    r"(?P<topic>[a-zA-Z0-9._-]+)\+(?P<partition>[0-9]+)"
    r"\+(?P<first>[0-9]+)\+(?P<last>[0-9]+)(?:\.[a-zA-Z0-9_.]+)?"
)
"""File names of the HDFS sink connector: topic, partition, first and last offset.

Source: `HdfsSinkConnectorConstants.COMMITTED_FILENAME_PATTERN` of confluentinc/kafka-connect-hdfs.
"""
NAME_PARTS: Final = ("topic", "partition", "first", "last")
"""The groups that a pattern of file names must have."""


class ConnectFilesSource(Copy):
    """Files that a sink connector named by the range of offsets in them, below a folder.

    `pattern` is a regular expression of a file's whole name, with the groups `topic`, `partition`, `first` and `last`,
    both offsets inclusive. `format` is that of the rows, which `delivered` needs and positions do not.
    """

    kind: Literal["connect_files"] = "connect_files"
    path: Text
    format: FileFormat | None = None
    pattern: Text = RANGE_NAME
    options: dict[str, Setting] = Field(default={})

    @model_validator(mode="after")
    def _has_a_pattern_with_all_parts(self) -> Self:
        try:
            groups = re.compile(self.pattern).groupindex
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(
                f"pattern: expected a regular expression, found one that is none: {error}"
            ) from None
        missing_groups = [name for name in NAME_PARTS if name not in groups]
        if missing_groups:
            raise ValueError(
                f"pattern: expected the groups {', '.join(f'(?P<{name}>…)' for name in NAME_PARTS)}, "
                f"found none called {', '.join(missing_groups)}"
            )
        return self

    @model_validator(mode="after")
    def _has_options_that_leave_out_nothing(self) -> Self:
        if self.format is None and self.options:
            raise ValueError("options: expected none without a format, because no row is read then")
        allowed_options(self.format or "", self.options)
        return self


class ConnectOffsetsSource(Copy):
    """The positions of one source connector, as its workers keep them.

    From `path`, the file of a standalone worker (`offset.storage.file.filename`); from `topic`
    (`offset.storage.topic`) behind a `connection`, or in the broker's own `segments`. `place` is the field of the
    source partition that names what is read, `position` that of the source offset that says where reading goes on.
    """

    kind: Literal["connect_offsets"] = "connect_offsets"
    connector: Text
    path: Text | None = None
    connection: ConnectionName | None = None
    segments: Paths | None = None
    topic: Text | None = None
    place: Text = "filename"
    position: Text = "position"

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        origins = {"path": self.path, "connection": self.connection, "segments": self.segments}
        found = [name for name, value in origins.items() if value is not None]
        if len(found) != 1:
            found_text = " and ".join(found) or "none"
            raise ValueError(f"expected one of path, connection and segments, found {found_text}")
        if (self.topic is None) != (found == ["path"]):
            found_text = "none" if self.topic is None else "one beside path"
            raise ValueError(
                f"expected a topic with connection and segments, and none with path, found {found_text}"
            )
        return self
