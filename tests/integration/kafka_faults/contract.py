"""A case of a fault as a contract: the clients' own ledgers and the broker's own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

HASHED: Final = {
    "message_id": "get_json_object(cast(value as string), '$.order_id')",
    "key_hash": "sha2(key, 256)",
    "payload_hash": "sha2(value, 256)",
}
"""What the clients put into their ledgers, made of a record."""
UNTIL_READ: Final = {"complete_until": "now()"}


def contract_of(case: Mapping[str, Any], played: Path) -> dict[str, Any]:
    """Return the contract: the clients' own ledgers, the broker's own files, to which nothing is added any more."""
    longest = f"{case['seconds']}s"
    cluster = played / "cluster"
    evidence = played / "evidence" / case["folder"]
    produced = sent_of(evidence, case["producers"])
    log = log_of(cluster / case["log"] / "data", case["topic"], case["cleanup_policy"])
    if case["message_id"]:
        log["columns"]["message_id"] = case["message_id"]
    return {
        "version": 1,
        "pipeline": case["topic"].replace("-", "_"),
        "guarantee": case["guarantee"],
        "group": case["group"],
        "max_latency": longest,
        "margin": "1m",
        "grace": longest,
        "look_back": "1h",
        **case["contract"],
        "ledgers": {
            "produced": {**produced, "source": case["produced"] or produced["source"]},
            "log": log,
            "delivered": output_of(evidence, case["group"]),
            "committed": committed_of(cluster / "broker-1" / "data", case["group"]),
        },
    }


def sent_of(evidence: Path, producers: Sequence[str] = ("sender",)) -> dict[str, Any]:
    """Return the ledger `produced`: what all the senders of a topic wrote down."""
    return {
        "source": {"kind": "files", "format": "jsonl", "path": str(evidence / "produced" / "*.jsonl")},
        "coverage": {**UNTIL_READ, "producers": list(producers), "sequences": "gapless"},
    }


def log_of(data: Path, topic: str, cleanup_policy: str = "delete") -> dict[str, Any]:
    """Return the ledger `log`: the topic's segment files in a broker's own folder."""
    return {
        "source": {
            "kind": "kafka_segments",
            "path": str(data),
            "topic": topic,
            "taken_at": "now",
            "cleanup_policy": cleanup_policy,
        },
        "columns": dict(HASHED),
    }


def output_of(evidence: Path, group: str) -> dict[str, Any]:
    """Return the ledger `delivered`: what the readers of a group wrote."""
    path = str(evidence / "delivered" / f"{group}.jsonl")
    return {"source": {"kind": "files", "format": "jsonl", "path": path}, "coverage": UNTIL_READ}


def committed_of(data: Path, group: str) -> dict[str, Any]:
    """Return the ledger `committed`: the group's positions in a broker's own folder."""
    return {
        "source": {
            "kind": "kafka_offsets",
            "path": str(data),
            "group": group,
            "partitions": 1,
            "taken_at": "now",
        },
    }
