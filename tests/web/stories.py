"""What the store of these tests holds: a few pipelines, each with what one kind of page must show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tests.store.examples import incident, one_break, partition, run_id, statement

from tieout.model import CheckResult, CheckStatus, Severity, Verdict
from tieout.store import RunOrigin, Store

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
EVIL = "\"'><img src=x onerror=alert(1)><script>alert(1)</script>"
"""Leaves a tag, a quoted attribute of either kind, and runs where it is not escaped."""
SCHEDULED: dict[str, Any] = {
    "pipeline": "orders",
    "guarantee": "exactly_once",
    "schedule": "0 * * * *",
    "grace": "15m",
    "owner": "payments",
    "description": "Orders into the warehouse.",
    "settings": {
        "producer": {"client": "java-4.0", "acks": "1"},
        "consumer": {"commits": "after processing"},
    },
    "version": 1,
    "group": "loader",
    "ledgers": {
        ledger: {
            "source": {"kind": "files", "format": "jsonl", "path": f"{ledger}.jsonl"},
            "coverage": "declared",
        }
        for ledger in ("produced", "delivered")
    },
}
LATENCY = {"count": 8, "mean_s": 0.5, "p50_s": 0.4, "p95_s": 1.5, "p99_s": 2.5, "max_s": 3.0}
OFFSETS: dict[str, Any] = {
    "from": 100, "to": 200, "control": 5, "aborted": 0, "open": 0, "unattempted": 0, "unverifiable": 0, "duplicate": 0,
    "delivered": 90, "dead_lettered": 0, "filtered": 0, "compacted": 0, "lost": 2, "in_flight": 3, "expired": 0,
}  # fmt: skip

ORDERS = [
    # Hour of the day, the judge's verdict, the final one; the hours 3 and 4 were never judged.
    (0, Verdict.KEPT, Verdict.KEPT),
    (1, Verdict.BROKEN, Verdict.BROKEN),
    (2, Verdict.PENDING, Verdict.PENDING),
    (5, Verdict.UNKNOWN, Verdict.UNKNOWN),
    (6, Verdict.KEPT, None),
    (7, Verdict.KEPT, Verdict.BROKEN),
]


def window(hour: int) -> dict[str, str]:
    """Return an hour of the day as a statement has it."""
    start = MIDNIGHT + hour * HOUR
    return {"start": start.isoformat(), "end": (start + HOUR).isoformat()}


def publish_all(store: Store) -> None:
    """Publish every story."""
    for hour, verdict, final in ORDERS:
        _publish(store, hour + 1, final, window=window(hour), verdict=verdict.value)
    _publish(
        store,
        50,
        Verdict.BROKEN,
        pipeline="evil_pipeline",
        group=EVIL,
        reasons=[EVIL],
        incidents=[{**incident(EVIL, 1), "topic": EVIL, "cause": EVIL, "locus": EVIL}],
        partitions=[{**partition(EVIL, 0), "offsets": OFFSETS}],
        breaks=[
            one_break(
                1,
                message_id=EVIL,
                topic=EVIL,
                incident_id=EVIL,
                flags=[EVIL],
                rule=EVIL,
                producer_id=EVIL,
                evidence={"produced": [{"message_id": EVIL, "key": EVIL}], EVIL: [{EVIL: EVIL}]},
            )
        ],
        contract={
            "pipeline": "evil_pipeline",
            "guarantee": "exactly_once",
            "owner": EVIL,
            "description": EVIL,
        },
    )
    _publish(store, 51, Verdict.KEPT, pipeline="secret_pipeline")
    bodies = {**SCHEDULED, "pipeline": "payments", "replay": {"value": "body"}}
    _publish(store, 52, Verdict.BROKEN, pipeline="payments", contract=bodies)


def _publish(store: Store, number: int, final: Verdict | None, **changes: Any) -> None:
    breaks = changes.pop("breaks", [one_break(1), one_break(2)])
    contract = changes.pop("contract", {**SCHEDULED, "pipeline": changes.get("pipeline", "orders")})
    partitions = [
        {**partition("orders", 0, messages=10, accepted=10, delivered=8, lost=2), "offsets": OFFSETS}
    ]
    published = statement(
        number, **{"partitions": partitions, "latency": LATENCY, "classes": {"LOST": 2, "LATE": 1}, **changes}
    )
    store.publish(published, breaks, contract, RunOrigin(published["pipeline"], f"scheduled__{number}", 1))
    if final is not None:
        check = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.FAIL, "2", "0")
        store.record_checks(
            str(UUID(run_id(number))), [check], final, suite="s", suite_digest="d", gx_version="1"
        )
