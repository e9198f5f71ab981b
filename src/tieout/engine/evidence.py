"""Evidence: the conformed rows of one ledger, and how far their absence proves anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import DataFrame

from tieout.engine.limits import is_time
from tieout.model import Ledger

COARSEST_CLOCK: Final = timedelta(seconds=1)
"""How far two times of one clock may be in the wrong order if they are kept with different precision."""

EARLIEST_PLAUSIBLE: Final = datetime(1971, 1, 1, tzinfo=UTC)
"""Before this a time is an unset clock, not a time."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def plausible(millis: int | None) -> datetime | None:
    """Return milliseconds since 1970 as a time, None where no clock that was set shows it.

    >>> plausible(-1), plausible(1_795_788_000_000)
    (None, datetime.datetime(2026, 11, 27, 14, 0, tzinfo=datetime.timezone.utc))
    """
    if millis is None or not is_time(millis):
        return None
    time = _EPOCH + timedelta(milliseconds=millis)
    return time if time >= EARLIEST_PLAUSIBLE else None


@dataclass(frozen=True)
class LedgerCoverage:
    """What part of the events one ledger's evidence shows (taxonomy section 1, Coverage).

    `covers_from` None means from the beginning, `complete_until` None means that nothing is covered. `rows` counts the
    conformed rows, `unparsed` those that could not be read or conformed, `undated` those without a time. `lacking` says
    what is missing of the offsets that a window asks for. `reversed` counts attempts that were answered before they
    were made, `unset` rows whose time is that of an unset clock, if the window's is not. `ahead` counts rows whose
    time, or that of their answer, lies more than a day after the run's clock. `doubled` names files with the same bytes
    as another one. `unknown` counts, per content column, the rows in which it is not known; see `known_contents`.
    `is_by_own_times`: `complete_until` comes from the times of the ledger's own rows. `is_share_group`: the source
    shows that the group is a share group, whose members take records one by one (KIP-932). `silent` names the declared
    producers of which nothing was read; `stated_by` says who states that the ledger is complete. `doubts`
    say where the contract does not seem to fit the rows.
    """

    is_present: bool
    covers_from: datetime | None
    complete_until: datetime | None
    names_all_producers: bool
    is_within_tolerance: bool
    has_sequence_gaps: bool
    rows: int
    unparsed: int
    undated: int
    digests: tuple[str, ...]
    notes: tuple[str, ...]
    lacking: tuple[str, ...] = ()
    reversed: int = 0
    unset: int = 0
    ahead: int = 0
    doubled: tuple[str, ...] = ()
    unknown: tuple[tuple[str, int], ...] = ()
    is_by_own_times: bool = False
    is_share_group: bool = False
    silent: tuple[str, ...] = ()
    stated_by: str | None = None
    doubts: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether the evidence states how far it is complete, and nothing contradicts that."""
        has_all = not self.has_sequence_gaps and not self.silent
        is_complete = self.is_within_tolerance and has_all and not self.doubled and not self.doubts
        return self.is_present and is_complete and self.complete_until is not None

    def covers(self, start: datetime, end: datetime) -> bool:
        """Return whether the evidence is complete over `[start, end]`."""
        if not self.is_sound or self.complete_until is None:
            return False
        return (self.covers_from is None or self.covers_from <= start) and self.complete_until >= end


@dataclass(frozen=True)
class Suspicions:
    """Doubts that the evidence raises about itself: see `suspicions.py`.

    `doubted` are the classes and flags that it does not confirm, with the topics where it does not. `lacking` is what
    ledgers lack in their coverage, `notes` are further notes on them, `limits` says what stays open because of it.
    """

    doubted: Mapping[str, frozenset[str | None]] = field(default_factory=dict)
    lacking: Mapping[Ledger, tuple[str, ...]] = field(default_factory=dict)
    notes: Mapping[Ledger, tuple[str, ...]] = field(default_factory=dict)
    limits: tuple[str, ...] = ()


NOTHING_SUSPECTED: Final = Suspicions()


@dataclass(frozen=True)
class Evidence:
    """One ledger as the rules see it: rows in the canonical schema, and which of its columns the source has.

    `may_lack_id`, `may_lack_position`, `may_lack_identity`: some row may be without `message_id`, without an offset,
    without both. Steps that only such rows need are skipped where there are none. `empty` has, per content column, its
    value for an empty text, if the source writes an empty text and null alike.
    """

    ledger: Ledger
    rows: DataFrame
    present: frozenset[str]
    coverage: LedgerCoverage
    may_lack_id: bool = True
    may_lack_identity: bool = True
    may_lack_position: bool = True
    empty: Mapping[str, str] = field(default_factory=dict)
