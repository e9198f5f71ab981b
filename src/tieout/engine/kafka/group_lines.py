"""Lines in the output of tools that print a group's positions: headers, cells, and the tools' messages."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tieout.engine.kafka.group_columns import BEGINS, COLUMNS, name_in_any_case, name_of_column

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\u200b\ufeff]")
_NAME: Final = re.compile(r"^[A-Z#(][A-Z#()-]*$")
_POSITION_COLUMNS: Final = {"TOPIC", "PARTITION", "CURRENT-OFFSET"}
_WORDS: Final = re.compile(r"^[^\d\W][\w .()#/%-]*$")
_TARGET: Final = re.compile(
    r"--(?:to-(?:latest|earliest|datetime|offset)|by-duration|shift-by|from-file)(?![\w-])"
)
_TOPIC: Final = re.compile(r"^[A-Za-z0-9._-]+$")
_NUMBER: Final = re.compile(r"^[0-9]{1,18}$")
_SMALL: Final = re.compile(r"^[0-9]{1,9}$")
_CELL: Final = re.compile(r"^([0-9]{1,18}|-|unknown)$")
_RULE: Final = re.compile(r"^[\s|+:=-]*$")
"""A line between a table's header and its rows."""
_NO_BLANK: Final = re.compile(r"^[^ \t]+$")
_TIME: Final = re.compile(r"^\[?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d)")
_HOST_BEHIND_ID: Final = re.compile(r"(-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/(?=\S)")
"""A member's id and its host without a blank between: Kafka 0.10.2 to 1.1 print so an id that fills its column."""
_SHELL_EXITS: Final = frozenset({"exit", "logout", "quit"})
_COMMAND: Final = re.compile(
    r"(?:kafka-(?:consumer|share)-groups(?:\.sh|\.bat)?|(?:Consumer|Share)GroupCommand|ConsumerOffsetChecker)(?=\s+--?\w|\s*\\\s*$)|"
    r"\brpk\s(?:.*\s)?group\s+describe\b|\bkafkactl\s(?:.*\s)?describe\s+(?:consumer-group|cg)\b"
)
_OPTION: Final = re.compile(r"(?:^|\s)--group[=\s]+(\"[^\"]*\"|'[^']*'|[^\s\\]+)")
_TAKES_VALUE: Final = {
    "rpk": frozenset({"-X", "--brokers", "--config", "--profile", "--user", "--password"}),
    "kafkactl": frozenset({"-t", "--topic", "-o", "--output", "--context", "-C", "--config-file"}),
}
"""The options of other tools that are followed by a value."""
_REMARK: Final = re.compile(
    r"^(?:Warning: )?(?:Consumer|Share) group [`'](?P<group>.+)[`'] "
    r"(?:has no active members|is (?P<change>rebalancing))\.?$"
)
_ABSENT: Final = re.compile(r"^(?:Error: )?(?:The c|C)onsumer group [`'](?P<group>.+)[`'] does not exist\b")
_BLOCK: Final = re.compile(
    r"^(?P<key>GROUP|COORDINATOR|COORDINATOR-NODE|COORDINATOR-PARTITION|STATE|BALANCER|MEMBERS|TOTAL-LAG|ERROR)"
    r"(?:\s+(?P<value>.*))?$"
)
_WRONG: Final = re.compile(
    r"\b(?:error|exception|fail|fails|failed|failure|denied|not authorized|unauthorized|could not|cannot|invalid)\b|"
    r"exception|does not exist",
    re.IGNORECASE,
)
_PARTITION_LOST: Final = re.compile(r"^(?:Error: )?(?:No broker for partition|Could not fetch offset)\b")
_GROUP_ERROR: Final = "the tool reports an error about the group; run it again"


@dataclass(frozen=True)
class Cells:
    """A table's columns, and how its lines are cut into cells: at a character, or at blanks where there is none.

    `before` are the cells that stand before the first column in each line, such as a sign of quotation.
    """

    names: tuple[str, ...]
    separator: str | None
    before: tuple[str, ...]
    error_at: int

    @property
    def position(self) -> str:
        """The column of the position: of a share group that below which nothing is given to a member any more."""
        is_shared = self.has("START-OFFSET") and not self.has("CURRENT-OFFSET")
        return "START-OFFSET" if is_shared else "CURRENT-OFFSET"

    @property
    def is_of_positions(self) -> bool:
        """Whether the table's rows are positions."""
        places = [self.names.index(name) for name in ("TOPIC", "PARTITION", self.position) if self.has(name)]
        return len(places) == 3 and (self.separator is not None or places == sorted(places))

    @property
    def needed(self) -> int:
        """How many cells a whole row has at least: up to its place, position and lag, so that none of them is cut off.

        Kafka's own tool prints a cell in every column, `-` where there is nothing (`printOffsets` of
        `ConsumerGroupCommand`): there a row with fewer was cut, and rows after it may be gone.
        """
        if self.separator is None and self.has("CONSUMER-ID"):
            return len(self.names)
        columns = ("GROUP", "TOPIC", "PARTITION", self.position, "LOG-END-OFFSET", "LAG")
        return 1 + max(self.names.index(name) for name in columns if self.has(name))

    def has(self, name: str) -> bool:
        """Return whether there is a column of the name."""
        return name in self.names

    def values(self, line: str) -> list[str]:
        """Return the line's cells from the first column on; none where it does not begin as the header does."""
        cells = _split(_HOST_BEHIND_ID.sub(r"\1 /", line) if self._may_join_host else line, self.separator)
        before = cells[: len(self.before)]
        is_alike = all(map(_is_alike, before, self.before)) and len(before) == len(self.before)
        return cells[len(self.before) :] if is_alike else []

    @property
    def _may_join_host(self) -> bool:
        return self.separator is None and self.has("CONSUMER-ID") and self.has("HOST")

    def cell(self, name: str, values: Sequence[str]) -> str:
        """Return the cell below the name; empty where there is none."""
        place = self.names.index(name) if self.has(name) else len(values)
        return values[place] if place < len(values) else ""

    def error_in(self, line: str, values: Sequence[str]) -> bool:
        """Return whether the row has something below ERROR; columns before it may be empty, so its place counts."""
        if not self.has("ERROR"):
            return False
        is_below = line[self.error_at - 1 : self.error_at].isspace() and line[self.error_at :].strip() != ""
        return len(values) >= len(self.names) or is_below


