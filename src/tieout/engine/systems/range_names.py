"""File names that contain a range of offsets: the positions of a sink connector without other positions.

Both offsets of a name are inclusive. A restarted connector continues after the highest one, so the names of a partition
cover its offsets without overlap; only markers and aborted records lie between them.

Source: `FileUtils` and `TopicPartitionWriter` of confluentinc/kafka-connect-hdfs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tieout.engine.limits import LARGEST_INT, number_in, shown
from tieout.engine.systems.json_texts import FormatError

SHADOW: Final = "+tmp"
"""The folder of files that are being written, and renamed when complete."""
_NO_RANGE: Final = (
    "expected a name of the pattern {}, found another; take the file out of the folder, or name the pattern"
)


@dataclass(frozen=True)
class RangeName:
    """The range in a file's name: offsets `first` to `last` of a partition, both inclusive."""

    topic: str
    partition: int
    first: int
    last: int

    @property
    def count(self) -> int:
        """The number of offsets in the range."""
        return self.last - self.first + 1


def range_name(name: str, pattern: re.Pattern[str]) -> RangeName:
    r"""Return the range of a name by the pattern's groups.

    >>> known = re.compile(r"(?P<topic>.+)_(?P<partition>\d+)_(?P<first>\d+)_(?P<last>\d+)")
    >>> range_name("orders_0_5_9", known)
    RangeName(topic='orders', partition=0, first=5, last=9)

    Raises:
        FormatError: if the name does not match, or its numbers are not a range.
    """
    match = pattern.fullmatch(name)
    topic = match["topic"] if match else None
    if match is None or not topic:
        raise FormatError(_NO_RANGE.format(shown(pattern.pattern)))
    partition = number_in(match["partition"] or "", LARGEST_INT)
    first, last = (number_in(match[group] or "") for group in ("first", "last"))
    if partition is None or first is None or last is None or min(partition, first) < 0 or last < first:
        raise FormatError(
            f"expected a partition and a range of offsets, found partition {shown(match['partition'] or '')}, "
            f"{shown(match['first'] or '')} to {shown(match['last'] or '')}"
        )
    return RangeName(topic, partition, first, last)


def divided(files: Iterable[tuple[str, RangeName]]) -> Iterator[tuple[str, str]]:
    """Yield pairs of files of one partition in different folders whose ranges overlap.

    A partitioner that divides records by a field or time writes such files: a name then spans more than its file holds.

    Args:
        files: Each file's path, and the range of its name.
    """
    places: dict[tuple[str, int], list[tuple[int, int, str]]] = defaultdict(list)
    for path, name in files:
        places[name.topic, name.partition].append((name.first, name.last, path))
    for ranges in places.values():
        highest: tuple[int, str] | None = None
        for first, last, path in sorted(ranges):
            if highest is not None and first <= highest[0] and _folder(path) != _folder(highest[1]):
                yield highest[1], path
            if highest is None or last > highest[0]:
                highest = (last, path)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
