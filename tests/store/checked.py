"""A stored run that keeps its guarantee, and ways to make it one that does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.store.examples import ORIGIN, WINDOW, partition, run_id

from tieout.checks import CheckReport, check_statement
from tieout.contracts import Contract
from tieout.model import CheckStatus
from tieout.store import Store

RUN = run_id(7)

_SOURCE = {"kind": "files", "format": "jsonl", "path": "evidence.jsonl"}

_KEPT = {
    "attempts": 12,
    "acked_attempts": 10,
    "failed_attempts": 1,
    "unknown_attempts": 1,
    "messages": 11,
    "resends": 1,
    "accepted": 9,
    "unproven": 1,
    "failed": 1,
    "delivered": 6,
    "dead_lettered": 1,
    "filtered": 1,
    "compacted": 1,
    "effects": 6,
    "first_effects": 6,
}

_COUNTED = {"DELIVERED": 6, "DEAD_LETTERED": 1, "FILTERED": 1, "COMPACTED": 1, "NOT_SENT": 2}


def contract_of(guarantee: str, **changes: Any) -> Contract:
    """Return a contract with the ledgers `produced` and `delivered`."""
    fields = {
        "version": 1,
        "pipeline": "orders",
        "guarantee": guarantee,
        "group": "loader",
        "ledgers": {"produced": {"source": _SOURCE}, "delivered": {"source": _SOURCE}},
        **changes,
    }
    return Contract.from_json(json.dumps(fields), Path())


def statement_of(
    contract: Contract,
    *,
    counts: Mapping[str, int] | None = None,
    classes: Mapping[str, int] | None = None,
    flags: Mapping[str, int] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return a statement with the verdict KEPT over three partitions, one of them nobody's.

    Args:
        contract: The contract that it was judged by.
        counts: Counts of the first partition that are others than in a statement that was kept.
        classes: Classes that are counted beside those of a statement that was kept.
        flags: The flags that are counted.
        changes: Keys of the statement that are others.
    """
    states = {"from": 100, "to": 111, "control": 2, "delivered": 7, "compacted": 1, "duplicate": 1}
    return {
        "schema_version": 1,
        "run_id": RUN,
        "pipeline": contract.pipeline,
        "group": contract.group,
        "contract_digest": contract.digest,
        "window": {"start": WINDOW.start.isoformat(), "end": WINDOW.end.isoformat()},
        "generated_at": "2026-11-20T12:00:00+00:00",
        "guarantee": contract.guarantee.value,
        "verdict": "KEPT",
        "reasons": [],
        "coverage": {ledger.value: {"covers": True} for ledger in contract.ledgers},
        "partitions": [
            {**partition("orders", 0, **{**_KEPT, **(counts or {})}), "offsets": states},
            {**partition("orders", 1, **_KEPT), "offsets": None},
            {**partition(None, None, attempts=1, failed_attempts=1, messages=1, failed=1), "offsets": None},
        ],
        "classes": {**_COUNTED, **(classes or {})},
        "flags": dict(flags or {}),
        "incidents": [],
        "breaks_total": 0,
        "breaks_truncated": False,
        **changes,
    }


def published(url: str, contract: Contract, statement: Mapping[str, Any], breaks: Any = ()) -> None:
    """Store a statement as the run `RUN`."""
    Store(url).publish(statement, breaks, json.loads(contract.to_json()), ORIGIN)


def incident_of(name: str, breaks: int) -> dict[str, Any]:
    """Return one incident of a class."""
    return {"incident_id": f"of-{name}", "class": name, "breaks": breaks}


def break_of(name: str, number: int, **changes: Any) -> dict[str, Any]:
    """Return one break of a class, in the incident of that class."""
    return {
        "break_id": f"{name}-{number}",
        "incident_id": f"of-{name}",
        "class": name,
        "flags": [],
        "severity": "critical",
        **changes,
    }


def not_passed(report: CheckReport) -> dict[str, str]:
    """Return the rules that did not pass, with their status."""
    return {r.rule: r.status.value for r in report.results if r.status is not CheckStatus.PASS}


def checked(url: str, contract: Contract) -> dict[str, str]:
    """Return the rules that did not pass on the run `RUN`; at least one rule was evaluated."""
    report = check_statement(url, RUN, contract)
    assert report.results
    return not_passed(report)
