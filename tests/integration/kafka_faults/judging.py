"""A case of a fault as a contract, judged by the command, and held against what its player knew."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tieout.cli.engine import Progress
from tieout.cli.main import main
from tieout.cli.spark import SparkEngine
from tieout.contracts import Contract
from tieout.engine.session import local_session

_EXIT = {"KEPT": 0, "BROKEN": 1, "PENDING": 3, "UNKNOWN": 3}
_FIELDS = ("class", "message_id", "partition", "offset", "locus", "cause", "flags")
_SENT = {"kind": "files", "format": "jsonl", "path": "produced/*.jsonl"}
_HASHED = {
    "message_id": "get_json_object(cast(value as string), '$.order_id')",
    "key_hash": "sha2(key, 256)",
    "payload_hash": "sha2(value, 256)",
}


@dataclass(frozen=True)
class Judged:
    """What the command found, and in how many seconds."""

    exit_code: int
    statement: Mapping[str, Any]
    breaks: tuple[Mapping[str, Any], ...]
    seconds: float


def judged(case: Mapping[str, Any], played: Path, output: Path) -> Judged:
    """Write the case's contract and run `tieout reconcile` on its window, once its grace is over."""
    contract = played / "evidence" / case["folder"] / f"{output.name}.yml"
    contract.write_text(json.dumps(contract_of(case, played), indent=1))
    start, end = case["window"]
    is_over_at = datetime.fromisoformat(end) + timedelta(seconds=case["seconds"])
    time.sleep(max(0.0, (is_over_at - datetime.now(UTC)).total_seconds()))
    told = io.StringIO()

    @contextmanager
    def shared(_contract: Contract, _progress: Progress) -> Iterator[SparkSession]:
        yield local_session("tieout")  # the one that runs, with the settings of a command's own

    began = time.monotonic()
    exit_code = main(
        ["reconcile", str(contract), "--from", start, "--to", end, "--output", str(output)],
        engine=SparkEngine(shared),
        out=io.StringIO(),
        err=told,
    )
    seconds = time.monotonic() - began
    if not (output / "statement.json").exists():
        raise AssertionError(told.getvalue())
    lines = (output / "breaks.jsonl").read_text().splitlines()
    statement = json.loads((output / "statement.json").read_text())
    return Judged(exit_code, statement, tuple(json.loads(line) for line in lines), seconds)


def contract_of(case: Mapping[str, Any], played: Path) -> dict[str, Any]:
    """Return the contract: the clients' own ledgers, the broker's own files, to which nothing is added any more."""
    until, longest = {"complete_until": "now()"}, f"{case['seconds']}s"
    cluster = played / "cluster"
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
            "produced": {
                "source": case["produced"] or _SENT,
                "coverage": {**until, "producers": case["producers"], "sequences": "gapless"},
            },
            "log": {
                "source": {
                    "kind": "kafka_segments",
                    "path": str(cluster / case["log"] / "data"),
                    "topic": case["topic"],
                    "taken_at": "now",
                    "cleanup_policy": case["cleanup_policy"],
                },
                "columns": _HASHED | ({"message_id": case["message_id"]} if case["message_id"] else {}),
            },
            "delivered": {
                "source": {"kind": "files", "format": "jsonl", "path": f"delivered/{case['group']}.jsonl"},
                "coverage": until,
            },
            "committed": {
                "source": {
                    "kind": "kafka_offsets",
                    "path": str(cluster / "broker-1" / "data"),
                    "group": case["group"],
                    "partitions": 1,
                    "taken_at": "now",
                },
            },
        },
    }


def told_of(found: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return of a break what is compared; of two messages in the wrong order not which of them names it."""
    values = {**found, "flags": tuple(sorted(found["flags"]))}
    if found["class"].startswith("REORDER"):
        values["message_id"] = None
    return tuple(values[name] for name in _FIELDS)


def differences(case: Mapping[str, Any], found: Judged) -> list[str]:
    """Return in words everything in which what was found is not what the player knew."""
    known = Counter(told_of(one) for one in case["breaks"])
    told = Counter(told_of(one) for one in found.breaks)
    unlike = [f"expected {one}" for one in known - told] + [f"unexpected {one}" for one in told - known]
    pairs = {
        "verdict": (case["verdict"], found.statement["verdict"]),
        "classes": (case["classes"], found.statement["classes"]),
        "exit code": (_EXIT[case["verdict"]], found.exit_code),
        "unexplained": (0, sum(part["unexplained"] for part in found.statement["partitions"])),
        "sums": ([], found.statement["identity_errors"]),
    }
    wrong = [f"{name}: expected {a}, found {b}" for name, (a, b) in pairs.items() if a != b]
    if found.statement["verdict"] != case["verdict"]:
        wrong += [f"because {reason}" for reason in found.statement["reasons"]]
    return wrong + unlike
