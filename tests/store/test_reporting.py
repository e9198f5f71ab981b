"""The statements of a period as the store gives them, and the command that prints them."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.store.examples import ORIGIN, WINDOW, breaks, incident, one_break, statement

from tieout.cli.main import main
from tieout.model import CheckResult, CheckStatus, Severity, Verdict
from tieout.store import Store

ACTIVE = {"pipeline": "orders", "active": {"from": "2026-11-20T09:00:00Z"}}


def _publish(store: Store, number: int, hour: int, **changes: object) -> str:
    """Publish a statement of the hour, counted from the examples' window, and return its run's id."""
    start, end = (bound + timedelta(hours=hour) for bound in (WINDOW.start, WINDOW.end))
    window = {"start": start.isoformat(), "end": end.isoformat()}
    found = statement(number, window=window, **changes)
    store.publish(found, breaks(), ACTIVE, ORIGIN)
    return str(found["run_id"])


def test_current_statements_that_touch_the_period(store: Store) -> None:
    """One a window, whatever was published before it; of many incidents the first, and their number."""
    many = [incident(f"i-{number:03d}", 1) for number in range(150)]
    _publish(store, 1, 0)
    _publish(store, 2, 0, incidents=many)
    _publish(store, 3, 5)
    _publish(store, 4, 0, pipeline="another")

    found = store.statements_between(WINDOW.start, WINDOW.end, "orders")
    both = store.statements_between(WINDOW.start, WINDOW.start + timedelta(minutes=1))
    later = store.statements_between(WINDOW.end, WINDOW.end + timedelta(hours=1))

    (one,) = found
    assert (len(one.statement["incidents"]), one.statement["incidents_found"]) == (100, 150)
    assert (one.verdict, one.final_verdict) == (Verdict.BROKEN, None)
    assert (one.active_from, one.active_until) == (datetime(2026, 11, 20, 9, tzinfo=UTC), None)
    assert [entry.statement["pipeline"] for entry in both] == ["another", "orders"]
    assert later == ()


def test_the_report_of_a_period(store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked windows count by their final verdict; one that no check has looked at is not KEPT."""
    monkeypatch.setenv("TIEOUT_DATABASE_URL", store_url)
    passed = CheckResult("lost", Severity.CRITICAL, CheckStatus.PASS, "0", "0")
    checked = _publish(store, 1, 0, verdict="KEPT", reasons=[])
    _publish(store, 2, 1, verdict="KEPT", reasons=[])
    store.record_checks(checked, [passed], Verdict.KEPT, suite="s", suite_digest="d", gx_version="1")
    out, err = io.StringIO(), io.StringIO()

    code = main(
        ["report", "--from", "2026-11-20T10:00:00Z", "--to", "2026-11-20T12:00:00Z", "--json"],
        out=out,
        err=err,
    )

    (reported,) = json.loads(out.getvalue())["pipelines"]
    assert (code, err.getvalue()) == (3, "")
    assert (reported["windows_judged"], reported["windows_unchecked"], reported["not_judged"]) == (2, 1, [])
    assert {name: count for name, count in reported["verdicts"].items() if count} == {"KEPT": 1, "UNKNOWN": 1}


def test_a_report_tells_a_loss_at_the_hop_where_it_happened(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three hops with one loss, one has an open incident, and the others say which one theirs is."""
    monkeypatch.setenv("TIEOUT_DATABASE_URL", store_url)
    before: str | None = None
    for number, pipeline in enumerate(("enrich", "route", "table"), start=1):
        name = f"loss at {pipeline}"
        after = {} if before is None else {"after": before}
        published = statement(
            number, pipeline=pipeline, incidents=[incident(name, 1)], breaks_total=1, **after
        )
        contract = {"pipeline": pipeline, **({} if before is None else {"after": {"pipeline": before}})}
        store.publish(published, [one_break(1, incident_id=name)], contract, ORIGIN)
        before = pipeline

    def printed(form: str) -> str:
        out = io.StringIO()
        requested = ["--from", "2026-11-20T10:00:00Z", "--to", "2026-11-20T11:00:00Z", "--format", form]
        main(["report", *requested], out=out, err=io.StringIO())
        return out.getvalue()

    first, second, third = json.loads(printed("json"))["pipelines"]
    assert [one["incidents_total"] - one["incidents_before"] for one in (first, second, third)] == [1, 0, 0]
    assert "origin" not in first["incidents"][0]
    for one in (second, third):
        origin = one["incidents"][0]["origin"]
        assert (origin["words"], origin["is_consequence"]) == ("lost before, at enrich", True)
        assert [published["incident_id"] for published in origin["earlier"]] == ["loss at enrich"]
    for form in ("text", "markdown", "html"):
        page = printed(form)
        assert page.count("Open incidents") == (2 if form == "html" else 1), form
        assert page.count("lost before, at enrich (incident loss at enrich)") == 2, form
        assert page.count("From an earlier hop") == 2, form
