"""Alerts about incidents, from values alone: who hears, in which words, in how many of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tieout.contracts import Contract
from tieout.model import CheckResult, CheckStatus, Severity, Verdict, Window
from tieout.reporting.alerts import TEXT_LIMIT, alerts_for, failure_alerts
from tieout.reporting.incident_alerts import MOST_SINGLE, IncidentNews, incident_alerts

_WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
_ROUTES = [
    {"to": "slack", "connection": "team", "at": "critical"},
    {"to": "pagerduty", "connection": "duty", "at": "critical"},
]
_PASSED = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.PASS, "0", "0")
_ERRED = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.ERROR, "timeout", "0")


def _contract(routes: list[dict[str, str]] = _ROUTES) -> Contract:
    source = {"source": {"kind": "files", "format": "jsonl", "path": "x.jsonl"}}
    document = {
        "version": 1, "pipeline": "orders", "guarantee": "exactly_once", "group": "loader", "owner": "payments",
        "ledgers": {"produced": source, "delivered": source}, "alerts": routes,
    }  # fmt: skip
    return Contract.model_validate(document).located_in(Path())


def _news(number: int = 1, **changes: Any) -> IncidentNews:
    fields: dict[str, Any] = {
        "incident_id": f"i{number}", "thread": f"i{number}", "resolution": None, "class_name": "LOST",
        "severity": Severity.CRITICAL, "locus": "consumer", "cause": "commit before process", "topic": "t",
        "partition": 0, "first_position": 5, "last_position": 9, "breaks": 5, "reopenings": 0, "window": _WINDOW,
        "run_id": "r", **changes,
    }  # fmt: skip
    return IncidentNews(**fields)


def test_an_incident_is_reported_to_each_route_with_what_is_known() -> None:
    """Class, size, place, locus, cause, owner; programs get the same in parts."""
    slack, duty = incident_alerts(_contract(), [_news()], page="http://h/p")

    assert (slack.to, duty.to, slack.kind, slack.severity) == (
        "slack",
        "pagerduty",
        "incident",
        Severity.CRITICAL,
    )
    assert (
        slack.payload["subject"]
        == "orders: BROKEN: LOST, 5 broken in t-0, 2026-11-20 10:00 to 2026-11-20 11:00 UTC"
    )
    assert str(slack.payload["text"]).splitlines() == [
        "exactly_once, group loader, owner payments",
        "LOST: 5 in t-0, positions 5 to 9 (consumer, commit before process)",
        "Incident i1",
    ]
    reported = {
        name: duty.payload[name]
        for name in ("incident_id", "incident_key", "state", "class", "breaks", "owner")
    }
    assert reported == {
        "incident_id": "i1", "incident_key": "i1", "state": "open", "class": "LOST", "breaks": 5, "owner": "payments",
    }  # fmt: skip
    assert (slack.thread, slack.is_closing) == ("i1", False)


@pytest.mark.parametrize(
    ("changes", "is_news"),
    [
        ({}, False),
        ({"breaks": 7}, False),
        ({"run_id": "another"}, False),
        ({"breaks": 8}, True),
        ({"reopenings": 1}, True),
        ({"resolution": "late"}, True),
        ({"incident_id": "i2", "thread": "i1"}, True),
    ],
)
def test_what_is_news_of_an_incident(changes: dict[str, Any], is_news: bool) -> None:
    """Twice the size, coming back, ending, going on as another: yes; the same again, a little more: no."""
    (first, _), (again, _) = (incident_alerts(_contract(), [_news(**each)]) for each in ({}, changes))

    assert (first.dedup_key != again.dedup_key) is is_news


@pytest.mark.parametrize(
    "changes", [{"severity": Severity.WARNING}, {"severity": Severity.INFO}, {"resolution": "continued"}]
)
def test_what_breaks_nothing_or_goes_on_elsewhere_is_not_reported(changes: dict[str, Any]) -> None:
    """A late message is counted and no alert; an incident under another id is told as that one."""
    assert incident_alerts(_contract(), [_news(**changes)]) == ()


def test_many_incidents_are_reported_together() -> None:
    """Ten one by one, five hundred in one."""
    found = incident_alerts(_contract(_ROUTES[:1]), [_news(number) for number in range(510)])

    assert len(found) == MOST_SINGLE + 1
    assert found[-1].payload["subject"] == "orders: BROKEN: 500 more incidents with 2500 broken"
    assert found[-1].thread is None


def test_hostile_ids_are_visible_and_bounded() -> None:
    """Line breaks, direction marks and megabytes do not shape the message."""
    hostile = "<b>\n\u202e" + "x" * 1_000_000
    (found,) = incident_alerts(
        _contract(_ROUTES[:1]),
        [
            _news(
                topic=hostile,
                first_position=hostile,
                last_position=hostile,
                incident_id=hostile,
                cause=hostile,
            )
        ],
    )

    assert len(str(found.payload["text"])) <= TEXT_LIMIT
    assert len(str(found.payload["subject"])) <= 300
    assert "\u202e" not in json_of(found.payload)
    assert len(json_of(found.payload)) < 6_000


def json_of(value: object) -> str:
    """Return all that is said, as one text."""
    return repr(value)


def _statement(**changes: Any) -> dict[str, Any]:
    incident = {
        "incident_id": "i1", "class": "LOST", "breaks": 5, "severity": "critical", "topic": "t", "partition": 0,
    }  # fmt: skip
    return {
        "run_id": "r", "window": {"start": "2026-11-20T10:00:00Z", "end": "2026-11-20T11:00:00Z"},
        "verdict": "BROKEN", "reasons": ["lost: 5"], "classes": {"LOST": 5}, "flags": {}, "incidents": [incident],
        "checks": [{"rule": "lost", "severity": "critical", "status": "fail"}], **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        (
            {"checks": [{"rule": "late_ratio", "severity": "critical", "status": "fail"}]},
            ["verdict", "verdict"],
        ),
        ({"incidents": []}, ["verdict", "verdict"]),
    ],
)
def test_a_window_broken_by_incidents_has_their_alerts(changes: dict[str, Any], expected: list[str]) -> None:
    """One thing, one alert; an exceeded budget has no incident, so the window itself is told."""
    failed = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.FAIL, "5", "0")

    found = alerts_for(_contract(), _statement(**changes), [failed], Verdict.BROKEN)

    assert [alert.kind for alert in found] == expected


def test_what_failed_is_distinguished_from_what_broke() -> None:
    """A run that died, checks that did not run, a check that erred: none of them says that the guarantee broke."""
    contract = _contract([{"to": "slack", "connection": "team", "at": "warning"}])

    (died,) = failure_alerts(contract, _WINDOW, "run", {"reconcile": "failed", "check": "upstream_failed"})
    (unchecked,) = failure_alerts(contract, _WINDOW, "run", {"check": "failed"})
    (erred,) = alerts_for(contract, _statement(verdict="KEPT", incidents=[]), [_ERRED], Verdict.UNKNOWN)
    (unknown,) = alerts_for(contract, _statement(verdict="UNKNOWN", incidents=[]), [_PASSED], Verdict.UNKNOWN)

    assert [each.kind for each in (died, unchecked, erred, unknown)] == [
        "run_failed", "check_failed", "check_failed", "verdict",
    ]  # fmt: skip
    assert "BROKEN" not in "".join(str(each.payload) for each in (died, unchecked, erred, unknown))
