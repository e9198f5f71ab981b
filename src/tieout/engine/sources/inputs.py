"""The files of one source as values: how each is found and called, what it held, and why it cannot be read, if so."""

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
"""How Spark calls a file that a job wrote: behind folders of a partitioning, its part and the job's id."""


@dataclass(frozen=True)
class Recast:
    """A column of a file, in lower case, that is read as another type than its own; without `has_values` as null."""

    name: str
    own: DataType
    kind: DataType
    has_values: bool


@dataclass(frozen=True)
class Input:
    """One file: how Spark finds it, how people call it, what it held, and why it cannot be read, if so.

    `size` counts bytes, as they lie there; `state` is what the file system said of a local file when its bytes were
    digested, which any write changes. `copy` is the file on this machine that Spark is given instead of one that it
    cannot read. `note` names another encoding than UTF-8, or a byte order mark. `text_digest` is of what a packed file
    holds. `recast` are the columns of a Parquet or ORC file that get another type.
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
        """The path that Spark is given, with its wildcards escaped."""
        return spark_path(self.copy or self.path)


@dataclass(frozen=True)
class Inputs:
    """The files of one source; `missing` are the paths of the contract that led to none."""

    files: tuple[Input, ...]
    missing: tuple[str, ...]

    @property
    def readable(self) -> tuple[Input, ...]:
        """The files that Spark may be given."""
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
        """What is to be said of the files: `faults`, then `encodings`."""
        return (*self.faults, *self.encodings)

    @property
    def copies(self) -> tuple[tuple[Input, Input], ...]:
        """The local files that hold what an earlier one holds, byte for byte, packed or not, each with that one.

        Different parts that one job of Spark's wrote are no copies of each other: it gives every row to one of them.
        One part in two folders, unless they are the job's own partitions, is a copy.
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
        """The path of each of `copies`, with what it holds in words."""
        return tuple((copy.path, f"{copy.name} holds what {first.name} holds") for copy, first in self.copies)

    @property
    def size(self) -> int:
        """The bytes of all files together, as they lie there."""
        return sum(file.size for file in self.files)

    @property
    def digests(self) -> tuple[str, ...]:
        """What each file held, one line a file, in the order of the names."""
        return tuple(f"{file.digest}  {file.name}" for file in self.files)


def _part_of(file: Input) -> tuple[str | None, str]:
    """Return the id of the job of Spark's that wrote the file, None where its name tells none, and which part it is."""
    found = _PART.search(file.name)
    return (None, file.name) if found is None else (found[3], f"{found[1]}{found[2]}")
