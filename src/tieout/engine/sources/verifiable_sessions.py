"""Summaries of each file of a verifiable client, and of each run of the client in it.

A run begins with `startup_complete`. Several may be in one file, where a client's output is appended to what it
printed before. A run whose first line is another event lacks its head: a log that was rotated, or cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from tieout.contracts.times import format_time
from tieout.engine.sources.paths import local_path, name_of
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, Request
from tieout.engine.sources.verifiable_fields import (
    ANSWERS,
    UNCOUNTABLE,
    event_time,
    is_true,
    number_of,
    prefix_of,
)

RUN: Final = "run"
"""The column that counts the runs of a file from 1."""
_START: Final = "startup_complete"
_MOMENT: Final = timedelta(milliseconds=1)
"""Times of events are whole milliseconds: a missing event may have that of the first remaining one."""


@dataclass(frozen=True)
class Values:
    """The one sequence of numbered values that a producer sent, and how far its lines show it."""

    prefix: str
    highest: int
    topic: str | None


@dataclass(frozen=True)
class Run:
    """One run of a client: its own totals, and what its lines show.

    `has_start` is whether its first event is its start; `begins_at` is the time of the first event that has one,
    `ended_at` that of its orderly end, else of its last event. `sent` and `acked` are a producer's own totals;
    `answers` and `acks` count the lines of each kind.
    """

    uri: str
    number: int
    name: str
    has_start: bool
    begins_at: datetime | None
    ended_at: datetime | None
    sent: int | None
    acked: int | None
    answers: int
    acks: int
    values: Values | None

    @property
    def is_counted(self) -> bool:
        """Whether a producer's own totals are those of its lines."""
        return (self.sent, self.acked) == (self.answers, self.acks)

    @property
    def has_head(self) -> bool:
        """Whether its first lines are present: its start shows that, and so do totals that agree with the lines."""
        return self.has_start or self.is_counted

    @property
    def is_whole(self) -> bool:
        """Whether a producer's totals leave room for no line that is missing, and for none of another run.

        Sends that nobody answered have no line. Those beyond the last answer are inferred from the sequence of values,
        where there is one.
        """
        if self.sent is None:
            return True
        is_inferred = self.values is not None or self.sent <= self.answers
        return self.acked in (None, self.acks) and self.sent >= self.answers and is_inferred

    @property
    def totals(self) -> str:
        """What the tool says, and what the lines show."""
        return (
            f"{self.name}: tool_data says {self.sent} sent and {self.acked} acked, "
            f"the lines show {self.answers} answers and {self.acks} acked"
        )


