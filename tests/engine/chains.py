"""Small chains for tests: two or three hops with their evidence, judged by the rules and kept in a store.

Each hop's output is a list of (id, payload). A later hop is judged on what the shop sent, or on what the hop before
wrote into its topic. Spark reads nothing here: a hop's evidence can also be written to files, for a run to read.
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

from tests.engine.histories import Said
from tests.judging.kernel import kernel_lines

from tieout.contracts import Contract, FilesSource
from tieout.model import Ledger, Window
from tieout.store import Origin, RunOrigin, Store

TEN: Final = datetime(2026, 11, 20, 10, tzinfo=UTC)
WINDOW: Final = Window(TEN, TEN + timedelta(hours=1))
SENT: Final = (("a", "A"), ("m", "M"), ("z", "Z"))
"""What the shop sends: three messages and their payloads."""
_READ_AT: Final = TEN + timedelta(hours=2)

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


def judged(store: Store, hops: Sequence[Hop]) -> list[dict[str, Any]]:
    """Judge hop1, hop2, … each after the one before, store what comes of it, and return their statements."""
    statements = []
    for history in histories_of(hops):
        statement, breaks = statement_of(history)
        contract = json.loads(history.contract.to_json())
        store.publish(statement, breaks, contract, RunOrigin())
        statements.append(statement)
    return statements


def histories_of(hops: Sequence[Hop]) -> list[Said]:
    """Return contract and evidence of hop1, hop2, … each after the one before."""
    histories = []
    for number, hop in enumerate(hops, start=1):
        name = f"hop{number}"
        delivered = [_effect(place, hop) for place in range(len(hop.output))]
        rows = {Ledger.DELIVERED: delivered, Ledger.PRODUCED: [_sent(*one) for one in enumerate(SENT)]}
        if hop.of_topic:
            before = hops[number - 2].output
            rows[Ledger.PRODUCED] = [_resent(*one) for one in enumerate(before)]
            rows[Ledger.LOG] = [_stored(place, len(before), one) for place, one in enumerate(before)]
        text = {
            "version": 1,
            "pipeline": name,
            "guarantee": "exactly_once",
            "group": name,
            "max_latency": "10s",
            "look_back": "1h",
            "ledgers": {ledger.value: _ledger(name, ledger, of_topic=hop.of_topic) for ledger in rows},
            "alerts": [{"to": "webhook", "connection": "hook"}],
            **({"after": f"hop{number - 1}"} if number > 1 else {}),
        }
        histories.append(Said(Contract.model_validate_json(json.dumps(text)), rows, WINDOW, _READ_AT))
    return histories


def statement_of(history: Said) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what the rules say of a hop, judged once for all chains that have the same, and its breaks."""
    key = f"{history.contract.to_json()} {history.rows}"
    if key not in _FOUND:
        _FOUND[key] = kernel_lines(history)
    statement, breaks = copy.deepcopy(_FOUND[key])
    labels = {"run_id": str(uuid.uuid4()), "generated_at": datetime.now(UTC).isoformat()}
    return statement | labels, breaks


_FOUND: Final[dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]] = {}
"""What was found of hops: many chains begin with the same one."""


def write_evidence(history: Said, folder: Path) -> Contract:
    """Write the evidence to the files that the contract names, and return the contract of that folder."""
    for ledger, rows in history.rows.items():
        source = history.contract.ledgers[ledger].source
        assert isinstance(source, FilesSource)
        lines = "".join(json.dumps(row, default=datetime.isoformat) + "\n" for row in rows)
        (folder / source.path[0]).write_text(lines)
    return history.contract.located_in(folder)


def origins(store: Store, statement: dict[str, Any]) -> dict[str, Origin]:
    """Return by class where a hop's incidents happened."""
    classes = {one["incident_id"]: one["class"] for one in statement["incidents"]}
    found = store.origins(statement["pipeline"], [statement["run_id"]])
    return {classes[incident]: origin for (_, incident), origin in found.items()}


def _ledger(name: str, ledger: Ledger, *, of_topic: bool) -> dict[str, Any]:
    """Return a ledger that is complete; of what is sent, with the one producer's name."""
    producers = {"producers": ["hop" if of_topic else "shop"]} if ledger is Ledger.PRODUCED else {}
    source = {"kind": "files", "format": "jsonl", "path": f"{name}_{ledger}.jsonl"}
    return {"source": source, "coverage": {"complete_until": _READ_AT.isoformat(), **producers}}


def _sent(number: int, one: tuple[str, str]) -> dict[str, Any]:
    return {
        "producer_id": "shop",
        "producer_session": "shop-1",
        "sequence": number,
        "message_id": one[0],
        "topic": "orders",
        "partition": 0,
        "offset": number,
        "payload_hash": one[1],
        "attempted_at": _at(number),
        "completed_at": _at(number),
        "outcome": "acked",
    }


def _resent(place: int, one: tuple[str, str]) -> dict[str, Any]:
    return {**_sent(place, one), "producer_id": "hop", "producer_session": "h", "topic": "on"}


def _stored(place: int, end: int, one: tuple[str, str]) -> dict[str, Any]:
    return {
        "topic": "on",
        "partition": 0,
        "offset": place,
        "message_id": one[0],
        "payload_hash": one[1],
        "record_timestamp": _at(place),
        "transaction_state": "none",
        "is_control": False,
        "log_start_offset": 0,
        "last_stable_offset": end,
        "end_offset": end,
        "observed_at": _READ_AT,
        "cleanup_policy": "delete",
    }


def _effect(place: int, hop: Hop) -> dict[str, Any]:
    message_id, payload = hop.output[place]
    row = {"message_id": message_id, "payload_hash": payload, "processed_at": _at(place)}
    return row | ({"topic": "on", "partition": 0, "offset": hop.takes[place]} if hop.takes else {})


def _at(number: int) -> datetime:
    return TEN + timedelta(minutes=30, seconds=number)
