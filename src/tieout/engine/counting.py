"""Counts of a ledger's rows, from the pass that reads them: unreadable ones, undated ones and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.contracts import LedgerSpec
from tieout.contracts.columns import CONTENT_COLUMNS
from tieout.engine.evidence import COARSEST_CLOCK, EARLIEST_PLAUSIBLE
from tieout.engine.known_contents import unsaid_contents
from tieout.engine.ledger import TIME_COLUMN
from tieout.engine.scope import is_of_group
from tieout.engine.sources.conforming import Conformed
from tieout.engine.sources.covering import LATEST_AHEAD
from tieout.engine.sources.source import COUNT, FAULT, Request
from tieout.model import Ledger

_UNKNOWN, _LACKING = "unknown", "lacking"
NULL_WORDS: Final = (r"\N", "NULL", "null", "None", "nan", "NaN")
"""What programs write instead of a missing id."""


@dataclass(frozen=True)
class Counts:
    """What one pass over a ledger's rows counts."""

    rows: int = 0
    unparsed: int = 0
    undated: int = 0
    implausible: int = 0
    unset: int = 0
    ahead: int = 0
    reversed: int = 0
    without_id: int = 0
    without_identity: int = 0
    without_position: int = 0
    null_words: int = 0
    of_others: int = 0
    with_outcome: int = 0
    unknown: tuple[tuple[str, int], ...] = ()
    lacking: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> Counts:
        """Return the counts by the names that `counts_of` gives them."""
        of_contents = {
            of: tuple(
                (name, counted[f"{of}_{name}"]) for name in CONTENT_COLUMNS if counted.get(f"{of}_{name}")
            )
            for of in (_UNKNOWN, _LACKING)
        }
        single = {name: count for name, count in counted.items() if name in cls.__dataclass_fields__}
        return cls(**single, unknown=of_contents[_UNKNOWN], lacking=of_contents[_LACKING])


def counts_of(found: Conformed, spec: LedgerSpec, request: Request, group: str) -> dict[str, Column]:
    """Return the aggregates of `Counts` by name, to be computed while the rows are read; `group` is the judged one."""
    ledger, now = request.ledger, request.now
    time, is_readable = F.col(TIME_COLUMN[ledger]), F.col(FAULT).isNull()
    is_unset = time < F.lit(EARLIEST_PLAUSIBLE)
    latest = F.lit(now + LATEST_AHEAD)
    is_ahead = time > latest
    is_implausible = is_unset | is_ahead
    names = found.rows.columns
    lacks_id = F.col("message_id").isNull() if "message_id" in names else F.lit(True)
    is_null_word = F.col("message_id").isin(*NULL_WORDS) if "message_id" in names else F.lit(False)
    lacks_place = F.coalesce(F.col("offset") < 0, F.lit(True)) if "offset" in names else F.lit(True)
    is_reversed = F.lit(False)
    if ledger == Ledger.PRODUCED:
        # As numbers, because Spark adds to a time by way of the calendar. `try_`, as the lowest time has none below.
        earliest = F.try_subtract(F.unix_micros(time), F.lit(COARSEST_CLOCK // timedelta(microseconds=1)))
        is_reversed = F.coalesce(F.unix_micros("completed_at") < earliest, F.lit(False))
        is_ahead |= F.col("completed_at") > latest
    counted = {
        "rows": is_readable,
        "unparsed": ~is_readable,
        "undated": is_readable & time.isNull(),
        "implausible": is_readable & is_implausible,
        "unset": is_readable & is_unset,
        "ahead": is_readable & is_ahead,
        "reversed": is_readable & is_reversed,
        "without_id": is_readable & lacks_id,
        "without_identity": is_readable & lacks_id & lacks_place,
        "without_position": is_readable & lacks_place,
        "null_words": is_readable & is_null_word,
        "with_outcome": is_readable & F.col("outcome").isNotNull() if "outcome" in names else F.lit(False),
        "of_others": is_readable & ~is_of_group(group) if "consumer_group" in names else F.lit(False),
    }
    unsaid = unsaid_contents(ledger, found.present, spec.unknown or ())
    for of, conditions in zip((_UNKNOWN, _LACKING), unsaid, strict=True):
        counted |= {f"{of}_{name}": is_readable & condition for name, condition in conditions.items()}
    counts = {name: F.count_if(condition) for name, condition in counted.items()}
    if COUNT not in names:
        return counts
    unread = F.sum(F.when(~is_readable, F.coalesce(COUNT, F.lit(1))))
    return {**counts, "unparsed": F.coalesce(unread, F.lit(0))}
