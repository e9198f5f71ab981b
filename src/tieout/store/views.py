"""Values for the pages: frozen summaries of several runs, and the filters of lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from tieout.contracts.durations import parse_duration
from tieout.contracts.times import parse_time
from tieout.model import Guarantee, Severity, Verdict, Window
from tieout.store.life import Resolution, State
from tieout.store.results import StoredBreak, StoredIncident, break_of


def counted_verdict(verdict: Verdict, final: Verdict | None) -> Verdict:
    """Return the verdict to show for a run: the final one, or what is certain until the checks have run.

    A check can only worsen a verdict, so BROKEN stays and everything else is not known yet.

    >>> counted_verdict(Verdict.KEPT, None), counted_verdict(Verdict.BROKEN, None)
    (<Verdict.UNKNOWN: 'UNKNOWN'>, <Verdict.BROKEN: 'BROKEN'>)
    """
    if final is not None:
        return final
    return verdict if verdict == Verdict.BROKEN else Verdict.UNKNOWN


@dataclass(frozen=True)
class Buckets:
    """A period `[start, start + count · step)` in equal parts, the columns of a heat map or a plot."""

    start: datetime
    step: timedelta
    count: int

    @property
    def end(self) -> datetime:
        """The first moment after the last bucket."""
        return self.start + self.step * self.count

    def bounds(self, number: int) -> Window:
        """Return the bucket with that number, from 0."""
        return Window(self.start + self.step * number, self.start + self.step * (number + 1))


@dataclass(frozen=True)
class PipelineHead:
    """A pipeline as its latest window's current run shows it; `window` is that window."""

    pipeline: str
    group: str
    guarantee: Guarantee
    run_id: str
    window: Window
    verdict: Verdict
    published_at: datetime
    contract_digest: str
    description: str
    owner: str
    schedule: str | None
    grace: timedelta
    active_from: datetime | None
    active_until: datetime | None
    first_start: datetime


@dataclass(frozen=True)
class JudgedBucket:
    """How many windows of a pipeline that touch a bucket have a verdict; `span` is from the first to the last."""

    pipeline: str
    bucket: int
    verdict: Verdict
    windows: int
    span: Window


@dataclass(frozen=True)
class Gap:
    """A time in a bucket that the pipeline's schedule covers and no current run does."""

    pipeline: str
    bucket: int
    span: Window


@dataclass(frozen=True)
class HistoryPoint:
    """The sums over a pipeline's windows that start in a bucket; latencies, in seconds, are the worst window's."""

    bucket: int
    windows: int
    accepted: int
    lost: int
    in_flight: int
    first_effects: int
    further_effects: int
    late: int
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True)
class OffsetPoint:
    """Where a partition's judged offsets ended in a bucket's last window, and how many were then in flight."""

    topic: str | None
    partition: int | None
    bucket: int
    end_offset: int
    in_flight: int


@dataclass(frozen=True)
class WindowIncident:
    """An incident of a run, the run's window, and where the incident is in its life across runs.

    The state is None where its life is not followed; `accepted_until` is set while somebody accepts it.
    """

    run_id: str
    window: Window
    incident: StoredIncident
    state: State | None
    resolution: Resolution | None
    accepted_until: datetime | None


@dataclass(frozen=True)
class HopWindow:
    """A window of a hop of a chain, and how many messages it lost, doubled, corrupted or invented."""

    pipeline: str
    run_id: str
    window: Window
    verdict: Verdict
    broken: int


@dataclass(frozen=True)
class LocatedIncident:
    """An incident with integer positions in a partition, both included."""

    topic: str | None
    partition: int | None
    incident_id: str
    class_name: str
    severity: Severity | None
    breaks: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class Located:
    """The incidents of a run that have a place in the log; `is_cut` where the run has more than were read."""

    incidents: tuple[LocatedIncident, ...]
    is_cut: bool


@dataclass(frozen=True)
class TracedBreak:
    """A break that shows the requested message, with its run's window, group, declared ledgers and coverage."""

    run_id: str
    window: Window
    group: str
    ledgers: tuple[str, ...]
    coverage: dict[str, Any]
    broken: StoredBreak


@dataclass(frozen=True)
class Traced:
    """The breaks of the latest windows that match the request; `total` counts the breaks that were read."""

    breaks: tuple[TracedBreak, ...]
    total: int


