"""What the demonstration says, and that it finds everything that is not as the recorder knew it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tools.stack import examples, report
from tools.stack.driving import PipelineResult
from tools.stack.errors import StackError
from tools.stack.examples import Example
from tools.stack.layout import ROOT

BROKEN, KEPT = "commit_before_process", "clean_transactional"


@pytest.fixture
def chosen(tmp_path: Path) -> tuple[Example, ...]:
    """Working copies of two of the recorded examples."""
    return examples.copied(ROOT / "examples", tmp_path / "copies", (KEPT, BROKEN))


def as_expected(example: Example, **changes: Any) -> report.Row:
    """Return the row of an example whose run came to what the recorder knew, with changes."""
    stage = example.stages[0]
    (expected,) = stage.expected
    partition = {"topic": "t", "partition": 1, **expected.counts}
    run: Any = SimpleNamespace(
        final_verdict=expected.verdict, reasons=("why",), statement={"partitions": [partition]}
    )
    state = "failed" if expected.verdict == "BROKEN" else "success"
    found = PipelineResult(changes.get("state", state), cast(Any, changes.get("run", run)))
    return report.row_of(expected, stage, found)


def judged(
    rows: list[report.Row], tmp_path: Path, expected: tuple[str, ...], pending: int = 0
) -> report.Judged:
    """Return a demonstration whose receiver got alerts about the pipelines in `told`."""
    file = tmp_path / "alerts.jsonl"
    file.write_text("".join(json.dumps({"body": {"pipeline": name}}) + "\n" for name in expected))
    return report.Judged(tuple(rows), file, pending, "http://127.0.0.1:1")


def test_the_copies_tell_the_receiver(chosen: tuple[Example, ...]) -> None:
    """So that the alert is really delivered; the recordings themselves stay as they are."""
    for example in chosen:
        for contract in example.contracts:
            assert [route.connection for route in contract.alerts] == [examples.RECEIVER]
            assert contract.base_dir.is_relative_to(example.folder)


def test_an_unknown_example_is_named(tmp_path: Path) -> None:
    """With those that there are."""
    with pytest.raises(StackError, match=f"named nothing, found .*{BROKEN}"):
        examples.copied(ROOT / "examples", tmp_path, ["nothing"])


def test_later_evidence_is_laid_over_the_copy(tmp_path: Path) -> None:
    """What was there stays, what is newer replaces it."""
    (example,) = examples.copied(ROOT / "examples", tmp_path / "copies", ("in_flight",))
    first, second = example.stages
    extracted_at = example.folder / "evidence" / "extracted_at.txt"
    before = datetime.fromisoformat(extracted_at.read_text().strip())

    examples.apply_stage(first, example.folder)
    assert datetime.fromisoformat(extracted_at.read_text().strip()) == before
    examples.apply_stage(second, example.folder)

    assert datetime.fromisoformat(extracted_at.read_text().strip()) > before
    assert len(list((example.folder / "evidence" / "read").iterdir())) == 2
    assert example.window.start.tzinfo == UTC


def test_nothing_is_reported_where_all_is_as_expected(chosen: tuple[Example, ...], tmp_path: Path) -> None:
    """Verdicts, counts, Airflow's states, and an alert about what is broken."""
    rows = [as_expected(example) for example in chosen]
    reported = tuple(row.pipeline for row in rows if row.verdict == "BROKEN")
    assert reported

    assert report.problems(judged(rows, tmp_path, reported)) == []


def test_every_difference_is_reported(chosen: tuple[Example, ...], tmp_path: Path) -> None:
    """Each by its own line."""
    broken = as_expected(next(example for example in chosen if example.name == BROKEN))
    wrong = replace(
        broken, counts={**broken.counts, "lost": 0}, result=replace(broken.result, dag_run_state="success")
    )

    found = report.problems(judged([wrong], tmp_path, (), pending=2))

    assert len(found) == 4
    for part in (
        "ended as success, expected failed",
        "lost 0, expected",
        "no alert was received",
        "2 alerts",
    ):
        assert any(part in line for line in found), part


def test_a_run_without_a_result_is_not_as_expected(chosen: tuple[Example, ...], tmp_path: Path) -> None:
    """Also where Airflow's run ended as it should."""
    kept = as_expected(next(example for example in chosen if example.name == KEPT), run=None)

    assert any(
        "verdict no result, expected KEPT" in line for line in report.problems(judged([kept], tmp_path, ()))
    )
