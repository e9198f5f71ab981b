"""A topic's log from pieces of it, segment files or dumps: surveyed once, then read; shared by the readers of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tieout.engine.evidence import plausible
from tieout.engine.kafka.log_source import PIECES, RECORDS, SURVEYS, RecordSource, SurveySource
from tieout.engine.kafka.pieces import Piece, Survey, surveyed, to_option
from tieout.engine.kafka.records import Batch, LogError
from tieout.engine.kafka.transactions import Transactions, fates_of, first_open_offset
from tieout.engine.sources.paths import name_of
from tieout.engine.sources.removed import behind_holes, removed, without_removed
from tieout.engine.sources.source import BLOCK, COUNT, FAULT, FILE, ROW, TEXT, CutPartition, Reading, Request
from tieout.errors import SourceError
from tieout.model import SMALL_BYTES, Ledger, missing_ranges

Place = tuple[str, int]
"""A topic, and the number of a partition."""

CONTENT_COLUMNS: Final = ("key", "value", "headers")


@dataclass(frozen=True)
class LogFacts:
    """Facts about one partition besides its pieces: its id, its first offset, and what it lacks.

    `base_offsets` are those that the pieces are named by, None where they have no such names. `high_watermark` is up to
    where the broker knew its records as replicated when it last wrote that down, a few seconds before.
    """

    topic_id: str | None = None
    start_offset: int | None = None
    high_watermark: int | None = None
    base_offsets: tuple[int, ...] | None = None
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogSpec:
    """The contract's facts about a log, besides its path."""

    taken_at: datetime | None
    cleanup_policy: str | None
    partitions: int | None
    columns: tuple[str, ...]
    is_one_partition: bool = False

    @property
    def is_compacted(self) -> bool:
        """Whether offsets may be missing by design."""
        return self.cleanup_policy is not None and "compact" in self.cleanup_policy


