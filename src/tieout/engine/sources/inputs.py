"""The files of one source as values: path, name, digest and, if unreadable, the fault of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import DataType

from tieout.engine.sources.paths import spark_path
from tieout.regular_files import OF_CONTENT, State

_PART: Final = re.compile(
    r"(?:^|/)((?:[^/]+=[^/]*/)*)(part-\d+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})[^/]*)$"
)
"""The name of a file written by a Spark job: below partition folders, the part number and the job's id."""


@dataclass(frozen=True)
class Recast:
    """A column of a file, in lower case, that is read as another type than its own; without `has_values` as null."""

    name: str
    own: DataType
    kind: DataType
    has_values: bool


@dataclass(frozen=True)
class Input:
    """One file: its path for Spark, its display name, its digest and, if unreadable, the fault.

    `size` is in bytes, as stored; `state` is the file system's state of a local file when it was digested, which any
    write changes. `copy` is a local file for Spark instead of one that it cannot read. `note` names another encoding
    than UTF-8, or a byte order mark. `text_digest` is the digest of a packed file's content. `recast` are the columns
    of a Parquet or ORC file that get another type.
    """

    path: str
    name: str
    digest: str
    fault: str | None = None
    size: int = 0
    copy: str | None = None
    note: str | None = None
    state: State | None = None
    text_digest: str | None = None
    recast: tuple[Recast, ...] = ()

    @property
    def read_path(self) -> str:
        """The path for Spark, with wildcards escaped."""
        return spark_path(self.copy or self.path)


@dataclass(frozen=True)
class Inputs:
    """The files of one source; `missing` are the paths of the contract without a file."""

    files: tuple[Input, ...]
    missing: tuple[str, ...]

    @property
    def readable(self) -> tuple[Input, ...]:
        """The files without a fault."""
        return tuple(file for file in self.files if file.fault is None)

    @property
    def faults(self) -> tuple[str, ...]:
        """One line for each file that cannot be read and each path without a file."""
        broken = tuple(f"{file.name}: {file.fault}" for file in self.files if file.fault is not None)
        return broken + tuple(f"{path}: no such file" for path in self.missing)

    @property
    def encodings(self) -> tuple[str, ...]:
        """One line for each readable file in another encoding than UTF-8, or with a byte order mark."""
        return tuple(f"{file.name}: {file.note}" for file in self.readable if file.note is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the files: `faults`, then `encodings`."""
        return (*self.faults, *self.encodings)

    @property
    def copies(self) -> tuple[tuple[Input, Input], ...]:
        """The local files with the same content as an earlier one, packed or not, each with that one.

        Different parts of one Spark job are not copies of each other: every row is in one of them. One part in two
        folders is a copy, unless they are the job's own partitions.
        """
        first: dict[str, Input] = {}
        parts: dict[tuple[str, str], Input] = {}
        pairs = []
        for file in self.readable:
            if file.size and file.digest.startswith(OF_CONTENT):
                content = file.text_digest or file.digest
                job, part = _part_of(file)
                original = first.setdefault(content, file)
                if job is not None and job == _part_of(original)[0]:
                    original = parts.setdefault((content, part), file)
                if file is not original:
                    pairs.append((file, original))
        return tuple(pairs)

    @property
    def copied(self) -> tuple[tuple[str, str], ...]:
        """The path of each of `copies`, with a note on the original."""
        return tuple((copy.path, f"{copy.name} holds what {first.name} holds") for copy, first in self.copies)

    @property
    def size(self) -> int:
        """The total size of all files in bytes, as stored."""
        return sum(file.size for file in self.files)

    @property
    def digests(self) -> tuple[str, ...]:
        """The digest of each file, one line per file, in the order of names."""
        return tuple(f"{file.digest}  {file.name}" for file in self.files)


def _part_of(file: Input) -> tuple[str | None, str]:
    """Return the id of the Spark job that wrote the file, None if its name has none, and the part."""
    match = _PART.search(file.name)
    return (None, file.name) if match is None else (match[3], f"{match[1]}{match[2]}")
