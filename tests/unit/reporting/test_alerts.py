"""Who is told what: decided from the statement, the checks and the contract's routes alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tieout.contracts import Contract
from tieout.model import Alert, CheckResult, CheckStatus, Severity, Verdict, Window
from tieout.reporting.alerts import TEXT_LIMIT, alerts_for, bounded, failure_alerts

_ROUTES = [{"to": "webhook", "connection": "hook", "at": "warning"}]
_WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
_PASSED = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.PASS, "0", "0")
_FAILED = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.FAIL, "2", "0")
_WARNED = CheckResult("late", Severity.WARNING, CheckStatus.FAIL, "3", "none expected")
_NOTED = CheckResult("resends", Severity.INFO, CheckStatus.FAIL, "3", "none expected")
_ERRED = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.ERROR, "timeout", "0")


def _contract(routes: list[dict[str, str]] = _ROUTES, **changes: Any) -> Contract:
    source = {"source": {"kind": "files", "format": "jsonl", "path": "x.jsonl"}}
    document = {
        "version": 1,
        "pipeline": "orders",
        "guarantee": "exactly_once",
        "group": "loader",
        "owner": "payments",
        "ledgers": {"produced": source, "delivered": source},
        "alerts": routes,
        **changes,
    }
    return Contract.model_validate(document).located_in(Path())


def _incident(number: int) -> dict[str, Any]:
    return {
        "incident_id": f"i{number}",
        "class": "LOST",
        "locus": "consumer",
        "cause": "commit before process",
        "topic": "orders",
        "partition": 0,
        "first_position": 5,
        "last_position": 9,
        "breaks": 5,
    }


def _statement(verdict: str = "BROKEN", **changes: Any) -> dict[str, Any]:
    return {
        "run_id": "00000000-0000-0000-0000-000000000001",
        "generated_at": "2026-11-20T12:00:00Z",
        "window": {"start": "2026-11-20T10:00:00Z", "end": "2026-11-20T11:00:00Z"},
        "verdict": verdict,
        "reasons": ["lost: 5, none allowed"],
        "classes": {"LOST": 5, "DELIVERED": 95, "LATE": 0},
        "flags": {},
        "incidents": [_incident(1)],
        **changes,
    }


def _kinds(found: tuple[Alert, ...]) -> list[tuple[str, str]]:
    return [(alert.kind, alert.severity.value) for alert in found]


@pytest.mark.parametrize(
    ("judged", "results", "final", "flags", "expected"),
    [
        ("BROKEN", [_FAILED], "BROKEN", {}, [("verdict", "critical")]),
        ("UNKNOWN", [_PASSED], "UNKNOWN", {}, [("verdict", "warning")]),
        ("UNKNOWN", [_FAILED], "BROKEN", {}, [("verdict", "critical")]),
        ("KEPT", [_PASSED], "KEPT", {}, []),
        ("KEPT", [_PASSED, _NOTED], "KEPT", {}, []),
        ("KEPT", [_PASSED, _WARNED], "KEPT", {}, [("warnings", "warning")]),
        ("KEPT", [_ERRED], "UNKNOWN", {}, [("check_failed", "warning")]),
        ("KEPT", [], "UNKNOWN", {}, [("check_failed", "warning")]),
        ("PENDING", [_PASSED], "PENDING", {}, []),
        ("PENDING", [_PASSED, _WARNED], "PENDING", {}, []),
        ("PENDING", [_PASSED], "PENDING", {"OVERDUE": 3}, [("overdue", "warning")]),
        ("KEPT", [_FAILED], "BROKEN", {}, [("verdict", "critical"), ("disagreement", "warning")]),
        ("PENDING", [_FAILED], "BROKEN", {}, [("verdict", "critical"), ("disagreement", "warning")]),
        ("BROKEN", [_PASSED], "BROKEN", {}, [("verdict", "critical"), ("disagreement", "warning")]),
        ("BROKEN", [_PASSED, _ERRED], "BROKEN", {}, [("verdict", "critical")]),
    ],
)
def test_alerts_follow_from_verdict_and_checks(
    judged: str,
    results: list[CheckResult],
    final: str,
    flags: dict[str, int],
    expected: list[tuple[str, str]],
) -> None:
    """Bad news, doubtful news, and a judge and checks that disagree; nothing else."""
    found = alerts_for(_contract(), _statement(judged, flags=flags), results, Verdict(final))

    assert _kinds(found) == expected


def test_a_route_hears_from_its_severity_on() -> None:
    """A route at critical is spared warnings; every other route gets its own alert."""
    routes = [
        {"to": "webhook", "connection": "all", "at": "info"},
        {"to": "slack", "connection": "grave", "at": "critical"},
    ]

    unknown = alerts_for(_contract(routes), _statement("UNKNOWN"), [_PASSED], Verdict.UNKNOWN)
    broken = alerts_for(_contract(routes), _statement(), [_FAILED], Verdict.BROKEN)

    assert [(alert.to, alert.connection) for alert in unknown] == [("webhook", "all")]
    assert [(alert.to, alert.connection) for alert in broken] == [("webhook", "all"), ("slack", "grave")]
    assert len({alert.dedup_key for alert in broken}) == 2


def test_an_alert_says_what_people_need() -> None:
    """Subject and text name pipeline, window, verdict, reasons, counts, incidents, checks and page."""
    (alert,) = alerts_for(_contract(), _statement(), [_FAILED, _PASSED], Verdict.BROKEN, page="http://h/p")

    assert alert.payload["subject"] == "orders: BROKEN, 2026-11-20 10:00 to 2026-11-20 11:00 UTC"
    assert str(alert.payload["text"]).splitlines() == [
        "exactly_once, group loader, owner payments",
        "lost: 5, none allowed",
        "Counts: LOST 5",
        "LOST: 5 in orders-0, positions 5 to 9 (consumer, commit before process)",
        "Check no_loss failed (critical): 2, expected 0",
    ]
    assert (alert.payload["page"], alert.run_id, alert.window) == (
        "http://h/p",
        _statement()["run_id"],
        _WINDOW,
    )


def test_the_same_finding_again_has_the_same_key() -> None:
    """A re-run that finds the same is no news, whatever it is called and whenever it read."""
    first = alerts_for(_contract(), _statement(), [_FAILED], Verdict.BROKEN)
    again = alerts_for(
        _contract(),
        _statement(
            run_id="00000000-0000-0000-0000-000000000002",
            generated_at="2026-11-21T00:00:00Z",
            reasons=["read at 00:00: lost: 5"],
        ),
        [replace(_FAILED, observed="2 at 00:00")],
        Verdict.BROKEN,
    )

    assert [alert.dedup_key for alert in first] == [alert.dedup_key for alert in again]


@pytest.mark.parametrize(
    "changes",
    [
        {"classes": {"LOST": 6}},
        {"flags": {"LATE": 1}},
        {"incidents": [_incident(2)]},
        {"window": {"start": "2026-11-20T11:00:00Z", "end": "2026-11-20T12:00:00Z"}},
    ],
)
def test_another_finding_has_another_key(changes: dict[str, Any]) -> None:
    """More losses, other incidents or another window are news."""
    (first,) = alerts_for(_contract(), _statement(), [_FAILED], Verdict.BROKEN)
    (other,) = alerts_for(_contract(), _statement(**changes), [_FAILED], Verdict.BROKEN)

    assert first.dedup_key != other.dedup_key


def test_other_failed_checks_or_another_verdict_are_news() -> None:
    """The key also depends on what the checks said and how the run ended."""
    keys = {
        alerts_for(_contract(), _statement("UNKNOWN"), results, final)[0].dedup_key
        for results, final in [
            ([_PASSED], Verdict.UNKNOWN),
            ([_ERRED], Verdict.UNKNOWN),
            ([_WARNED], Verdict.UNKNOWN),
            ([_FAILED], Verdict.BROKEN),
        ]
    }

    assert len(keys) == 4


def test_hostile_text_is_visible_and_bounded() -> None:
    """Line breaks, direction marks and megabytes in ids and reasons do not shape the message."""
    hostile = "a\x00b\nc\u202e" + "x" * 1_000_000
    incidents = [{**_incident(number), "topic": hostile} for number in range(1000)]
    results = [replace(_FAILED, rule=f"r{number}", observed=hostile) for number in range(100)]

    (alert,) = alerts_for(
        _contract(), _statement(reasons=[hostile] * 50, incidents=incidents), results, Verdict.BROKEN
    )

    text = str(alert.payload["text"])
    assert len(text) <= TEXT_LIMIT
    assert "a\\u0000b\\u000ac\\u202exxx" in text
    assert "\x00" not in text
    assert all(len(line) <= 300 for line in text.splitlines())
    assert "… and 45 more reasons" in text


def test_a_failed_run_is_reported_once_a_window() -> None:
    """The steps to blame are named, and the same failure of a later try is no news."""
    failed = {"reconcile": "failed", "check": "upstream_failed"}

    (first,) = failure_alerts(_contract(), _WINDOW, "scheduled__1", failed)
    (again,) = failure_alerts(_contract(), _WINDOW, "manual__2", failed)
    (other,) = failure_alerts(_contract(), _WINDOW, "scheduled__1", {"check": "failed"})

    assert _kinds((first,)) == [("run_failed", "critical")]
    assert first.payload["subject"] == "orders: the run failed, 2026-11-20 10:00 to 2026-11-20 11:00 UTC"
    assert "reconcile: failed\ncheck: upstream_failed" in str(first.payload["text"])
    assert (first.dedup_key == again.dedup_key, first.dedup_key == other.dedup_key) == (True, False)


def test_runs_that_failed_before_their_window_was_known_are_distinguished() -> None:
    """Without a window, the run itself is what failed."""
    keys = {
        failure_alerts(_contract(), None, run, {"window": "failed"})[0].dedup_key
        for run in ("run 1", "run 2")
    }

    assert len(keys) == 2


def test_a_contract_without_routes_tells_nobody() -> None:
    """No route, no alert."""
    assert alerts_for(_contract([]), _statement(), [_FAILED], Verdict.BROKEN) == ()


def test_more_lines_than_fit_are_counted() -> None:
    """A text never ends in the middle of a line, and says what is missing."""
    assert bounded(["a" * 20, "b" * 20, "c" * 20], limit=45) == "a" * 20 + "\n… and 2 more lines"
    assert bounded(["a" * 50], limit=20) == "… 1 lines"
