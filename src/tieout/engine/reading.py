"""Step one of a run: reads every declared ledger, conforms it to its schema, and states its coverage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tieout.contracts import Contract, FilesSource, LedgerSpec
from tieout.engine.counting import Counts, counts_of
from tieout.engine.doubts import doubts_of
from tieout.engine.evidence import Evidence
from tieout.engine.known_contents import SHOWING
from tieout.engine.ledger import SCHEMAS, TIME_COLUMN
from tieout.engine.ledger_coverage import doubled_by, faults_named_in, ledger_coverage
from tieout.engine.materialising import materialised, no_rows
from tieout.engine.reading_order import in_reading_order
from tieout.engine.rows_not_judged import notes_on_left_out_rows, other_groups
from tieout.engine.session import FOR_EVIDENCE, suited_to
from tieout.engine.sources import READERS
from tieout.engine.sources.columns_by_chance import doubtful_transactions, has_file_offsets
from tieout.engine.sources.conforming import Conformed, conformed, empty_contents
from tieout.engine.sources.folding import folded
from tieout.engine.sources.named_columns import content_columns, number_columns, plain_column, text_columns
from tieout.engine.sources.nanoseconds import AS_NUMBERS
from tieout.engine.sources.source import (
    BLOCK,
    FAULT,
    FILE,
    ROW,
    TEXT,
    Reach,
    Reading,
    Request,
    cluster_failure,
    is_of_spark,
)
from tieout.engine.topic_names import other_names, with_names
from tieout.errors import SourceError, UnreadableTimeError
from tieout.model import POSITION_LEDGERS, SMALL_BYTES, Identity, Ledger, Window

_FILE_OFFSETS: Final = (
    "offset is not read, as no partition is named and several ids share one; a record's is mapped"
)
_OF_PATTERNS: Final = (
    "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION",
    "INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER",
    "INVALID_DATETIME_PATTERN.LENGTH",
    "INVALID_DATETIME_PATTERN.SECONDS_FRACTION",
)
"""Spark's error conditions for date patterns that it does not accept, such as the week years of YYYY."""

_NOTHING_KEPT: Final[Mapping[Ledger, Evidence]] = MappingProxyType({})


def read_evidence(
    spark: SparkSession, contract: Contract, window: Window, now: datetime
) -> dict[Ledger, Evidence]:
    """Return the evidence of every ledger that the contract declares, absent ones included.

    Each ledger is read once and checkpointed, so that every rule sees the same rows. Nothing is filtered by consumer
    group or time here. The session is set to UTC, to strict parsing of times, and to reading times in nanoseconds.

    Raises:
        SourceError: where a source cannot be read as the contract describes it.
        ConnectionNotFoundError: where it names a connection that is not defined.
    """
    return kept_evidence(contract, open_ledgers(spark, contract, window, now))


def open_ledgers(
    spark: SparkSession, contract: Contract, window: Window, now: datetime
) -> dict[Ledger, OpenLedger]:
    """Return every declared ledger with its rows described and none of them read yet, in the order to read them in.

    Raises: what `read_evidence` raises.
    """
    session_settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.legacy.timeParserPolicy": "CORRECTED"}
    for name, value in (session_settings | {AS_NUMBERS: "true"} | FOR_EVIDENCE).items():
        spark.conf.set(name, value)
    return {
        ledger: _opened(spark, contract, window, now, ledger) for ledger in in_reading_order(contract.ledgers)
    }


def kept_evidence(
    contract: Contract, opened: Mapping[Ledger, OpenLedger], kept: Mapping[Ledger, Evidence] = _NOTHING_KEPT
) -> dict[Ledger, Evidence]:
    """Return the evidence of opened ledgers, read once and materialised, in the contract's order.

    `kept` is the evidence of those that were read before.

    Raises:
        SourceError: where an expression of the contract fails on a row.
    """
    evidence = {ledger: kept.get(ledger) or known.kept() for ledger, known in opened.items()}
    return {ledger: evidence[ledger] for ledger in contract.ledgers}


def _opened(
    spark: SparkSession, contract: Contract, window: Window, now: datetime, ledger: Ledger
) -> OpenLedger:
    spec = spec_of(contract, ledger)
    reach = _reach_of(window, ledger, spec)
    plain = text_columns(ledger, spec.columns)
    contents = content_columns(ledger, spec.columns)
    numbers = number_columns(ledger, spec.columns)
    request = Request(
        spark,
        ledger,
        contract.base_dir,
        now,
        plain,
        reach,
        spec.expressions,
        contract.group,
        contents,
        numbers,
        takes_dates=window.end - window.start >= timedelta(days=1),
        is_by_position=contract.identity is Identity.POSITION,
        topic_names=other_names(contract),
    )
    reading = _with_taken_at(READERS[spec.source.kind](spec.source, request), ledger)
    found = None if reading.rows is None else _conformed(reading.rows, spec, request)
    return OpenLedger(contract, window, spec, request, reading, found)


