"""The coverage of a ledger: what its contract or source declares, checked against its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from tieout.contracts import Contract, CoverageSpec, LedgerSpec
from tieout.contracts.expressions import is_moment, with_moment
from tieout.contracts.times import format_time, parse_time
from tieout.encodings import opened
from tieout.engine.evidence import EARLIEST_PLAUSIBLE
from tieout.engine.keys import SESSION
from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.engine.sources.casting import strict
from tieout.engine.sources.expressions import NOT_ANALYSED, reason_of, require_plain
from tieout.errors import SourceError
from tieout.model import Ledger, Window

LATEST_AHEAD: Final = timedelta(days=1)
"""How far ahead of the run's clock a time may be and still count as plausible."""
_SESSION_COLUMNS: Final[Mapping[Ledger, tuple[str, ...]]] = {
    Ledger.PRODUCED: SESSION,
    Ledger.DELIVERED: ("consumer_group", "consumer_id"),
    Ledger.READ: ("consumer_group", "consumer_id"),
    Ledger.ASSIGNED: ("consumer_group", "consumer_id"),
    Ledger.COMMITTED: ("consumer_group",),
    Ledger.MIRRORED: ("consumer_group",),
}
_NAMES_SHOWN: Final = 5
_DECLARED_BY: Final = "the contract: declared"


@dataclass(frozen=True)
class Bounds:
    """The period in which a ledger is complete, its known producers, and notes.

    `is_by_own_times` says that the end was derived from the rows' times, `silent` names the declared producers without
    rows, and `stated_by` says who stated the end.
    """

    covers_from: datetime | None = None
    complete_until: datetime | None = None
    names_all_producers: bool = False
    has_sequence_gaps: bool = False
    notes: tuple[str, ...] = ()
    is_by_own_times: bool = False
    silent: tuple[str, ...] = ()
    stated_by: str | None = None


def bounds_of(
    rows: DataFrame,
    ledger: Ledger,
    contract: Contract,
    window: Window,
    read_at: datetime,
    complete_until: datetime | None,
    *,
    now: datetime | None = None,
) -> Bounds:
    """Return the period in which the ledger is complete, never beyond the later of `now` and `read_at`.

    `declared` is complete over a past window, its margin and its grace. `complete_until` is the source's own statement,
    used if the contract has none. A statement about the future would prove a message lost that is still in flight.

    Raises:
        SourceError: if the contract's aggregate is not valid.
    """
    spec = contract.ledgers[ledger].coverage
    if spec == "declared":
        bounds = _declared(contract, window, read_at)
    elif isinstance(spec, CoverageSpec):
        bounds = _by_contract(rows, ledger, contract, spec, read_at, complete_until)
    else:
        bounds = _by_source(complete_until)
    return _until_read(bounds, max(read_at, now or read_at))


def _until_read(bounds: Bounds, latest: datetime) -> Bounds:
    """Return the bounds cut at the latest time of reading, with a note if they are cut."""
    until = bounds.complete_until
    if until is None or until <= latest:
        return bounds
    note = f"said to be complete until {format_time(until)}, but read at {format_time(latest)}: counts until then"
    return replace(bounds, complete_until=latest, notes=(*bounds.notes, note))


def _by_source(complete_until: datetime | None) -> Bounds:
    """Return the bounds stated by the source, if the contract has none."""
    if complete_until is None:
        return Bounds(notes=("the contract does not say how far this ledger is complete",))
    return Bounds(complete_until=complete_until, stated_by="the source")


def _by_contract(
    rows: DataFrame,
    ledger: Ledger,
    contract: Contract,
    spec: CoverageSpec,
    read_at: datetime,
    complete_until: datetime | None,
) -> Bounds:
    """Return the bounds of the contract's aggregate or watermark file, else the source's, with the other fields."""
    until, until_notes = _until(rows, ledger, spec, contract.base_dir, read_at)
    if spec.complete_until is None and spec.watermark_file is None:
        until = complete_until
    unlisted = (
        _unlisted_producers(rows, spec.producers) if ledger is Ledger.PRODUCED and spec.producers else ()
    )
    silent = _silent(rows, ledger, spec.producers, read_at)
    begins_later = spec.complete_from is not None or contract.ledgers[ledger].reach is not None
    has_gaps, gap_notes = (
        _gaps(rows, begins_later=begins_later) if spec.sequences == "gapless" else (False, ())
    )
    return Bounds(
        covers_from=spec.complete_from,
        complete_until=until,
        names_all_producers=bool(spec.producers) and not unlisted,
        has_sequence_gaps=has_gaps,
        notes=(*until_notes, *_silent_notes(silent), *unlisted, *gap_notes),
        silent=silent,
        stated_by=None if until is None else _stated_by(spec),
        is_by_own_times=spec.complete_until is not None and _uses_columns(spec.complete_until, ledger),
    )


