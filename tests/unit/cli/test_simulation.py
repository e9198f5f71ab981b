"""`tieout simulate` and `tieout score` as people meet them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tieout.cli.main import main

DESCRIPTION = """\
version: 1
pipeline: payments
guarantee: exactly_once
messages: 400
rate: 40
batch: 10
topics: [{name: payments, partitions: 4}]
producers: [{name: checkout, kind: idempotent}]
faults: {output_doubled: 0.1, segment_lost: 0.1}
"""


def run(*arguments: str | Path) -> tuple[int, str, str]:
    """Run a command; return its exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    code = main([str(argument) for argument in arguments], out=out, err=err)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    """A simulation's folder."""
    (tmp_path / "payments.yml").write_text(DESCRIPTION)
    code, _, err = run("simulate", tmp_path / "payments.yml", "--output", tmp_path / "simulated")
    assert code == 0, err
    return tmp_path / "simulated"


def judged_rightly(simulated: Path, folder: Path) -> list[dict[str, Any]]:
    """Write what a judge who makes no mistake would; return its breaks."""
    summary = json.loads((simulated / "truth.json").read_text())
    breaks = [json.loads(line) for line in (simulated / "truth.jsonl").read_text().splitlines()]
    statement = {
        **{name: summary[name] for name in ("verdict", "classes", "flags")},
        "partitions": [{**summary["dispositions"], "messages": summary["messages"], "unexplained": 0}],
        "breaks_truncated": False,
        "generated_at": "2026-01-01T00:00:00Z",
    }
    folder.mkdir()
    (folder / "statement.json").write_text(json.dumps(statement))
    write_breaks(folder, breaks)
    return breaks


def write_breaks(folder: Path, breaks: list[dict[str, Any]]) -> None:
    """Write `breaks.jsonl`."""
    (folder / "breaks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in breaks))


def test_simulate_says_what_was_done_and_what_to_do_next(tmp_path: Path) -> None:
    """The commands that it prints name the folder."""
    (tmp_path / "payments.yml").write_text(DESCRIPTION)

    code, out, err = run(
        "simulate", tmp_path / "payments.yml", "--output", tmp_path / "x", "--messages", "800"
    )

    assert code == 0
    assert out.startswith("payments: 800 messages, 2 faults that struck ")
    assert "expected verdict: BROKEN" in out
    assert f"tieout reconcile {tmp_path / 'x'}/contract.yml $(cat {tmp_path / 'x'}/window.args)" in out
    assert "800 of 800 messages" in err
    assert (tmp_path / "x" / "window.args").read_text() == (
        "--from 2025-01-06T10:00:00Z --to 2025-01-06T10:01:20Z\n"
    )


def test_simulate_replaces_a_simulation_and_nothing_else(simulated: Path) -> None:
    """A folder that holds other files is refused."""
    again, _, _ = run("simulate", simulated.parent / "payments.yml", "--output", simulated)
    (simulated / "mine.txt").write_text("keep me")

    code, _, err = run("simulate", simulated.parent / "payments.yml", "--output", simulated)

    assert (again, code) == (0, 2)
    assert "holds 'mine.txt', which is no part of a simulation" in err
    assert (simulated / "mine.txt").exists()


def test_a_wrong_description_is_exit_code_2(tmp_path: Path) -> None:
    """With file and line."""
    (tmp_path / "payments.yml").write_text(DESCRIPTION.replace("rate: 40", "rate: often"))

    code, out, err = run("simulate", tmp_path / "payments.yml", "--output", tmp_path / "x")

    assert (code, out) == (2, "")
    assert f"{tmp_path / 'payments.yml'}:5: rate: expected a number" in err
    assert not (tmp_path / "x").exists()


def test_score_is_0_where_nothing_differs(simulated: Path, tmp_path: Path) -> None:
    """And writes the same as a page."""
    judged_rightly(simulated, tmp_path / "statement")

    code, out, err = run(
        "score", tmp_path / "statement", "--truth", simulated, "--report", tmp_path / "score.md"
    )

    assert code == 0, out
    assert out.endswith("passed\n")
    assert f"written: {tmp_path / 'score.md'}" in err
    assert (tmp_path / "score.md").read_text().endswith("**Passed.**\n")


def test_score_is_1_and_names_what_differs(simulated: Path, tmp_path: Path) -> None:
    """A break that the run lacks is named by its message."""
    breaks = judged_rightly(simulated, tmp_path / "statement")
    doubled = next(row for row in breaks if row["class"] == "OUTPUT_DUPLICATE")
    write_breaks(tmp_path / "statement", [row for row in breaks if row is not doubled])

    code, out, _ = run("score", tmp_path / "statement", "--truth", simulated)

    assert code == 1
    assert f"class of message {doubled['message_id']}: expected OUTPUT_DUPLICATE, found nothing" in out

    code, out, _ = run("score", tmp_path / "statement", "--truth", simulated, "--json")

    assert code == 1
    reported = json.loads(out)
    assert reported["passed"] is False
    (line,) = [line for line in reported["classes"] if line["name"] == "OUTPUT_DUPLICATE"]
    assert (line["matched"], line["precision"]) == (line["truth"] - 1, 1.0)
    assert line["recall"] < 1
    assert {"OUTPUT_DUPLICATE", "nothing"} in [
        {one["truth"], one["found"]} for one in reported["differences"]
    ]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("statement/statement.json", None, "no such file; expected one that tieout reconcile wrote"),
        ("statement/statement.json", "{", "not JSON"),
        ("statement/statement.json", "[]", "expected an object that tieout reconcile wrote"),
        ("statement/breaks.jsonl", None, "no such file; expected one that tieout reconcile wrote"),
        ("statement/breaks.jsonl", "torn\n", "breaks.jsonl:1: not a break as tieout reconcile writes it"),
        ("simulated/truth.json", None, "no such file; expected one that tieout simulate wrote"),
        ("simulated/truth.jsonl", "7\n", "truth.jsonl:1: not a break as tieout simulate writes it"),
    ],
)
def test_score_says_which_file_it_cannot_read(
    simulated: Path, tmp_path: Path, file: str, text: str | None, expected: str
) -> None:
    """A usage error, never a score."""
    judged_rightly(simulated, tmp_path / "statement")
    (tmp_path / file).unlink()
    if text is not None:
        (tmp_path / file).write_text(text)

    code, out, err = run("score", tmp_path / "statement", "--truth", simulated)

    assert (code, out) == (2, "")
    assert expected in err
