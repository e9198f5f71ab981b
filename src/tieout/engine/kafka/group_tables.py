r"""Tables of groups' positions in a tool's output, and what of the text around them concerns the group asked for.

A table is found by its header, wherever the text has one, and its rows are read by the header's names. So it does not
matter which version printed it (without a column GROUP, with LEADER-EPOCH or OWNER, with commas between the cells),
whether `rpk group describe` did, or what a terminal, Java or `kubectl` wrote around it. A line that is part of no table
proves nothing and is counted, unless it concerns the group: an error about it, or a row of its table that is not whole.

Source: `ConsumerGroupCommand`, `ShareGroupCommand` and `ConsumerOffsetChecker` of Apache Kafka 0.8 to 4.3; `rpk group
describe` of Redpanda; `kafkactl describe consumer-group`; `confluent kafka consumer group lag list`; `kaf group
describe`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tieout.engine.kafka.group_lines import (
    Cells,
    ToolMessage,
    cells_of_export,
    cleaned,
    exported,
    header_of,
    is_beginning_of_row,
    is_like_export,
    is_name,
    is_row_without_header,
    target_in,
    tool_message_in,
    words_in,
)
from tieout.engine.kafka.kaf_lines import as_tables

_OFFSET: Final = re.compile(r"^[0-9]{1,18}$")
_SMALL: Final = re.compile(r"^[0-9]{1,9}$")
_NONE: Final = frozenset({"-", "-1", "unknown", "none", "null", "n/a", "<none>"})
_TOPIC: Final = re.compile(r"^[A-Za-z0-9._-]+$")
_LONGEST_GROUP: Final = 10
"""How many words a group's name may have."""
_MOST_CELLS: Final = 4
"""How many cells a row of an export has at most."""
_LONGEST_LINE: Final = 4096
_TOO_LONG: Final = f"expected a line of at most {_LONGEST_LINE} characters, found {{}}; print the table again"
_ZEROS: Final = (
    "zero bytes in the line: the file was damaged, or not written to its end; print the table again"
)
_TORN: Final = (
    "expected a row of the table, with a cell for each column of its header, found {}; paste it whole"
)
_HEADLESS: Final = "a row of positions without the header of its table above it; paste the table whole"
_CUT_EXPORT: Final = (
    "expected a row of the export, with a topic, a partition and an offset, found fewer; paste it whole"
)
_WIDE_EXPORT: Final = (
    "expected a row of the export, with a topic, a partition and an offset, and a group before them if at all, found "
    "{} cells; give the table its header, with the columns TOPIC, PARTITION and CURRENT-OFFSET"
)
_OTHER_HEADER: Final = (
    "expected the columns of positions above their rows, TOPIC, PARTITION and CURRENT-OFFSET, or none, found others: "
    "nothing says what the numbers are"
)
_NOT_CURRENT: Final = (
    "a row of what --reset-offsets {} would commit, which is not where the group stands; "
    "export with --to-current"
)
_AMBIGUOUS: Final = (
    "expected one table without a column GROUP and without a group's name above it, found {}, or a command that asks "
    "for several: which of them is that of {} nothing says; print them one by one, or with a tool that names the group"
)
_PARTLY: Final = "the tool reports an error for this partition"


@dataclass(frozen=True)
class Position:
    """How far a group came in a partition, as a row of a table says; `offset` is None where it has no position."""

    group: str
    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class GroupTables:
    """The positions in a text, each with the number of its line, and the lines that are none.

    `faults` are lines that concern the group asked for and are no whole row, `passed` those that are neither rows nor
    anything else that is known. `idle` counts the group's rows without a partition. `others` are the columns of each
    table about partitions that has no positions.
    """

    positions: tuple[tuple[int, Position], ...]
    faults: tuple[tuple[int, str], ...]
    passed: tuple[int, ...]
    idle: int
    is_rebalancing: bool
    others: tuple[str, ...] = ()

    @property
    def groups(self) -> frozenset[str]:
        """The groups of which there is a row."""
        return frozenset(position.group for _, position in self.positions)


@dataclass
class _Table:
    """A table whose rows are being read; `group` is whose it is where no column says so, None where nothing does."""

    cells: Cells
    group: str | None
    is_ambiguous: bool
    rows: list[tuple[int, Position]] = field(default_factory=list)

    @property
    def is_nameless(self) -> bool:
        """Whether neither a column nor the text says whose the table is."""
        return not self.cells.has("GROUP") and self.group is None


