r"""Whether an artefact shows that a group is a share group: its members take records one by one, and lock them.

Positions of such a group are no reader's: below the highest record that was processed others may still be locked for a
member, or wait to be given to the next. Shown it is by the group's records in `__consumer_offsets` and
`__share_group_state`, as Kafka's formatters and its dump tool print them, by the tables of `kafka-share-groups`, and by
listings of groups with their type.

Source: KIP-932; `ShareGroup*Key.json`, `ShareSnapshotKey.json` and `ShareGroupCommand` of Apache Kafka 4.0 to 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

RECORD_TYPES: Final = range(9, 16)
"""The types of keys in `__consumer_offsets` that share groups alone have."""
NOTE: Final = (
    "{} is a share group: members take records one by one, and beyond its start offset some may be processed before "
    "others"
)
MAY_SHOW: Final = r"(?i)groupId|START-OFFSET|\bTYPE\b|Share group|\bShare\b"
"""Lines that may show one, of any group; with them, those that begin with the group's name."""

_TYPES: Final = "|".join(map(str, RECORD_TYPES))
_TABLE: Final = re.compile(
    r"^\s*(GROUP\s+)?TOPIC\s+PARTITION\s(?!.*\bCURRENT-OFFSET\b).*(?<=\s)START-OFFSET\b"
)
"""A share group's table has its own START-OFFSET, and no CURRENT-OFFSET; `rpk` prints where the log starts as well."""
_OTHER_TABLE: Final = re.compile(r"^\s*(GROUP|TOPIC|CONSUMER-ID|COORDINATOR)\b[\sA-Z#()-]*$")


def shows_share_group(lines: Iterable[str], group: str) -> bool:
    """Return whether a text, whose lines may be those alone that may show it, shows the group to be a share group.

    >>> shows_share_group(["GROUP TYPE PROTOCOL", "loader Share share"], "loader")
    True
    >>> shows_share_group(["GROUP TOPIC PARTITION START-OFFSET LAG", "other orders 0 17 3"], "loader")
    False
    """
    name = re.escape(group)
    pattern = re.compile(rf"(?i:share group) '?{name}'?(\s|$)|{_in_documents(name)}")
    listed = re.compile(rf"^\s*{name}\s+(?i:share)\b")
    row, nameless = re.compile(rf"^\s*{name}\s+\S+\s+[0-9]+\s"), re.compile(r"^\s*\S+\s+[0-9]+\s+[0-9-]+")
    expected: re.Pattern[str] | None = None
    for line in lines:
        table = _TABLE.search(line)
        if table is not None:
            expected = row if table[1] else nameless
        elif _OTHER_TABLE.search(line):
            expected = listed if re.search(r"^\s*GROUP\s+TYPE\b", line) else None
        elif pattern.search(line) or (expected is not None and expected.search(line)):
            return True
    return False


def _in_documents(name: str) -> str:
    """Return what the keys of the group's records look like in JSON, in either topic."""
    own = rf'"groupId"\s*:\s*"{name}"'
    of_group = rf'"type"\s*:\s*"?(?:{_TYPES})"?\s*,\s*"data"\s*:\s*\{{\s*{own}'
    before_4 = rf'"version"\s*:\s*"?(?:{_TYPES})"?\s*,\s*"data"\s*:\s*\{{\s*{own}'
    of_state = rf'\{{\s*{own}\s*,\s*"topicId"\s*:\s*"[^"]*"\s*,\s*"partition"\s*:'
    return f"{of_group}|{before_4}|{of_state}"
