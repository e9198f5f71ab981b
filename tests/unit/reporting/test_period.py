"""A period's report: what was judged and what was not, sums, incidents and inputs, in four forms."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from tieout.model import Verdict, Window
from tieout.reporting.period import JudgedWindow, inputs_digest, period_document
from tieout.reporting.period_pages import period_html, period_markdown, period_text

START = datetime(2026, 11, 20, tzinfo=UTC)
DAY = Window(START, START + timedelta(days=1))
NOW = START + timedelta(days=2)


def judged(
    statement: dict[str, Any], hour: float, verdict: Verdict = Verdict.KEPT, **more: Any
) -> JudgedWindow:
    """Return the statement as that of the hour, counted from the day's start."""
    begin = START + timedelta(hours=hour)
    window = {"start": begin.isoformat(), "end": (begin + timedelta(hours=1)).isoformat()}
    changes = {name: more.pop(name) for name in list(more) if name in statement}
    return JudgedWindow(statement | {"window": window} | changes, verdict, **more)


def pipeline_part(windows: list[JudgedWindow], period: Window = DAY, now: datetime = NOW) -> dict[str, Any]:
    """Return the one pipeline's part of the report."""
    document = period_document(windows, period, pipeline=None, source="store", now=now)
    (pipeline,) = document["pipelines"]
    assert document["verdict"] == pipeline["verdict"]
    return dict(pipeline)


def test_a_whole_day_adds_up(statement: dict[str, Any]) -> None:
    """24 windows of 24, each sum 24 times the statement's, and every input's digest."""
    found = pipeline_part([judged(statement, hour) for hour in range(24)])

    assert (found["verdict"], found["windows_judged"], found["windows_expected"]) == ("KEPT", 24, 24)
    assert found["not_judged"] == []
    assert (found["sums"]["messages"], found["sums"]["lost"]) == (24 * 204, 24 * 3)
    assert found["classes"] == {"DELIVERED": 24 * 197, "LOST": 24 * 3}
    assert (found["incidents_total"], found["breaks_total"], found["inputs_total"]) == (24, 72, 48)
    inputs = {"produced": ["sha256:ab"], "delivered": ["sha256:ab"]}
    assert found["windows"][7]["inputs"] == inputs
    assert found["windows"][7]["inputs_digest"] == inputs_digest(inputs)


@pytest.mark.parametrize(
    ("hours", "gaps", "expected"),
    [
        ([0, 1, 3], [(2, 3), (4, 24)], 24),
        ([23], [(0, 23)], 24),
        ([0, 1.5], [(1, 1.5), (2.5, 24)], None),
    ],
)
def test_time_that_nothing_covers_is_not_kept(
    statement: dict[str, Any], hours: list[float], gaps: list[tuple[float, float]], expected: int | None
) -> None:
    """A missing window makes the period UNKNOWN; how many are missing is told only where the gaps can tell."""
    found = pipeline_part([judged(statement, hour) for hour in hours])

    spans = [tuple(START + timedelta(hours=bound) for bound in gap) for gap in gaps]
    shown = [
        tuple(datetime.fromisoformat(gap[end]) for end in ("start", "end")) for gap in found["not_judged"]
    ]
    assert shown == spans
    assert found["windows_expected"] == expected
    assert found["verdict"] == "UNKNOWN"


def test_only_time_that_had_to_be_judged_is_missed(statement: dict[str, Any]) -> None:
    """Not before the contract was active, not after, and not what is still to come."""
    active: dict[str, Any] = {
        "active_from": START + timedelta(hours=4),
        "active_until": START + timedelta(hours=20),
    }

    assert pipeline_part([judged(statement, hour, **active) for hour in range(4, 20)])["not_judged"] == []
    early = pipeline_part([judged(statement, hour) for hour in range(6)], now=START + timedelta(hours=6))
    assert early["not_judged"] == []


def test_a_window_counts_in_the_period_it_begins_in(statement: dict[str, Any]) -> None:
    """One that reaches in covers its time and is counted in the period before; neighbours count nothing twice."""
    windows = [judged(statement, hour) for hour in (-0.5, 0.5, *[hour + 0.5 for hour in range(1, 24)])]

    found = pipeline_part(windows)

    assert (found["windows_judged"], found["not_judged"]) == (24, [])
    assert found["sums"]["messages"] == 24 * 204
    assert pipeline_part([*windows, judged(statement, 3)])["windows_overlapping"] == 2


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        ([Verdict.KEPT, Verdict.BROKEN, Verdict.UNKNOWN], "BROKEN"),
        ([Verdict.PENDING, Verdict.UNKNOWN], "UNKNOWN"),
        ([Verdict.KEPT, Verdict.PENDING], "PENDING"),
    ],
)
def test_the_gravest_verdict_counts(statement: dict[str, Any], verdicts: list[Verdict], worst: str) -> None:
    """Of windows that cover the period."""
    windows = [judged(statement, hour, verdict) for hour, verdict in enumerate(verdicts)]
    period = Window(START, START + timedelta(hours=len(verdicts)))

    assert pipeline_part(windows, period)["verdict"] == worst


def test_a_period_without_windows_is_unknown(statement: dict[str, Any]) -> None:
    """Of another pipeline, or of another time: nothing is known, and every form says so."""
    windows = [judged(statement, -30), judged(statement, 3, pipeline="another")]

    document = period_document(windows, DAY, pipeline="orders", source="store", now=NOW)

    assert (document["verdict"], document["pipelines"]) == ("UNKNOWN", [])
    for render in (period_text, period_markdown, period_html):
        assert "No window of orders was judged in this period." in render(document)


def test_every_form_tells_the_same(statement: dict[str, Any]) -> None:
    """Windows, what was not judged, sums, incidents, and what to be careful about."""
    windows = [judged(statement, hour, Verdict.BROKEN, is_checked=hour != 1) for hour in range(3)]
    document = period_document(windows, DAY, pipeline=None, source="store", now=NOW)

    text, markdown, page = (render(document) for render in (period_text, period_markdown, period_html))

    for shown in (text, markdown, page):
        assert "3 judged of 24 expected: BROKEN 3" in shown
        assert "2026-11-20T03:00:00Z" in shown
        assert "1 windows were not checked independently" in shown
        assert "commit before process" in shown
    assert ["messages", "612"] in [line.split() for line in text.splitlines()]
    assert "| **messages** | 612 |" in markdown.splitlines()
    assert json.loads(json.dumps(document)) == document


class _Tags(HTMLParser):
    """Collects the tags of a page, and every attribute that could load or run something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.active: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.active += [name for name, _ in attrs if name in ("src", "href") or name.startswith("on")]


def test_ids_stay_text(statement: dict[str, Any]) -> None:
    """Nothing in the page is loaded or run, whatever a group, a reason or an incident is called."""
    evil = "<script>alert(1)</script><img src=x onerror=y>"
    incident = statement["incidents"][0] | {"class": evil, "cause": evil, "topic": evil}
    hostile: dict[str, Any] = {"group": evil, "reasons": [evil], "run_id": evil, "incidents": [incident]}
    document = period_document([judged(statement, 0, **hostile)], DAY, pipeline=None, source="store", now=NOW)

    tags = _Tags()
    tags.feed(period_html(document))

    assert "section" in tags.tags
    assert not {"script", "img", "link", "iframe"} & tags.tags
    assert tags.active == []
    assert "`<script>" in period_markdown(document)