def _with_taken_at(reading: Reading, ledger: Ledger) -> Reading:
    """Return the reading of a group's positions with `taken_at`, when its table was taken, if that is known."""
    rows, taken_at = reading.rows, reading.taken_at
    if ledger not in POSITION_LEDGERS or rows is None or taken_at is None:
        return reading
    if "taken_at" in [name.lower() for name in rows.columns]:
        return reading
    return replace(reading, rows=rows.withColumn("taken_at", F.lit(taken_at)))


def _reach_of(window: Window, ledger: Ledger, spec: LedgerSpec) -> Reach | None:
    if spec.reach is None:
        return None
    return Reach(window.start - spec.reach, plain_column(TIME_COLUMN[ledger], spec.columns))


def _conformed(rows: DataFrame, spec: LedgerSpec, request: Request) -> Conformed:
    """Return the source's rows in the ledger's schema, as far back as it reaches.

    A log is kept whole from its first offset on: a record with an older time must not look like a hole.

    Raises:
        SourceError: where an expression of the contract is none over the source's columns.
    """
    ledger, reach = request.ledger, request.reach
    found = conformed(rows, ledger, spec, takes_dates=request.takes_dates)
    if spec.fold_by:
        lacking = [name for name in spec.fold_by if found.present and name not in found.present]
        if lacking:
            raise SourceError(
                f"ledgers.{ledger}.fold_by: the source has no column {', '.join(lacking)}; map it in columns"
            )
        found = replace(found, rows=folded(found.rows, spec.fold_by))
    found = with_names(found, request.topic_names)
    if reach is None or ledger is Ledger.LOG:
        return found
    return replace(found, rows=found.rows.where(reach.may_hold(F.col(TIME_COLUMN[ledger]))))


@dataclass(frozen=True)
class OpenLedger:
    """A ledger whose source was opened and whose rows, if any, are conformed but not read yet."""

    contract: Contract
    window: Window
    spec: LedgerSpec
    request: Request
    reading: Reading
    found: Conformed | None

    @property
    def is_rescanned(self) -> bool:
        """Whether the rows are many and can be read a second time without being parsed again."""
        is_large = self.reading.size > SMALL_BYTES
        return self.found is not None and self.reading.is_columnar and is_large

    @property
    def counted(self) -> dict[str, Column]:
        """The aggregates over the rows whose values `scanned` takes, by name."""
        if self.found is None:
            return {}
        return counts_of(self.found, self.spec, self.request, self._group)

    @property
    def _group(self) -> str:
        """The group whose rows are judged."""
        return self.contract.group_of(self.request.ledger)

    def kept(self) -> Evidence:
        """Return the evidence, read once and materialised.

        Raises:
            SourceError: where an expression of the contract fails on a row.
        """
        if self.found is None:
            return self._without_rows()
        with suited_to(self.request.spark, is_small=self.reading.size <= SMALL_BYTES):
            reading, found, counts = _kept(self.reading, self.found, self.spec, self.request, self._group)
            return self._evidence(reading, found, counts)

    def scanned(self, counts: Mapping[str, int]) -> Evidence:
        """Return the evidence of rows that were scanned but not materialised, given the values of `counted`."""
        if self.found is None:
            return self._without_rows()
        return self._evidence(self.reading, self.found, Counts.of(counts))

    def _evidence(self, reading: Reading, found: Conformed, counts: Counts) -> Evidence:
        contract, ledger = self.contract, self.request.ledger
        rows = found.rows.where(F.col(FAULT).isNull()).select(*SCHEMAS[ledger].names)
        writes = reading.writes()
        reading = replace(
            reading,
            unparsed_inputs=reading.unparsed_inputs + len(writes.faults),
            notes=(*writes.faults, *writes.notes, *reading.notes),
        )
        samples = faults_named_in(found.rows, contract.base_dir, counts.unparsed) if counts.unparsed else ()
        others = other_groups(rows, self._group, counts)
        source_names = [] if self.reading.rows is None else self.reading.rows.columns
        notes = (
            *samples,
            *found.notes,
            *notes_on_left_out_rows(found.left_out, reading, counts),
            *others.notes,
        )
        present = found.present
        if ledger is Ledger.PRODUCED and has_file_offsets(rows, present, contract):
            rows, present = rows.withColumn("offset", F.lit(None).cast("bigint")), present - {"offset"}
            notes = (*notes, _FILE_OFFSETS)
        coverage = ledger_coverage(rows, contract, self.window, self.request, reading, counts, notes)
        is_produced, has_offsets = ledger is Ledger.PRODUCED, "offset" in present
        lacking = doubtful_transactions(rows, present, contract) if is_produced else ()
        return Evidence(
            ledger=ledger,
            rows=rows,
            present=present,
            coverage=replace(
                coverage,
                doubled=doubled_by(found.rows, ledger, reading.copies),
                lacking=tuple(lacking),
                doubts=tuple(doubts_of(contract, ledger, counts, others, source_names)),
            ),
            may_lack_id=counts.without_id > 0,
            may_lack_identity=counts.without_identity > 0 or (counts.without_id > 0 and not has_offsets),
            may_lack_position=counts.without_position > 0 or not has_offsets,
            empty=self._empty_contents(found.present),
        )

    def _empty_contents(self, present: frozenset[str]) -> Mapping[str, str]:
        """Return the values of the content columns for an empty text, if the source writes it like null."""
        source, ledger = self.spec.source, self.request.ledger
        if not isinstance(source, FilesSource) or source.format != "csv" or ledger not in SHOWING:
            return {}
        return empty_contents(self.request.spark, self.spec.columns, present)

    def _without_rows(self) -> Evidence:
        """Return the evidence of a source that is absent or has nothing readable."""
        ledger = self.request.ledger
        rows = no_rows(self.request.spark, SCHEMAS[ledger])
        return Evidence(
            ledger=ledger,
            rows=rows,
            present=frozenset(),
            coverage=ledger_coverage(
                rows, self.contract, self.window, self.request, self.reading, Counts(), ()
            ),
        )


