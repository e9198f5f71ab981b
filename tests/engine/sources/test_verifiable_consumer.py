"""The output of Kafka's VerifiableConsumer: records, commits and assignments, each for its own ledger."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, evidence_of, faults_of, reading_of, rows_of

from tieout.engine.evidence import Evidence
from tieout.errors import SourceError

_START = 1763632800000  # 2025-11-20T10:00:00Z


def _record(offset: int, value: str) -> dict[str, Any]:
    record = {"key": None, "value": value, "topic": "t", "partition": 1, "offset": offset}
    return {"timestamp": _START + offset, "name": "record_data", **record}


_PLACE = {"topic": "t", "partition": 1}


def _poll(first: int, last: int) -> dict[str, Any]:
    count = last - first + 1
    summary = {**_PLACE, "count": count, "minOffset": first, "maxOffset": last}
    return {"timestamp": _START + last, "name": "records_consumed", "count": count, "partitions": [summary]}


_EVENTS: list[dict[str, Any]] = [
    {"timestamp": _START, "name": "startup_complete"},
    {
        "timestamp": _START,
        "name": "partitions_assigned",
        "partitions": [_PLACE, {"topic": "t", "partition": 0}],
    },
    _record(17, "a"),
    _record(18, "b"),
    {"timestamp": _START, "name": "records_consumed", "count": 2, "partitions": []},
    {
        "timestamp": _START + 20,
        "name": "offsets_committed",
        "offsets": [{**_PLACE, "offset": 19}],
        "success": True,
    },
    {"timestamp": _START + 21, "name": "partitions_revoked", "partitions": [_PLACE]},
    {"timestamp": _START + 22, "name": "partitions_assigned", "partitions": [_PLACE]},
    _record(18, "b"),
    {"timestamp": _START, "name": "records_consumed", "count": 1, "partitions": []},
    {
        "timestamp": _START + 30,
        "name": "offsets_committed",
        "offsets": [{**_PLACE, "offset": 99}],
        "error": "The coordinator is not available.",
        "success": False,
    },
    {
        "timestamp": _START + 40,
        "name": "offsets_committed",
        "offsets": [{**_PLACE, "offset": 20}, {"topic": "t", "partition": 0, "offset": 5, "error": "fenced"}],
        "success": True,
    },
    {"timestamp": _START + 50, "name": "shutdown_complete"},
]


def _evidence(
    spark: SparkSession, folder: Path, ledger: str, events: list[dict[str, Any]], **spec: Any
) -> Evidence:
    text = "".join(json.dumps(event) + "\n" for event in events)
    (folder / "reader-1.log").write_text("INFO starting\n" + text)
    return evidence_of(
        spark, folder, ledger, source={"kind": "verifiable_consumer", "path": "reader-1.log"}, **spec
    )


def test_records_are_reads_in_the_order_of_the_lines(spark: SparkSession, tmp_path: Path) -> None:
    """Each record keeps its position, its place in the output, its generation and its poll."""
    found = _evidence(spark, tmp_path, "read", _EVENTS, columns={"consumer_group": "'loader'"})

    rows = found.rows.orderBy("delivery_sequence").collect()
    assert [(row["message_id"], row["partition"], row["offset"], row["generation"]) for row in rows] == [
        ("a", 1, 17, 1),
        ("b", 1, 18, 1),
        ("b", 1, 18, 2),
    ]
    assert [row["poll_id"] for row in rows] == ["reader-1:0", "reader-1:0", "reader-1:1"]
    assert {row["consumer_group"] for row in rows} == {"loader"}
    assert rows[0]["payload_hash"] == hashlib.sha256(b"a").hexdigest()
    assert rows[0]["key_hash"] is None
    assert {row["outcome"] for row in rows} == {"ok"}
    assert found.coverage.complete_until == NOW
    assert "consumer_group" in found.present


def test_only_successful_commits_are_rows(spark: SparkSession, tmp_path: Path) -> None:
    """A refused commit and a partition that the broker refused within one are set aside and noted."""
    found = _evidence(spark, tmp_path, "committed", _EVENTS)

    assert rows_of(found, "topic", "partition", "committed_offset") == [("t", 1, 19), ("t", 1, 20)]
    assert "1 commits were refused by the broker and set aside" in found.coverage.notes
    assert "consumer_group" not in found.present


def test_assignments_carry_their_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """An assignment and a revocation are rows with the partitions they are about."""
    found = _evidence(spark, tmp_path, "assigned", _EVENTS)

    rows = found.rows.orderBy("assigned_at").collect()
    assert [row["kind"] for row in rows] == ["assign", "rebalance", "assign"]
    assert [(part["topic"], part["partition"]) for part in rows[0]["partitions"]] == [("t", 1), ("t", 0)]


def test_killed_consumer_is_complete_until_its_last_event_only(spark: SparkSession, tmp_path: Path) -> None:
    """Without an orderly end nothing is known after the last line."""
    found = _evidence(spark, tmp_path, "delivered", _EVENTS[:4])

    until = found.coverage.complete_until
    assert until is not None
    assert until.timestamp() * 1000 == _START + 18


def test_records_that_were_not_printed_are_noted(spark: SparkSession, tmp_path: Path) -> None:
    """Without --verbose the records are missing, which must not look like nothing was read."""
    silent = [event for event in _EVENTS if event["name"] != "record_data"]

    found = _evidence(spark, tmp_path, "read", silent)

    assert found.coverage.rows == 0
    assert (
        "reader-1.log: 3 records were consumed but none printed: --verbose prints them"
        in found.coverage.notes
    )
    assert not found.coverage.is_within_tolerance


def test_a_record_that_a_poll_counted_and_no_line_shows_is_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A log line amid a record's leaves no event; what the poll had is more than what was printed of it."""
    polls = [_poll(17, 18), _record(19, "c"), _poll(19, 19), _record(20, "d")]

    found = _evidence(spark, tmp_path, "read", [_record(17, "a"), *polls])

    assert "reader-1.log: 1 records of its polls have no line: paste the output whole" in found.coverage.notes
    assert not found.coverage.is_within_tolerance


