"""Coverage: what a contract says about completeness, held against the rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.engine.sources.builders import EVERYTHING, NOW, WINDOW, contract_of, evidence_of, jsonl

from tieout.engine.evidence import LedgerCoverage
from tieout.engine.session import suited_to
from tieout.engine.sources.covering import Bounds, bounds_of
from tieout.errors import SourceError
from tieout.model import Ledger

_SENT = ("producer_id", "producer_session", "sequence", "attempted_at")
_SENT_SCHEMA = "producer_id STRING, producer_session STRING, sequence BIGINT, attempted_at STRING"


def _sent(
    producer: str | None, minute: int | str | None, sequence: int | None = None, session: str = "s"
) -> dict[str, Any]:
    time = f"2026-11-20T10:{minute:02}:00Z" if isinstance(minute, int) else minute
    return {
        "producer_id": producer,
        "producer_session": session,
        "sequence": sequence,
        "message_id": "m",
        "attempted_at": time,
    }


def _coverage(
    spark: SparkSession, folder: Path, rows: list[dict[str, Any]], coverage: Any, now: datetime = NOW
) -> LedgerCoverage:
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {} if coverage is None else {"coverage": coverage}
    return evidence_of(spark, folder, "produced", now, source=jsonl("p.jsonl"), **spec).coverage


def _bounds(
    spark: SparkSession,
    folder: Path,
    rows: list[dict[str, Any]],
    coverage: Any,
    now: datetime = NOW,
    **spec: Any,
) -> Bounds:
    """What the contract says of rows that were read."""
    contract = contract_of(folder, {"produced": {"source": EVERYTHING, "coverage": coverage, **spec}})
    texts = [tuple(row[name] for name in _SENT) for row in rows]
    with suited_to(spark, is_small=True):
        sent = spark.createDataFrame(texts, _SENT_SCHEMA).withColumn(
            "attempted_at", F.to_timestamp("attempted_at")
        )
        return bounds_of(sent, Ledger.PRODUCED, contract, WINDOW, now, None, now=now)


def _minute(minute: int) -> datetime:
    return datetime(2026, 11, 20, 10, minute, tzinfo=UTC)


def test_declared_is_the_window_with_margin_and_grace(spark: SparkSession, tmp_path: Path) -> None:
    """`declared` is a statement of the user's about exactly what is needed."""
    found = _coverage(spark, tmp_path, [_sent("a", 5)], "declared")

    assert found.covers_from == WINDOW.start - timedelta(minutes=15)
    assert found.complete_until == WINDOW.end + timedelta(minutes=15)
    assert found.names_all_producers


def test_nobody_can_have_declared_what_was_still_to_come(spark: SparkSession, tmp_path: Path) -> None:
    """Of a window that is not over, as one of a mistyped year, a file says nothing beyond when it was read."""
    found = _bounds(spark, tmp_path, [_sent("a", 5)], "declared", _minute(30))

    assert found.complete_until == _minute(30)
    assert found.notes == (
        "declared to be complete, but read at 2026-11-20T10:30:00Z, before the window was over",
    )


def test_without_a_statement_nothing_is_covered(spark: SparkSession, tmp_path: Path) -> None:
    """Rows alone prove nothing about absence."""
    found = _coverage(spark, tmp_path, [_sent("a", 5)], None)

    assert found.complete_until is None
    assert not found.covers(WINDOW.start, WINDOW.end)
    assert "the contract does not say how far this ledger is complete" in found.notes


def test_slowest_declared_producer_decides(spark: SparkSession, tmp_path: Path) -> None:
    """A watermark is the minimum over the declared producers, and a producer that nobody declared is told."""
    rows = [_sent("a", 5), _sent("a", 50), _sent("b", 20), _sent("c", 10)]

    found = _bounds(spark, tmp_path, rows, {"complete_until": "max(attempted_at)", "producers": ["a", "b"]})

    assert found.complete_until == _minute(20)
    assert not found.names_all_producers
    assert "producers that the contract does not list: c" in found.notes