def tables_of(lines: Iterable[str], group: str) -> GroupTables:
    """Return the positions in a text's lines, and which of the other lines concern the group.

    >>> table = ["GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG", "loader orders 0 17 20 3"]
    >>> tables_of(["Note: …", *table], "loader").positions[0][1].offset
    17
    """
    reader = _Reader(group)
    for number, line in enumerate(as_tables(lines)):
        if len(line) > _LONGEST_LINE:
            reader.refuse(number, _TOO_LONG.format(len(line)))
        elif "\0" in line:
            reader.refuse(number, _ZEROS)
        elif line.strip():
            reader.add(number, cleaned(line))
    return reader.found()


class _Reader:
    """Reads a text line by line: which table is open, and of whom the text spoke last."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._tables: list[_Table] = []
        self._table: _Table | None = None
        self._is_in_other_table = False
        self._exported: list[tuple[int, Position]] = []
        self._like_export: list[int] = []
        self._words = 0
        self._target: str | None = None
        self._others: list[str] = []
        self._named_group: str | None = None
        self._commanded: tuple[str, ...] = ()
        self._faults: list[tuple[int, str]] = []
        self._passed: list[int] = []
        self._idle = 0
        self._is_rebalancing = False

    def refuse(self, number: int, reason: str) -> None:
        """Note a line of which nobody knows whether it concerns the group."""
        self._faults.append((number, reason))

    def add(self, number: int, line: str) -> None:
        """Add the next line."""
        header = header_of(line)
        row = None if self._table is None else self._row_of(line, self._table)
        message = tool_message_in(line, self._group)
        if message is not None and message.begins:
            self._target, self._words = None, 0
        self._target = target_in(line) or self._target
        if header is not None:
            self._open(header)
        elif self._table is not None and (isinstance(row, Position) or row == _IDLE or message is None):
            self._add_row(number, line, self._table)
        elif message is not None:
            self._add_message(number, message)
        elif self._is_in_other_table:
            self._passed.append(number)
        else:
            self._add_outside_line(number, line)

    def _open(self, header: Cells) -> None:
        """Begin a table; one without a column GROUP is of whom the text spoke last, or of whom the command asked."""
        self._is_in_other_table = not header.is_of_positions
        self._table, self._words = None, 0
        if not header.is_of_positions and header.has("TOPIC") and header.has("PARTITION"):
            self._others.append(", ".join(header.names))
        if header.is_of_positions:
            whose = None if header.has("GROUP") else self._whose()
            self._table = _Table(header, whose, is_ambiguous=len(self._commanded) > 1)
            self._tables.append(self._table)
            self._named_group = None

    def _whose(self) -> str | None:
        return self._named_group or (self._commanded[0] if len(self._commanded) == 1 else None)

    def _add_message(self, number: int, message: ToolMessage) -> None:
        """Add a message of the tool, or a command."""
        if message.command is not None:
            self._commanded = message.command if message.begins else (*self._commanded, *message.command)
            self._named_group = None
        self._named_group = message.is_about or self._named_group
        is_another_s = not message.names_group and self._whose_is_printed() not in (None, self._group)
        names_its_groups = self._table is not None and self._table.cells.has("GROUP")
        if message.command is not None or (message.is_about is not None and not names_its_groups):
            self._table, self._is_in_other_table = None, False
        self._is_rebalancing |= message.is_rebalancing and not is_another_s
        if message.error is not None and not is_another_s:
            self._faults.append((number, message.error))

    def _whose_is_printed(self) -> str | None:
        return self._named_group or (self._table.group if self._table is not None else self._whose())

    def _add_outside_line(self, number: int, line: str) -> None:
        """Add a line above any table; it counts only if an export has it."""
        row, count = exported(line), cells_of_export(line)
        if not self._exported:
            self._words = words_in(line) or self._words
        if row is not None and row.is_whole and (reason := self._refusal(count)) is not None:
            self._faults.append((number, reason))
        elif row is not None and row.is_whole:
            whose = row.group or self._whose() or self._group
            self._exported.append((number, Position(whose, row.topic, row.partition, row.offset)))
        elif row is not None and count > _MOST_CELLS:
            self._faults.append((number, _WIDE_EXPORT.format(count)))
        elif row is not None or (self._is_below_export(number) and is_name(line)):
            self._faults.append((number, _CUT_EXPORT))
        elif is_row_without_header(line, self._group):
            self._faults.append((number, _HEADLESS))
        elif is_like_export(line):
            self._like_export.append(number)
        else:
            self._passed.append(number)

    def _refusal(self, count: int) -> str | None:
        """Return why a row of `count` cells that looks like an export's does not state current positions."""
        if count == self._words:
            return _OTHER_HEADER
        return None if self._target is None else _NOT_CURRENT.format(self._target)

    def _is_below_export(self, number: int) -> bool:
        return bool(self._exported) and self._exported[-1][0] == number - 1

    def _add_row(self, number: int, line: str, table: _Table) -> None:
        row = self._row_of(line, table)
        if isinstance(row, Position):
            table.rows.append((number, row))
        elif row == _IDLE:
            self._idle += _whose(line, table) in (None, self._group)
        elif table.group in (None, self._group) and is_beginning_of_row(line, table.cells, self._group):
            self._faults.append((number, row))
        else:
            self._passed.append(number)

    def _row_of(self, line: str, table: _Table) -> Position | str:
        """Return the row's position, `_IDLE` where its member has no partition, or what is wrong with it.

        A group's name may have blanks in it: the topic is where a number follows that can be a partition. A row that
        begins with the name of the group asked for is its row, or none.
        """
        values = table.cells.values(line)
        is_wide = table.cells.has("GROUP") and table.cells.separator is None
        is_own = " ".join(values).startswith(f"{self._group} ")
        for width in range(1, _LONGEST_GROUP + 1 if is_wide else 2):
            joined = [" ".join(values[:width]), *values[width:]]
            row = _position(joined, table.cells, table.group)
            if isinstance(row, str) and row != _IDLE:
                continue
            if not is_wide or not is_own or joined[0] == self._group:
                return _PARTLY if table.cells.error_in(line, values) else row
        return _TORN.format(
            f"{len(values)} of at least {table.cells.needed}, or no numbers where they are expected"
        )

    def found(self) -> GroupTables:
        """Return the tables, once all lines were taken."""
        nameless = [table for table in self._tables if table.rows and table.is_nameless]
        is_ambiguous = len(nameless) > 1 or any(table.is_ambiguous for table in nameless)
        refused = nameless if is_ambiguous else []
        reason = _AMBIGUOUS.format(len(nameless), self._group)
        self._faults.extend((number, reason) for table in refused for number, _ in table.rows)
        read = [pair for table in self._tables if table not in refused for pair in table.rows]
        if self._exported:
            self._faults.extend((number, _CUT_EXPORT) for number in self._like_export)
        else:
            self._passed.extend(self._like_export)
        positions = [(number, replace(row, group=row.group or self._group)) for number, row in read]
        return GroupTables(
            positions=tuple(sorted([*self._exported, *positions], key=lambda pair: pair[0])),
            faults=tuple(sorted(self._faults)),
            passed=tuple(sorted(self._passed)),
            idle=self._idle,
            is_rebalancing=self._is_rebalancing,
            others=tuple(self._others),
        )


