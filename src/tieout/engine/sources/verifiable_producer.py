"""The reader of the kind `verifiable_producer`: the output of Kafka's VerifiableProducer as send attempts.

The tool prints a line when a send is answered, never when it is made. Its values count up from 0, alone or
behind a prefix (`2.17`), so a value that was printed proves that every smaller one was sent too: those
without a line were on their way when the producer was killed, and nobody knows whether the broker has them.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tieout.contracts import VerifiableProducerSource
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.source import BLOCK, FAULT, FILE, HIDDEN, ROW, TEXT, Reading, Request, unread
from tieout.engine.sources.verifiable import (
    ANSWERS,
    Events,
    content_word,
    event_time,
    events_of,
    hashed,
    number_of,
    prefix_of,
    stem_of,
)
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
_SEEN: Final = (FILE, "prefix", "number", "topic", "at")
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
    rows = _answered(numbered, spec).unionByName(_attempts(inferred, spec))
    return Reading(
        rows=rows.unionByName(events.mixed, allowMissingColumns=True),
        is_present=True,
        read_at=request.now,
        size=events.inputs.size,
        digests=events.inputs.digests,
        unparsed_inputs=len(events.inputs.faults) + unbelievable,
        notes=(_ACK_TIME, *events.notes, *notes),
        complete_until=events.complete_until(request.now),
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
    order = Window.partitionBy(FILE, "prefix").orderBy("number")
    known = numbered.where(F.col("number").isNotNull()).select(*_SEEN)
    seen = _with_ends(known, events)
    before = F.lag("number", 1, -1).over(order)
    gaps = seen.select(
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
        "prefix",
        "topic",
        "at",
        F.explode(F.sequence(F.col("from"), F.col("number") - 1)).alias("number"),
    )
    return sends, (*notes, *_contradictions(events)), len(absurd)


def _with_ends(seen: DataFrame, events: Events) -> DataFrame:
    """Return the sends seen and, for each session that says how many it made, a row behind the last."""
    ends = [
        (session.uri, values.prefix, session.sent, values.topic, session.closed_at or session.last_at)
        for session in events.sessions
        if (values := session.values) is not None and (session.sent or 0) > values.highest + 1
    ]
    return seen.unionByName(seen.sparkSession.createDataFrame(ends, seen.schema)) if ends else seen


def _contradictions(events: Events) -> tuple[str, ...]:
    """Return a note for each session whose own totals differ from its lines."""
    return tuple(
        f"{session.name}: tool_data says {session.sent} sent and {session.acked} acked, "
        f"the lines show {session.answers} answers and {session.acks} acked"
        for session in events.sessions
        if session.sent is not None and (session.sent, session.acked) != (session.answers, session.acks)
    )


def _answered(numbered: DataFrame, spec: VerifiableProducerSource) -> DataFrame:
    error = F.regexp_extract("exception", r"([A-Za-z0-9_$]+)\s*$", 1)
    refused = F.when(F.coalesce(error.isin(*DEFINITE_ERRORS), F.lit(False)), "failed").otherwise("unknown")
    is_acked = F.col("name") == "producer_send_success"
    return numbered.select(
        *_session_columns(spec),
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
        content_word().alias("content"),
        *HIDDEN[:-1],
        F.lit(None).cast(StringType()).alias(FAULT),
    )


def _attempts(inferred: DataFrame, spec: VerifiableProducerSource) -> DataFrame:
    """Return the inferred sends as attempts of unknown outcome."""
    nothing = F.lit(None).cast(StringType())
    number = F.col("number").cast(StringType())
    value = F.when(F.col("prefix") == "", number).otherwise(F.concat_ws(".", "prefix", number))
    valued = inferred.withColumn("value", value)
    millis = F.unix_millis("at").cast(StringType())
    absent = dict.fromkeys(("partition", "offset", "key_hash", "completed_at", TEXT, FAULT), nothing)
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
    return valued.select(
        *_session_columns(spec), *(others[name].alias(name) for name in (*_COLUMNS[2:], *HIDDEN))
    )


def _session_columns(spec: VerifiableProducerSource) -> tuple[Column, Column]:
    """Return who sent, by the contract, else by the name of the file."""
    stem = stem_of(F.col(FILE))
    producer = F.lit(spec.producer_id) if spec.producer_id else stem
    session = F.lit(spec.session) if spec.session else stem
    return producer.alias("producer_id"), session.alias("producer_session")
