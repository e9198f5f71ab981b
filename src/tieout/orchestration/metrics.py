"""Values for Airflow's metrics: verdicts, counts by class, seconds. docs/reference/metrics.md lists them.

They are sent with Airflow's own (`[metrics]` of its configuration: OpenTelemetry, StatsD, Datadog), and not at all if
that is off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from tieout.model import Verdict
from tieout.orchestration.versions import Stats


@dataclass(frozen=True)
class Measure:
    """One value of one metric; counters rise by it, gauges are set to it."""

    kind: Literal["counter", "gauge"]
    name: str
    value: float
    tags: Mapping[str, str] = field(default_factory=dict)


def emit(measures: Iterable[Measure]) -> None:
    """Hand the values to Airflow's metrics."""
    for one in measures:
        if one.kind == "counter":
            Stats.incr(f"tieout.{one.name}", int(one.value), tags=dict(one.tags))
        else:
            Stats.gauge(f"tieout.{one.name}", one.value, tags=dict(one.tags))


def verdict_measures(statement: Mapping[str, Any], verdict: Verdict, now: datetime) -> Iterator[Measure]:
    """Yield the measures of a final verdict: the verdict, its window's counts, and durations.

    Counts are gauges of the window judged last, so that judging one again adds nothing.
    """
    pipeline = {"pipeline": str(statement["pipeline"])}
    yield Measure("counter", "verdicts", 1, {**pipeline, "verdict": verdict.value})
    for metric, key, tag in (("messages", "classes", "class"), ("flags", "flags", "flag")):
        for name, count in statement[key].items():
            yield Measure("gauge", metric, count, {**pipeline, tag: name})
    yield Measure("gauge", "breaks", statement["breaks_total"], pipeline)
    for name in ("p50_s", "p99_s", "max_s"):
        seconds = (statement.get("latency") or {}).get(name)
        if seconds is not None:
            yield Measure("gauge", f"latency.{name.removesuffix('_s')}_seconds", seconds, pipeline)
    ended = datetime.fromisoformat(statement["window"]["end"])
    yield Measure("gauge", "judged_after_seconds", (now - ended).total_seconds(), pipeline)