def test_silent_declared_producer_covers_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Of a producer without a row nobody knows how far it is."""
    spec = {"complete_until": "max(attempted_at)", "producers": ["a", "b"]}

    found = _bounds(spark, tmp_path, [_sent("a", 50)], spec)

    assert found.complete_until is None
    assert found.names_all_producers
    assert "declared producer b has no row in what was read" in found.notes


@pytest.mark.parametrize(
    "until",
    [
        {"watermark_file": "done.txt"},
        {"complete_until": "2026-11-20T11:30:00Z"},
        {"complete_until": "now()"},
        {"complete_until": "max(attempted_at)"},
    ],
    ids=["watermark file", "time", "now", "own times"],
)
@pytest.mark.parametrize("sequences", [{}, {"sequences": "gapless"}], ids=["", "gapless"])
def test_declared_producer_without_a_row_is_silent_whatever_says_complete(
    spark: SparkSession, tmp_path: Path, until: dict[str, str], sequences: dict[str, str]
) -> None:
    """Of a producer that nothing was read of nobody knows whether it was silent or its file is gone."""
    (tmp_path / "done.txt").write_text("2026-11-20T11:30:00Z")
    spec = {**until, **sequences, "producers": ["a", "b", "c"]}
    rows = [_sent("a", 5, 0), _sent("a", 55, 1), _sent("c", "2099-01-01T00:00:00Z", 0)]

    found = _bounds(spark, tmp_path, rows, spec)

    assert found.silent == ("b", "c")
    assert "declared producer b has no row in what was read" in found.notes


def test_declared_producer_without_a_row_uncovers(spark: SparkSession, tmp_path: Path) -> None:
    """However sound the rest is."""
    rows = [_sent("a", 5, 0), _sent("a", 55, 1), _sent("c", "2099-01-01T00:00:00Z", 0)]

    found = _coverage(spark, tmp_path, rows, {"complete_until": "now()", "producers": ["a", "b", "c"]})

    assert found.silent == ("b", "c")
    assert not found.is_sound
    assert not found.covers(WINDOW.start, _minute(5))


def test_declared_producer_that_sent_before_the_window_may_be_silent_in_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rows of another time show that the producer was read; how far, the watermark says."""
    spec = {"complete_until": "now()", "sequences": "gapless", "producers": ["a", "b"]}
    rows = [_sent("a", 5, 0), _sent("b", "2026-11-19T08:00:00Z", 0)]

    found = _bounds(spark, tmp_path, rows, spec)

    assert found.silent == ()
    assert found.complete_until == NOW


def test_session_without_its_beginning_is_not_gapless(spark: SparkSession, tmp_path: Path) -> None:
    """Sessions count from 0 or 1: a higher first number is a missing part, unless the ledger begins at some time."""
    spec = {"complete_until": "now()", "sequences": "gapless"}
    rows = [_sent("a", 5, 2), _sent("a", 6, 3), _sent("b", 5, 1), _sent("c", 5, 0)]

    found = _bounds(spark, tmp_path, rows, spec)
    begun = {
        "complete_from": _bounds(spark, tmp_path, rows, spec | {"complete_from": "2026-11-20T09:00:00Z"}),
        "reach": _bounds(spark, tmp_path, rows, spec, reach="30m"),
    }

    note = "producer a, session s: begins with number 2; give complete_from or reach if the ledger begins after that"
    assert found.has_sequence_gaps
    assert note in found.notes
    for name, each in begun.items():
        assert (name, each.has_sequence_gaps, note in each.notes) == (name, False, False)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "orc"])
