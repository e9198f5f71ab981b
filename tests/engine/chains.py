"""Small chains for tests: two or three hops with their evidence, judged by the engine and kept in a store.

Each hop's output is a list of (id, payload). A later hop is judged on what the shop sent, or on what the hop before
wrote into its topic.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from tieout.contracts import Contract, load_contract
from tieout.engine.reconciling import reconcile
from tieout.engine.staging import break_lines
from tieout.model import Window
from tieout.store import Origin, RunOrigin, Store

TEN: Final = datetime(2026, 11, 20, 10, tzinfo=UTC)
WINDOW: Final = Window(TEN, TEN + timedelta(hours=1))
SENT: Final = (("a", "A"), ("m", "M"), ("z", "Z"))
"""What the shop sends: three messages and their payloads."""
_TAKEN: Final = "2026-11-20T12:00:00Z"

Output = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Hop:
    """A hop's output, and whether it is judged on what the hop before wrote, not on what the shop sent.

    `takes` are the offsets that its output comes from, in the topic that the hop before wrote; none where it does not
    say.
    """

    output: Output
    of_topic: bool = False
    takes: Sequence[int] = ()


def judged(spark: SparkSession, store: Store, folder: Path, hops: Sequence[Hop]) -> list[dict[str, Any]]:
    """Judge hop1, hop2, … each after the one before, store what comes of it, and return their statements."""
    _write(folder / "sent.jsonl", [_sent(number, *one) for number, one in enumerate(SENT)])
    statements = []
    for number, hop in enumerate(hops, start=1):
        name = f"hop{number}"
        _write(folder / f"{name}.jsonl", [_effect(place, hop) for place in range(len(hop.output))])
        ledgers = {"delivered": _ledger(f"{name}.jsonl"), "produced": _ledger("sent.jsonl", "shop")}
        if hop.of_topic:
            before = hops[number - 2].output
            _write(folder / f"{name}_sent.jsonl", [_resent(place, *one) for place, one in enumerate(before)])
            _write(
                folder / f"{name}_log.jsonl",
                [_stored(place, len(before), *one) for place, one in enumerate(before)],
            )
            ledgers["produced"] = _ledger(f"{name}_sent.jsonl", "hop")
            ledgers["log"] = _ledger(f"{name}_log.jsonl")
        text = {
            "version": 1,
            "pipeline": name,
            "guarantee": "exactly_once",
            "group": name,
            "max_latency": "10s",
            "look_back": "1h",
            "ledgers": ledgers,
            "alerts": [{"to": "webhook", "connection": "hook"}],
            **({"after": f"hop{number - 1}"} if number > 1 else {}),
        }
        (folder / f"{name}.yml").write_text(json.dumps(text))
        contract = load_contract(folder / f"{name}.yml")
        statement, breaks = _judged_first(spark, contract, hop) if number == 1 else _found(spark, contract)
        store.publish(statement, breaks, json.loads(contract.to_json()), RunOrigin())
        statements.append(statement)
    return statements


_FIRST: Final[dict[Output, tuple[dict[str, Any], list[dict[str, Any]]]]] = {}
"""What was found of the first hop with an output: many chains begin with the same one."""


def _judged_first(
    spark: SparkSession, contract: Contract, hop: Hop
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the statement and the breaks of a first hop, judged once for all chains that begin with it."""
    assert not hop.of_topic
    assert not hop.takes
    if hop.output not in _FIRST:
        _FIRST[hop.output] = _found(spark, contract)
    return copy.deepcopy(_FIRST[hop.output])


def _found(spark: SparkSession, contract: Contract) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    found = reconcile(spark, contract, WINDOW, run_id=str(uuid.uuid4()), now=datetime.now(UTC))
    return found.statement, list(break_lines(found.breaks))


def origins(store: Store, statement: dict[str, Any]) -> dict[str, Origin]:
    """Return by class where a hop's incidents happened."""
    classes = {one["incident_id"]: one["class"] for one in statement["incidents"]}
    found = store.origins(statement["pipeline"], [statement["run_id"]])
    return {classes[incident]: origin for (_, incident), origin in found.items()}


def _ledger(path: str, producer: str | None = None) -> dict[str, Any]:
    """Return a ledger that is complete; of what is sent, with the one producer's name."""
    coverage = {"complete_until": _TAKEN, **({} if producer is None else {"producers": [producer]})}
    return {"source": {"kind": "files", "format": "jsonl", "path": path}, "coverage": coverage}


def _sent(number: int, message_id: str, payload: str) -> dict[str, Any]:
    return {
        "producer_id": "shop",
        "producer_session": "shop-1",
        "sequence": number,
        "message_id": message_id,
        "topic": "orders",
        "partition": 0,
        "offset": number,
        "payload_hash": payload,
        "attempted_at": _at(number),
        "completed_at": _at(number),
        "outcome": "acked",
    }


def _resent(place: int, message_id: str, payload: str) -> dict[str, Any]:
    return {**_sent(place, message_id, payload), "producer_id": "hop", "producer_session": "h", "topic": "on"}


def _stored(place: int, end: int, message_id: str, payload: str) -> dict[str, Any]:
    return {
        "topic": "on",
        "partition": 0,
        "offset": place,
        "message_id": message_id,
        "payload_hash": payload,
        "record_timestamp": _at(place),
        "transaction_state": "none",
        "is_control": False,
        "log_start_offset": 0,
        "last_stable_offset": end,
        "end_offset": end,
        "observed_at": _TAKEN,
        "cleanup_policy": "delete",
    }


def _effect(place: int, hop: Hop) -> dict[str, Any]:
    message_id, payload = hop.output[place]
    row = {"message_id": message_id, "payload_hash": payload, "processed_at": _at(place)}
    return row | ({"topic": "on", "partition": 0, "offset": hop.takes[place]} if hop.takes else {})


def _at(number: int) -> str:
    return f"2026-11-20T10:30:0{number}Z"


def _write(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
