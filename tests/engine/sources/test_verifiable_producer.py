"""The output of Kafka's VerifiableProducer: answers are attempts, and the sequence of values proves the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, evidence_of, rows_of

from tieout.engine.evidence import Evidence
from tieout.errors import SourceError

_START = 1763632800000  # 2025-11-20T10:00:00Z
_BEGIN = {"timestamp": _START, "name": "startup_complete"}
_SOURCE = {"kind": "verifiable_producer", "path": "*.out"}


def _success(value: str, offset: int = 0, key: str | None = None) -> dict[str, Any]:
    number = int(value.rsplit(".", maxsplit=1)[-1])
    return {
        "timestamp": _START + number,
        "name": "producer_send_success",
        "key": key,
        "value": value,
        "topic": "t",
        "partition": 0,
        "offset": offset,
    }


def _error(value: str, exception: str) -> dict[str, Any]:
    answer = {**_success(value), "name": "producer_send_error", "exception": f"class {exception}"}
    return {name: answer[name] for name in answer if name not in ("partition", "offset")} | {"message": "m"}


def _end(sent: int, acked: int) -> list[dict[str, Any]]:
    total = {"timestamp": _START + 91, "name": "tool_data", "sent": sent, "acked": acked}
    return [{"timestamp": _START + 90, "name": "shutdown_complete"}, total]


def _write(path: Path, events: Sequence[dict[str, Any] | str]) -> None:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    path.write_text("\n".join(lines) + "\n")


def _evidence(spark: SparkSession, folder: Path, **source: str) -> Evidence:
    return evidence_of(spark, folder, "produced", source={**_SOURCE, **source})


@pytest.fixture(scope="module")
def outputs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Outputs of several clients as one ledger, each in a file of its own."""
    folder = tmp_path_factory.mktemp("outputs")
    without_key = {name: value for name, value in _success("3", offset=3).items() if name != "key"}
    _write(folder / "keys.out", [_success("0", offset=0, key="k"), _success("1", offset=1), without_key])
    _write(
        folder / "answers.out",
        [
            {"timestamp": _START, "name": "startup_complete"},
            _success("0", offset=7, key="k"),
            _error("1", "org.apache.kafka.common.errors.TimeoutException"),
            _error("2", "org.apache.kafka.common.errors.RecordTooLargeException"),
            _error("3", "org.apache.kafka.common.errors.DisconnectException"),
            _success("4", offset=-1),
        ],
    )
    _write(folder / "killed.out", [_success("2.0"), _success("2.1"), _success("2.4")])
    _write(folder / "ended.out", [_success("0"), _success("1"), *_end(4, 2)])
    _write(folder / "mixed.out", ["[2026-11-20] INFO started", _success("0"), "{}"])
    with (folder / "mixed.out").open("a") as file:
        file.write('{"timestamp":17000,"name":"producer_se')
    _write(folder / "prefixed.out", [f"web-1  | {json.dumps(_success('0'))}"])
    return _evidence(spark, folder)