@dataclass(frozen=True)
class ToolMessage:
    """What a line that is no row says: an error about the group, the group of the table that follows, or a command.

    `command` are the groups that a command names, `begins` says that the line has the command itself and not only more
    of its options. `names_group` says that an error names its group.
    """

    error: str | None = None
    names_group: bool = False
    is_about: str | None = None
    is_rebalancing: bool = False
    command: tuple[str, ...] | None = None
    begins: bool = False


@dataclass(frozen=True)
class Exported:
    """A line of `--reset-offsets --export`; what is not whole has no numbers."""

    group: str | None
    topic: str
    partition: int
    offset: int
    is_whole: bool


def cleaned(line: str) -> str:
    r"""Return the line without what colours it in a terminal.

    >>> cleaned("\x1b[1morders\x1b[0m  0")
    'orders  0'
    """
    return _ANSI.sub("", line)


def header_of(line: str) -> Cells | None:
    """Return the columns of a line that is a table's header, None where it is none.

    >>> header_of("GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG, OWNER").names[3:5]
    ('CURRENT-OFFSET', 'LOG-END-OFFSET')
    """
    for separator in (None, "|", ","):
        cells = _split(line, separator)
        start = next((place for place, cell in enumerate(cells) if name_of_column(cell) in BEGINS), None)
        if start is None:
            continue
        names = tuple(name_of_column(cell) for cell in cells[start:])
        if len(names) > 1 and names[1] in COLUMNS and all(map(_NAME.match, names)):
            return Cells(names, separator, tuple(cells[:start]), line.find("ERROR"))
    return _titled(line)


def _titled(line: str) -> Cells | None:
    """Return the columns of a header in any case, as user interfaces export one; it begins its line.

    >>> _titled("Consumer Group,Topic,Partition,Consumer Lag").names
    ('GROUP', 'TOPIC', 'PARTITION', 'LAG')
    """
    for separator in (",", "\t", ";", "|"):
        cells = _split(line, separator)
        start = next((place for place, cell in enumerate(cells) if cell), 0)
        names = tuple(map(name_in_any_case, cells[start:]))
        is_begun = len(names) > 2 and names[0] in BEGINS and names[1] in COLUMNS
        if (is_begun or set(names) >= _POSITION_COLUMNS) and all(map(_NAME.match, names)):
            return Cells(names, separator, tuple(cells[:start]), line.upper().find("ERROR"))
    return None


def words_in(line: str) -> int:
    """Return how many cells a line of words between commas has, which may be an export's header; 0 for another line.

    >>> words_in("Gruppe,Thema,Teil,Abstand"), words_in("orders,0,17"), words_in("loader")
    (4, 0, 0)
    """
    cells = _split(line, ",")
    return len(cells) if len(cells) > 1 and all(map(_WORDS.match, cells)) else 0


def cells_of_export(line: str) -> int:
    """Return how many cells a line has between commas."""
    return len(next(csv.reader([line.strip()]), []))


def target_in(line: str) -> str | None:
    """Return the option that says where `--reset-offsets` would put a group, None where none does or it stays.

    >>> target_in("… --reset-offsets --to-latest --dry-run --export"), target_in("… --to-current --export")
    ('--to-latest', None)
    """
    found = _TARGET.search(line)
    return None if found is None else found[0]


