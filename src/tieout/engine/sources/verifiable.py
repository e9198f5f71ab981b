"""What Kafka's verifiable clients print: one JSON event a line, between lines that are none by design.

The tools are org.apache.kafka.tools.VerifiableProducer and VerifiableConsumer. Their logs may share the
output, so a line that is no JSON object is noted and passed over; it is no unparsed row, unless it holds an event and
something else. Third-party clients leave `timestamp` out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from tieout.engine.sources.inputs import Inputs, local_path, name_of
from tieout.engine.sources.json_lines import json_fault
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, TEXT, Request

_FIELDS: Final = (
    *("timestamp", "name", "key", "value", "topic", "partition", "offset", "exception", "sent", "acked"),
    *("partitions", "offsets", "success", "count"),
)
_VALUE: Final = r"^(?:(.*)\.)?([0-9]{1,18})$"
ANSWERS: Final = ("producer_send_success", "producer_send_error")
"""The events that answer one send."""
_HELD_EVENT: Final = (
    r'"name"\s*:\s*"(startup_complete|shutdown_complete|producer_send_success|producer_send_error|tool_data|record_data|'
    r'records_consumed|offsets_committed|partitions_assigned|partitions_revoked)".*\}\s*$'
)
_NOT_ALONE: Final = (
    "an event with something else on its line; take away what stands before each line, and paste lines whole"
)
UNCOUNTABLE: Final = 10**18
"""What a total is taken for that is larger, or no number: no client sends or consumes so many."""
_EVENT: Final = StructType([StructField(name, StringType()) for name in _FIELDS])


@dataclass(frozen=True)
class Values:
    """The one sequence of numbered values that a producer sent, and how far its lines show it."""

    prefix: str
    highest: int
    topic: str | None


@dataclass(frozen=True)
class Session:
    """One file, that is one run of a client: how it ended, and what it says about itself.

    `is_closed` is whether every start was followed by an orderly end; `last_at` is the time of the last
    event, `closed_at` that of the end. `sent` and `acked` are a producer's own totals, `consumed` is a
    consumer's; `answers`, `acks`, `records` and `refusals` count the lines of each kind.
    """

    uri: str
    name: str
    is_closed: bool
    last_at: datetime | None
    ignored: int
    is_torn: bool
    closed_at: datetime | None
    sent: int | None
    acked: int | None
    consumed: int
    answers: int
    acks: int
    records: int
    refusals: int
    values: Values | None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the file's lines and its end."""
        found = (
            f"{self.name}: {self.ignored} lines that are no event" if self.ignored else "",
            f"{self.name}: the last line is torn" if self.is_torn else "",
            "" if self.is_closed else f"{self.name}: the client was not shut down in order",
        )
        return tuple(note for note in found if note)


@dataclass(frozen=True)
class Events:
    """All events of the files, each with its place, and one session a file.

    `mixed` are the lines that hold an event and something else, such as the name that a prefix gives each line.
    """

    rows: DataFrame
    mixed: DataFrame
    sessions: tuple[Session, ...]
    inputs: Inputs

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the files, unreadable ones first."""
        return (*self.inputs.notes, *(note for session in self.sessions for note in session.notes))

    def complete_until(self, read_at: datetime) -> datetime | None:
        """Return until when the files are complete.

        A client that was shut down prints nothing more, whenever the file is read; of one that was not,
        nothing is known after its last event, and the earliest of those decides.
        """
        if len(self.sessions) < len(self.inputs.readable) or self.inputs.faults:
            return None
        bounds = [read_at if session.is_closed else session.last_at for session in self.sessions]
        known = [bound for bound in bounds if bound is not None]
        return min(known) if len(known) == len(bounds) else None


def events_of(request: Request, inputs: Inputs) -> Events:
    """Return the events in the files, of which at least one can be read."""
    lines = lines_of(request.spark, inputs.readable)
    is_event = json_fault().isNull() & F.get_json_object(TEXT, "$.name").isNotNull()
    event = F.when(is_event, F.from_json(TEXT, _EVENT, {"mode": "PERMISSIVE"}))
    parsed = lines.select(FILE, BLOCK, ROW, TEXT, event.alias("event"))
    sessions = _sessions(parsed, request)
    places = [F.col(name) for name in (FILE, BLOCK, ROW, TEXT)]
    rows = parsed.where(F.col("event").isNotNull()).select(*places, "event.*")
    is_mixed = F.col("event").isNull() & F.col(TEXT).rlike(_HELD_EVENT)
    mixed = parsed.where(is_mixed).select(*places, F.lit(_NOT_ALONE).alias(FAULT))
    return Events(rows, mixed, sessions, inputs)


def event_time(column: str = "timestamp") -> Column:
    """Return the event's time, or null where it has none that can be one."""
    millis = F.col(column).try_cast("bigint")
    return F.timestamp_millis(F.when(millis.between(0, 253402300799999), millis))


