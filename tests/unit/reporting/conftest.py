"""A statement as the engine writes it, for the tests of everything that shows one."""

from __future__ import annotations

from typing import Any

import pytest

STATES = (
    "control", "aborted", "open", "unattempted", "unverifiable", "duplicate", "delivered", "dead_lettered",
    "filtered", "compacted", "lost", "in_flight", "expired",
)  # fmt: skip


def partition(number: int, *, lost: int = 0) -> dict[str, Any]:
    """Return a partition of a hundred accepted messages, of which some are lost, with its offset balance."""
    counts = {
        "attempts": 104, "acked_attempts": 102, "failed_attempts": 1, "unknown_attempts": 1, "messages": 102,
        "resends": 2, "accepted": 100, "unproven": 1, "failed": 1, "delivered": 100 - lost, "filtered": 0,
        "dead_lettered": 0, "compacted": 0, "lost": lost, "in_flight": 0, "unverifiable": 0,
        "effects": 101 - lost, "first_effects": 100 - lost, "further_effects": 1, "phantom_effects": 0,
        "unverifiable_effects": 0,
    }  # fmt: skip
    offsets = {"from": 5, "to": 107} | dict.fromkeys(STATES, 0)
    offsets |= {"control": 2, "delivered": 100 - lost, "lost": lost}
    return {"topic": "orders", "partition": number, **counts, "offsets": offsets, "unexplained": 0}


def coverage(*, gap: str | None = None, notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return one ledger's part of a statement's coverage."""
    until = None if gap else "2026-11-20T11:15:00Z"
    return {
        "covers": gap is None, "gap": gap, "covers_from": None, "complete_until": until, "rows": 208,
        "unparsed": 0, "undated": 0, "digests": ["sha256:ab"], "notes": list(notes),
    }  # fmt: skip


@pytest.fixture
def statement() -> dict[str, Any]:
    """A BROKEN statement of two partitions, three messages lost in the second."""
    return {
        "schema_version": 1,
        "pipeline": "orders_to_warehouse",
        "group": "orders-loader",
        "contract_digest": "ab" * 32,
        "window": {"start": "2026-11-20T10:00:00Z", "end": "2026-11-20T11:00:00Z"},
        "run_id": "7f3c",
        "generated_at": "2026-11-20T11:20:00Z",
        "guarantee": "exactly_once",
        "identity": "message_id",
        "effects": "delivered",
        "verdict": "BROKEN",
        "reasons": ["lost: 3, none allowed"],
        "not_judged": [{"class": "REORDER_PRODUCER", "needs": "produced: sequence"}],
        "coverage": {"produced": coverage(), "delivered": coverage(notes=("a.jsonl:7: torn line",))},
        "partitions": [partition(0), partition(1, lost=3)],
        "classes": {"DELIVERED": 197, "LOST": 3},
        "flags": {"LOST": 3},
        "unconfirmed": {},
        "identity_errors": [],
        "budgets": {"late_ratio": {"observed": 0.0, "limit": None, "numerator": 0}},
        "latency": {"count": 197, "mean_s": 1.5, "p50_s": None},
        "incidents": [
            {
                "incident_id": "i1", "class": "LOST", "locus": "consumer", "cause": "commit before process",
                "topic": "orders", "partition": 1, "first_position": 17, "last_position": 19, "breaks": 3,
                "severity": "critical",
            }
        ],
        "checks": [
            {"rule": "lost", "severity": "critical", "status": "fail", "observed": "3",
             "limit": "none allowed"}
        ],
        "breaks_total": 3,
        "breaks_truncated": False,
    }  # fmt: skip


@pytest.fixture
def lost_break() -> dict[str, Any]:
    """One line of `breaks.jsonl`."""
    return {
        "break_id": "b1", "class": "LOST", "flags": [], "message_id": "order-17", "producer_id": "web-1",
        "topic": "orders", "partition": 1, "offset": 17, "positions": [{"partition": 1, "offset": 17}],
        "locus": "consumer", "cause": "commit before process", "admissible": [], "rule": "lost",
        "severity": "critical", "incident_id": "i1", "evidence": {"produced": [{"message_id": "order-17"}]},
    }  # fmt: skip
