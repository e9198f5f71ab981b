"""A send and its answer on two lines are one attempt, where the contract says what they have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import contract_of, evidence_of, jsonl, rows_of

from tieout.engine.evidence import Evidence
from tieout.errors import ContractError, SourceError

COLUMNS = {
    "message_id": "id",
    "attempted_at": "case when event = 'send' then at end",
    "completed_at": "case when event <> 'send' then at end",
    "outcome": "case event when 'ack' then 'acked' when 'error' then 'failed' end",
    "partition": "p",
    "offset": "o",
    "payload_hash": "body",
}


def _line(event: str, id_: str | None, second: int, **more: object) -> str:
    fields = {
        "event": event,
        "id": id_,
        "at": f"2026-11-20T10:00:{second:02}Z",
        "p": None,
        "o": None,
        "body": None,
    }
    return json.dumps(fields | more) + "\n"


def _folded(spark: SparkSession, folder: Path, *lines: str, **spec: object) -> Evidence:
    (folder / "sent.jsonl").write_text("".join(lines))
    described = {
        "source": jsonl("sent.jsonl"),
        "columns": COLUMNS,
        "coverage": "declared",
        "fold_by": ["message_id"],
    }
    return evidence_of(spark, folder, "produced", **dict[str, Any](described | spec))


def _seconds(found: Evidence) -> list[tuple[int | None, ...]]:
    """Return the seconds of both times, in the order of the first."""
    rows = found.rows.selectExpr("second(attempted_at)", "second(completed_at)").collect()
    return sorted(tuple(row) for row in rows)


def test_lines_of_one_attempt_are_one_row(spark: SparkSession, tmp_path: Path) -> None:
    """In any order; an attempt without an answer has no outcome, and one that failed says so."""
    found = _folded(
        spark,
        tmp_path,
        _line("ack", "a", 2, p=0, o=7),
        _line("send", "a", 1, body="x"),
        _line("send", "b", 3, body="y"),
        _line("send", "c", 4, body="z"),
        _line("error", "c", 5),
    )

    assert rows_of(found, "message_id", "outcome", "partition", "offset", "payload_hash") == [
        ("a", "acked", 0, 7, "x"),
        ("b", None, None, None, "y"),
        ("c", "failed", None, None, "z"),
    ]
    assert _seconds(found) == [(1, 2), (3, None), (4, 5)]
    assert (found.coverage.rows, found.coverage.unparsed, found.coverage.undated) == (3, 0, 0)


def test_a_better_answer_counts(spark: SparkSession, tmp_path: Path) -> None:
    """A client that gave up and was told later that the record was written was acknowledged."""
    found = _folded(
        spark, tmp_path, _line("send", "a", 1), _line("error", "a", 2), _line("ack", "a", 3, p=0, o=1)
    )

    assert rows_of(found, "message_id", "outcome", "offset") == [("a", "acked", 1)]
    assert _seconds(found) == [(1, 3)]


def test_lines_that_differ_are_not_one_attempt(spark: SparkSession, tmp_path: Path) -> None:
    """Two positions cannot be one send's; the note shows both, and the ledger does not cover."""
    lines = (_line("send", "a", 1), _line("ack", "a", 2, p=0, o=7), _line("ack", "a", 3, p=0, o=9))

    found = _folded(spark, tmp_path, *lines)

    assert (found.coverage.rows, found.coverage.unparsed) == (0, 1)
    assert not found.coverage.is_within_tolerance
    expected = "sent.jsonl: fold_by: expected one offset for all lines of an attempt, found 7 and 9"
    assert any(expected in note for note in found.coverage.notes)


def test_sends_and_answers_in_two_files_need_not_have_the_same_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What the one file lacks the other one says; that both lack something else is no conflict."""
    send = {"id": "a", "at": "2026-11-20T10:00:01Z", "outcome": None, "body": "x"}
    answer = {"id": "a", "at": None, "outcome": "acked", "stamped": "2026-11-20T10:00:02Z"}
    (tmp_path / "send.jsonl").write_text(json.dumps(send) + "\n")
    (tmp_path / "answer.jsonl").write_text(json.dumps(answer) + "\n")
    columns = {
        "message_id": "id",
        "attempted_at": "at",
        "payload_hash": "body",
        "record_timestamp": "stamped",
    }

    found = evidence_of(
        spark,
        tmp_path,
        "produced",
        source=jsonl("*.jsonl"),
        columns=columns,
        coverage="declared",
        fold_by=["message_id"],
    )

    assert found.coverage.unparsed == 0, found.coverage.notes
    assert rows_of(found, "message_id", "outcome", "payload_hash") == [("a", "acked", "x")]


def test_another_column_tells_attempts_apart(spark: SparkSession, tmp_path: Path) -> None:
    """The same id, sent again under a number of its own."""
    found = _folded(
        spark,
        tmp_path,
        *(_line("send", "a", n, n=n) + _line("ack", "a", n + 1, n=n, p=0, o=n) for n in (1, 5)),
        columns=COLUMNS | {"sequence": "n"},
        fold_by=["message_id", "sequence"],
    )

    assert rows_of(found, "message_id", "sequence", "offset") == [("a", 1, 1), ("a", 5, 5)]


def test_an_answer_without_its_send_uncovers(spark: SparkSession, tmp_path: Path) -> None:
    """Nobody knows when it was sent; a line without an id stays as it is."""
    found = _folded(spark, tmp_path, _line("ack", "a", 2, p=0, o=7), _line("send", None, 9))

    assert rows_of(found, "message_id", "outcome") == [("a", "acked"), (None, None)]
    assert found.coverage.undated == 1


def test_a_column_that_is_not_there_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Otherwise nothing would be folded, and nothing would say so."""
    with pytest.raises(
        SourceError, match=r"ledgers\.produced\.fold_by: the source has no column sequence; map it"
    ):
        _folded(spark, tmp_path, _line("send", "a", 1), fold_by=["message_id", "sequence"])


@pytest.mark.parametrize(
    ("ledger", "spec", "message"),
    [
        ("delivered", {"fold_by": ["message_id"]}, "only the ledger produced has attempts to fold"),
        ("produced", {"fold_by": ["message"]}, "no column message; did you mean message_id"),
        ("produced", {"fold_by": ["message_id"], "reach": "2d"}, "no whole attempts beside reach"),
    ],
)
def test_contracts_that_cannot_fold_are_refused(
    tmp_path: Path, ledger: str, spec: dict[str, object], message: str
) -> None:
    """A setting that would have no effect, or a wrong one, is an error."""
    with pytest.raises((ContractError, ValueError), match=message):
        contract_of(tmp_path, {ledger: {"source": jsonl("x"), **spec}})
