"""What the oracle is given: the ledgers' rows, how far they cover, and the log's bounds.

The oracle writes docs/reference/taxonomy.md down once more, slow and obvious, over plain lists of dicts. It shares no
code with the engine: what both get wrong, both must have read wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import inf
from typing import Any

from tieout.contracts import Contract
from tieout.model import Ledger, OffsetRange, Window

Row = dict[str, Any]
"""One canonical row; a column that is not there reads as None."""

Place = tuple[str, int]
"""A topic and one of its partitions."""

Position = tuple[str, int, int]
"""A topic, a partition and an offset."""

BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)
_OUR_ROWS_ONLY = (
    *(Ledger.DELIVERED, Ledger.READ, Ledger.COMMITTED, Ledger.MIRRORED, Ledger.ASSIGNED),
    *(Ledger.FILTERED, Ledger.DEAD_LETTERS, Ledger.STAGED),
)
_CLOCKS_ARE_SET = datetime(1971, 1, 1, tzinfo=UTC)
_UNDATED_UNCOVERS = {
    Ledger.PRODUCED: "attempted_at",
    Ledger.DELIVERED: "processed_at",
    Ledger.READ: "processed_at",
}


@dataclass(frozen=True)
class OracleCoverage:
    """How far one ledger's absence proves something; a `complete_until` of None means nowhere.

    `is_share_group` says that the source shows the group to be a share group.
    """

    covers_from: datetime | None = None
    complete_until: datetime | None = None
    is_sound: bool = True
    names_all_producers: bool = False
    is_share_group: bool = False


@dataclass(frozen=True)
class Bounds:
    """What the log said of one partition: its offsets are `[start, end)`, stable below `stable`."""

    start: int
    is_start_stated: bool
    stable: int
    end: int
    observed_at: datetime | None
    policy: str
    is_sparse: bool
    is_end_stated: bool


@dataclass(frozen=True)
class History:
    """One window's evidence under one contract."""

    contract: Contract
    window: Window
    ledgers: dict[Ledger, list[Row]]
    coverage: dict[Ledger, OracleCoverage]
    present: dict[Ledger, frozenset[str]] | None = None
    gone: frozenset[str] = frozenset()

    def rows(self, ledger: Ledger) -> list[Row]:
        """Return the ledger's rows without those of other consumer groups (interpretation 5)."""
        return self._ours.get(ledger, [])

    @cached_property
    def _ours(self) -> dict[Ledger, list[Row]]:
        groups = (None, self.contract.group)
        return {
            ledger: [
                row for row in rows if ledger not in _OUR_ROWS_ONLY or row.get("consumer_group") in groups
            ]
            for ledger, rows in self.ledgers.items()
        }

    def has(self, ledger: Ledger) -> bool:
        """Return whether the ledger is declared and there."""
        return ledger in self.ledgers

    def has_column(self, ledger: Ledger, column: str) -> bool:
        """Return whether the ledger's source has the column."""
        if not self.has(ledger):
            return False
        return self.present is None or column in self.present.get(ledger, frozenset())

    @cached_property
    def output(self) -> Ledger:
        """The ledger whose rows make effects: `delivered`, or `read` where it alone is there."""
        only_read = self.has(Ledger.READ) and Ledger.DELIVERED not in self.contract.ledgers
        return Ledger.READ if only_read else Ledger.DELIVERED

    def is_sound(self, ledger: Ledger) -> bool:
        """Return whether absence from the ledger can prove anything at all."""
        found = self.coverage.get(ledger)
        return self.has(ledger) and found is not None and found.is_sound and found.complete_until is not None

    def covers(self, ledger: Ledger, start: datetime, end: datetime) -> bool:
        """Return whether the ledger is complete over `[start, end]`."""
        if not self.is_sound(ledger):
            return False
        found = self.coverage[ledger]
        return (found.covers_from or BEGINNING) <= start and end <= (found.complete_until or BEGINNING)

    def covers_from(self, ledger: Ledger, start: datetime) -> bool:
        """Return whether the ledger reaches back to the time."""
        return self.is_sound(ledger) and (self.coverage[ledger].covers_from or BEGINNING) <= start

    def accounts(self, start: datetime, end: datetime) -> bool:
        """Return whether all that could account for a message is complete over `[start, end]` (25)."""
        aside = [one for one in (Ledger.FILTERED, Ledger.DEAD_LETTERS) if one in self.contract.ledgers]
        return all(self.covers(ledger, start, end) for ledger in (self.output, *aside))

    def covers_what_it_must(self, ledger: Ledger) -> bool:
        """Return whether a declared ledger covers the window, and the grace where it is the consumer's (1, 2)."""
        column = _UNDATED_UNCOVERS.get(ledger)
        if column and any(self.is_undated(row.get(column)) for row in self.rows(ledger)):
            return False
        if ledger is Ledger.LOG and not all(map(self._shows_range, self.window.offsets)):
            return False
        if ledger is Ledger.PRODUCED and any(map(_is_answered_before, self.rows(ledger))):
            return False
        is_upstream = ledger in (Ledger.PRODUCED, Ledger.LOG)
        return self.covers(ledger, self.window.start, self.window.end if is_upstream else self.grace_end)

    def is_undated(self, time: datetime | None) -> bool:
        """Return whether a row has no time, or one of a clock that was never set."""
        return time is None or time < _CLOCKS_ARE_SET <= self.window.start

    def _shows_range(self, one: OffsetRange) -> bool:
        bounds = self.bounds.get((one.topic, one.partition))
        return bounds is not None and bounds.start <= one.start and one.end <= bounds.end

    @cached_property
    def uncovered(self) -> list[Ledger]:
        """The declared ledgers that are absent or do not cover what they must."""
        return [ledger for ledger in self.contract.ledgers if not self.covers_what_it_must(ledger)]

    @property
    def grace_end(self) -> datetime:
        """When the window's grace is over."""
        return self.window.end + self.contract.grace

    @property
    def skew(self) -> timedelta:
        """How far two hosts' clocks may be apart."""
        return self.contract.clock_skew

    def in_window(self, time: datetime | None) -> bool:
        """Return whether the time is in `[start, end)`; no time is in no window."""
        return time is not None and self.window.start <= time < self.window.end

    def holds(self, time: datetime | None, at: Position | None) -> bool:
        """Return whether the window has what lies there: by its position, if windows are ranges of offsets (78)."""
        if not self.window.offsets or at is None:
            return self.in_window(time)
        return any(
            (one.topic, one.partition) == at[:2] and at[2] in range(one.start, one.end)
            for one in self.window.offsets
        )

    @cached_property
    def bounds(self) -> dict[Place, Bounds]:
        """Per partition of the log ledger its bounds (interpretation 3)."""
        places: dict[Place, list[Row]] = {}
        for row in self.rows(Ledger.LOG):
            if row.get("topic") is not None and row.get("partition") is not None:
                places.setdefault((row["topic"], row["partition"]), []).append(row)
        return {place: _bounds(rows) for place, rows in places.items()}

    @cached_property
    def records(self) -> dict[Position, Row]:
        """Every log row with a position, control records too; of several at one the latest leader's."""
        rows = sorted(
            self.rows(Ledger.LOG), key=lambda row: (row.get("leader_epoch") or 0, repr(sorted(row.items())))
        )
        return {at: row for row in rows if (at := position(row)) is not None}

    def epoch_end(self, place: Place, epoch: int | None) -> float:
        """Return where the first record of a newer leader than this one's lies; infinity where none is known."""
        if epoch is None:
            return inf
        newer = [
            at[2]
            for at, row in self.records.items()
            if at[:2] == place and row.get("leader_epoch") is not None and row["leader_epoch"] > epoch
        ]
        return min(newer, default=inf)

    def log_covers(self, at: Position, asserted_at: datetime | None) -> bool:
        """Return whether a record's absence from this position means that the log lacks it (interpretation 4)."""
        bounds = self.bounds.get(at[:2])
        if not self.is_sound(Ledger.LOG) or bounds is None or at[2] < bounds.start:
            return False
        coverage = self.coverage[Ledger.LOG]
        if asserted_at is not None and (coverage.covers_from or BEGINNING) > asserted_at:
            return False
        until = coverage.complete_until or BEGINNING
        if at[2] < bounds.end:
            return asserted_at is None or asserted_at <= until
        return asserted_at is not None and (bounds.observed_at or until) >= asserted_at + self.skew

    def is_expired(self, at: Position) -> bool:
        """Return whether the position lies below the start that the log states (3)."""
        bounds = self.bounds.get(at[:2])
        is_below = bounds is not None and bounds.is_start_stated and at[2] < bounds.start
        return self.is_sound(Ledger.LOG) and is_below

    def is_gone(self, topic: str) -> bool:
        """Return whether the topic was deleted, as the log shows that has another of its name (86)."""
        return self.is_sound(Ledger.LOG) and topic in self.gone

    def is_written(self, record: Row) -> bool:
        """Return whether the record is data that no transaction holds back or took away (interpretation 12)."""
        return not record.get("is_control") and state_of(record) in ("none", "committed")

    def is_visible(self, record: Row) -> bool:
        """Return whether a read_committed reader could have read the record."""
        at = position(record)
        return at is not None and self.is_written(record) and at[2] < self.bounds[at[:2]].stable


