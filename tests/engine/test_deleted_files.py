"""A file of the evidence that is gone never makes BROKEN into KEPT: the issue's own contract, and a recording."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of

from tieout.contracts import load_contract
from tieout.engine.reconciling import reconcile
from tieout.model import Window
from tieout.verdicts import judge

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TRIES_ALL = "TIEOUT_FUZZ_CASES" in os.environ
"""`make fuzz` deletes the files of all recordings, `make test` those of one."""
_UNREAD = "consumer_offsets.txt"
"""What the broker's tool printed, which `committed.jsonl` has as rows."""


def _broken() -> list[Path]:
    """Return the recordings whose first judgement is BROKEN."""
    return [
        truth.parent
        for truth in sorted(EXAMPLES.glob("*/truth.json"))
        if json.loads(truth.read_text())["stages"][0]["contracts"]["contract.yml"]["verdict"] == "BROKEN"
    ]


BROKEN_WITHOUT = [
    (example.name, str(file.relative_to(example / "evidence")))
    for example in _broken()
    for file in sorted((example / "evidence").rglob("*.*"))
    if file.name != _UNREAD
]
TRIED = BROKEN_WITHOUT if TRIES_ALL else [one for one in BROKEN_WITHOUT if one[0] == "commit_before_process"]
CUT = [
    ("commit_before_process", name) for name in ("produced/meter-a-1.jsonl", "log.jsonl", "committed.jsonl")
]


def _write(folder: Path) -> dict[str, dict[str, Any]]:
    """Write the evidence of two producers, of which the second one's message was lost; return the ledgers."""
    rows = {
        "produced/a.jsonl": [_sent("a", "m1")],
        "produced/b.jsonl": [_sent("b", "m2")],
        "delivered.jsonl": [
            {"message_id": "m1", "payload_hash": "m1", "processed_at": "2026-11-20T10:06:00Z"}
        ],
    }
    (folder / "produced").mkdir()
    for name, found in rows.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in found))
    (folder / "until.txt").write_text("2026-11-20T11:30:00Z\n")
    whole = {"watermark_file": "until.txt"}
    produced = {**whole, "producers": ["a", "b"], "sequences": "gapless"}
    return {
        "produced": {"source": _jsonl("produced/*.jsonl"), "coverage": produced},
        "delivered": {"source": _jsonl("delivered.jsonl"), "coverage": whole},
    }


def _sent(producer: str, name: str) -> dict[str, Any]:
    return {
        "producer_id": producer,
        "producer_session": "s",
        "sequence": 0,
        "message_id": name,
        "payload_hash": name,
        "attempted_at": "2026-11-20T10:05:00Z",
        "completed_at": "2026-11-20T10:05:01Z",
        "outcome": "acked",
    }


def _jsonl(path: str) -> dict[str, str]:
    return {"kind": "files", "format": "jsonl", "path": path}


@pytest.mark.parametrize(
    ("gone", "gap"),
    [
        ("produced/b.jsonl", "declared producer b has no row in what was read"),
        ("produced/a.jsonl", "declared producer a has no row in what was read"),
        ("until.txt", "nothing says how far the ledger is complete"),
    ],
)
def test_the_loss_of_a_producer_whose_file_is_gone_is_not_kept(
    spark: SparkSession, tmp_path: Path, gone: str, gap: str
) -> None:
    """Two producers, a watermark file and gapless numbers: with the file that shows the loss gone nobody can tell."""
    contract = contract_of(tmp_path, _write(tmp_path))
    (tmp_path / gone).unlink()

    found = reconcile(spark, contract, WINDOW, run_id="deleted", now=NOW).statement

    assert judge(contract, found).verdict == "UNKNOWN"
    assert found["coverage"]["produced"]["gap"] == gap


def test_whole_evidence_tells_the_loss_and_whose_word_it_rests_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The same with all files: BROKEN, and each ledger says who calls it complete."""
    contract = contract_of(tmp_path, _write(tmp_path))

    found = reconcile(spark, contract, WINDOW, run_id="whole", now=NOW).statement

    assert judge(contract, found).verdict == "BROKEN"
    assert {reported["stated_by"] for reported in found["coverage"].values()} == {"watermark file until.txt"}


@pytest.mark.parametrize(("example", "gone"), TRIED)
def test_a_recording_without_one_of_its_files_is_never_kept(
    spark: SparkSession, tmp_path: Path, example: str, gone: str
) -> None:
    """Whichever file of a broken recording is deleted, the verdict is BROKEN or UNKNOWN."""
    shutil.copytree(EXAMPLES / example, tmp_path / example)
    (tmp_path / example / "evidence" / gone).unlink()

    found = _judged(spark, tmp_path / example)

    assert found in ("BROKEN", "UNKNOWN")


@pytest.mark.parametrize(("example", "cut"), CUT)
def test_a_recording_without_the_tail_of_a_file_is_never_kept(
    spark: SparkSession, tmp_path: Path, example: str, cut: str
) -> None:
    """The last third of a ledger's rows is gone: the losses that another ledger proves stay."""
    shutil.copytree(EXAMPLES / example, tmp_path / example)
    file = tmp_path / example / "evidence" / cut
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) * 2 // 3]))

    found = _judged(spark, tmp_path / example)

    assert found in ("BROKEN", "UNKNOWN")


def test_there_are_broken_recordings() -> None:
    """The tests above try files of at least three recordings."""
    assert len({example for example, _ in BROKEN_WITHOUT}) >= 3
    assert len(BROKEN_WITHOUT) >= 12


def _judged(spark: SparkSession, example: Path) -> str:
    """Return the verdict on the recorded window of the example."""
    contract = load_contract(example / "contract.yml")
    truth = json.loads((example / "truth.json").read_text())["window"]
    start, end = (datetime.fromisoformat(truth[bound]) for bound in ("start", "end"))
    window = Window(start, end)
    found = reconcile(spark, contract, window, run_id="deleted", now=datetime.now(UTC)).statement
    return str(judge(contract, found).verdict)
