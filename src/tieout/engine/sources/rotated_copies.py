"""Files whose lines another file of the same name but for its numbers begins with: rows that were handed over twice.

`logrotate` with `copytruncate` copies a log and empties it afterwards; where emptying fails, or the files are collected
in between, the log still has every line of its copy. The same is true of a backup or an archive of a log that grew,
of a file that was downloaded again, and of an export that has the rows of the one before.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from tieout.encodings import opened_bytes
from tieout.engine.sources.inputs import Input
from tieout.engine.sources.paths import is_remote

_ROTATED: Final = re.compile(r"(\.\d+|-\d{8,10}|\.(?:old|orig|prev))?(\.(?:gz|bz2|zst))?$")
"""What rotation, or whoever keeps a copy, writes behind a log's name."""
_VARYING: Final = re.compile(
    r"\bcopy\b(?: of\b)?|\(\d+\)|20\d\d[-_]?\d\d(?:[-_]?\d\d(?:[T_-]?\d\d(?:[-_:]?\d\d){0,2}Z?)?)?"
    r"|(?<=[/=])\d+(?=/)|(?<=[-_. ])\d{1,7}(?=\.\w)",
    re.IGNORECASE,
)
"""What exports and downloads of one thing differ in: `10/orders.csv` and `11/orders.csv`, `orders (1).csv`.

Not the partitions and offsets in the names that Kafka Connect gives, such as `orders+0+0000000010.json`.
"""
_SEPARATORS: Final = re.compile(r"[\s_./-]+")
_PART: Final = re.compile(r"(?:^|/)part-\d[^/]*$")
"""Parts that a job of Spark's or Hadoop's writes have the same name but for their numbers, and different rows."""
_HEAD_BYTES: Final = 4096
_CHUNK: Final = 1 << 20


def rotated_copies(files: Sequence[Input], *, has_header: bool) -> tuple[tuple[str, str], ...]:
    """Return the path of each file that another file of the same log begins with, and a sentence that says so."""
    logs: dict[str, list[Input]] = defaultdict(list)
    for file in files:
        if file.size and not is_remote(file.path):
            logs[_log_of(file.path)].append(file)
    return tuple(
        (copy.path, f"{whole.name} begins with the lines of {copy.name}")
        for members in logs.values()
        if len(members) > 1
        for one, other in _alike_at_head(members)
        for copy, whole in _beginning(one, other, 2 if has_header else 1)
    )


def _log_of(path: str) -> str:
    """Return what the paths of one log's files have in common.

    >>> names = ("a.csv", "a.csv.1.gz", "a (1).csv", "a-20261120.csv", "Copy of a.csv", "2026-11-20/a.csv")
    >>> {_log_of(f"out/{name}") for name in names}
    {'outacsv'}
    """
    stem = _ROTATED.sub("", path)
    return stem if _PART.search(stem) else _SEPARATORS.sub("", _VARYING.sub("", stem))


def _alike_at_head(members: Sequence[Input]) -> Iterator[tuple[Input, Input]]:
    """Yield the pairs of files of one log of which one may begin with the other: all else is not read through."""
    heads = [(_head(file), file.size, file) for file in members]
    # In the order of their texts, a beginning comes right before what begins so.
    for (head, _, one), (longer, _, other) in pairwise(sorted(heads, key=lambda known: known[:2])):
        if longer.startswith(head):
            yield one, other


def _head(file: Input) -> bytes:
    try:
        with opened_bytes(Path(file.path)) as content:
            return content.read(_HEAD_BYTES)
    except (OSError, EOFError):
        return b""


def _beginning(one: Input, other: Input, lines: int) -> Iterator[tuple[Input, Input]]:
    """Yield the file that the other one begins with, then the other one; nothing if equal or too short."""
    try:
        with opened_bytes(Path(one.path)) as first, opened_bytes(Path(other.path)) as second:
            line_count = 0
            while True:
                a, b = first.read(_CHUNK), second.read(_CHUNK)
                common = min(len(a), len(b))
                if a[:common] != b[:common]:
                    return
                line_count += a[:common].count(b"\n")
                if len(a) != len(b):
                    break
                if not a:
                    return
    except (OSError, EOFError):
        return
    if line_count >= lines:
        yield (one, other) if len(a) < len(b) else (other, one)
