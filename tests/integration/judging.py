"""A contract judged by the command, and what was found held against what the player of a fault knew."""

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


@dataclass(frozen=True)
class Judged:
    """What the command found, and in how many seconds."""

    exit_code: int
    statement: Mapping[str, Any]
    breaks: tuple[Mapping[str, Any], ...]
    seconds: float


def engine_on(spark: SparkSession) -> SparkEngine:
    """Return the command's engine on a session that runs already, and goes on afterwards."""

    @contextmanager
    def shared(_contract: Contract, _progress: Progress) -> Iterator[SparkSession]:
        yield spark

    return SparkEngine(shared)


def judged(case: Mapping[str, Any], contract: Path, output: Path) -> Judged:
    """Run `tieout reconcile` on the contract and the case's window, once its grace is over.

    Where the case says when its last client `ended_at`, the longest latency has passed since then as well.
    """
    start, end = case["window"]
    is_over_at = datetime.fromisoformat(case.get("ended_at", end)) + timedelta(seconds=case["seconds"])
    time.sleep(max(0.0, (is_over_at - datetime.now(UTC)).total_seconds()))
    reported = io.StringIO()
    spark = local_session("tieout")  # the one that runs, with the settings of a command's own
    began = time.monotonic()
    exit_code = main(
        ["reconcile", str(contract), "--from", start, "--to", end, "--output", str(output)],
        engine=engine_on(spark),
        out=io.StringIO(),
        err=reported,
    )
    seconds = time.monotonic() - began
    if not (output / "statement.json").exists():
        raise AssertionError(reported.getvalue())
    lines = (output / "breaks.jsonl").read_text().splitlines()
    statement = json.loads((output / "statement.json").read_text())
    return Judged(exit_code, statement, tuple(json.loads(line) for line in lines), seconds)


def facts_of(found: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return of a break what is compared; of two messages in the wrong order not which of them names it."""
    values = {**found, "flags": tuple(sorted(found["flags"]))}
    if found["class"].startswith("REORDER"):
        values["message_id"] = None
    return tuple(values[name] for name in _FIELDS)


def differences(case: Mapping[str, Any], found: Judged) -> list[str]:
    """Return in words everything in which what was found is not what the player knew."""
    known = Counter(facts_of(one) for one in case["breaks"])
    reported = Counter(facts_of(one) for one in found.breaks)
    unlike = [f"expected {one}" for one in known - reported] + [
        f"unexpected {one}" for one in reported - known
    ]
    pairs = {
        "verdict": (case["verdict"], found.statement["verdict"]),
        "classes": (case["classes"], found.statement["classes"]),
        "exit code": (_EXIT[case["verdict"]], found.exit_code),
        "unexplained": (0, sum(part["unexplained"] for part in found.statement["partitions"])),
        "sums": ([], found.statement["identity_errors"]),
    }
    for ledger, rows in case.get("rows", {}).items():
        pairs[f"rows of {ledger}"] = (rows, found.statement["coverage"][ledger]["rows"])
    wrong = [f"{name}: expected {a}, found {b}" for name, (a, b) in pairs.items() if a != b]
    if found.statement["verdict"] != case["verdict"]:
        wrong += [f"because {reason}" for reason in found.statement["reasons"]]
    return wrong + unlike