def test_paths_without_a_file_uncover_beside_others(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """One of several paths that leads to no file, by name, pattern or folder, is evidence that is missing."""
    rows = spark.createDataFrame(
        [("a", "m", "2026-11-20T10:05:00Z")], "producer_id STRING, message_id STRING, attempted_at STRING"
    )
    writer = rows.coalesce(1).write.option("header", True)
    getattr(writer, {"jsonl": "json"}.get(form, form))(str(tmp_path / "a"))
    (tmp_path / "b").mkdir()
    lost = ["b.*", "b", "b/*.none"]
    source = {"kind": "files", "format": form, "path": ["a", *lost]}

    found = evidence_of(
        spark, tmp_path, "produced", source=source, coverage={"complete_until": "now()"}
    ).coverage

    assert (found.rows, found.unparsed) == (1, len(lost))
    assert not found.covers(WINDOW.start, WINDOW.end)
    assert [note for note in found.notes if note.endswith("no such file")] == [
        f"{path}: no such file" for path in lost
    ]


def test_slowest_session_decides_without_declared_producers(spark: SparkSession, tmp_path: Path) -> None:
    """Without a list the minimum is over every session seen."""
    rows = [_sent("a", 5, session="1"), _sent("a", 50, session="2"), _sent("b", 30)]

    found = _bounds(spark, tmp_path, rows, {"complete_until": "max(attempted_at) - interval 1 minute"})

    assert found.complete_until == _minute(4)
    assert not found.names_all_producers


def test_time_of_2099_does_not_cover_until_then(spark: SparkSession, tmp_path: Path) -> None:
    """Rows without a time or with one of 1970 or of the future are counted and move no watermark."""
    rows = [
        _sent("a", 5),
        _sent("a", "2099-01-01T00:00:00Z"),
        _sent("a", None),
        _sent("a", "1970-01-01T00:00:00Z"),
    ]

    found = _coverage(spark, tmp_path, rows, {"complete_until": "max(attempted_at)"})

    assert found.complete_until == _minute(5)
    assert found.undated == 1
    assert "1 rows without attempted_at" in found.notes
    assert found.unset == 1
    assert "2 rows with attempted_at before 1971 or in the future" in found.notes


def test_an_answer_before_its_question_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Attempts completed more than a second before they were made are counted; what a coarse clock does is not."""
    rows = [
        _sent("a", 5) | {"completed_at": "2026-11-20T10:04:58Z"},
        _sent("a", 6) | {"completed_at": "2026-11-20T10:05:59Z"},
        _sent("a", 7) | {"completed_at": "2026-11-20T10:07:01Z"},
    ]

    found = _coverage(spark, tmp_path, rows, "declared")

    assert (found.rows, found.reversed) == (3, 1)


def test_now_is_the_time_of_reading(spark: SparkSession, tmp_path: Path) -> None:
    """`now()` is the run's own clock for files, alone and in an expression."""
    for text, expected in (("now()", NOW), ("now() - interval 5 minutes", NOW - timedelta(minutes=5))):
        assert _bounds(spark, tmp_path, [], {"complete_until": text}).complete_until == expected


def test_literal_time_and_start(spark: SparkSession, tmp_path: Path) -> None:
    """A time in the contract is taken at its word, with the start that is given."""
    spec = {"complete_until": "2026-11-20T11:30:00Z", "complete_from": "2026-11-20T09:00:00Z"}

    found = _bounds(spark, tmp_path, [_sent("a", 5)], spec)

    assert found.complete_until == datetime(2026, 11, 20, 11, 30, tzinfo=UTC)
    assert found.covers_from == datetime(2026, 11, 20, 9, tzinfo=UTC)


def test_watermark_file(spark: SparkSession, tmp_path: Path) -> None:
    """The file's time counts; a missing or garbled file is no coverage and is told."""
    spec = {"watermark_file": "done.txt"}
    assert _bounds(spark, tmp_path, [], spec).complete_until is None

    (tmp_path / "done.txt").write_text("2026-11-20T11:20:00+00:00\n")
    assert _bounds(spark, tmp_path, [], spec).complete_until == datetime(2026, 11, 20, 11, 20, tzinfo=UTC)

    (tmp_path / "done.txt").write_text("soon")
    garbled = _bounds(spark, tmp_path, [], spec)
    assert garbled.complete_until is None
    assert "watermark file done.txt: expected one time such as 2026-11-20T10:00:00Z" in garbled.notes


def test_gap_in_a_session_is_found_and_a_resend_is_none(spark: SparkSession, tmp_path: Path) -> None:
    """1, 2, 2, 4 lacks 3; another session's 3 does not fill it."""
    spec = {"complete_until": "now()", "sequences": "gapless"}
    whole = [_sent("a", 1, n) for n in (1, 2, 2, 3)] + [_sent("b", 1, 1)]
    torn = [_sent("a", 1, n) for n in (1, 2, 2, 4)] + [_sent("a", 1, 3, session="t")]

    assert not _coverage(spark, tmp_path, whole, spec).has_sequence_gaps
    found = _coverage(spark, tmp_path, torn, spec)

    assert found.has_sequence_gaps
    assert not found.covers(WINDOW.start, WINDOW.end)
    assert "producer a, session s: 1 sequence numbers missing, 0 rows without one" in found.notes


def test_rows_without_sequence_are_not_gapless(spark: SparkSession, tmp_path: Path) -> None:
    """What cannot be checked is not believed."""
    rows = [_sent("a", 1, 1), _sent("a", 1, None)]

    found = _bounds(spark, tmp_path, rows, {"complete_until": "now()", "sequences": "gapless"})

    assert found.has_sequence_gaps


@pytest.mark.parametrize(
    ("fields", "columns", "minutes", "is_doubtful"),
    [
        ({}, {}, 0, True),
        ({}, {"transaction_id": "transaction_id"}, 15, False),
        ({}, {"transaction_id": "transaction_id"}, 16, True),
        ({}, {"transaction_id": "cast(null as string)"}, 16, False),
        ({"transaction_state": "committed"}, {}, 0, False),
    ],
)
def test_a_transaction_id_by_its_name_hides_no_answer(
    spark: SparkSession,
    tmp_path: Path,
    fields: dict[str, str],
    columns: dict[str, str],
    minutes: int,
    is_doubtful: bool,
) -> None:
    """A payment's transaction that was sent again has rows that differ; as a producer's, all of them are unknown.

    So are all sends under a `transactional.id`, which is no transaction: none lasts so long.
    """
    outcomes = [("t-1", "acked"), ("t-2", "failed"), ("t-2", "acked"), (None, "failed"), (None, "acked")]
    rows = [{**_sent("a", 5), **fields, "transaction_id": of, "outcome": one} for of, one in outcomes]
    rows[2] |= _sent("a", 5 + minutes)
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"), columns=columns)

    assert [line[:15] for line in found.coverage.lacking] == ["transaction t-2"] * is_doubtful


@pytest.mark.parametrize(
    ("fields", "columns", "is_read"),
    [({}, {}, False), ({}, {"offset": "offset"}, True), ({"partition": 0}, {}, True)],
    ids=["a log shipper's", "mapped", "a record's"],
)
def test_an_offset_in_a_file_is_none_of_a_partition(
    spark: SparkSession, tmp_path: Path, fields: dict[str, int], columns: dict[str, str], is_read: bool
) -> None:
    """Two sends at one place of two files are no conflict in a log; a partition makes it one."""
    rows = [{**_sent("a", 5), **fields, "message_id": one, "offset": 0} for one in ("1", "2")]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"), columns=columns)

    assert {row["offset"] for row in found.rows.collect()} == {0 if is_read else None}
    assert ("offset" in found.present) is is_read
    assert any(note.startswith("offset is not read") for note in found.coverage.notes) is not is_read


def test_wrong_aggregate_is_the_contracts_error(spark: SparkSession, tmp_path: Path) -> None:
    """What is no aggregate, or names no column, is an error that shows where it stands."""
    for text, reason in (
        ("attempted_at", "it is no aggregate"),
        ("max(attempted_at", "expected Spark SQL"),
        ("max(attempted_at + nothing)", "no column `nothing`"),
        ("max(atempted_at)", "no column `atempted_at`"),
    ):
        with pytest.raises(
            SourceError, match=r"ledgers\.produced\.coverage\.complete_until: expected an agg"
        ) as error:
            _bounds(spark, tmp_path, [_sent("a", 1)], {"complete_until": text})
        assert f"found {text}: {reason}" in str(error.value)
        assert "the ledger's columns are: " in str(error.value)


def test_tolerance_is_a_share_of_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    """One unreadable row of four is within a quarter and beyond less."""
    (tmp_path / "p.jsonl").write_text('{"message_id":"1"}\n{"message_id":"2"}\n{"message_id":"3"}\n{"mess')
    for limit, holds in ((0.25, True), (0.2, False)):
        found = evidence_of(
            spark, tmp_path, "produced", source=jsonl("p.jsonl"), tolerance={"unparsed_ratio": limit}
        )
        assert found.coverage.unparsed == 1
        assert found.coverage.is_within_tolerance is holds