def number_of(column: str) -> Column:
    """Return the number that a value of the producer counts with: 17 of `17` and of `2.17`, else null."""
    number = F.regexp_extract(column, _VALUE, 2)
    return F.when(number != "", number.try_cast("bigint"))


def prefix_of(column: str) -> Column:
    """Return what stands before the number: `2` of `2.17`, nothing of `17`."""
    return F.regexp_extract(column, _VALUE, 1)


def is_true(column: str) -> Column:
    """Return whether a JSON field is true; false, never null, without it."""
    return F.coalesce(F.lower(column) == "true", F.lit(False))


def hashed(column: str) -> Column:
    """Return the SHA-256 of the text's UTF-8 bytes, in hexadecimal."""
    return F.sha2(F.encode(column, "UTF-8"), 256)


def content_word() -> Column:
    """Return `unknown` where a line does not say which key its record has: third-party clients leave it out."""
    return F.when(~F.col(TEXT).rlike(r'"key"\s*:'), "unknown")


def stem_of(column: Column) -> Column:
    """Return the file's name without folder and endings: the client, where nothing else names it."""
    return F.regexp_extract(F.url_decode(column), r"([^/]+?)(\.[A-Za-z0-9]+)*$", 1)


def _sessions(parsed: DataFrame, request: Request) -> tuple[Session, ...]:
    """Return one session for each file that has a line, ordered by name."""
    name, time = F.col("event.name"), event_time("event.timestamp")
    is_event = F.col("event").isNotNull()
    place = F.struct(BLOCK, ROW)
    is_broken = ~is_event & F.col(TEXT).rlike(r"^\s*\{")
    summary = parsed.groupBy(FILE).agg(
        F.count_if(~is_event).alias("ignored"),
        F.coalesce(F.max(F.when(is_broken, place)) == F.max(place), F.lit(False)).alias("is_torn"),
        F.count_if(name == "startup_complete").alias("starts"),
        F.count_if(name == "shutdown_complete").alias("ends"),
        F.unix_micros(F.max(time)).alias("last"),
        F.unix_micros(F.max(F.when(name == "shutdown_complete", time))).alias("closed"),
        *_totals(name),
    )
    sessions = [
        Session(
            uri=row[FILE],
            name=name_of(local_path(row[FILE]), request.base_dir),
            is_closed=row["ends"] > 0 and row["ends"] >= row["starts"],
            last_at=_from_micros(row["last"]),
            ignored=row["ignored"],
            is_torn=row["is_torn"],
            closed_at=_from_micros(row["closed"]),
            sent=row["sent"],
            acked=row["acked"],
            consumed=int(row["consumed"] or 0),
            answers=row["answers"],
            acks=row["acks"],
            records=row["records"],
            refusals=row["refusals"],
            values=_values(row),
        )
        for row in summary.collect()
    ]
    return tuple(sorted(sessions, key=lambda session: session.name))


def _totals(name: Column) -> tuple[Column, ...]:
    """Return the aggregates over one file's events that the two clients' readers need."""

    def stated(event: str, field: str) -> Column:
        told = F.col(f"event.{field}")
        number = F.least(F.coalesce(told.try_cast("bigint"), F.lit(UNCOUNTABLE)), F.lit(UNCOUNTABLE))
        return F.when((name == event) & told.isNotNull(), number)

    is_answer = name.isin(*ANSWERS)
    prefix = F.when(is_answer & number_of("event.value").isNotNull(), prefix_of("event.value"))
    return (
        F.max(stated("tool_data", "sent")).alias("sent"),
        F.max(stated("tool_data", "acked")).alias("acked"),
        F.sum(stated("records_consumed", "count").cast("decimal(38,0)")).alias("consumed"),
        F.count_if(is_answer).alias("answers"),
        F.count_if(name == "producer_send_success").alias("acks"),
        F.count_if(name == "record_data").alias("records"),
        F.count_if((name == "offsets_committed") & ~is_true("event.success")).alias("refusals"),
        F.min(prefix).alias("first_prefix"),
        F.max(prefix).alias("last_prefix"),
        F.max(F.when(is_answer, number_of("event.value"))).alias("highest"),
        F.max(F.when(is_answer, F.col("event.topic"))).alias("topic"),
    )


def _values(row: Row) -> Values | None:
    """Return the sequence that the file shows, or None where it shows none or several."""
    if row["highest"] is None or row["first_prefix"] != row["last_prefix"]:
        return None
    return Values(prefix=row["first_prefix"], highest=row["highest"], topic=row["topic"])


def _from_micros(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, tz=UTC)