@dataclass(frozen=True)
class Session:
    """One file of a client: how it ended, and its own totals.

    `client` is its name without folder and endings where no other file has the same, else its path. `is_closed` is
    whether every start was followed by an orderly end, and the last line is whole; `last_at` is the time of the last
    event. `consumed` is a consumer's own total; `records` and `refusals` count the lines of each kind.
    """

    uri: str
    name: str
    client: str
    is_closed: bool
    last_at: datetime | None
    ignored: int
    is_torn: bool
    consumed: int
    records: int
    refusals: int
    runs: tuple[Run, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the file's lines, its beginning and its end."""
        found = (
            f"{self.name}: {self.ignored} lines that are no event" if self.ignored else "",
            f"{self.name}: the last line is torn" if self.is_torn else "",
            "" if self.is_closed else f"{self.name}: the client was not shut down in order",
            *(_missing_head_note(run) for run in self.runs if not run.has_head),
        )
        return tuple(note for note in found if note)

    def complete_from(self, read_at: datetime) -> datetime | None:
        """Return since when the file is complete, None where always: a run without its head is from its first line."""
        begins = [
            read_at if run.begins_at is None else run.begins_at + _MOMENT
            for run in self.runs
            if not run.has_head
        ]
        return max(begins, default=None)


@dataclass(frozen=True)
class End:
    """A session, and the place of its file's last line."""

    session: Session
    block: int
    row: int


def sessions_of(parsed: DataFrame, request: Request) -> tuple[End, ...]:
    """Return one session for each file that has a line, ordered by name, each with its last line's place.

    A time that is yet to come is no time until which anything is known. Lines are numbered by run, and summed once
    more, only where a file has several runs.
    """
    found = _summary(parsed, request, FILE).withColumn("client", stem_of(F.col(FILE))).collect()
    stems = Counter(row["client"] for row in found)
    several = [row[FILE] for row in found if row["starts"] + (row["first"] not in (None, _START)) > 1]
    runs: dict[str, list[Row]] = {}
    if several:
        numbered = parsed.where(F.col(FILE).isin(*several)).withColumn(RUN, run_number())
        for row in _summary(numbered, request, FILE, RUN).orderBy(RUN).collect():
            runs.setdefault(row[FILE], []).append(row)
    ends = []
    for row in found:
        name = name_of(local_path(row[FILE]), request.base_dir)
        session = _session(row, name, row["client"] if stems[row["client"]] == 1 else name)
        parts = tuple(_run(part, name, number) for number, part in enumerate(runs.get(row[FILE], [row]), 1))
        file_runs = parts if row["first"] is not None else ()
        ends.append(End(replace(session, runs=file_runs), row["end"][BLOCK], row["end"][ROW]))
    return tuple(sorted(ends, key=lambda end: end.session.name))


def run_number() -> Column:
    """Return which run of its file a line is in; lines before the first start are a run as well."""
    in_file = Window.partitionBy(FILE).orderBy(BLOCK, ROW)
    up_to_row = in_file.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    all_rows = in_file.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    name = F.col("event.name")
    lacks_start = F.coalesce(F.first(name, ignorenulls=True).over(all_rows) != _START, F.lit(False))
    return F.greatest(F.count_if(name == _START).over(up_to_row) + lacks_start.cast("int"), F.lit(1)).cast(
        "int"
    )


def client_of(sessions: Sequence[Session]) -> Column:
    """Return what a row's client is called, by its file."""
    stem = stem_of(F.col(FILE))
    long = [(session.uri, session.client) for session in sessions if session.client == session.name]
    if not long:
        return stem
    names = F.create_map(*[F.lit(text) for pair in long for text in pair])
    return F.coalesce(F.try_element_at(names, F.col(FILE)), stem)


def stem_of(column: Column) -> Column:
    """Return the file's name without folder and endings: the client, where nothing else names it."""
    return F.regexp_extract(F.url_decode(column), r"([^/]+?)(\.[A-Za-z0-9]+)*$", 1)


def _missing_head_note(run: Run) -> str:
    since = (
        "has no time that shows since when it is complete"
        if run.begins_at is None
        else f"is complete from {format_time(run.begins_at + _MOMENT)} on"
    )
    return (
        f"{run.name}: expected {_START} first, found another event: what the client printed before is missing, and the "
        f"file {since}; put the parts of a rotated log together, the oldest first"
    )


def _summary(parsed: DataFrame, request: Request, *keys: str) -> DataFrame:
    name, stated_time = F.col("event.name"), event_time("event.timestamp")
    time = F.when(stated_time <= F.lit(request.now), stated_time)
    is_event, is_broken = F.col("event").isNotNull(), F.col(FAULT).isNotNull()
    is_torn = is_broken & F.col("is_object") & F.col("not_json").isNotNull()
    place = F.struct(BLOCK, ROW)
    return parsed.groupBy(*keys).agg(
        F.count_if(~is_event & ~is_broken).alias("ignored"),
        F.max(place).alias("end"),
        F.coalesce(F.max(F.when(is_torn, place)) == F.max(place), F.lit(False)).alias("is_torn"),
        F.count_if(name == _START).alias("starts"),
        F.count_if(name == "shutdown_complete").alias("ends"),
        F.min_by(name, F.when(is_event, place)).alias("first"),
        F.unix_micros(F.min_by(time, F.when(time.isNotNull(), place))).alias("begins"),
        F.unix_micros(F.max(time)).alias("last"),
        F.unix_micros(F.max(F.when(name == "shutdown_complete", time))).alias("closed"),
        *_totals(name),
    )


def _session(row: Row, name: str, client: str) -> Session:
    return Session(
        uri=row[FILE],
        name=name,
        client=client,
        is_closed=row["ends"] > 0 and row["ends"] >= row["starts"] and not row["is_torn"],
        last_at=_from_micros(row["last"]),
        ignored=row["ignored"] + row["is_torn"],
        is_torn=row["is_torn"],
        consumed=int(row["consumed"] or 0),
        records=row["records"],
        refusals=row["refusals"],
        runs=(),
    )


def _run(row: Row, name: str, number: int) -> Run:
    return Run(
        uri=row[FILE],
        number=number,
        name=name if number == 1 else f"{name}, run {number}",
        has_start=row["first"] == _START,
        begins_at=_from_micros(row["begins"]),
        ended_at=_from_micros(row["closed"]) or _from_micros(row["last"]),
        sent=row["sent"],
        acked=row["acked"],
        answers=row["answers"],
        acks=row["acks"],
        values=_values(row),
    )


def _totals(name: Column) -> tuple[Column, ...]:
    """Return the aggregates over one file's events that the two clients' readers need."""

    def stated(event: str, field: str) -> Column:
        text = F.col(f"event.{field}")
        number = F.least(F.coalesce(text.try_cast("bigint"), F.lit(UNCOUNTABLE)), F.lit(UNCOUNTABLE))
        return F.when((name == event) & text.isNotNull(), number)

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
