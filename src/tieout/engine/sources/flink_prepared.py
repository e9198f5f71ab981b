"""The reader of the kind `flink_prepared`: what a Flink job's checkpoints count as written, and what became of it.

A Kafka sink under exactly-once writes in a transaction, and a checkpoint counts it as written before it is committed.
The broker may abort it meanwhile, for its timeout: then the job goes on, and its records are in no output. A
transaction is told by its producer's id and epoch, which the records of the topic have as well.

Source: `KafkaCommitter` of flink-connector-kafka 5.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.contracts import FlinkPreparedSource
from tieout.engine.limits import shown
from tieout.engine.materialising import materialised, no_rows
from tieout.engine.sources.flink_folders import ReadCheckpoint, checkpoints_in
from tieout.engine.sources.kafka_log import CONTENT_COLUMNS, LogSpec, for_ledger
from tieout.engine.sources.kafka_segments import segments_reading
from tieout.engine.sources.positions import shortened
from tieout.engine.sources.small_files import local_folder
from tieout.engine.sources.source import FAULT, Reading, Request
from tieout.engine.systems.flink_checkpoint import OperatorState
from tieout.engine.systems.flink_states import (
    COMMITTER_STATE,
    OtherStateError,
    PreparedTransaction,
    prepared_transactions,
)
from tieout.engine.systems.json_texts import FormatError
from tieout.errors import SourceError
from tieout.model import Ledger

_PREPARED: Final = "_prepared_id BIGINT, _prepared_epoch INT, _checkpoint BIGINT"
_UID_PREFIX, _NAME_SUFFIX = "Sink Committer: ", ": Committer"


def read(spec: FlinkPreparedSource, request: Request) -> Reading:
    """Return the records of the topic that are of a transaction which a checkpoint prepared.

    Raises:
        SourceError: for another ledger than `staged`, and for a path that is not on a file system of this machine.
    """
    if request.ledger is not Ledger.STAGED:
        raise SourceError(f"{request.place}: {spec.kind} is evidence for {Ledger.STAGED} only")
    folder = local_folder(request, spec.path)
    found = checkpoints_in(folder, request.base_dir, COMMITTER_STATE, has_own_times=spec.has_own_times)
    log = LogSpec(spec.taken_time(request.now), None, None, CONTENT_COLUMNS)
    topic = for_ledger(segments_reading(request, spec.segments, spec.topic, log), request.ledger)
    faults, absent = found.faults, f"{spec.path}: no checkpoint of a Flink job, a folder with _metadata"
    if not found.files or topic.rows is None:
        told = (*faults, *(() if found.files else (absent,)), *topic.notes)
        return replace(topic, rows=None, unparsed_inputs=topic.unparsed_inputs + 1, notes=told)
    transactions, wrong, passed_over = _prepared(found.read, spec.sink)
    rows = materialised(_of_prepared(topic.rows, transactions, request))
    faults = (*faults, *wrong)
    began = None if found.begins is None else found.begins.at or spec.taken_time(request.now)
    begins = (topic.complete_from, began)
    return replace(
        topic,
        rows=rows,
        digests=(*topic.digests, *(f"{file.input.digest}  {file.input.name}" for file in found.files)),
        unparsed_inputs=topic.unparsed_inputs + len(faults),
        notes=(
            *shortened(faults),
            *_counts(rows, len(transactions)),
            *passed_over,
            *shortened(found.notes),
            *topic.notes,
        ),
        complete_from=max((time for time in begins if time is not None), default=None),
    )


_Transactions = dict[tuple[int, int], int]
"""By producer id and epoch the first checkpoint that counts the transaction as written."""


def _prepared(
    read: Iterable[ReadCheckpoint], sink: str | None
) -> tuple[_Transactions, tuple[str, ...], tuple[str, ...]]:
    """Return what the checkpoints prepared, what is wrong with them, and which sinks were passed over."""
    found: _Transactions = {}
    faults: list[str] = []
    others: set[str] = set()
    for one in read:
        states = [state for state in one.states if sink is None or sink in _names(state)]
        if sink is not None and not states:
            faults.append(f"{one.file.input.name}: expected a sink {sink}, found none that prepares anything")
        for state in states:
            try:
                for prepared in _of_state(state):
                    found.setdefault((prepared.producer_id, prepared.epoch), prepared.checkpoint)
            except OtherStateError as error:
                if sink is None:
                    others.add(
                        f"{shown(state.operator)} prepares something else than Kafka's transactions, passed over"
                    )
                else:
                    faults.append(f"{one.file.input.name}: {error}")
            except FormatError as error:
                faults.append(f"{one.file.input.name}: {error}")
    return found, tuple(faults), tuple(sorted(others))


def _of_state(state: OperatorState) -> Iterator[PreparedTransaction]:
    for element in state.elements(COMMITTER_STATE):
        yield from prepared_transactions(element)


def _names(state: OperatorState) -> tuple[str, ...]:
    """Return what the sink may be called: by its uid or its name, with or without what Flink adds to them."""
    return (
        *(state.uid, state.uid.removeprefix(_UID_PREFIX)),
        *(state.operator, state.operator.removesuffix(_NAME_SUFFIX)),
    )


def _of_prepared(records: DataFrame, transactions: _Transactions, request: Request) -> DataFrame:
    """Return the records of these transactions with the reason why they are staged, and those that cannot be read.

    | broker_producer_id | producer_epoch | transaction_state | reason                            |
    |--------------------|----------------|-------------------|-----------------------------------|
    | 11                 | 0              | aborted           | prepared in checkpoint 2, aborted |

    Before Kafka 4 a producer kept its epoch from one transaction to the next. Where some of an epoch's records were
    committed and others were not, it is not known which of them were prepared.
    """
    known = [(*key, checkpoint) for key, checkpoint in transactions.items()]
    spark = request.spark
    prepared = spark.createDataFrame(known, _PREPARED) if known else no_rows(spark, _PREPARED)
    is_same = (F.col("broker_producer_id") == F.col("_prepared_id")) & (
        F.col("producer_epoch") == F.col("_prepared_epoch")
    )
    joined = records.join(F.broadcast(prepared), is_same, how="left")
    of_epoch = Window.partitionBy("_prepared_id", "_prepared_epoch")
    states = F.size(F.collect_set("transaction_state").over(of_epoch))
    reason = F.concat(
        F.when(states > 1, F.lit("one of the epoch's transactions was ")).otherwise(F.lit("")),
        F.lit("prepared in checkpoint "),
        F.col("_checkpoint").cast("string"),
        F.lit(", "),
        F.col("transaction_state"),
    )
    return (
        joined.where(F.col("_prepared_id").isNotNull() | F.col(FAULT).isNotNull())
        .withColumns({"reason": reason, "at": F.col("source_timestamp")})
        .drop("_checkpoint")
    )


def _counts(rows: DataFrame, count: int) -> Iterator[str]:
    """Yield what became of the transactions."""
    known = rows.where(F.col(FAULT).isNull())
    states = known.groupBy("transaction_state").agg(
        F.count_distinct("_prepared_id", "_prepared_epoch").alias("transactions"),
        F.count(F.lit(1)).alias("records"),
    )
    written = {row["transaction_state"]: (row["transactions"], row["records"]) for row in states.collect()}
    shown = [
        f"{number} {state} with {records} records" for state, (number, records) in sorted(written.items())
    ]
    empty = count - sum(number for number, _ in written.values())
    shown += [f"{empty} without a record in the topic"] if empty > 0 else []
    yield f"{count} transactions were prepared: {', '.join(shown) or 'none'}"
