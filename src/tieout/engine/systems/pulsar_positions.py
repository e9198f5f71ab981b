"""Pulsar's positions (ledger, entry and index in a batch) as single numbers in the same order.

Ids of ledgers increase within a topic, with gaps, so the numbers are sparse: a gap does not mean a missing message.

Source: `PositionImpl` and `ManagedLedgerInternalStats` of apache/pulsar, branch 3.0.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tieout.contracts.positions import PULSAR_BITS
from tieout.contracts.positions import shown_position as shown
from tieout.engine.limits import LARGEST_INT, number_in
from tieout.engine.systems.json_texts import FormatError, json_object

_LEDGER_BITS, _ENTRY_BITS, _BATCH_BITS = PULSAR_BITS
_LEDGER_SHIFT: Final = _ENTRY_BITS + _BATCH_BITS
_MOST_ENTRIES: Final = 1 << _ENTRY_BITS
_MOST_IN_BATCH: Final = 1 << _BATCH_BITS
_MOST_LEDGERS: Final = 1 << _LEDGER_BITS
_RANGE: Final = re.compile(r"([(\[])(\d{1,19}):(-?\d{1,19})\.\.(\d{1,19}):(-?\d{1,19})([)\]])")
_BEFORE_FIRST: Final = -1
"""The number before a ledger's first entry."""

Place = tuple[int, int]
"""A ledger, and an entry in it."""


def packed(ledger: int, entry: int, batch: int = 0) -> int:
    """Return the position as one number.

    >>> packed(5, 7, 4)
    21474865156

    Raises:
        FormatError: if a part exceeds its bits, 31, 20 and 12.
    """
    if not (0 <= ledger < _MOST_LEDGERS and 0 <= entry < _MOST_ENTRIES and 0 <= batch < _MOST_IN_BATCH):
        raise FormatError(
            f"position {ledger}:{entry}:{batch}: expected a ledger below {_MOST_LEDGERS}, an entry below "
            f"{_MOST_ENTRIES} and a place in its batch below {_MOST_IN_BATCH}"
        )
    return (ledger << _LEDGER_SHIFT) + (entry << _BATCH_BITS) + batch


def shown_position(number: int) -> str:
    """Return the position as Pulsar writes it.

    >>> shown_position(packed(5, 7, 4))
    '5:7:4'
    """
    return str(shown(number, "ledger:entry:batch"))


@dataclass(frozen=True)
class Cursor:
    """The acknowledgements of a subscription: all up to `mark_delete`, and `ranges` of entries, `(first, last]`."""

    mark_delete: Place
    ranges: tuple[tuple[Place, Place], ...]


@dataclass(frozen=True)
class Ledgers:
    """A topic's ledgers in order, each with its number of entries, and the last confirmed entry."""

    counts: tuple[Place, ...]
    last: Place

    @property
    def first(self) -> int:
        """The position of the first retained entry."""
        return packed(self.counts[0][0], 0)

    @property
    def end(self) -> int:
        """The lowest possible position of the next entry."""
        return self.after(self.last)

    @property
    def newest(self) -> Iterator[Place]:
        """Every entry up to the last confirmed one, latest first; lazy, because statistics may claim any number."""
        for ledger, count in reversed(self.counts):
            yield from ((ledger, entry) for entry in reversed(range(count)))

    def after(self, place: Place) -> int:
        """Return the first position after an entry: in the next ledger if its own has no more, or was deleted.

        >>> ledgers = Ledgers(((5, 3), (9, 0)), (5, 2))
        >>> [shown_position(ledgers.after(place)) for place in ((3, 8), (5, 1), (5, 2), (9, -1))]
        ['5:0:0', '5:2:0', '9:0:0', '9:0:0']

        Raises:
            FormatError: if the position exceeds its bits.
        """
        ledger, entry = place[0], place[1] + 1
        if ledger >= self.counts[-1][0]:
            return packed(ledger, entry)
        # The ledger itself, or the next if it was deleted.
        index = bisect_left(self.counts, (ledger, 0))
        number, count = self.counts[index]
        if number > ledger:
            return packed(number, 0)
        return packed(ledger, entry) if entry < count else packed(self.counts[index + 1][0], 0)