def _declared(contract: Contract, window: Window, read_at: datetime) -> Bounds:
    """Return the bounds of `declared`; they never include a time after the source was read."""
    start, end = window.start - contract.margin, window.end + contract.grace
    if window.offsets or read_at >= window.end:
        return Bounds(start, end, names_all_producers=True, stated_by=_DECLARED_BY)
    note = f"declared to be complete, but read at {format_time(read_at)}, before the window was over"
    return Bounds(start, read_at, names_all_producers=True, notes=(note,), stated_by=_DECLARED_BY)


def _stated_by(spec: CoverageSpec) -> str:
    """Return who states that the ledger is complete."""
    if spec.watermark_file is not None:
        return f"watermark file {spec.watermark_file}"
    if spec.complete_until is not None:
        return f"the contract: complete_until: {spec.complete_until}"
    return "the source"


def with_plausible_time(rows: DataFrame, ledger: Ledger, now: datetime) -> DataFrame:
    """Return the rows with plausible times: one row of 2099 must not make a ledger complete until then."""
    time = F.col(TIME_COLUMN[ledger])
    return rows.where(time.between(F.lit(EARLIEST_PLAUSIBLE), F.lit(now + LATEST_AHEAD)))


def _until(
    rows: DataFrame, ledger: Ledger, spec: CoverageSpec, base_dir: Path, read_at: datetime
) -> tuple[datetime | None, tuple[str, ...]]:
    """Return the earlier time of aggregate and watermark file; None if either has none."""
    times: list[datetime | None] = []
    notes: tuple[str, ...] = ()
    if spec.complete_until is not None:
        until, notes = _stated(rows, ledger, spec, spec.complete_until, read_at)
        times.append(until)
    if spec.watermark_file is not None:
        until, problem = _watermark(base_dir / spec.watermark_file, spec.watermark_file)
        times.append(until)
        notes = (*notes, *problem)
    known_times = [until for until in times if until is not None]
    return (min(known_times) if known_times and len(known_times) == len(times) else None), notes


def _stated(
    rows: DataFrame, ledger: Ledger, spec: CoverageSpec, text: str, read_at: datetime
) -> tuple[datetime | None, tuple[str, ...]]:
    try:
        return parse_time(text), ()
    except ValueError:
        pass
    if is_moment(text):
        return read_at, ()
    aggregate = with_moment(text, f"TIMESTAMP '{format_time(read_at)}'")
    if not _uses_columns(text, ledger):
        return _only_time(rows.sparkSession.range(1), ledger, aggregate), ()
    until, notes = _lowest_watermark(rows, ledger, spec.producers, aggregate, read_at)
    return (None if until is None else min(until, read_at)), notes


def _uses_columns(text: str, ledger: Ledger) -> bool:
    """Return whether an aggregate uses a column of the ledger."""
    return any(re.search(rf"\b{name}\b", text, re.IGNORECASE) for name in SCHEMAS[ledger].names)


def _only_time(one_row: DataFrame, ledger: Ledger, expression: str) -> datetime | None:
    """Return the value of an expression without columns, as a time."""
    times = _aggregated(one_row, ledger, (), expression)
    row = times.head()
    return None if row is None or row["until"] is None else _aware(row["until"])


def _lowest_watermark(
    rows: DataFrame, ledger: Ledger, producers: tuple[str, ...], aggregate: str, read_at: datetime
) -> tuple[datetime | None, tuple[str, ...]]:
    """Return the minimum over the declared producers or, without them, over the sessions in the rows.

    The slowest producer decides: later rows of another one prove nothing about it.
    """
    plausible = with_plausible_time(rows, ledger, read_at)
    keys = ("producer_id",) if producers else _SESSION_COLUMNS.get(ledger, ())
    if producers:
        plausible = plausible.where(F.col("producer_id").isin(*producers))
    times = _aggregated(plausible, ledger, keys, aggregate)
    lowest = times.agg(
        F.min("until").alias("until"),
        F.count("*").alias("sources"),
        F.count("until").alias("stated"),
    ).head()
    if lowest is None or lowest["stated"] < max(1, lowest["sources"]):
        return None, ("no row says how far this ledger is complete",)
    if lowest["sources"] < len(set(producers)):
        return None, ()
    return _aware(lowest["until"]), ()


