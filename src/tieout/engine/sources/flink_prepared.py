"""The reader of the kind `flink_prepared`: transactions in a Flink job's checkpoints, and their outcome in the topic.

A Kafka sink under exactly-once writes in a transaction, and a checkpoint counts it as written before it is committed.
The broker may abort it in between, by its timeout: then the job continues, and its records are in no output. A
transaction is identified by its producer's id and epoch, which the records of the topic have as well.

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
from tieout.engine.systems.flink_operators import NAMELESS, Operator
from tieout.engine.systems.flink_states import (
    COMMITTER_STATE,
    OLDER_SINKS,
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
    """Return the records of the topic that belong to a transaction prepared by a checkpoint.

    Raises:
        SourceError: for another ledger than `staged`, and for a path that is not on a file system of this machine.
    """
    if request.ledger is not Ledger.STAGED:
        raise SourceError(f"{request.place}: {spec.kind} is evidence for {Ledger.STAGED} only")
    folder = local_folder(request, spec.path)
    checkpoints = checkpoints_in(
        folder,
        request.base_dir,
        COMMITTER_STATE,
        refused={} if spec.sink else OLDER_SINKS,
        has_own_times=spec.has_own_times,
    )
    log = LogSpec(spec.taken_time(request.now), None, None, CONTENT_COLUMNS)
    topic = for_ledger(segments_reading(request, spec.segments, spec.topic, log), request.ledger)
    faults, absent = checkpoints.faults, f"{spec.path}: no checkpoint of a Flink job, a folder with _metadata"
    if not checkpoints.files or topic.rows is None:
        notes = (*faults, *(() if checkpoints.files else (absent,)), *topic.notes)
        return replace(topic, rows=None, unparsed_inputs=topic.unparsed_inputs + 1, notes=notes)
    transactions, wrong, other_sinks = _prepared(checkpoints.read, spec.sink)
    rows = materialised(_of_prepared(topic.rows, transactions, request))
    faults = (*faults, *wrong)
    began = None if checkpoints.begins is None else checkpoints.begins.at or spec.taken_time(request.now)
    begins = (topic.complete_from, began)
    return replace(
        topic,
        rows=rows,
        digests=(*topic.digests, *(f"{file.input.digest}  {file.input.name}" for file in checkpoints.files)),
        unparsed_inputs=topic.unparsed_inputs + len(faults),
        notes=(
            *shortened(faults),
            *_counts(rows, len(transactions)),
            *other_sinks,
            *shortened(checkpoints.notes),
            *topic.notes,
        ),
        complete_from=max((time for time in begins if time is not None), default=None),
    )


_Transactions = dict[tuple[int, int], int]
"""The first checkpoint of each transaction, by producer id and epoch."""


def _prepared(
    read: Iterable[ReadCheckpoint], sink: str | None
) -> tuple[_Transactions, tuple[str, ...], tuple[str, ...]]:
    """Return the prepared transactions, the faults of checkpoints, and the other sinks."""
    transactions: _Transactions = {}
    faults: list[str] = []
    other_sinks: set[str] = set()
    for checkpoint in read:
        states = [state for state in checkpoint.states if sink is None or _is_of(state.operator, sink)]
        if sink is not None and not states:
            is_nameless = any(state.operator.is_nameless for state in checkpoint.states)
            faults.append(
                f"{checkpoint.file.input.name}: expected a sink {sink}, found none that prepares anything"
                f"{NAMELESS if is_nameless else ''}"
            )
        for state in states:
            try:
                for prepared in _of_state(state):
                    transactions.setdefault((prepared.producer_id, prepared.epoch), prepared.checkpoint)
            except OtherStateError as error:
                if sink is None:
                    other_sinks.add(
                        f"{shown(state.operator.label)} prepares something else than Kafka's transactions, passed over"
                    )
                else:
                    faults.append(f"{checkpoint.file.input.name}: {error}")
            except FormatError as error:
                faults.append(f"{checkpoint.file.input.name}: {error}")
    return transactions, tuple(faults), tuple(sorted(other_sinks))


def _of_state(state: OperatorState) -> Iterator[PreparedTransaction]:
    for element in state.elements(COMMITTER_STATE):
        yield from prepared_transactions(element)


def _is_of(committer: Operator, sink: str) -> bool:
    """Return whether this is the committer of the sink, named by uid, name or id, with or without Flink's additions."""
    return (
        committer.is_called(sink)
        or committer.is_called(f"{_UID_PREFIX}{sink}")
        or sink == committer.name.removesuffix(_NAME_SUFFIX)
    )


def _of_prepared(records: DataFrame, transactions: _Transactions, request: Request) -> DataFrame:
    """Return the records of these transactions with the reason why they are staged, and unreadable records.

    | broker_producer_id | producer_epoch | transaction_state | reason                            |
    |--------------------|----------------|-------------------|-----------------------------------|
    | 11                 | 0              | aborted           | prepared in checkpoint 2, aborted |

    Before Kafka 4 a producer kept its epoch from one transaction to the next. If only some of an epoch's records were
    committed, it is not known which of them were prepared.
    """
    prepared_rows = [(*key, checkpoint) for key, checkpoint in transactions.items()]
    spark = request.spark
    prepared = spark.createDataFrame(prepared_rows, _PREPARED) if prepared_rows else no_rows(spark, _PREPARED)
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
    """Yield notes on the outcomes of the transactions."""
    valid = rows.where(F.col(FAULT).isNull())
    states = valid.groupBy("transaction_state").agg(
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