def ledgers_in(stats: dict[str, object]) -> Ledgers:
    """Return the ledgers in a topic's internal statistics, which count no entries of the open ledger.

    Raises:
        FormatError: if there are none, or not in Pulsar's form.
    """
    last = _place(stats.get("lastConfirmedEntry"), "lastConfirmedEntry")
    ledgers = stats.get("ledgers")
    if not isinstance(ledgers, list) or not ledgers:
        raise FormatError("expected ledgers in the topic's internal statistics, found none")
    counts: list[Place] = []
    for fields in ledgers:
        ledger, entry_count = (_number(fields, name) for name in ("ledgerId", "entries"))
        if counts and ledger <= counts[-1][0]:
            raise FormatError(f"expected rising ids of ledgers, found {ledger} behind {counts[-1][0]}")
        count = 0 if ledger > last[0] else last[1] + 1 if ledger == last[0] else entry_count
        if count >= _MOST_ENTRIES:
            raise FormatError(f"ledger {ledger}: expected fewer than {_MOST_ENTRIES} entries, found {count}")
        counts.append((ledger, count))
    return Ledgers(tuple(counts), last)


def stats_in(body: bytes) -> dict[str, object]:
    """Return a topic's internal statistics.

    Raises:
        FormatError: if the body is not a JSON object.
    """
    try:
        return json_object(body.decode())
    except UnicodeDecodeError:
        raise FormatError("expected JSON, found no text") from None


def cursors_in(stats: dict[str, object]) -> dict[str, object]:
    """Return the cursors of a topic's internal statistics, by subscription.

    Raises:
        FormatError: if the statistics have none.
    """
    cursors = stats.get("cursors")
    if not isinstance(cursors, dict):
        raise FormatError("expected cursors in the topic's internal statistics, found none")
    return cursors


def cursor_in(fields: object) -> Cursor:
    """Return one cursor of the statistics.

    >>> cursor_in({"markDeletePosition": "5:1", "individuallyDeletedMessages": "[(5:2..5:4]]"}).ranges
    (((5, 2), (5, 4)),)

    Raises:
        FormatError: if a field is missing, or not in Pulsar's form.
    """
    if not isinstance(fields, dict):
        raise FormatError("expected a cursor's fields, found none")
    mark_delete = _place(fields.get("markDeletePosition"), "markDeletePosition")
    text = fields.get("individuallyDeletedMessages")
    if not isinstance(text, str):
        raise FormatError("expected individuallyDeletedMessages of a cursor, found none")
    ranges: list[tuple[Place, Place]] = []
    for low, *parts, high in _RANGE.findall(text):
        first, last = (int(parts[0]), int(parts[1])), (int(parts[2]), int(parts[3]))
        ranges.append(
            (
                first if low == "(" else (first[0], first[1] - 1),
                last if high == "]" else (last[0], last[1] - 1),
            )
        )
    if _RANGE.sub("", text).strip("[],; \t") or any(last < first for first, last in ranges):
        raise FormatError(
            "individuallyDeletedMessages: expected ranges (ledger:entry..ledger:entry], found another"
        )
    return Cursor(mark_delete, tuple(ranges))


def _place(value: object, name: str) -> Place:
    ledger, parts, entry = value.partition(":") if isinstance(value, str) else ("", "", "")
    numbers = (number_in(ledger, LARGEST_INT), number_in(entry, LARGEST_INT))
    if not parts or numbers[0] is None or numbers[1] is None or numbers[0] < 0 or numbers[1] < _BEFORE_FIRST:
        raise FormatError(f"{name}: expected ledger:entry, found none")
    return numbers[0], numbers[1]


def _number(fields: object, name: str) -> int:
    value = fields.get(name) if isinstance(fields, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST_LEDGERS:
        raise FormatError(f"ledgers: expected a number {name} from 0 on, found none")
    return value
