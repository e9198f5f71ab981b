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


def _write(path: Path, events: Sequence[dict[str, Any] | str]) -> None:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    path.write_text("\n".join(lines) + "\n")


def _evidence(spark: SparkSession, folder: Path, **source: str) -> Evidence:
    return evidence_of(spark, folder, "produced", source={**_SOURCE, **source})


def test_what_a_line_does_not_say_of_a_key_is_unknown(spark: SparkSession, tmp_path: Path) -> None:
    """Kafka's own tool prints a key even where there is none; third-party clients leave it out."""
    answers = [_success("0", offset=0, key="k"), _success("1", offset=1), _success("3", offset=3)]
    _write(
        tmp_path / "web.out", [*answers[:2], {name: answers[2][name] for name in answers[2] if name != "key"}]
    )

    found = _evidence(spark, tmp_path)

    assert [row[0::2] for row in rows_of(found, "message_id", "key_hash", "content")] == [
        ("0", None),
        ("1", None),
        ("2", "unknown"),
        ("3", "unknown"),
    ]
    assert found.coverage.unknown == (("key_hash", 2),)


def test_answers_are_attempts_with_the_outcome_they_prove(spark: SparkSession, tmp_path: Path) -> None:
    """An ack is acked, a definite error failed, and a timeout or an unheard-of error unknown."""
    _write(
        tmp_path / "web.out",
        [
            {"timestamp": _START, "name": "startup_complete"},
            _success("0", offset=7, key="k"),
            _error("1", "org.apache.kafka.common.errors.TimeoutException"),
            _error("2", "org.apache.kafka.common.errors.RecordTooLargeException"),
            _error("3", "org.apache.kafka.common.errors.DisconnectException"),
            _success("4", offset=-1),
        ],
    )

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id", "sequence", "outcome", "offset") == [
        ("0", 0, "acked", 7),
        ("1", 1, "unknown", None),
        ("2", 2, "failed", None),
        ("3", 3, "unknown", None),
        ("4", 4, "acked", None),
    ]
    first = found.rows.where("message_id = '0'").collect()[0]
    assert first["payload_hash"] == hashlib.sha256(b"0").hexdigest()
    assert first["key_hash"] == hashlib.sha256(b"k").hexdigest()
    assert first["producer_id"] == first["producer_session"] == "web"
    times = found.rows.where("message_id = '0'").selectExpr(
        "unix_millis(attempted_at)", "unix_millis(completed_at)"
    )
    assert tuple(times.collect()[0]) == (_START, _START)
    assert any("time of the answer" in note for note in found.coverage.notes)


def test_killed_producer_leaves_unknown_sends(spark: SparkSession, tmp_path: Path) -> None:
    """Value 4 proves that 2 and 3 were sent; their outcome is unknown and their time that of the next send seen."""
    _write(tmp_path / "a.out", [_success("2.0"), _success("2.1"), _success("2.4")])

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id", "sequence", "outcome", "topic") == [
        ("2.0", 0, "acked", "t"),
        ("2.1", 1, "acked", "t"),
        ("2.2", 2, "unknown", "t"),
        ("2.3", 3, "unknown", "t"),
        ("2.4", 4, "acked", "t"),
    ]
    inferred = found.rows.where("outcome = 'unknown'").selectExpr("unix_millis(attempted_at)", "completed_at")
    assert found.rows.where("NOT is_approximate OR is_approximate IS NULL").isEmpty()
    assert [tuple(row) for row in inferred.collect()] == [(_START + 4, None)] * 2
    assert (
        "a.out: 2 sends without an answer, inferred from the sequence of values; their time is that of the "
        "next send seen, approximate" in found.coverage.notes
    )
    assert "a.out: the client was not shut down in order" in found.coverage.notes
    assert found.coverage.complete_until == datetime.fromtimestamp((_START + 4) / 1000, tz=UTC)


def test_totals_prove_sends_behind_the_last_answer(spark: SparkSession, tmp_path: Path) -> None:
    """tool_data of four sends after two answers is two sends that nobody answered, and is noted."""
    _write(
        tmp_path / "a.out",
        [
            _success("0"),
            _success("1"),
            {"timestamp": _START + 50, "name": "shutdown_complete"},
            {"timestamp": _START + 51, "name": "tool_data", "sent": 4, "acked": 2},
        ],
    )

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id", "outcome") == [
        ("0", "acked"),
        ("1", "acked"),
        ("2", "unknown"),
        ("3", "unknown"),
    ]
    assert any(note.startswith("a.out: tool_data says 4 sent and 2 acked") for note in found.coverage.notes)
    assert found.coverage.complete_until == NOW, "a client that was shut down prints nothing more"