def test_an_event_that_is_not_alone_on_its_line_is_an_unreadable_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Behind a prefix, or half of a line of a log, it is not passed over as a line of a log is."""
    event = json.dumps(_record(17, "a"))
    (tmp_path / "reader-1.log").write_text(
        f"INFO at {{x}}\nreader-1  | {event}\n{json.dumps(_record(18, 'b'))}\n"
    )

    source = {"kind": "verifiable_consumer", "path": "reader-1.log"}
    found = evidence_of(spark, tmp_path, "read", source=source)

    assert rows_of(found, "message_id") == [("b",)]
    assert found.coverage.unparsed == 1
    assert any(note.startswith("reader-1.log:2: an event ") for note in found.coverage.notes)


def test_other_ledgers_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A consumer's output says nothing about sends."""
    with pytest.raises(
        SourceError, match=r"ledgers\.produced\.source: .* read, delivered, committed, mirrored, assigned"
    ):
        _evidence(spark, tmp_path, "produced", _EVENTS)


def test_what_a_line_does_not_say_of_a_key_is_unknown(spark: SparkSession, tmp_path: Path) -> None:
    """Kafka's own tool prints a key even where there is none; third-party clients leave it out."""
    silent = {name: value for name, value in _record(18, "b").items() if name != "key"}
    lines = [{"timestamp": _START, "name": "startup_complete"}, _record(17, "a"), silent]
    (tmp_path / "c.out").write_text("".join(json.dumps(line) + "\n" for line in lines))

    found = evidence_of(spark, tmp_path, "read", source={"kind": "verifiable_consumer", "path": "c.out"})

    assert rows_of(found, "message_id", "key_hash", "content") == [("a", None, None), ("b", None, "unknown")]


_LINE = json.dumps(_record(18, "b"))
_COMMIT = json.dumps(_EVENTS[5])


