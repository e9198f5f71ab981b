"""What a statement found that cannot be if the pipeline ran as its contract declares."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.linting.contracts import contract

from tieout.linting import contradictions
from tieout.linting.contradicting import CONTRADICTIONS
from tieout.model import Severity

SAFE = {
    "producer": {"client": "java-4.0"},
    "broker": {"min.insync.replicas": 2, "unclean.leader.election.enable": False},
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str, str]]] = {
    "found_plain_producer": (
        {"producer": {"enable.idempotence": True}},
        {"producer": {"enable.idempotence": False}},
        ("LOG_DUPLICATE", "producer → broker", "retry without idempotence"),
    ),
    "found_aborted_read": (
        {"consumer": {"client": "librdkafka"}},
        {"consumer": {"client": "java-4.0"}},
        ("PHANTOM_ABORTED", "consumer isolation", "aborted transaction read"),
    ),
    "found_uncommitted_read": (
        {"consumer": {"isolation.level": "read_committed"}},
        {"consumer": {"isolation.level": "read_uncommitted"}},
        ("PHANTOM_UNCOMMITTED", "consumer isolation", "unknown"),
    ),
    "found_commit_first": (
        {"consumer": {"commits": "after processing"}},
        {"consumer": {"commits": "before processing"}},
        ("LOST", "consumer", "commit before process"),
    ),
    "found_process_first": (
        {"consumer": {"commits": "with the output"}},
        {"consumer": {"commits": "after processing"}},
        ("OUTPUT_DUPLICATE", "consumer or sink", "process before commit"),
    ),
    "found_second_output": (
        {"consumer": {"output": "keyed by id"}},
        {"consumer": {"output": "appended"}},
        ("OUTPUT_DUPLICATE", "consumer or sink", "unknown"),
    ),
    "found_lost_leader": (
        SAFE,
        {**SAFE, "producer": {"acks": 1}},
        ("LOST", "broker", "leader failover or unclean election"),
    ),
}
"""Per contradiction settings that claim, settings that do not, and an incident: class, locus, cause."""


def statement(*incidents: tuple[str, str, str]) -> dict[str, Any]:
    """Return as much of a statement as is read: its incidents."""
    keys = ("class", "locus", "cause")
    place = {"topic": "payments", "partition": 0, "breaks": 3}
    return {"incidents": [{**place, **dict(zip(keys, each, strict=True))} for each in incidents]}


def test_every_contradiction_has_its_case() -> None:
    """No row of the table without an example."""
    assert [each.name for each in CONTRADICTIONS] == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_contradiction_needs_the_claim_and_the_incident(name: str) -> None:
    """Neither a claim alone nor an incident alone contradicts anything."""
    claiming, silent, incident = CASES[name]

    found = {each.rule: each for each in contradictions(contract(claiming), statement(incident, incident))}

    assert found[name].severity is Severity.CRITICAL
    assert f"6 {incident[0]} in 2 incidents, the first in payments-0" in found[name].failure
    assert name not in {each.rule for each in contradictions(contract(silent), statement(incident))}
    assert contradictions(contract(claiming), statement()) == ()
    assert contradictions(contract({}), statement(incident)) == ()


@pytest.mark.parametrize(
    ("settings", "incident"),
    [
        ({"producer": {"enable.idempotence": True}}, ("LOG_DUPLICATE", "producer → broker", "unknown")),
        (
            {"producer": {"enable.idempotence": True}},
            ("LOG_DUPLICATE", "producer → broker", "producer restart or application resend"),
        ),
        ({"consumer": {"output": "keyed by position"}}, ("OUTPUT_DUPLICATE", "producer → broker", "unknown")),
        ({"consumer": {"commits": "after processing"}}, ("LOST", "consumer", "unknown")),
        (
            {"consumer": {"client": "java"}},
            ("PHANTOM_ABORTED", "consumer isolation", "aborted transaction read"),
        ),
        (SAFE, ("LOST", "consumer", "commit before process")),
    ],
)
def test_what_a_setting_does_not_exclude_contradicts_nothing(
    settings: dict[str, Any], incident: tuple[str, str, str]
) -> None:
    """An idempotent producer may be asked twice; an output keyed by position keeps what stands in the log twice."""
    assert contradictions(contract(settings), statement(incident)) == ()
