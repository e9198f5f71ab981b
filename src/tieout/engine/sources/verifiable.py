"""What Kafka's verifiable clients print: one JSON event a line, between lines that are none by design.

The tools are org.apache.kafka.tools.VerifiableProducer and VerifiableConsumer. Their logs may share the
output, so a line that is no JSON object, or one without a field of theirs, is noted and passed over, unless it holds an
event and something else. Any other line that is no event, or may be read as two, is an unreadable row. Third-party
clients leave `timestamp` out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from tieout.engine.sources.inputs import Inputs
from tieout.engine.sources.json_lines import json_fault
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.paths import local_path, name_of
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, TEXT, Request

_FIELDS: Final = (
    *("timestamp", "name", "key", "value", "topic", "partition", "offset", "exception", "sent", "acked"),
    *("partitions", "offsets", "success", "count"),
)
_VALUE: Final = r"^(?:(.*)\.)?([0-9]{1,18})$"
ANSWERS: Final = ("producer_send_success", "producer_send_error")
"""The events that answer one send."""
_EVENTS: Final = (
    *("startup_complete", "shutdown_requested", "shutdown_complete", "tool_data", *ANSWERS),
    *("record_data", "records_consumed", "offsets_committed", "partitions_assigned", "partitions_revoked"),
)
_HELD_EVENT: Final = rf'"name"\s*:\s*"({"|".join(_EVENTS)})".*\}}\s*$'
_LISTS: Final = ("partitions", "offsets")
"""The fields that are lists of objects."""
_NOT_ALONE: Final = (
    "an event with something else on its line; take away what stands before each line, and paste lines whole"
)
_UNKNOWN: Final = "expected an event of a verifiable producer or consumer, found a JSON object that is none"
_TWICE: Final = "a key stands twice"
_NO_RESULT: Final = "offsets_committed: expected success to be true or false, and with it a list of offsets"
_NO_COUNT: Final = "records_consumed: expected a count, found none"
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

    `is_closed` is whether every start was followed by an orderly end, and the last line is whole; `last_at` is the time
    of the last event, `closed_at` that of the end. `sent` and `acked` are a producer's own totals, `consumed` is a
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
class _End:
    """A session, and the place of its file's last line."""

    session: Session
    block: int
    row: int


@dataclass(frozen=True)
class Events:
    """All events of the files, each with its place, and one session a file.

    `mixed` are the lines that hold an event and something else, such as the name that a prefix gives each line, and
    those that begin as an event and cannot be read as one.
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
    told = lines.withColumns(
        {"told": F.from_json(TEXT, _EVENT, {"mode": "PERMISSIVE"}), "not_json": json_fault()}
    )
    fault = _fault_of(F.col("told"))
    is_event = fault.isNull() & F.col("told.name").isin(*_EVENTS)
    parsed = told.select(
        *(FILE, BLOCK, ROW, TEXT, "not_json"),
        F.when(is_event, F.col("told")).alias("event"),
        fault.alias(FAULT),
    )
    sessions = _sessions(parsed, request)
    places = [F.col(name) for name in (FILE, BLOCK, ROW, TEXT)]
    rows = parsed.where(F.col("event").isNotNull()).select(*places, "event.*")
    mixed = parsed.where(F.col(FAULT).isNotNull() & ~_is_torn_end(sessions)).select(*places, FAULT)
    return Events(rows, mixed, tuple(one.session for one in sessions), inputs)


def _is_torn_end(ends: Sequence[_End]) -> Column:
    """Return whether a line is the last one of its file, and torn: its client's session is not closed."""
    torn = [end for end in ends if end.session.is_torn]
    alike = (
        (F.col(FILE) == end.session.uri) & (F.col(BLOCK) == end.block) & (F.col(ROW) == end.row)
        for end in torn
    )
    return reduce(Column.__or__, alike, F.lit(False))


def _is_object() -> Column:
    return F.col(TEXT).rlike(r"^\s*\{")


def _fault_of(event: Column) -> Column:
    """Return why a line that may be an event cannot be read as one, null where it is one, or a line of a log."""
    not_json = F.col("not_json")
    name, success = event.getField("name"), F.lower(event.getField("success"))
    texts = [F.from_json(event.getField(field), "array<string>") for field in _LISTS]
    is_twice = _has_key_twice(F.col(TEXT))
    for members in texts:
        is_twice = is_twice | F.exists(F.coalesce(members, F.array().cast("array<string>")), _has_key_twice)
    is_told = F.coalesce((success == "false") | ((success == "true") & texts[1].isNotNull()), F.lit(False))
    has_count = event.getField("count").isNotNull()
    is_known = F.coalesce(name.isin(*_EVENTS), F.lit(False))
    has_field = F.arrays_overlap(F.json_object_keys(TEXT), F.array(*map(F.lit, _FIELDS)))
    of_object = (
        F.when(not_json.isNotNull(), not_json)
        .when(is_twice, _TWICE)
        .when(~is_known & has_field, _UNKNOWN)
        .when((name == "offsets_committed") & ~is_told, _NO_RESULT)
        .when((name == "records_consumed") & ~has_count, _NO_COUNT)
    )
    is_alone = _is_object() & not_json.isNull()
    is_held = ~is_alone & F.col(TEXT).rlike(_HELD_EVENT)
    return F.when(is_held, _NOT_ALONE).when(_is_object(), of_object)


def _has_key_twice(text: Column) -> Column:
    """Return whether an object has a key twice; false for what is no object."""
    keys = F.json_object_keys(text)
    return F.coalesce(F.size(F.array_distinct(keys)) < F.size(keys), F.lit(False))


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


def _sessions(parsed: DataFrame, request: Request) -> tuple[_End, ...]:
    """Return one session for each file that has a line, ordered by name, each with its last line's place.

    A time that is yet to come is no time until which anything is known.
    """
    name, told = F.col("event.name"), event_time("event.timestamp")
    time = F.when(told <= F.lit(request.now), told)
    is_event, is_broken = F.col("event").isNotNull(), F.col(FAULT).isNotNull()
    is_torn = is_broken & _is_object() & F.col("not_json").isNotNull()
    place = F.struct(BLOCK, ROW)
    summary = parsed.groupBy(FILE).agg(
        F.count_if(~is_event & ~is_broken).alias("ignored"),
        F.max(place).alias("end"),
        F.coalesce(F.max(F.when(is_torn, place)) == F.max(place), F.lit(False)).alias("is_torn"),
        F.count_if(name == "startup_complete").alias("starts"),
        F.count_if(name == "shutdown_complete").alias("ends"),
        F.unix_micros(F.max(time)).alias("last"),
        F.unix_micros(F.max(F.when(name == "shutdown_complete", time))).alias("closed"),
        *_totals(name),
    )
    ends = [_End(_session(row, request), row["end"][BLOCK], row["end"][ROW]) for row in summary.collect()]
    return tuple(sorted(ends, key=lambda end: end.session.name))


def _session(row: Row, request: Request) -> Session:
    return Session(
        uri=row[FILE],
        name=name_of(local_path(row[FILE]), request.base_dir),
        is_closed=row["ends"] > 0 and row["ends"] >= row["starts"] and not row["is_torn"],
        last_at=_from_micros(row["last"]),
        ignored=row["ignored"] + row["is_torn"],
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
