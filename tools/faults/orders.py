"""The small pipeline that the matrix judges: forty orders, of which eight were lost, with their bodies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tieout.model import Window
from tools.stack.examples import RECEIVER

PIPELINE = "paid_orders"
SENT, LOST = 40, 8
OUTBOX, TABLE = "outbox", "replayed_orders"
"""The connection and the table of the replays."""
_START = datetime(2026, 11, 20, 10, tzinfo=UTC)
WINDOW = Window(_START, _START + timedelta(minutes=2))
_CONTRACT = f"""\
version: 1
pipeline: {PIPELINE}
guarantee: at_least_once
group: loader
max_latency: 10s
grace: 10s
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: sent.jsonl}}
    columns: {{outcome: "'acked'", topic: "'orders'", payload_hash: "sha2(body, 256)"}}
    coverage: declared
  delivered:
    source: {{kind: files, format: jsonl, path: done.jsonl}}
    columns: {{outcome: "'ok'"}}
    coverage: declared
alerts:
  - {{to: webhook, connection: {RECEIVER}, at: warning}}
replay:
  from: produced
  value: body
  approvers: [Anonymous]
  to: {{connection: {OUTBOX}, table: {TABLE}}}
"""


def prepare(folder: Path) -> None:
    """Write the contract and its evidence into an empty folder."""
    folder.mkdir(parents=True)
    times = [_START + timedelta(seconds=3 * number) for number in range(SENT)]
    sent = [
        {"message_id": f"o-{number:02}", "attempted_at": str(time), "body": f'{{"order": {number}}}'}
        for number, time in enumerate(times)
    ]
    deliver(folder, {attempt["message_id"]: times[n] for n, attempt in enumerate(sent) if n % (SENT // LOST)})
    _append(folder / "sent.jsonl", sent)
    (folder / "contract.yml").write_text(_CONTRACT)


def deliver(folder: Path, effects: Mapping[str, datetime]) -> None:
    """Write effects of messages, each with its time, to the output."""
    _append(
        folder / "done.jsonl",
        ({"message_id": message_id, "processed_at": str(time)} for message_id, time in effects.items()),
    )


def _append(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with file.open("a") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)