_IDLE: Final = "idle"
_NO_ROW: Final = "no row"


def _whose(line: str, table: _Table) -> str | None:
    return table.cells.cell("GROUP", table.cells.values(line)) if table.cells.has("GROUP") else table.group


def _position(values: Sequence[str], cells: Cells, group: str | None) -> Position | str:
    """Return the position in a row's cells, `_IDLE` where its member has no partition, or that there is none."""
    whose = cells.cell("GROUP", values) if cells.has("GROUP") else group
    topic, partition = cells.cell("TOPIC", values), cells.cell("PARTITION", values)
    offset = cells.cell(cells.position, values)
    epoch = cells.cell("LEADER-EPOCH", values)
    is_none = offset.lower() in _NONE
    # Only a member's names may have blanks in them: a row without one has no further cells.
    is_too_long = len(values) > len(cells.names) and (
        cells.separator is not None or cells.cell("CONSUMER-ID", values) == "-"
    )
    if len(values) < cells.needed or is_too_long or not (is_none or _OFFSET.match(offset)):
        return _NO_ROW
    if (topic, partition) == ("-", "-") and is_none:
        return _IDLE
    if not _TOPIC.match(topic) or not _SMALL.match(partition):
        return _NO_ROW
    return Position(
        group=whose or "",
        topic=topic,
        partition=int(partition),
        offset=_number(offset),
        leader_epoch=int(epoch) if _SMALL.match(epoch) else None,
        end=_number(cells.cell("LOG-END-OFFSET", values)),
    )


def _number(cell: str) -> int | None:
    return int(cell) if _OFFSET.match(cell) else None
