"""The reader of the kind `verifiable_producer`: the output of Kafka's VerifiableProducer as send attempts.

The tool prints a line when a send is answered, never when it is made. Its values count up from 0, alone or
behind a prefix (`2.17`), so a value that was printed proves that every smaller one was sent too: those
without a line were in flight when the producer was killed, and it is unknown whether the broker has them.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.contracts import VerifiableProducerSource
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.source import BLOCK, FAULT, FILE, HIDDEN, ROW, TEXT, Reading, Request, unread
from tieout.engine.sources.verifiable import Events, events_of
from tieout.engine.sources.verifiable_fields import (
    ANSWERS,
    content_state,
    event_time,
    hashed,
    number_of,
    prefix_of,
)
from tieout.engine.sources.verifiable_sessions import RUN, client_of
from tieout.errors import SourceError
from tieout.model import Ledger

DEFINITE_ERRORS: Final = frozenset(
    {
        "RecordTooLargeException",
        "SerializationException",
        "InvalidTopicException",
        "TopicAuthorizationException",
        "ClusterAuthorizationException",
        "TransactionalIdAuthorizationException",
        "SaslAuthenticationException",
        "SslAuthenticationException",
        "UnsupportedVersionException",
    }
)
"""Errors after which the record is certainly not in the log; any other, such as a timeout, leaves it open."""
_LARGEST_GAP: Final = 1_000_000
_SEND_COLUMNS: Final = (FILE, RUN, "prefix", "number", "topic", "at")
_COLUMNS: Final = (
    *("producer_id", "producer_session", "sequence", "message_id", "topic", "partition", "offset"),
    *("key_hash", "payload_hash", "attempted_at", "completed_at", "is_approximate", "outcome", "content"),
)
_ACK_TIME: Final = "attempted_at is the time of the answer: the tool prints no time of the send"


def read(spec: VerifiableProducerSource, request: Request) -> Reading:
    """Return one attempt for each answered send and for each send that the sequence of values proves.

    Raises:
        SourceError: where the contract uses the source for another ledger than `produced`.
    """
    if request.ledger is not Ledger.PRODUCED:
        raise SourceError(f"{request.place}: a verifiable_producer is evidence for produced only")
    inputs = inputs_of(request.spark, [spec.path], request.base_dir, "text")
    if not inputs.readable:
        return unread(inputs, request.now)
    events = events_of(request, inputs)
    numbered = _numbered(events)
    inferred, notes, unbelievable = _inferred(numbered, events)
    session = _session_columns(spec, events)
    rows = _answered(numbered, session).unionByName(_attempts(inferred, session))
    lacking = _lacking(events)
    return Reading(
        rows=rows.unionByName(events.mixed, allowMissingColumns=True),
        is_present=True,
        read_at=request.now,
        size=events.inputs.size,
        digests=events.inputs.digests,
        unparsed_inputs=len(events.inputs.faults) + unbelievable + len(lacking),
        notes=(_ACK_TIME, *events.notes, *notes, *lacking),
        complete_until=events.complete_until(request.now),
        complete_from=events.complete_from(request.now),
        copies=events.inputs.copied,
    )


def _numbered(events: Events) -> DataFrame:
    """Return the answers with prefix and number of their values; a value of another form has no number."""
    return events.rows.where(F.col("name").isin(*ANSWERS)).select(
        "*",
        prefix_of("value").alias("prefix"),
        number_of("value").alias("number"),
        event_time().alias("at"),
    )


def _inferred(numbered: DataFrame, events: Events) -> tuple[DataFrame, tuple[str, ...], int]:
    """Return the sends that no line shows, notes about them, and how many files are not believable.

    | value printed | sends inferred |
    |---------------|----------------|
    | 0, 1, 4       | 2, 3           |
    """
    order = Window.partitionBy(FILE, RUN, "prefix").orderBy("number")
    known = numbered.where(F.col("number").isNotNull()).select(*_SEND_COLUMNS)
    sends = _with_ends(known, events)
    before = F.lag("number", 1, -1).over(order)
    gaps = sends.select(
        "*", (before + 1).alias("from"), (F.col("number") - before - 1).alias("missing")
    ).where(F.col("missing") > 0)
    sizes = gaps.groupBy(FILE).agg(F.sum(F.col("missing").cast("decimal(38,0)")).alias("missing")).collect()
    names = {session.uri: session.name for session in events.sessions}
    absurd = [row[FILE] for row in sizes if row["missing"] > _LARGEST_GAP]
    notes = [
        f"{names[row[FILE]]}: gaps of {row['missing']} values; not the output of a verifiable producer"
        if row[FILE] in absurd
        else f"{names[row[FILE]]}: {row['missing']} sends without an answer, inferred from the sequence "
        "of values; their time is that of the next send seen, approximate"
        for row in sorted(sizes, key=lambda row: names[row[FILE]])
    ]
    believable = gaps.where(~F.col(FILE).isin(*absurd)) if absurd else gaps
    sends = believable.select(
        FILE,
        RUN,
        "prefix",
        "topic",
        "at",
        F.explode(F.sequence(F.col("from"), F.col("number") - 1)).alias("number"),
    )
    return sends, (*notes, *_contradictions(events)), len(absurd)


def _with_ends(sends: DataFrame, events: Events) -> DataFrame:
    """Return the sends seen and, for each run that says how many it made, a row behind the last."""
    ends = [
        (run.uri, run.number, values.prefix, run.sent, values.topic, run.ended_at)
        for run in events.runs
        if (values := run.values) is not None and (run.sent or 0) > values.highest + 1
    ]
    return sends.unionByName(sends.sparkSession.createDataFrame(ends, sends.schema)) if ends else sends


def _contradictions(events: Events) -> tuple[str, ...]:
    """Return a note for each complete run whose own totals differ from its lines."""
    return tuple(
        run.totals for run in events.runs if run.sent is not None and run.is_whole and not run.is_counted
    )


def _lacking(events: Events) -> tuple[str, ...]:
    """Return one line for each run whose totals show that lines are missing, or belong to another run."""
    return tuple(
        f"{run.totals}: paste the output of each run whole, the parts of a rotated log together"
        for run in events.runs
        if not run.is_whole
    )


def _answered(numbered: DataFrame, session: tuple[Column, Column]) -> DataFrame:
    error = F.regexp_extract("exception", r"([A-Za-z0-9_$]+)\s*$", 1)
    refused = F.when(F.coalesce(error.isin(*DEFINITE_ERRORS), F.lit(False)), "failed").otherwise("unknown")
    is_acked = F.col("name") == "producer_send_success"
    return numbered.select(
        *session,
        F.col("number").alias("sequence"),
        F.col("value").alias("message_id"),
        "topic",
        "partition",
        F.when(F.col("offset") != "-1", F.col("offset")).alias("offset"),
        hashed("key").alias("key_hash"),
        hashed("value").alias("payload_hash"),
        F.col("timestamp").alias("attempted_at"),
        F.col("timestamp").alias("completed_at"),
        F.lit("true").alias("is_approximate"),
        F.when(is_acked, "acked").otherwise(refused).alias("outcome"),
        content_state().alias("content"),
        *HIDDEN[:-1],
        F.lit(None).cast("string").alias(FAULT),
    )


def _attempts(inferred: DataFrame, session: tuple[Column, Column]) -> DataFrame:
    """Return the inferred sends as attempts of unknown outcome."""
    null_text = F.lit(None).cast("string")
    number = F.col("number").cast("string")
    value = F.when(F.col("prefix") == "", number).otherwise(F.concat_ws(".", "prefix", number))
    valued = inferred.withColumn("value", value)
    millis = F.unix_millis("at").cast("string")
    absent = dict.fromkeys(("partition", "offset", "key_hash", "completed_at", TEXT, FAULT), null_text)
    made = {
        "sequence": F.col("number"),
        "message_id": F.col("value"),
        "topic": F.col("topic"),
        "payload_hash": hashed("value"),
        "attempted_at": millis,
        "is_approximate": F.lit("true"),
        "outcome": F.lit("unknown"),
        "content": F.lit("unknown"),
        FILE: F.col(FILE),
        BLOCK: F.lit(0).cast("bigint"),
        ROW: F.col("number"),
    }
    others = {**absent, **made}
    return valued.select(*session, *(others[name].alias(name) for name in (*_COLUMNS[2:], *HIDDEN)))


def _session_columns(spec: VerifiableProducerSource, events: Events) -> tuple[Column, Column]:
    """Return who sent and in which run, by the contract, else by the name of the file and its run."""
    client = client_of(events.sessions)
    run = F.when(F.col(RUN) > 1, F.concat_ws("#", client, RUN)).otherwise(client)
    producer = F.lit(spec.producer_id) if spec.producer_id else client
    session = F.lit(spec.session) if spec.session else run
    return producer.alias("producer_id"), session.alias("producer_session")