def position(row: Row) -> Position | None:
    """Return where in the log the row says it is; offset -1 is no offset."""
    topic, partition, offset = row.get("topic"), row.get("partition"), row.get("offset")
    if topic is None or partition is None or offset is None or offset < 0:
        return None
    return topic, partition, offset


def state_of(record: Row) -> str:
    """Return the record's transaction state; none is `none`."""
    return record.get("transaction_state") or "none"


def is_data(record: Row) -> bool:
    """Return whether the record asserts its position: data that no transaction took back, open data too."""
    return not record.get("is_control") and state_of(record) != "aborted"


def is_log_append(record: Row) -> bool:
    """Return whether the broker stamped the record, so that its time is not the one that was sent."""
    return "append" in (record.get("timestamp_type") or "").lower()


def undated_last(time: datetime | None) -> datetime:
    """Return the time for sorting, a missing one after all others."""
    return NEVER if time is None else time


def known(values: Iterable[Any]) -> set[Any]:
    """Return the distinct values that are not None."""
    return {value for value in values if value is not None}


def contradict(one: Any, other: Any) -> bool:
    """Return whether both values are known and differ."""
    return one is not None and other is not None and one != other


def _is_answered_before(row: Row) -> bool:
    """Return whether the attempt was completed before it was made, by more than a second (82)."""
    sent, done = row.get("attempted_at"), row.get("completed_at")
    return sent is not None and done is not None and sent - done > timedelta(seconds=1)


def _bounds(rows: list[Row]) -> Bounds:
    latest = max(rows, key=lambda row: row.get("observed_at") or BEGINNING)
    offsets = [row["offset"] for row in rows if row.get("offset") is not None]
    opened = [row["offset"] for row in rows if row.get("offset") is not None and state_of(row) == "open"]

    def stated(column: str, otherwise: int) -> int:
        value = latest.get(column)
        return otherwise if value is None else value

    seen_to = (
        max(offsets) + 1 if offsets else max(stated("log_start_offset", 0), stated("last_stable_offset", 0))
    )
    end = stated("end_offset", seen_to)
    return Bounds(
        start=stated("log_start_offset", min(offsets, default=0)),
        is_start_stated=latest.get("log_start_offset") is not None,
        stable=stated("last_stable_offset", min(opened, default=end)),
        end=end,
        observed_at=latest.get("observed_at"),
        policy=(latest.get("cleanup_policy") or "").lower(),
        is_sparse=any(row.get("is_sparse") for row in rows),
        is_end_stated=latest.get("end_offset") is not None,
    )