def tool_message_in(line: str, group: str) -> ToolMessage | None:
    """Return the tool's message or the command in a line, None where it is not about groups."""
    text = line.strip()
    command = _command_in(line)
    if command is not None:
        return command
    remark = _REMARK.match(text)
    if remark is not None:
        return ToolMessage(is_about=remark["group"], is_rebalancing=remark["change"] is not None)
    absent = _ABSENT.match(text)
    if absent is not None:
        return ToolMessage(error=_GROUP_ERROR, names_group=True) if absent["group"] == group else None
    block = _BLOCK.match(text)
    if block is not None:
        return _block_message(block["key"], (block["value"] or "").strip())
    if _WRONG.search(text) and _mentions(text, group):
        return ToolMessage(error=_GROUP_ERROR, names_group=True)
    return ToolMessage(error=_GROUP_ERROR) if _PARTITION_LOST.match(text) and "group '" not in text else None


def exported(line: str) -> Exported | None:
    """Return the row of an export in the line, whole or not; None where it looks like none.

    >>> exported("orders,0,17").offset, exported("orders,0").is_whole, exported("one, two")
    (17, False, None)
    """
    fields = next(csv.reader([line.strip()]), [])
    group, place = (fields[0] if len(fields) == 4 else None), fields[-3:]
    if (
        len(fields) in (3, 4)
        and _TOPIC.match(place[0])
        and _SMALL.match(place[1])
        and _NUMBER.match(place[2])
    ):
        return Exported(group, place[0], int(place[1]), int(place[2]), is_whole=True)
    is_cut = is_like_export(line) and any(map(_NUMBER.match, fields[1:]))
    return Exported(None, "", 0, 0, is_whole=False) if is_cut else None


def is_like_export(line: str) -> bool:
    """Return whether a line has commas and no blanks, as an export's rows have.

    >>> is_like_export("loader,orders,"), is_like_export("orders, and more"), is_like_export("orders")
    (True, False, False)
    """
    return "," in line and _NO_BLANK.match(line.strip()) is not None


def is_name(line: str) -> bool:
    """Return whether a line is one word that may be a topic's or a group's name, and not `exit` or the like."""
    return _TOPIC.match(line.strip()) is not None and line.strip() not in _SHELL_EXITS


def is_beginning_of_row(line: str, cells: Cells, group: str) -> bool:
    """Return whether a line that is no whole row may be the beginning of one of the group's."""
    values = cells.values(line)
    text = " ".join(values)
    if not values or _RULE.match(line):
        return False
    if cells.has("GROUP") and cells.separator is not None:
        whose = cells.cell("GROUP", values)
        return whose == group or (len(values) <= cells.names.index("GROUP") + 1 and group.startswith(whose))
    if cells.has("GROUP"):
        return text.startswith(f"{group} ") or group.startswith(text)
    if not _TOPIC.match(values[0]) or (len(values) == 1 and text in _SHELL_EXITS):
        return False
    return len(values) == 1 or _CELL.match(values[1]) is not None


def is_row_without_header(line: str, group: str) -> bool:
    """Return whether a line above any header is one of a table's rows.

    >>> is_row_without_header("loader orders 0 17 20 3 - - -", "loader")
    True
    """
    words = line.removeprefix(f"{group} ").split() if line.strip().startswith(f"{group} ") else line.split()
    return (
        len(words) > 3
        and _TOPIC.match(words[0]) is not None
        and _NUMBER.match(words[1]) is not None
        and all(map(_CELL.match, words[2:4]))
    )


def _split(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    quoted = csv.reader([line.replace("\r", " ")], delimiter=separator, skipinitialspace=True)
    cells = [cell.strip().strip('"').strip() for cell in next(quoted, [])]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _is_alike(cell: str, other: str) -> bool:
    """Return whether two cells before a table are the same, or both a time."""
    return cell == other or (_TIME.match(cell) is not None and _TIME.match(other) is not None)


def _command_in(line: str) -> ToolMessage | None:
    """Return the groups that a command in the line asks for, None where there is none."""
    begins = _COMMAND.search(line)
    options = tuple(found.strip("\"'") for found in _OPTION.findall(line))
    if begins is None:
        return ToolMessage(command=options) if options else None
    tool = begins[0].split()[0]
    if tool in _TAKES_VALUE:
        options = _described(line[begins.end() :], _TAKES_VALUE[tool])
    return ToolMessage(command=options, begins=True)


def _described(arguments: str, takes_value: frozenset[str]) -> tuple[str, ...]:
    """Return the groups among the arguments of `rpk group describe`, or `kafkactl describe consumer-group`."""
    try:
        words = shlex.split(re.split(r"[|>]", arguments, maxsplit=1)[0])
    except ValueError:
        words = arguments.split()
    return tuple(
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and before not in takes_value
    )


def _block_message(key: str, value: str) -> ToolMessage:
    """Return the message in a line of the block that `rpk` prints above a group's table."""
    if key == "GROUP":
        return ToolMessage(is_about=value)
    if key == "ERROR" and value:
        return ToolMessage(error=_GROUP_ERROR)
    return ToolMessage(is_rebalancing=key == "STATE" and "Rebalanc" in value)


def _mentions(text: str, group: str) -> bool:
    """Return whether the text names the group, and not only contains the word."""
    name = re.escape(group)
    return (
        re.search(rf"(?i:group(?:[ _-]?id)?)[\s=:]*[`'\"]?{name}(?![\w.-])|[`'\"]{name}[`'\"]", text)
        is not None
    )
