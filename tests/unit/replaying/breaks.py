"""Breaks of a run, as they stand in `breaks.jsonl`."""

from __future__ import annotations

from typing import Any

STATEMENT: dict[str, Any] = {"run_id": "r1", "unconfirmed": {}}


def lost(number: int, **changes: Any) -> dict[str, Any]:
    """Return a lost message's break."""
    row = {"message_id": f"m-{number}", "topic": "orders", "payload_hash": f"h-{number}", "outcome": "acked"}
    return {
        "break_id": f"b-{number}",
        "incident_id": "i-1",
        "class": "LOST",
        "flags": ["LOST"],
        "message_id": f"m-{number}",
        "topic": "orders",
        "partition": 0,
        "offset": number,
        "evidence": {"produced": [row], "delivered": None},
        **changes,
    }


def doubled(number: int, copies: int = 2, **changes: Any) -> dict[str, Any]:
    """Return the break of a message with several rows in the output."""
    row = {"message_id": f"m-{number}", "payload_hash": f"h-{number}", "outcome": "ok"}
    rows = [{**row, "processed_at": f"2026-11-20T10:00:{copy:02d}Z"} for copy in range(copies)]
    return lost(
        number, **{"class": "OUTPUT_DUPLICATE", "flags": [], "evidence": {"delivered": rows}, **changes}
    )