def test_a_line_that_may_be_an_event_is_never_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    """One changed byte, or a key twice, took a read or a commit away without a word."""
    of_reads = {
        _LINE.replace('"key"', '"name": "x", "key"'): "a key stands twice",
        _LINE.replace('"key"', '"n\\u0061me": "x", "key"'): "a key stands twice",
        _LINE.replace("record_data", "record_datb"): "a JSON object that is none",
        _LINE.replace('"name"', '"nbme"'): "a JSON object that is none",
        _LINE[:-1] + "]": "the line is not one JSON object",
        _LINE[:-9]: "the line is not one JSON object",
    }
    of_commits = {
        _COMMIT.replace("true", "trve"): "an event with something else on its line",
        _COMMIT.replace("true", '"trve"'): "expected success to be true or false",
        _COMMIT.replace("success", "suxcess"): "expected success to be true or false",
        _COMMIT.replace('offsets":', 'offsetx":'): "with it a list of offsets",
        _COMMIT.replace('"offset": 19', '"offset": 9, "offset": 19'): "a key stands twice",
    }
    events = [json.dumps(event) for event in (_EVENTS[0], _record(17, "a"), _EVENTS[-1])]
    for ledger, expected in (("read", of_reads), ("committed", of_commits)):
        (tmp_path / ledger).mkdir()
        for number, line in enumerate(expected):
            (tmp_path / ledger / f"{number}.log").write_text("\n".join([*events[:2], line, events[2]]) + "\n")
        source = {"kind": "verifiable_consumer", "path": f"{ledger}/*.log"}

        found = evidence_of(spark, tmp_path, ledger, source=source)
        faults = {text: fault for _, text, fault in faults_of(spark, tmp_path, ledger, source=source)}

        assert {line: fault for line, fault in expected.items() if fault not in faults.get(line, "")} == {}
        assert found.coverage.unparsed == len(expected)
        assert not found.coverage.is_within_tolerance
        assert [note.split(": ")[0] for note in found.coverage.notes if f"{ledger}/" in note][:2] == [
            f"{ledger}/0.log:3",
            f"{ledger}/1.log:3",
        ]


@pytest.mark.parametrize("end", ['{"timestamp":', '{"timestamp": 9763632800000, "name": "startup_complete"}'])
def test_what_began_behind_an_orderly_end_is_not_complete(
    spark: SparkSession, tmp_path: Path, end: str
) -> None:
    """A torn line, or a start of a time that is yet to come, says nothing of what came behind it."""
    lines = [json.dumps(event) for event in (_EVENTS[0], _record(17, "a"), _EVENTS[-1])]
    (tmp_path / "r.log").write_text("\n".join([*lines, end]))

    until = reading_of(
        spark, tmp_path, "read", {"kind": "verifiable_consumer", "path": "r.log"}
    ).complete_until

    assert until is not None
    assert until.timestamp() * 1000 == _START + 50


@pytest.mark.parametrize("ledger", ["read", "delivered", "committed"])
def test_without_its_start_the_output_is_complete_from_its_first_line(
    spark: SparkSession, tmp_path: Path, ledger: str
) -> None:
    """What was read before a log was rotated is missing, which must not look like a loss."""
    events = [_record(18, "b"), _poll(18, 18), {**_EVENTS[5], "timestamp": _START + 19}, _EVENTS[-1]]
    for name, lines in (("rotated.log", events), ("whole.log", [_EVENTS[0], *events])):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    rotated, whole = (
        reading_of(spark, tmp_path, ledger, {"kind": "verifiable_consumer", "path": name})
        for name in ("rotated.log", "whole.log")
    )

    assert rotated.complete_from is not None
    assert rotated.complete_from.timestamp() * 1000 == _START + 19
    assert any(note.startswith("rotated.log: expected startup_complete") for note in rotated.notes)
    assert whole.complete_from is None


def test_consumers_of_one_name_are_distinguished_by_their_paths(spark: SparkSession, tmp_path: Path) -> None:
    """Their polls and generations are counted each by itself."""
    for host, value in (("host-1", "a"), ("host-2", "b")):
        (tmp_path / host).mkdir()
        events = [_EVENTS[0], _record(17, value), _EVENTS[-1]]
        (tmp_path / host / "c.out").write_text("".join(json.dumps(event) + "\n" for event in events))

    found = evidence_of(spark, tmp_path, "read", source={"kind": "verifiable_consumer", "path": "*/c.out"})

    assert rows_of(found, "consumer_id") == [("host-1/c.out",), ("host-2/c.out",)]
