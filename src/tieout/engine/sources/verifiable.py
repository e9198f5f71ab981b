"""What Kafka's verifiable clients print: one JSON event per line, between other lines by design.

The tools are org.apache.kafka.tools.VerifiableProducer and VerifiableConsumer. Their logs may share the
output, so a line that is no JSON object, or one without a field of theirs, is noted and passed over, unless it holds an
event and something else. Any other line that is no event, or may be read as two, is an unreadable row. Third-party
clients leave `timestamp` out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from tieout.engine.sources.inputs import Inputs
from tieout.engine.sources.json_lines import json_fault
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, TEXT, Request
from tieout.engine.sources.verifiable_fields import ANSWERS
from tieout.engine.sources.verifiable_sessions import RUN, End, Run, Session, run_number, sessions_of

_FIELDS: Final = (
    *("timestamp", "name", "key", "value", "topic", "partition", "offset", "exception", "sent", "acked"),
    *("partitions", "offsets", "success", "count"),
)
_EVENTS: Final = (
    *("startup_complete", "shutdown_requested", "shutdown_complete", "tool_data", *ANSWERS),
    *("record_data", "records_consumed", "offsets_committed", "partitions_assigned", "partitions_revoked"),
)
_EVENT_IN_LINE: Final = rf'"name"\s*:\s*"({"|".join(_EVENTS)})".*\}}\s*$'
_LISTS: Final = ("partitions", "offsets")
"""The fields that are lists of objects."""
_EVENT_AND_TEXT: Final = (
    "an event with something else on its line; take away what stands before each line, and paste lines whole"
)
_UNKNOWN: Final = "expected an event of a verifiable producer or consumer, found a JSON object that is none"
_DUPLICATE_KEY: Final = "a key stands twice"
_NO_RESULT: Final = "offsets_committed: expected success to be true or false, and with it a list of offsets"
_NO_COUNT: Final = "records_consumed: expected a count, found none"
_EVENT: Final = StructType([StructField(name, StringType()) for name in _FIELDS])


@dataclass(frozen=True)
class Events:
    """All events of the files, each with its place and its run, and one session per file.

    `mixed` are the lines that hold an event and something else, such as the name that a prefix gives each line, and
    those that begin as an event and cannot be read as one.
    """

    rows: DataFrame
    mixed: DataFrame
    sessions: tuple[Session, ...]
    inputs: Inputs

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the files, unreadable ones first."""
        return (*self.inputs.notes, *(note for session in self.sessions for note in session.notes))

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs of all files."""
        return tuple(run for session in self.sessions for run in session.runs)

    def complete_from(self, read_at: datetime) -> datetime | None:
        """Return since when the files are complete, None where always: the latest of those that lack a head decides."""
        begins = [session.complete_from(read_at) for session in self.sessions]
        return max((time for time in begins if time is not None), default=None)

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
    """Return the events in the files; at least one file can be read."""
    lines = lines_of(request.spark, inputs.readable)
    decoded = lines.withColumns(
        {"decoded": F.from_json(TEXT, _EVENT, {"mode": "PERMISSIVE"}), "not_json": json_fault()}
    )
    fault = _fault_of(F.col("decoded"))
    is_event = fault.isNull() & F.col("decoded.name").isin(*_EVENTS)
    parsed = decoded.select(
        *(FILE, BLOCK, ROW, TEXT, "not_json"),
        F.when(is_event, F.col("decoded")).alias("event"),
        fault.alias(FAULT),
        _is_object().alias("is_object"),
    )
    ends = sessions_of(parsed, request)
    has_several = any(len(end.session.runs) > 1 for end in ends)
    numbered = parsed.withColumn(RUN, run_number() if has_several else F.lit(1))
    places = [F.col(name) for name in (FILE, BLOCK, ROW, TEXT)]
    rows = numbered.where(F.col("event").isNotNull()).select(*places, RUN, "event.*")
    mixed = parsed.where(F.col(FAULT).isNotNull() & ~_is_torn_end(ends)).select(*places, FAULT)
    return Events(rows, mixed, tuple(end.session for end in ends), inputs)


def _is_torn_end(ends: Sequence[End]) -> Column:
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
    has_duplicate_key = _has_duplicate_key(F.col(TEXT))
    for members in texts:
        has_duplicate_key = has_duplicate_key | F.exists(
            F.coalesce(members, F.array().cast("array<string>")), _has_duplicate_key
        )
    has_result = F.coalesce((success == "false") | ((success == "true") & texts[1].isNotNull()), F.lit(False))
    has_count = event.getField("count").isNotNull()
    is_known = F.coalesce(name.isin(*_EVENTS), F.lit(False))
    has_field = F.arrays_overlap(F.json_object_keys(TEXT), F.array(*map(F.lit, _FIELDS)))
    of_object = (
        F.when(not_json.isNotNull(), not_json)
        .when(has_duplicate_key, _DUPLICATE_KEY)
        .when(~is_known & has_field, _UNKNOWN)
        .when((name == "offsets_committed") & ~has_result, _NO_RESULT)
        .when((name == "records_consumed") & ~has_count, _NO_COUNT)
    )
    is_alone = _is_object() & not_json.isNull()
    has_event = ~is_alone & F.col(TEXT).rlike(_EVENT_IN_LINE)
    return F.when(has_event, _EVENT_AND_TEXT).when(_is_object(), of_object)


def _has_duplicate_key(text: Column) -> Column:
    """Return whether an object has a key twice; false for anything else."""
    keys = F.json_object_keys(text)
    return F.coalesce(F.size(F.array_distinct(keys)) < F.size(keys), F.lit(False))
