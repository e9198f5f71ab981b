"""What an audit says of each window, and which of it is one gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.dags.home import write_contract

from tieout.contracts import Contract, load_contract
from tieout.model import Window
from tieout.orchestration.auditing import NOT_QUERIED, Audited, Finding, findings_of, gaps_of, table_of
from tieout.store import JudgedWindow

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATER = TEN + timedelta(days=2)


@pytest.fixture
def contract(contracts: Path) -> Contract:
    """A contract with a grace of 15 minutes and an hour's patience for its evidence."""
    return load_contract(write_contract(contracts, "orders"))


@dataclass
class Runs:
    """Airflow as a test wants it: the states of its runs by the hour of their window's start."""

    states: Mapping[int, str] = field(default_factory=dict)
    paused: bool | None = False

    def is_paused(self, _pipeline: str) -> bool | None:
        """Return what the test says of the DAG."""
        return self.paused

    def state_of(self, _pipeline: str, window: Window) -> str | None:
        """Return what the test says of the window's run."""
        return self.states.get(window.start.hour)


def hours(*starts: int) -> tuple[Window, ...]:
    """Return the windows of one hour that begin at these hours of a day."""
    return tuple(Window(TEN.replace(hour=start), TEN.replace(hour=start) + HOUR) for start in starts)


def judged(contract: Contract, window: Window, **changes: object) -> JudgedWindow:
    """Return a checked statement of the contract's own group and version."""
    usual = {
        "run_id": "r1",
        "group": contract.group,
        "contract_digest": contract.digest,
        "is_checked": True,
        "has_later_run": False,
        "published_at": window.end + timedelta(minutes=20),
    }
    return JudgedWindow(window=window, **{**usual, **changes})  # type: ignore[arg-type]


def audited(contract: Contract, expected: tuple[Window, ...], *found: JudgedWindow) -> Audited:
    """Return the pipeline with these windows judged."""
    versions = {contract.digest: contract.model_dump(mode="json", by_alias=True, exclude_none=True)}
    return Audited(contract, expected, found, versions)


def said(found: tuple[Finding, ...]) -> list[tuple[int, str]]:
    """Return the hour and the state of each finding."""
    return [(one.window.start.hour, one.state.value) for one in found]


def test_a_judged_window_is_no_finding(contract: Contract) -> None:
    """Whatever Airflow says about its run, such as failed: cancelling a backfill does that."""
    (window,) = hours(10)

    found = findings_of(audited(contract, (window,), judged(contract, window)), Runs({10: "failed"}), LATER)

    assert found == ()


@pytest.mark.parametrize(
    ("state", "paused", "now", "expected", "why"),
    [
        (None, False, LATER, "missing", "no run of it"),
        (None, True, LATER, "missing", "no run of it; the DAG is paused"),
        (None, None, LATER, "missing", "no DAG of the pipeline"),
        ("success", False, LATER, "missing", "succeeded without judging"),
        ("failed", False, LATER, "failed", "is failed"),
        ("queued", False, TEN + 2 * HOUR, "running", "is queued"),
        ("running", False, TEN + 5 * HOUR, "running", "is running"),
        ("queued", True, TEN + 2 * HOUR, "missing", "is queued; the DAG is paused"),
        ("queued", False, TEN + 6 * HOUR, "missing", "is queued"),
        (NOT_QUERIED, False, LATER, "missing", "older than"),
    ],
)
def test_a_window_without_a_verdict_is_explained(
    contract: Contract, state: str | None, paused: bool | None, now: datetime, expected: str, why: str
) -> None:
    """A run that may still give a verdict in time is no gap; a queued one of a paused DAG never will."""
    runs = Runs({} if state is None else {10: state}, paused)

    (found,) = findings_of(audited(contract, hours(10)), runs, now)

    assert found.state.value == expected
    assert why in found.detail


def test_a_run_that_was_never_checked_has_failed(contract: Contract) -> None:
    """Its verdict does not count yet; one that was published just now is still at it, however old its window."""
    (window,) = hours(10)
    fresh = judged(contract, window, is_checked=False, published_at=LATER - HOUR)

    (dead,) = findings_of(audited(contract, (window,), fresh), Runs({10: "failed"}), LATER)
    (alive,) = findings_of(audited(contract, (window,), fresh), Runs({10: "running"}), LATER)

    assert (dead.state.value, alive.state.value) == ("failed", "running")
    assert "run r1 was stored and never checked" in dead.detail


def test_a_statement_about_another_group_is_none_of_the_window(contract: Contract) -> None:
    """The contract's group was renamed: what it names now was never judged."""
    (window,) = hours(10)

    (found,) = findings_of(
        audited(contract, (window,), judged(contract, window, group="former")), Runs(), LATER
    )

    assert found.state.value == "missing"
    assert "judged for the group former only" in found.detail


def test_a_verdict_by_other_terms_is_stale_and_one_by_another_description_is_not(contract: Contract) -> None:
    """An edit that no verdict depends on leaves the windows as they are."""
    (window,) = hours(10)
    now = contract.model_dump(mode="json", by_alias=True, exclude_none=True)
    versions = {
        "reworded": {**now, "description": "Other words."},
        "laxer": {**now, "guarantee": "at_least_once"},
    }
    by = {digest: judged(contract, window, contract_digest=digest, has_later_run=True) for digest in versions}

    found = {
        digest: findings_of(Audited(contract, (window,), (one,), versions), Runs(), LATER)
        for digest, one in by.items()
    }

    assert found["reworded"] == ()
    assert said(found["laxer"]) == [(10, "stale")]
    assert "a later run does not count" in found["laxer"][0].detail


def test_windows_of_a_former_schedule_supersede_those_that_they_cover(contract: Contract) -> None:
    """Half hours were judged before; what they leave out is missing."""
    half = timedelta(minutes=30)
    expected = hours(10, 11, 12)
    halves = [
        judged(contract, Window(start, start + half))
        for start in (TEN, TEN + half, TEN + HOUR, TEN + 2 * HOUR, TEN + 2 * HOUR + half)
    ]

    found = findings_of(audited(contract, expected, *halves), Runs(), LATER)

    assert said(found) == [(10, "superseded"), (11, "missing"), (12, "superseded")]


def test_neighbours_without_a_verdict_are_one_gap(contract: Contract) -> None:
    """Whether missing or failed; a judged or a running window between them makes two, a stale one is another kind."""
    expected = hours(8, 9, 10, 11, 12, 13)
    stale = judged(contract, expected[5], contract_digest="c0ffee")
    of = audited(contract, expected, judged(contract, expected[2]), stale)

    findings = findings_of(of, Runs({9: "failed"}), LATER)
    gaps = gaps_of(of, findings)

    assert said(findings) == [(8, "missing"), (9, "failed"), (11, "missing"), (12, "missing"), (13, "stale")]
    assert [(gap.kind, gap.window.start.hour, gap.window.end.hour) for gap in gaps] == [
        ("unjudged", 8, 10),
        ("unjudged", 11, 13),
        ("stale", 13, 14),
    ]
    assert dict(gaps[0].states) == {"missing": 1, "failed": 1}


def test_the_table_is_bounded_and_says_so(contract: Contract) -> None:
    """A log is no place for ten thousand lines."""
    findings = findings_of(audited(contract, hours(8, 9, 10)), Runs(), LATER)

    shown = table_of(findings, most=2).splitlines()

    assert shown[0].split() == ["pipeline", "window", "until", "state", "why"]
    assert shown[1].startswith("orders    2026-11-20 08:00  11-20 09:00  missing  Airflow has no run of it")
    assert shown[3:] == ["… and 1 more"]