def spec_of(contract: Contract, ledger: Ledger) -> LedgerSpec:
    """Return the ledger's spec; the output's `effect_key` is the multiplicity's, unless `columns` has one."""
    spec, effect_key = contract.ledgers[ledger], contract.multiplicity.effect_key
    if ledger is not Ledger.DELIVERED or effect_key is None or "effect_key" in spec.columns:
        return spec
    return spec.model_copy(update={"columns": {**spec.columns, "effect_key": effect_key}})


def _kept(
    reading: Reading, first: Conformed, spec: LedgerSpec, request: Request, group: str
) -> tuple[Reading, Conformed, Counts]:
    """Return the conformed rows, materialised, and their counts; inputs that break the job are left out."""
    ledger, found = request.ledger, first
    while reading.rows is not None:
        observation = Observation()
        try:
            counted = counts_of(found, spec, request, group)
            totals = [count.alias(name) for name, count in counted.items()]
            kept = materialised(found.rows.observe(observation, *totals))
            # Spark Connect does not return what it observed during a checkpoint.
            counts = observation.get or kept.agg(*totals).collect()[0].asDict()
            return reading, replace(found, rows=kept), Counts.of(counts)
        except Exception as error:
            reading = _reread(reading, error, f"ledgers.{ledger}")
            if reading.rows is not None:
                found = _conformed(reading.rows, spec, request)
    empty = no_rows(request.spark, SCHEMAS[ledger])
    null_columns = [F.lit(None).cast("string").alias(name) for name in (FAULT, FILE, TEXT)]
    numbers = [F.lit(None).cast("bigint").alias(name) for name in (BLOCK, ROW)]
    return reading, Conformed(empty.select("*", *null_columns, *numbers), frozenset()), Counts()


def _reread(reading: Reading, error: Exception, place: str) -> Reading:
    """Return the reading without the inputs that cannot be read to their end.

    Raises:
        SourceUnreachableError: where a Kafka cluster failed: another run may find it available.
        UnreadableTimeError: where a topic has too many records that its reader cannot read.
        SourceError: where all inputs can be read: then an expression of the contract fails on some row.
    """
    if not is_of_spark(error):
        raise error
    unreachable = cluster_failure(error, f"{place}.source")
    if isinstance(unreachable, UnreadableTimeError) and reading.reread is not None:
        return reading.reread()
    if unreachable is not None:
        raise unreachable from None
    reread = None if reading.reread is None else reading.reread()
    if reread is None or reread.unparsed_inputs <= reading.unparsed_inputs:
        raise SourceError(f"{place}: {_failing(error)}") from None
    return reread


def _failing(error: Exception) -> str:
    """Return the message that an expression of the contract fails on a row, with what to do about it."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if isinstance(error, PySparkException) and condition in _OF_PATTERNS:
        pattern = (error.getMessageParameters() or {}).get("pattern", "")
        return (
            f"columns or where have a pattern of date and time that Spark does not take: {pattern}; expected letters "
            "of its guide's page Datetime Patterns, such as yyyy-MM-dd HH:mm:ss"
        )
    return (
        f"columns or where fail on a row ({condition or 'no further reason'}); "
        "use the try_ form of the function that can fail"
    )
