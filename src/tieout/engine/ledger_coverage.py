"""What a ledger's coverage says, from its bounds, its counts and the rows that could not be read."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.counting import NULL_WORDS, Counts
from tieout.engine.evidence import EARLIEST_PLAUSIBLE, LedgerCoverage
from tieout.engine.ledger import TIME_COLUMN
from tieout.engine.sources.covering import bounds_of, tolerance_holds
from tieout.engine.sources.lines import line_numbers
from tieout.engine.sources.paths import local_path, name_of
from tieout.engine.sources.source import BLOCK, COUNT, FAULT, FILE, ROW, TEXT, Reading, Request
from tieout.model import Identity, Ledger, Window

_NAMED_ROWS: Final = 5
_NULL_WORDS: Final = ", ".join(NULL_WORDS)
_NO_MESSAGE: Final = {
    Ledger.PRODUCED: "sends of messages that nothing names",
    Ledger.DELIVERED: "effects of messages that nothing names",
    Ledger.READ: "reads of messages that nothing names",
}
_COUNTED_SINGLY: Final = (Ledger.PRODUCED, Ledger.DELIVERED, Ledger.READ)
"""Ledgers in which a row that occurs twice is two sends, effects or reads."""


def doubled_by(rows: DataFrame, ledger: Ledger, copies: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return a sentence for each file with rows in the ledger that is a copy of another file, byte for byte."""
    if not copies or ledger not in _COUNTED_SINGLY:
        return ()
    files = rows.where(F.col(FAULT).isNull() & F.col(FILE).isNotNull()).select(FILE).distinct().collect()
    with_rows = {str(local_path(row[FILE])) for row in files}
    return tuple(sentence for path, sentence in copies if path in with_rows)


def faults_named_in(rows: DataFrame, base_dir: Path, unparsed: int) -> tuple[str, ...]:
    """Return one line for each of the first rows that did not conform, in the order of files and lines."""
    first = (
        rows.where(F.col(FAULT).isNotNull())
        .orderBy(FILE, BLOCK, ROW)
        .select(FILE, TEXT, FAULT, COUNT if COUNT in rows.columns else F.lit(1).alias(COUNT))
        .limit(_NAMED_ROWS)
        .collect()
    )
    places = [place for place, row in enumerate(first) if row[FILE] is not None and row[TEXT] is not None]
    numbers = dict(zip(places, line_numbers([(first[p][FILE], first[p][TEXT]) for p in places]), strict=True))
    named = []
    for place, row in enumerate(first):
        file = "" if row[FILE] is None else f"{name_of(local_path(row[FILE]), base_dir)}: "
        number = numbers.get(place)
        several = f" ({row[COUNT]} records)" if (row[COUNT] or 1) > 1 else ""
        fault = f"{row[FAULT]}{several}"
        named.append(f"{file.removesuffix(': ')}:{number}: {fault}" if number else f"{file}{fault}")
    more = unparsed - sum(row[COUNT] or 1 for row in first)
    return (*named, *((f"{more} more rows could not be read",) if more else ()))


def ledger_coverage(
    rows: DataFrame,
    contract: Contract,
    window: Window,
    request: Request,
    reading: Reading,
    counts: Counts,
    samples: tuple[str, ...],
) -> LedgerCoverage:
    """Return the coverage of the conformed rows; `counts` are of all rows, `samples` are notes on what was read."""
    ledger, reach = request.ledger, request.reach
    bounds = bounds_of(
        rows, ledger, contract, window, reading.read_at, reading.complete_until, now=request.now
    )
    spec = contract.ledgers[ledger]
    presumed = None if spec.coverage == "declared" else reading.presumed_from
    begins = (bounds.covers_from, reading.complete_from, presumed, None if reach is None else reach.begins_at)
    time = TIME_COLUMN[ledger]
    dating = (
        f"{counts.undated} rows without {time}" if counts.undated else "",
        f"{counts.implausible} rows with {time} before 1971 or in the future" if counts.implausible else "",
        f"{counts.null_words} rows with one of {_NULL_WORDS} as message_id: nullif(…) makes it none"
        if counts.null_words
        else "",
        f"{counts.without_identity} rows without message_id: {_NO_MESSAGE[ledger]}"
        if counts.without_identity and contract.identity is Identity.MESSAGE_ID and ledger in _NO_MESSAGE
        else "",
    )
    lacking = (
        f"{count} rows are in files without {name}, which other files have: what they carry is unverifiable"
        for name, count in counts.lacking
    )
    return LedgerCoverage(
        is_present=reading.is_present,
        covers_from=max((time for time in begins if time is not None), default=None),
        complete_until=None if bounds.complete_until is None else bounds.complete_until.astimezone(UTC),
        names_all_producers=bounds.names_all_producers,
        is_within_tolerance=tolerance_holds(spec, counts.rows, counts.unparsed, reading.unparsed_inputs),
        has_sequence_gaps=bounds.has_sequence_gaps,
        silent=bounds.silent,
        stated_by=bounds.stated_by,
        is_by_own_times=bounds.is_by_own_times,
        rows=counts.rows,
        unparsed=counts.unparsed + reading.unparsed_inputs,
        undated=counts.undated,
        reversed=counts.reversed,
        unset=counts.unset if window.start >= EARLIEST_PLAUSIBLE else 0,
        ahead=counts.ahead,
        digests=reading.digests,
        notes=(*reading.notes, *samples, *(note for note in dating if note), *lacking, *bounds.notes),
        unknown=counts.unknown,
        is_share_group=reading.is_share_group,
    )