def _rows_in(outputs: Evidence, file: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(row[1:] for row in rows_of(outputs, "producer_id", *columns) if row[0] == file)


def test_what_a_line_does_not_say_of_a_key_is_unknown(outputs: Evidence) -> None:
    """Kafka's own tool prints a key even where there is none; third-party clients leave it out."""
    assert _rows_in(outputs, "keys", "message_id", "content") == [
        ("0", None),
        ("1", None),
        ("2", "unknown"),
        ("3", "unknown"),
    ]
    without_ack = 3
    contents = [row[0] for row in rows_of(outputs, "content")]
    assert outputs.coverage.unknown == (("key_hash", contents.count("unknown") + without_ack),)


def test_answers_are_attempts_with_the_outcome_they_prove(outputs: Evidence) -> None:
    """An ack is acked, a definite error failed, and a timeout or an unheard-of error unknown."""
    assert _rows_in(outputs, "answers", "message_id", "sequence", "outcome", "offset") == [
        ("0", 0, "acked", 7),
        ("1", 1, "unknown", None),
        ("2", 2, "failed", None),
        ("3", 3, "unknown", None),
        ("4", 4, "acked", None),
    ]
    first = outputs.rows.where("producer_id = 'answers' AND message_id = '0'")
    (row,) = first.selectExpr(
        "*", "unix_millis(attempted_at) AS attempted", "unix_millis(completed_at) AS completed"
    ).collect()
    assert row["payload_hash"] == hashlib.sha256(b"0").hexdigest()
    assert row["key_hash"] == hashlib.sha256(b"k").hexdigest()
    assert row["producer_id"] == row["producer_session"] == "answers"
    assert (row["attempted"], row["completed"]) == (_START, _START)
    assert any("time of the answer" in note for note in outputs.coverage.notes)


def test_killed_producer_leaves_unknown_sends(outputs: Evidence) -> None:
    """Value 4 proves that 2 and 3 were sent; their outcome is unknown and their time that of the next send seen."""
    assert _rows_in(outputs, "killed", "message_id", "sequence", "outcome", "topic") == [
        ("2.0", 0, "acked", "t"),
        ("2.1", 1, "acked", "t"),
        ("2.2", 2, "unknown", "t"),
        ("2.3", 3, "unknown", "t"),
        ("2.4", 4, "acked", "t"),
    ]
    assert outputs.rows.where("NOT is_approximate OR is_approximate IS NULL").isEmpty()
    inferred = outputs.rows.where("producer_id = 'killed' AND outcome = 'unknown'")
    times = inferred.selectExpr("unix_millis(attempted_at)", "completed_at").collect()
    assert [tuple(row) for row in times] == [(_START + 4, None)] * 2
    assert (
        "killed.out: 2 sends without an answer, inferred from the sequence of values; their time is that of the "
        "next send seen, approximate" in outputs.coverage.notes
    )
    assert "killed.out: the client was not shut down in order" in outputs.coverage.notes


def test_totals_prove_sends_behind_the_last_answer(outputs: Evidence) -> None:
    """tool_data of four sends after two answers is two sends that nobody answered, and is noted."""
    assert _rows_in(outputs, "ended", "message_id", "outcome") == [
        ("0", "acked"),
        ("1", "acked"),
        ("2", "unknown"),
        ("3", "unknown"),
    ]
    assert any(
        note.startswith("ended.out: tool_data says 4 sent and 2 acked") for note in outputs.coverage.notes
    )


def test_lines_that_are_no_event_are_noted_not_unparsed(outputs: Evidence) -> None:
    """Logs between the events and a torn last line cost no tolerance, but they are told."""
    assert _rows_in(outputs, "mixed", "message_id") == [("0",)]
    assert outputs.coverage.unparsed == 1, "the answer behind a prefix"
    assert "mixed.out: 3 lines that are no event" in outputs.coverage.notes
    assert "mixed.out: the last line is torn" in outputs.coverage.notes


def test_an_answer_behind_a_prefix_is_an_unreadable_row(outputs: Evidence) -> None:
    """An output in which every line has a prefix is not that of a producer that sent nothing."""
    assert _rows_in(outputs, "prefixed", "message_id") == []
    assert any(note.startswith("prefixed.out:1: ") for note in outputs.coverage.notes)
    assert not outputs.coverage.is_within_tolerance


def test_an_output_whose_sequence_or_totals_are_absurd_is_not_believed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A value of another kind of number does not become a billion inferred sends.

    Many gaps may each be small, and together they are more sends than any line tells of. Fewer sends than answers:
    lines of another run. More, and no numbers: nobody knows which sends those are. A tool that counts more
    acknowledgements than its lines show had lines that are gone.
    """
    nameless = [{**_success(str(number)), "value": f"v{number}x"} for number in range(2)]
    files: dict[str, tuple[list[dict[str, Any]], int, str]] = {
        "absurd": ([_BEGIN, _success("0"), _success("1234567890")], 2, "gaps of 1234567889 values"),
        "many": (
            [_BEGIN, *(_success(str(number * 900_000)) for number in range(9))],
            9,
            "gaps of 7199992 values",
        ),
        "gone": (
            [_BEGIN, _success("0"), _success("3"), *_end(4, 4)],
            4,
            "tool_data says 4 sent and 4 acked, the lines show 2 answers and 2 acked: paste the output of each run "
            "whole, the parts of a rotated log together",
        ),
        "fewer": ([_BEGIN, *nameless, *_end(1, 2)], 2, "tool_data says 1 sent and 2 acked, "),
        "more": ([_BEGIN, *nameless, *_end(3, 2)], 2, "tool_data says 3 sent and 2 acked, "),
    }
    for name, (events, _, _) in files.items():
        _write(tmp_path / f"{name}.out", events)

    found = _evidence(spark, tmp_path)

    rows = [producer for (producer,) in rows_of(found, "producer_id")]
    assert {name: rows.count(name) for name in files} == {
        name: count for name, (_, count, _) in files.items()
    }
    assert found.coverage.unparsed == len(files)
    assert not found.coverage.is_within_tolerance
    for name, (_, _, expected) in files.items():
        assert any(note.startswith(f"{name}.out: {expected}") for note in found.coverage.notes), (
            name,
            found.coverage.notes,
        )


def test_contract_names_producer_and_session(spark: SparkSession, tmp_path: Path) -> None:
    """What the tool does not print, the contract can say."""
    _write(tmp_path / "a.out", [_success("0"), _success("2")])

    found = _evidence(spark, tmp_path, producer_id="web-1", session="s1")

    assert set(rows_of(found, "producer_id", "producer_session")) == {("web-1", "s1")}


def test_no_output_is_an_absent_ledger(spark: SparkSession, tmp_path: Path) -> None:
    """A path without files is told, not raised."""
    found = _evidence(spark, tmp_path)

    assert not found.coverage.is_present
    assert found.coverage.complete_until is None
    assert found.coverage.notes[0] == "*.out: no such file"


def test_consumers_ledger_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A producer's output is no evidence of deliveries."""
    with pytest.raises(SourceError, match=r"ledgers\.delivered\.source: .* produced only"):
        evidence_of(spark, tmp_path, "delivered", source=_SOURCE)


def test_earliest_killed_client_decides(spark: SparkSession, tmp_path: Path) -> None:
    """Of several files, each that was not shut down is known until its last event only."""
    end = {"timestamp": _START + 90, "name": "shutdown_complete"}
    _write(tmp_path / "a.out", [_success("0"), end])
    _write(tmp_path / "b.out", [_success(str(number)) for number in range(3)])
    _write(tmp_path / "c.out", [_success(str(number)) for number in range(6)])

    found = _evidence(spark, tmp_path)

    assert found.coverage.complete_until == datetime.fromtimestamp((_START + 2) / 1000, tz=UTC)
    assert len(set(rows_of(found, "producer_id"))) == 3


def _ended_whole(spark: SparkSession, folder: Path, events: Sequence[dict[str, Any] | str]) -> Evidence:
    _write(folder / "a.out", events)
    return _evidence(spark, folder)


def test_a_run_without_its_start_is_complete_from_its_first_line(spark: SparkSession, tmp_path: Path) -> None:
    """What a rotated log lost was answered before; nothing says how many sends those were."""
    found = _ended_whole(spark, tmp_path, [_success("4"), _success("5")])

    since = found.coverage.covers_from
    assert since is not None
    assert since.timestamp() * 1000 == _START + 5
    assert found.coverage.is_within_tolerance
    assert any(
        note.startswith("a.out: expected startup_complete first, found another event")
        for note in found.coverage.notes
    )


def test_a_run_without_its_start_and_without_times_covers_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Third-party clients print no times."""
    answer = {name: value for name, value in _success("4").items() if name != "timestamp"}

    found = _ended_whole(spark, tmp_path, [answer])

    assert found.coverage.covers_from == NOW


def test_a_run_whose_totals_are_those_of_its_lines_has_its_head(spark: SparkSession, tmp_path: Path) -> None:
    """Old tools print no start; that no line is missing the totals show as well."""
    _write(tmp_path / "a.out", [_success("0", 0), _success("1", 1), *_end(2, 2)])
    _write(tmp_path / "b.out", [_BEGIN, _success("0", 2), _success("1", 3), *_end(2, 2)])

    found = _evidence(spark, tmp_path)

    assert found.coverage.covers_from is None
    assert found.coverage.is_within_tolerance
    assert found.coverage.complete_until == NOW, "a client that was shut down prints nothing more"
    assert found.coverage.notes[1:-1] == ()


_RUN = [_BEGIN, _success("0"), _success("2"), *_end(3, 2)]


def test_each_start_begins_a_session(spark: SparkSession, tmp_path: Path) -> None:
    """Two runs in one file send the same values, each its own; sends without an answer are inferred in each."""
    found = _ended_whole(spark, tmp_path, ["INFO starting", *_RUN, *_RUN])

    assert sorted(rows_of(found, "producer_session", "sequence", "outcome")) == [
        (session, number, outcome)
        for session in ("a", "a#2")
        for number, outcome in enumerate(("acked", "unknown", "acked"))
    ]
    assert rows_of(found, "producer_id") == [("a",)] * 6
    assert found.coverage.is_within_tolerance
    assert found.coverage.covers_from is None
    assert any(
        note.startswith("a.out, run 2: tool_data says 3 sent and 2 acked") for note in found.coverage.notes
    )


def test_what_comes_before_the_first_start_is_a_run_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """The end of a run whose head was rotated away is none of the next one's."""
    found = _ended_whole(spark, tmp_path, [_success("7"), *_end(8, 8), *_RUN])

    assert set(rows_of(found, "producer_session", "message_id")) >= {("a", "7"), ("a#2", "0")}
    assert found.coverage.covers_from is not None
    assert not found.coverage.is_within_tolerance


def test_files_of_one_name_are_distinguished_by_their_paths(spark: SparkSession, tmp_path: Path) -> None:
    """Every host calls its output alike; a name that is the only one of its kind stays short."""
    for offset, place in enumerate(("host-1/a.out", "host-2/a.out", "host-2/b.out")):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        _write(tmp_path / place, [_BEGIN, _success("0", offset)])

    found = _evidence(spark, tmp_path, path="*/*.out")

    assert rows_of(found, "producer_id", "producer_session") == [
        ("b", "b"),
        ("host-1/a.out", "host-1/a.out"),
        ("host-2/a.out", "host-2/a.out"),
    ]


def test_a_copy_of_an_output_is_no_second_run(spark: SparkSession, tmp_path: Path) -> None:
    """Its sends would count twice, each in a session of its own."""
    for name in ("a.out", "b.out"):
        _write(tmp_path / name, [_BEGIN, _success("0")])

    assert _evidence(spark, tmp_path).coverage.doubled == ("b.out holds what a.out holds",)
