"""The committed recordings bear out their truth, read the plain way; Tieout's verdict is tested elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tools.record.audit import contradictions, evidence_files

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NAMES = (
    "clean_transactional",
    "commit_before_process",
    "in_flight",
    "process_before_commit",
    "retry_without_idempotence",
)


def _truth(example: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((example / "truth.json").read_text())
    return document


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_example_is_there() -> None:
    """The folders with a truth are the five that README.md describes."""
    assert tuple(sorted(truth.parent.name for truth in EXAMPLES.glob("*/truth.json"))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_evidence_and_truth_agree(name: str) -> None:
    """Every message has the number of effects that the recorder knew, and nothing was late by accident."""
    assert contradictions(EXAMPLES / name) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_contract_has_an_expectation_at_every_stage(name: str) -> None:
    """No contract lies beside the truth unjudged."""
    contracts = {contract.name for contract in (EXAMPLES / name).glob("*.yml")}
    stages = _truth(EXAMPLES / name)["stages"]

    assert stages
    assert all(set(stage["contracts"]) == contracts for stage in stages)


@pytest.mark.parametrize("name", NAMES)
def test_commits_are_those_that_kafkas_formatter_printed(name: str) -> None:
    """The offset table as rows and as the tool's output are the same history."""
    truth = _truth(EXAMPLES / name)
    files = evidence_files(EXAMPLES / name, truth["stages"][-1]["overlay"])
    text = files["consumer_offsets.txt"].read_text()
    decoder, printed, position = json.JSONDecoder(), [], 0
    while position < len(text):
        document, position = decoder.raw_decode(text, position)
        key, value = document["key"]["data"], document["value"]
        if key.get("group") == truth["group"] and "partition" in key and value is not None:
            printed.append((key["partition"], value["data"]["offset"]))

    found = [(row["partition"], row["committed_offset"]) for row in _rows(files["committed.jsonl"])]

    assert found
    assert found == printed


@pytest.mark.parametrize("name", NAMES)
def test_the_window_holds_every_record_and_the_evidence_covers_its_grace(name: str) -> None:
    """All messages lie in one window, and extraction came 20 seconds after its end at the earliest."""
    truth = _truth(EXAMPLES / name)
    start, end = truth["window"]["start"], truth["window"]["end"]
    files = evidence_files(EXAMPLES / name, None)

    times = [row["record_timestamp"] for row in _rows(files["log.jsonl"])]

    assert times
    assert start < min(times)
    assert max(times) < end
    assert files["extracted_at.txt"].read_text() > end.replace(":00Z", ":20")


def test_the_clean_log_holds_what_the_output_must_not() -> None:
    """Aborted data and control records, without which the clean example would prove little."""
    rows = _rows(EXAMPLES / "clean_transactional" / "evidence" / "log.jsonl")

    aborted = [row for row in rows if row["transaction_state"] == "aborted" and not row["is_control"]]
    assert len(aborted) == 275
    assert {row["transaction_state"] for row in rows} == {"committed", "aborted"}
    assert any(row["is_control"] for row in rows)


def _drop_an_effect(rows: list[str]) -> list[str]:
    return rows[1:]


def _repeat_an_effect(rows: list[str]) -> list[str]:
    return [*rows, rows[0]]


def _delay_an_effect(rows: list[str]) -> list[str]:
    row = json.loads(rows[0])
    return [json.dumps({**row, "processed_at": row["processed_at"].replace("2026-", "2027-")}), *rows[1:]]


@pytest.mark.parametrize("alter", [_drop_an_effect, _repeat_an_effect, _delay_an_effect])
def test_altered_evidence_is_noticed(alter: Callable[[list[str]], list[str]], tmp_path: Path) -> None:
    """The agreement above means something: one row less, more or later is a contradiction."""
    example = tmp_path / "commit_before_process"
    shutil.copytree(EXAMPLES / "commit_before_process", example)
    output = example / "evidence" / "delivered.jsonl"

    output.write_text("\n".join(alter(output.read_text().splitlines())) + "\n")

    assert contradictions(example)
