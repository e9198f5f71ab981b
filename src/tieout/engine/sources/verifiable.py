"""What Kafka's verifiable clients print: one JSON event a line, between lines that are none by design.

The tools are org.apache.kafka.tools.VerifiableProducer and VerifiableConsumer. Their logs may share the
output, so a line that is no JSON object is noted and passed over; it is no unparsed row. Third-party clients
leave `timestamp` out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from tieout.engine.sources.inputs import Inputs, local_path, name_of
from tieout.engine.sources.lines import json_fault, lines_of
from tieout.engine.sources.source import BLOCK, FILE, ROW, TEXT, Request

_FIELDS: Final = (
    *("timestamp", "name", "key", "value", "topic", "partition", "offset", "exception", "sent", "acked"),
    *("partitions", "offsets", "success", "count"),
)
_EVENT: Final = StructType([StructField(name, StringType()) for name in _FIELDS])


@dataclass(frozen=True)
class Session:
    """One file, that is one run of a client: how it ended, and what it says about itself.

    `is_closed` is whether every start was followed by an orderly end; `last_at` is the time of the last
    event.
    """

    uri: str
    name: str
    is_closed: bool
    last_at: datetime | None
    ignored: int
    is_torn: bool
    sent: int | None
    acked: int | None
    closed_at: datetime | None

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
    """All events of the files, each with its place, and one session a file."""

    rows: DataFrame
    sessions: tuple[Session, ...]
    inputs: Inputs

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the files, unreadable ones first."""
        return (*self.inputs.faults, *(note for session in self.sessions for note in session.notes))

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
    return Events(rows, sessions, inputs)


def event_time(column: str = "timestamp") -> Column:
    """Return the event's time, or null where it has none that can be one."""
    millis = F.col(column).try_cast("bigint")
    return F.timestamp_millis(F.when(millis.between(0, 253402300799999), millis))


def hashed(column: str) -> Column:
    """Return the SHA-256 of the text's UTF-8 bytes, in hexadecimal."""
    return F.sha2(F.encode(column, "UTF-8"), 256)


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
        F.max(F.when(name == "tool_data", F.col("event.sent").try_cast("bigint"))).alias("sent"),
        F.max(F.when(name == "tool_data", F.col("event.acked").try_cast("bigint"))).alias("acked"),
    )
    sessions = [
        Session(
            uri=row[FILE],
            name=name_of(local_path(row[FILE]), request.base_dir),
            is_closed=row["ends"] > 0 and row["ends"] >= row["starts"],
            last_at=_from_micros(row["last"]),
            ignored=row["ignored"],
            is_torn=row["is_torn"],
            sent=row["sent"],
            acked=row["acked"],
            closed_at=_from_micros(row["closed"]),
        )
        for row in summary.collect()
    ]
    return tuple(sorted(sessions, key=lambda session: session.name))


def _from_micros(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, tz=UTC)