@dataclass(frozen=True)
class _Log:
    """One partition's log: its pieces in order, ready to be read, and what is wrong with it."""

    pieces: tuple[Piece, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    start: int
    has_holes: bool


def log_reading(
    request: Request,
    pieces: Mapping[Place, Sequence[Piece]],
    facts: Mapping[Place, LogFacts],
    spec: LogSpec,
    faults: Sequence[str],
    notes: Sequence[str] = (),
) -> Reading:
    """Return the records of the partitions' logs with their bounds and transaction states; `faults` are known already.

    | topic  | partition | offset | key | value | transaction_state | end_offset | … |
    |--------|-----------|--------|-----|-------|-------------------|------------|---|
    | orders | 0         | 17     | 6b  | 7b7d  | committed         | 18         | … |

    What the paths do not lead to, a segment that is missing between two, and a batch whose checksum fails are inputs
    that cannot be read, which no tolerance covers. A torn tail and a line of a dump that is none are rows that cannot
    be read.
    """
    if not pieces:
        return Reading(
            None, is_present=False, read_at=request.now, unparsed_inputs=len(faults), notes=tuple(faults)
        )
    found = _surveyed(request.spark, [piece for group in pieces.values() for piece in group])
    logs = [
        _log(
            place,
            [(piece, found[piece.path, *place]) for piece in group],
            facts.get(place, LogFacts()),
            spec,
        )
        for place, group in sorted(pieces.items())
    ]
    missing = {} if spec.is_one_partition else dict(_missing_partitions(pieces, spec.partitions))
    wrong = (*faults, *missing, *(fault for log in logs for fault in log.faults))
    all_pieces = [piece for log in logs for piece in log.pieces]
    sizes = {piece.path: piece.size for piece in all_pieces}
    rows = _rows(request.spark, all_pieces, spec)
    return Reading(
        rows=rows,
        is_present=True,
        read_at=request.now if spec.taken_at is None else spec.taken_at,
        size=sum(sizes.values()),
        digests=_digests(found.values(), request.base_dir),
        unparsed_inputs=len(wrong) - len(missing) + sum(missing.values()),
        notes=(*wrong, *notes, *(note for log in logs for note in log.notes)),
        complete_until=spec.taken_at,
        cut_partitions=() if request.ledger is Ledger.LOG else _cut_partitions(request.ledger, logs, rows),
    )


def _cut_partitions(ledger: Ledger, logs: Sequence[_Log], rows: DataFrame) -> tuple[CutPartition, ...]:
    """Return which partitions lack their beginning, or records between others."""
    if ledger not in LEDGERS:
        return ()
    cut = tuple(_cut_partition(log) for log in logs if log.start > 0)
    return (*cut, *(behind_holes(rows) if any(log.has_holes for log in logs) else ()))


def _cut_partition(log: _Log) -> CutPartition:
    """Return the remainder of a log that begins later, from the time of its first remaining record."""
    first = log.pieces[0]
    place = (first.topic, first.partition, log.start)
    for piece in log.pieces:
        try:
            with piece.entries() as entries:
                for batch in entries:
                    if not isinstance(batch, Batch) or batch.last_offset < log.start:
                        continue
                    times = [one.timestamp_ms for one in batch.read() if one.offset >= log.start]
                    if times:
                        return removed(*place, plausible(times[0]))
        except (LogError, OSError):
            continue  # already a fault from reading the piece
    return removed(*place, None)


LEDGERS: Final = (
    *(Ledger.LOG, Ledger.PRODUCED, Ledger.DELIVERED),
    *(Ledger.FILTERED, Ledger.DEAD_LETTERS, Ledger.STAGED),
)
"""The ledgers that a topic can be evidence for."""
_SETTING_ASIDE: Final = (Ledger.FILTERED, Ledger.DEAD_LETTERS, Ledger.STAGED)
_ELSEWHERE: Final = ("topic", "topic_id", "partition", "offset", "leader_epoch", "record_timestamp")


def refuse_other_ledgers(request: Request, kind: str) -> None:
    """Refuse a ledger that a topic's records cannot be.

    Raises:
        SourceError: naming the ledgers that they can.
    """
    if request.ledger not in LEDGERS:
        raise SourceError(f"{request.place}: {kind} is evidence for one of {', '.join(LEDGERS)}")


def for_ledger(reading: Reading, ledger: Ledger) -> Reading:
    """Return a topic's records in the columns of the ledger.

    Only in `log` is a record's position the message's own. Elsewhere, in an output topic or a dead letter topic, it is
    that of the record about the message: there its columns are `source_topic`, `source_partition`, `source_offset`,
    `source_topic_id`, `source_leader_epoch` and `source_timestamp`, so that they are not taken for the message's, and
    control records are left out. What sets a message aside does so for readers of committed data: from the last stable
    offset on it is as open as a transaction's record there. Of what the broker removed only `log` knows the positions:
    elsewhere the ledger is complete only since its remainder was written.
    """
    if ledger is Ledger.LOG or reading.rows is None:
        return reading
    renamed = {name: f"source_{name.removeprefix('record_')}" for name in _ELSEWHERE}
    is_data = F.col(FAULT).isNotNull() | (F.col("offset").isNotNull() & ~F.col("is_control"))
    rows = reading.rows.where(is_data)
    if ledger in _SETTING_ASIDE and "transaction_state" in rows.columns:
        is_held_back = (F.col("transaction_state") != "aborted") & (
            F.col("offset") >= F.col("last_stable_offset")
        )
        state = F.when(is_held_back, "open").otherwise(F.col("transaction_state"))
        rows = rows.withColumn("transaction_state", state)
    return without_removed(replace(reading, rows=rows.withColumnsRenamed(renamed)))


def _surveyed(spark: SparkSession, pieces: Sequence[Piece]) -> dict[tuple[str, str, int], Survey]:
    """Return the survey of each piece, by its file and its partition.

    A few megabytes are surveyed here: starting Python beside the data would take longer than reading them.
    """
    if sum(piece.size for piece in pieces) <= SMALL_BYTES:
        surveys = [surveyed(piece) for piece in pieces]
    else:
        spark.dataSource.register(SurveySource)
        rows = spark.read.format(SURVEYS).option(PIECES, to_option(pieces)).load().collect()
        surveys = [_survey(row) for row in rows]
    return {(survey.path, survey.topic, survey.partition): survey for survey in surveys}


def _survey(row: Row) -> Survey:
    fields = row.asDict()
    transactions = Transactions(fields.pop("first_markers"), fields.pop("undecided"))
    return Survey(**{**fields, "faults": tuple(fields["faults"])}, transactions=transactions)


def _log(place: Place, pairs: Sequence[tuple[Piece, Survey]], facts: LogFacts, spec: LogSpec) -> _Log:
    """Return the log that the pieces are, each knowing its bounds and what later ones decide."""
    if facts.base_offsets is None:
        pairs = sorted(pairs, key=lambda pair: pair[1].first_offset or 0)
    surveys = [survey for _, survey in pairs]
    bases = facts.base_offsets or tuple(survey.first_offset or 0 for survey in surveys)
    ends = [
        base if survey.end_offset is None else survey.end_offset
        for base, survey in zip(bases, surveys, strict=True)
    ]
    start = bases[0] if facts.start_offset is None else facts.start_offset
    end = max(ends[-1], start)
    transactions = [survey.transactions for survey in surveys]
    stable = first_open_offset(transactions)
    overlap = [following < end for end, following in zip(ends, bases[1:], strict=False)]
    is_contested = any(overlap) or any(survey.falls for survey in surveys)
    ready = [
        replace(
            piece,
            topic_id=facts.topic_id,
            log_start_offset=start,
            last_stable_offset=end if stable is None else max(stable, start),
            end_offset=end,
            records=survey.records,
            fates=tuple(fate.items()),
            is_transactional=not survey.transactions.is_empty,
            is_contested=is_contested,
        )
        for (piece, survey), fate in zip(pairs, fates_of(transactions), strict=True)
    ]
    if start == end or is_contested or not any(survey.records for survey in surveys):
        ready[-1] = replace(ready[-1], states_bounds=True)
    name = f"{place[0]}-{place[1]}"
    beyond = [_BEYOND.format(start, ends[-1])] if start > ends[-1] else []
    faults = (
        *facts.faults,
        *beyond,
        *_piece_faults(pairs, spec),
        *([] if spec.is_compacted else _gaps(bases, ends)),
        *([_CONTESTED] if is_contested else []),
    )
    notes = (*facts.notes, *_above_high_watermark(facts.high_watermark, end))
    return _Log(
        tuple(ready),
        tuple(f"{name}: {fault}" for fault in faults),
        tuple(f"{name}: {note}" for note in notes),
        start,
        has_holes=any(_has_holes(survey) for survey in surveys),
    )


def _has_holes(survey: Survey) -> bool:
    """Return whether a piece has offsets without a record, as compaction leaves them."""
    if survey.first_offset is None or survey.end_offset is None:
        return False
    return survey.records < survey.end_offset - survey.first_offset


_BEYOND: Final = (
    "log-start-offset-checkpoint says that the log starts at offset {}, and its segments end at {}: expected a start "
    "up to there; copy both again"
)


_CONTESTED: Final = (
    "some of its offsets stand there twice, as in the logs of two partitions or replicas: no record is read, as nobody "
    "knows which is its own; name one log"
)


def _above_high_watermark(high_watermark: int | None, end: int) -> Iterable[str]:
    """Yield a note where the log continues after the high watermark that the broker wrote down.

    A broker writes it every few seconds (`replica.high.watermark.checkpoint.interval.ms`), also one without replicas.

    >>> list(_above_high_watermark(17, 20))
    ['replication-offset-checkpoint ends at offset 17, the log at 20: what lies between is young, or awaits replicas']
    """
    if high_watermark is not None and high_watermark < end:
        yield (
            f"replication-offset-checkpoint ends at offset {high_watermark}, the log at {end}: "
            "what lies between is young, or awaits replicas"
        )


def _piece_faults(pairs: Sequence[tuple[Piece, Survey]], spec: LogSpec) -> Iterable[str]:
    """Yield a line for each loss in the pieces."""
    for number, (piece, survey) in enumerate(pairs, start=1):
        name = Path(piece.path).name
        yield from (f"{name}: {fault}" for fault in survey.faults)
        if survey.is_torn and number < len(pairs):
            yield f"{name}: ends in the middle of a batch, and is not the last segment"
        if piece.form == "dump" and survey.hole is not None and not spec.is_compacted:
            yield f"{name}: the dump has nothing of offset {survey.hole}; a segment is missing"


def _gaps(bases: Sequence[int], ends: Sequence[int]) -> Iterable[str]:
    """Yield a line for each gap, or overlap, of offsets between two pieces.

    >>> list(_gaps([0, 20, 30], [10, 30, 40]))
    ['the segments with offsets 10 to 19 are missing']
    """
    for end, following in zip(ends, bases[1:], strict=False):
        if following > end:
            yield f"the segments with offsets {end} to {following - 1} are missing"
        elif following < end:
            yield f"the segment from offset {following} begins before the one before it ends, at {end}"


def _missing_partitions(found: Iterable[Place], expected: int | None) -> Iterator[tuple[str, int]]:
    """Yield a line for each range of partitions without a log, and their number.

    Partitions are expected up to the contract's number or the highest found, whichever is higher.

    >>> list(_missing_partitions([("orders", 0), ("orders", 2)], None))
    [('orders-1: the log of this partition is not behind the path', 1)]
    """
    numbers: dict[str, set[int]] = {}
    for topic, partition in found:
        numbers.setdefault(topic, set()).add(partition)
    for topic, offsets in sorted(numbers.items()):
        for first, last in missing_ranges(offsets, max(max(offsets) + 1, expected or 0)):
            one, several = f"{topic}-{first}", f"{topic}-{first} to {topic}-{last}"
            what = (
                f"{one}: the log of this partition is"
                if first == last
                else f"{several}: the logs of these are"
            )
            yield f"{what} not behind the path", last - first + 1


def _digests(surveys: Iterable[Survey], base_dir: Path) -> tuple[str, ...]:
    return tuple(
        sorted(
            {f"{survey.digest}  {name_of(Path(survey.path), base_dir)}" for survey in surveys}, key=_by_name
        )
    )


def _by_name(line: str) -> str:
    return line.partition("  ")[2]


def _rows(spark: SparkSession, pieces: Sequence[Piece], spec: LogSpec) -> DataFrame:
    """Return the pieces' records in the columns that are known of them, and `HIDDEN`."""
    spark.dataSource.register(RecordSource)
    records = spark.read.format(RECORDS).option(PIECES, to_option(pieces)).load()
    known: list[Column] = [
        *(
            F.col(name)
            for name in _RECORD_COLUMNS
            if name != "topic_id" or any(piece.topic_id for piece in pieces)
        ),
        F.timestamp_millis("timestamp_ms").alias("record_timestamp"),
        *(F.col(name) for name in spec.columns),
    ]
    if any(piece.form == "dump" for piece in pieces):
        known.append(F.col("content"))
    if spec.taken_at is not None:
        known.append(F.lit(spec.taken_at).alias("observed_at"))
    if spec.cleanup_policy is not None:
        known.append(F.lit(spec.cleanup_policy).alias("cleanup_policy"))
    hidden = {"file": FILE, "text": TEXT, "place": ROW, "fault": FAULT, "fault_count": COUNT}
    return records.select(
        *known,
        *(F.col(name).alias(alias) for name, alias in hidden.items()),
        F.lit(0).cast("bigint").alias(BLOCK),
    )


_RECORD_COLUMNS: Final = (
    *("topic", "topic_id", "partition", "offset", "leader_epoch", "broker_producer_id", "producer_epoch"),
    *("broker_sequence", "timestamp_type", "is_transactional", "transaction_state", "is_control"),
    *("log_start_offset", "last_stable_offset", "end_offset"),
)