@dataclass(frozen=True)
class WindowFilter:
    """Which of a pipeline's windows are meant: those that start in `[start, end)`, with a verdict."""

    start: datetime | None = None
    end: datetime | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class IncidentFilter:
    """A filter on the incidents of a pipeline's current runs; a field that is None excludes nothing."""

    start: datetime | None = None
    end: datetime | None = None
    class_name: str | None = None
    severity: Severity | None = None
    locus: str | None = None
    cause: str | None = None
    topic: str | None = None
    partition: int | None = None
    state: Literal["open", "resolved"] | None = None


@dataclass(frozen=True)
class BreakFilter:
    """A filter on the breaks of a run; a field that is None excludes nothing."""

    incident_id: str | None = None
    class_name: str | None = None
    severity: Severity | None = None
    topic: str | None = None
    partition: int | None = None
    message_id: str | None = None


def head_of(row: Mapping[str, Any]) -> PipelineHead:
    """Return the pipeline in `row`; what its contract does not say is empty."""
    return PipelineHead(
        pipeline=row["pipeline"],
        group=row["consumer_group"],
        guarantee=Guarantee(row["guarantee"]),
        run_id=row["run_id"],
        window=Window(row["window_start"], row["window_end"]),
        verdict=verdict_of(row),
        published_at=row["published_at"],
        contract_digest=row["contract_digest"],
        description=row["description"] or "",
        owner=row["owner"] or "",
        schedule=row["schedule"],
        grace=parse_duration(row["grace"] or "0s"),
        active_from=row["active_from"] and parse_time(row["active_from"]),
        active_until=row["active_until"] and parse_time(row["active_until"]),
        first_start=row["first_start"],
    )


def judged_bucket_of(row: Mapping[str, Any]) -> JudgedBucket:
    """Return the windows of one verdict in a bucket."""
    span = Window(row["first_start"], row["last_end"])
    return JudgedBucket(row["pipeline"], row["bucket"], verdict_of(row), row["windows"], span)


def gap_of(row: Mapping[str, Any]) -> Gap:
    """Return the gap in `row`."""
    return Gap(row["pipeline"], row["bucket"], Window(row["since"], row["until"]))


def window_incident_of(row: Mapping[str, Any]) -> WindowIncident:
    """Return the incident in `row`, with its window."""
    window = Window(row["window_start"], row["window_end"])
    fields = {key: row[key] for key in StoredIncident.__dataclass_fields__}
    severity = row["severity"] and Severity(row["severity"])
    return WindowIncident(
        row["run_id"],
        window,
        StoredIncident(**{**fields, "severity": severity}),
        row["state"] and State(row["state"]),
        row["resolution"] and Resolution(row["resolution"]),
        row["accepted_until"],
    )


def hop_window_of(row: Mapping[str, Any]) -> HopWindow:
    """Return the window of a hop in `row`."""
    window = Window(row["window_start"], row["window_end"])
    return HopWindow(row["pipeline"], row["run_id"], window, verdict_of(row), row["broken"])


def located_incident_of(row: Mapping[str, Any]) -> LocatedIncident:
    """Return the incident in `row`, with its offsets."""
    fields = {name: row[name] for name in LocatedIncident.__dataclass_fields__}
    return LocatedIncident(**{**fields, "severity": row["severity"] and Severity(row["severity"])})


def traced_of(row: Mapping[str, Any]) -> TracedBreak:
    """Return the break in `row`, with what its run says of its ledgers."""
    fields = {"flags": row["flags"], "severity": row["severity"], "msg_offset": row["msg_offset"]}
    fields |= {name: row[name] for name in StoredBreak.__dataclass_fields__ if name in row}
    return TracedBreak(
        row["in_run"],
        Window(row["window_start"], row["window_end"]),
        row["consumer_group"],
        tuple(row["ledgers"] or ()),
        row["coverage"] or {},
        break_of(fields),
    )


def verdict_of(row: Mapping[str, Any]) -> Verdict:
    """Return the verdict to show of a row's `verdict` and `final_verdict`."""
    return counted_verdict(Verdict(row["verdict"]), row["final_verdict"] and Verdict(row["final_verdict"]))