def test_lines_that_are_no_event_are_noted_not_unparsed(spark: SparkSession, tmp_path: Path) -> None:
    """Logs between the events and a torn last line cost no tolerance, but they are told."""
    _write(tmp_path / "a.out", ["[2026-11-20] INFO started", _success("0"), "{}"])
    with (tmp_path / "a.out").open("a") as file:
        file.write('{"timestamp":17000,"name":"producer_se')

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id") == [("0",)]
    assert found.coverage.unparsed == 0
    assert found.coverage.is_within_tolerance
    assert "a.out: 3 lines that are no event" in found.coverage.notes
    assert "a.out: the last line is torn" in found.coverage.notes


def test_an_answer_behind_a_prefix_is_an_unreadable_row(spark: SparkSession, tmp_path: Path) -> None:
    """An output in which every line has a prefix is not that of a producer that sent nothing."""
    _write(tmp_path / "a.out", [f"web-1  | {json.dumps(_success('0'))}"])

    found = _evidence(spark, tmp_path)

    assert (found.coverage.rows, found.coverage.unparsed) == (0, 1)
    assert not found.coverage.is_within_tolerance


def test_absurd_gap_is_not_filled(spark: SparkSession, tmp_path: Path) -> None:
    """A value of another kind of number does not become a billion inferred sends, and the file is not believed."""
    _write(tmp_path / "a.out", [_success("0"), _success("1234567890")])

    found = _evidence(spark, tmp_path)

    assert found.coverage.rows == 2
    assert not found.coverage.is_within_tolerance
    assert any("gaps of 1234567889 values" in note for note in found.coverage.notes)


def test_many_gaps_are_no_more_believed_than_one(spark: SparkSession, tmp_path: Path) -> None:
    """Each may be small, and together they are more sends than any line tells of."""
    _write(tmp_path / "a.out", [_success(str(number * 900_000)) for number in range(9)])

    found = _evidence(spark, tmp_path)

    assert found.coverage.rows == 9
    assert not found.coverage.is_within_tolerance


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


def _end(sent: int, acked: int) -> list[dict[str, Any]]:
    total = {"timestamp": _START + 91, "name": "tool_data", "sent": sent, "acked": acked}
    return [{"timestamp": _START + 90, "name": "shutdown_complete"}, total]


def _ended_whole(spark: SparkSession, folder: Path, events: Sequence[dict[str, Any] | str]) -> Evidence:
    _write(folder / "a.out", events)
    return _evidence(spark, folder)


def test_acknowledged_sends_without_a_line_are_missed(spark: SparkSession, tmp_path: Path) -> None:
    """A tool that counts more acknowledgements than its lines show had lines that are gone."""
    found = _ended_whole(spark, tmp_path, [_BEGIN, _success("0"), _success("3"), *_end(4, 4)])

    assert not found.coverage.is_within_tolerance
    assert (
        "a.out: tool_data says 4 sent and 4 acked, the lines show 2 answers and 2 acked: paste the output of each run "
        "whole, the parts of a rotated log together" in found.coverage.notes
    )


@pytest.mark.parametrize("sent", [1, 3])
def test_totals_that_no_sequence_explains_are_missed(spark: SparkSession, tmp_path: Path, sent: int) -> None:
    """Fewer sends than answers: lines of another run. More, and no numbers: nobody knows which sends those are."""
    answers = [{**_success(str(number)), "value": f"v{number}x"} for number in range(2)]

    found = _ended_whole(spark, tmp_path, [_BEGIN, *answers, *_end(sent, 2)])

    assert not found.coverage.is_within_tolerance


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


@pytest.mark.parametrize("head", [[], [_BEGIN]])
def test_a_run_whose_totals_are_those_of_its_lines_has_its_head(
    spark: SparkSession, tmp_path: Path, head: list[dict[str, Any]]
) -> None:
    """Old tools print no start; that no line is missing the totals show as well."""
    found = _ended_whole(spark, tmp_path, [*head, _success("0"), _success("1"), *_end(2, 2)])

    assert found.coverage.covers_from is None
    assert found.coverage.is_within_tolerance
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
