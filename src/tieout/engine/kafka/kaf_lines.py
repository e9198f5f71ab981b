"""What `kaf group describe` prints, in the form of other tools' tables.

It names the topic above each topic's table, and begins the table with the partition:

    Group ID:       loader
    Offsets:
      orders:
        Partition  Group Offset  High Watermark  Lag  Metadata
        ---------  ------------  --------------  ---  --------
        0          6             9               3
        Total      6                             3
    Members:

Source: `cmd/kaf/group.go` of birdayz/kaf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_GROUP: Final = re.compile(r"^Group ID:\s+(\S.*?)\s*$")
_HEADER: Final = re.compile(r"^\s*Partition\s+Group Offset\s+High Watermark\s+Lag\b.*$")
_TOPIC: Final = re.compile(r"^\s+([A-Za-z0-9._-]+):\s*$")
_NO_ROW: Final = re.compile(r"^\s*(?:-[- ]*|Total\s.*)$")
_TABLE: Final = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG"


def as_tables(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, those of kaf's tables with the group and the topic in each row; any other text is unchanged.

    >>> list(as_tables(["Group ID: g", "  t:", "  Partition  Group Offset  High Watermark  Lag", "  0  6  9  3"]))
    ['GROUP g', '  t:', 'GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG', 'g t 0  6  9  3']
    """
    group, topic, is_in_table = "", "", False
    for line in lines:
        named, section = _GROUP.match(line), _TOPIC.match(line)
        if named:
            group = named[1]
            yield f"GROUP {group}"
        elif group and topic and _HEADER.match(line):
            is_in_table = True
            yield _TABLE
        elif section or (is_in_table and not line[:1].isspace()):
            topic, is_in_table = section[1] if section else "", False
            yield line
        elif is_in_table:
            yield "" if _NO_ROW.match(line) else f"{group} {topic} {line.strip()}"
        else:
            yield line