def _aggregated(rows: DataFrame, ledger: Ledger, keys: tuple[str, ...], aggregate: str) -> DataFrame:
    """Return the aggregate as a time, per value of the keys."""
    place = f"ledgers.{ledger}.coverage.complete_until"
    require_plain(rows, {place: aggregate})
    try:
        raw = rows.groupBy(*keys).agg(F.expr(aggregate).alias("raw"))
    except NOT_ANALYSED as error:
        raise SourceError(
            f"{place}: expected an aggregate over the ledger's columns, "
            f"such as max({TIME_COLUMN[ledger]}), found {aggregate}: {reason_of(error, aggregate)}; "
            f"the ledger's columns are: {', '.join(SCHEMAS[ledger].names)}"
        ) from None
    until = strict(F.col("raw"), raw.schema["raw"].dataType, TimestampType())
    return raw.select(*keys, until.alias("until"))


def _watermark(path: Path, name: str) -> tuple[datetime | None, tuple[str, ...]]:
    """Return the time in the file, or the reason why there is none."""
    try:
        with opened(path) as file:
            return parse_time(file.read(200).strip()), ()
    except (OSError, EOFError) as error:
        return None, (f"watermark file {name}: {getattr(error, 'strerror', None) or error}",)
    except ValueError:
        return None, (f"watermark file {name}: expected one time such as 2026-11-20T10:00:00Z",)


def _silent(rows: DataFrame, ledger: Ledger, producers: tuple[str, ...], now: datetime) -> tuple[str, ...]:
    """Return the declared producers without a row with a plausible time: their files may be missing."""
    if not producers:
        return ()
    is_declared = F.col("producer_id").isin(*producers)
    present = (
        with_plausible_time(rows, ledger, now).where(is_declared).select("producer_id").distinct().collect()
    )
    return tuple(sorted(set(producers) - {row["producer_id"] for row in present}))


def _silent_notes(silent: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"declared producer {name} has no row in what was read" for name in silent[:_NAMES_SHOWN])


def _unlisted_producers(rows: DataFrame, producers: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note if rows have producers that the contract does not list."""
    is_listed = F.coalesce(F.col("producer_id").isin(*producers), F.lit(False))
    unlisted = (
        rows.where(~is_listed).select("producer_id").distinct().orderBy("producer_id").limit(_NAMES_SHOWN)
    )
    shown = [row["producer_id"] or "(none)" for row in unlisted.collect()]
    return (f"producers that the contract does not list: {', '.join(shown)}",) if shown else ()


def _gaps(rows: DataFrame, *, begins_later: bool) -> tuple[bool, tuple[str, ...]]:
    """Return whether a session lacks a number between its first and its last; a resend is not a gap.

    Unless the ledger starts later, a session's first number is 0 or 1: with a higher one, earlier numbers are missing.
    """
    sessions = rows.groupBy(*SESSION).agg(
        F.min("sequence").alias("first"),
        F.max("sequence").alias("last"),
        F.count_distinct("sequence").alias("numbers"),
        F.count_if(F.col("sequence").isNull()).alias("unnumbered"),
    )
    between = F.col("last") - F.col("first") + 1 - F.col("numbers")
    missing = F.coalesce(between, F.lit(0))
    is_headless = F.lit(False) if begins_later else F.coalesce(F.col("first") > 1, F.lit(False))
    gapped = sessions.select(
        *SESSION, "first", missing.alias("missing"), "unnumbered", is_headless.alias("is_headless")
    ).where((F.col("missing") > 0) | (F.col("unnumbered") > 0) | F.col("is_headless"))
    with_gaps = gapped.orderBy(*SESSION).limit(_NAMES_SHOWN).collect()
    return bool(with_gaps), tuple(note for row in with_gaps for note in _gap_notes(row))


def _gap_notes(row: Row) -> Iterator[str]:
    """Yield notes on the missing numbers of a session."""
    session = f"producer {row['producer_id'] or '(none)'}, session {row['producer_session'] or '(none)'}"
    if row["missing"] or row["unnumbered"]:
        yield f"{session}: {row['missing']} sequence numbers missing, {row['unnumbered']} rows without one"
    if row["is_headless"]:
        yield (
            f"{session}: begins with number {row['first']}; give complete_from or reach if the ledger begins after that"
        )


def _aware(moment: datetime) -> datetime:
    """Return a time that Spark returned in this process's zone, in UTC."""
    return moment.astimezone(UTC)


def tolerance_holds(spec: LedgerSpec, rows: int, unparsed: int, unparsed_inputs: int) -> bool:
    """Return whether the share of unreadable rows is tolerated; an unreadable input never is."""
    if unparsed_inputs:
        return False
    return unparsed == 0 or unparsed / (rows + unparsed) <= spec.tolerance.unparsed_ratio
