"""Writes the example of a chain: three hops, sixty orders, one of them lost at the first hop.

Simulated and deterministic: `python -m tools.record.chain`. The first hop commits before it writes and is killed
in between, so one order never leaves it. Each hop's contract covers the orders that the shop sent, so that the
statements of all three report the loss.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[2] / "examples" / "chains" / "three_hops" / "evidence"
START: Final = datetime(2026, 11, 26, 13, 0, tzinfo=UTC)
END: Final = START + timedelta(minutes=10)
ORDERS: Final = 60
LOST: Final = 23
"""The order that the first hop had read and committed, but not written, when it was killed."""
HOPS: Final = (("enriched", 0.4), ("routed", 0.9), ("table", 1.6))
"""Each hop's output, and the seconds from an order's sending until it arrives there."""


def main() -> None:
    """Write the ledgers."""
    sent = [START + timedelta(seconds=5 + 9 * number) for number in range(ORDERS)]
    _write("sent.jsonl", (_sent(number, at) for number, at in enumerate(sent)))
    _write("orders_topic.jsonl", (_stored(number, at) for number, at in enumerate(sent)))
    _write("orders_commits.jsonl", (_committed(number, at) for number, at in enumerate(sent)))
    for name, seconds in HOPS:
        rows = (
            {"message_id": _id(number), "payload_hash": _hash(number), "processed_at": _time(at, seconds)}
            for number, at in enumerate(sent)
            if number != LOST
        )
        _write(f"{name}.jsonl", rows)
    (FOLDER / "extracted_at.txt").write_text(_time(END, 120) + "\n")


def _sent(number: int, at: datetime) -> dict[str, Any]:
    return {
        "producer_id": "shop",
        "producer_session": "shop-1",
        "sequence": number,
        "message_id": _id(number),
        "topic": "orders",
        "partition": 0,
        "offset": number,
        "payload_hash": _hash(number),
        "attempted_at": _time(at, 0),
        "completed_at": _time(at, 0.02),
        "outcome": "acked",
    }


def _stored(number: int, at: datetime) -> dict[str, Any]:
    return {
        "topic": "orders",
        "partition": 0,
        "offset": number,
        "message_id": _id(number),
        "payload_hash": _hash(number),
        "record_timestamp": _time(at, 0.01),
        "transaction_state": "none",
        "is_control": False,
        "log_start_offset": 0,
        "last_stable_offset": ORDERS,
        "end_offset": ORDERS,
        "observed_at": _time(END, 120),
        "cleanup_policy": "delete",
    }


def _committed(number: int, at: datetime) -> dict[str, Any]:
    return {
        "consumer_group": "enricher",
        "topic": "orders",
        "partition": 0,
        "committed_offset": number + 1,
        "committed_at": _time(at, 0.3),
    }


def _id(number: int) -> str:
    return f"order-{number:04d}"


def _hash(number: int) -> str:
    return hashlib.sha256(f"order {number}".encode()).hexdigest()


def _time(at: datetime, seconds: float) -> str:
    return (at + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def _write(name: str, rows: Iterable[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    (FOLDER / name).write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
