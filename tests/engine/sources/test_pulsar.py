"""A Pulsar topic as a ledger: messages, markers, bounds and what keeps it from covering, of a broker and of a copy."""

from __future__ import annotations

import json
import shutil
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, WINDOW, contract_of, evidence_of, rows_of
from tests.pulsar import ANSWERS, ORDERS, STATISTICS, served

from tieout.engine.evidence import Evidence
from tieout.engine.reading import read_evidence
from tieout.engine.sources import pulsar
from tieout.engine.systems.pulsar_positions import packed
from tieout.errors import SourceError, SourceUnreachableError
from tieout.model import Ledger

_ENTRY = f"{ORDERS}/ledger"
_ID = {
    "message_id": "get_json_object(cast(value as string), '$.order_id')",
    "payload_hash": "sha2(value, 256)",
}
_HELD = ("X-Pulsar-txn-uncommitted", "true")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the recorded answers, to be changed."""
    shutil.copytree(ANSWERS, tmp_path / "answers")
    return tmp_path / "answers"


def _copied(spark: SparkSession, folder: Path, ledger: str = "log", topic: str = "orders") -> Evidence:
    source = {"kind": "pulsar", "path": folder.name, "topic": topic, "taken_at": "now"}
    return evidence_of(spark, folder.parent, ledger, source=source, columns=_ID)


def _read(
    spark: SparkSession, address: str, monkeypatch: pytest.MonkeyPatch, topic: str = "orders"
) -> Evidence:
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
    source = {"kind": "pulsar", "connection": "pulsar", "topic": topic}
    return evidence_of(spark, ANSWERS, "log", source=source, columns=_ID)


def _as_recorded(found: Evidence) -> None:
    states = {"commit": "committed", "abort": "aborted", "open": "open"}
    rows = rows_of(found, "offset", "message_id", "transaction_state")
    reported = [(id_, state) for _, id_, state in sorted(rows) if id_ is not None]
    assert reported[:12] == [(f"m-{n}", "none") for n in (0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9)]
    assert reported[12:18] == [(f"{name}-{n}", states[name]) for name in states for n in (0, 1)]
    assert reported[18:] == [("grün-€-10", "none")]


def test_a_broker_is_asked_for_every_entry_up_to_the_last_that_was_confirmed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And for none beyond: there it never answers."""
    with served() as (address, requested):
        found = _read(spark, address, monkeypatch)

    _as_recorded(found)
    entries = [path for path in requested if path.startswith(_ENTRY)]
    assert sorted(entries) == sorted(
        f"{_ENTRY}/{ledger}/entry/{number}" for ledger, count in ((5, 8), (15, 9)) for number in range(count)
    )
    assert (found.coverage.is_present, found.coverage.unparsed, found.coverage.complete_until) == (
        True,
        0,
        NOW,
    )


def test_a_copy_says_what_the_broker_said(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows and the same digest, which is of what was stored alone."""
    with served() as (address, _):
        requested = _read(spark, address, monkeypatch)
    copied = _copied(spark, ANSWERS)

    _as_recorded(copied)
    assert copied.coverage.digests == requested.coverage.digests


def test_positions_bounds_and_markers_are_those_of_the_topic(spark: SparkSession) -> None:
    """The first open transaction bounds what a reader of committed messages is handed."""
    rows = rows_of(
        _copied(spark, ANSWERS),
        "offset", "is_control", "log_start_offset", "last_stable_offset", "end_offset",
    )  # fmt: skip

    assert [row[0] for row in sorted(rows) if row[1]] == [packed(15, 2), packed(15, 5)]
    assert {row[2:] for row in rows} == {(packed(5, 0), packed(15, 6), packed(15, 9))}
    assert (packed(5, 7, 4), False) in {row[:2] for row in rows}


def test_a_partitioned_topic_is_its_partitions(spark: SparkSession) -> None:
    """Each with its number, and with bounds of its own."""
    rows = rows_of(_copied(spark, ANSWERS, topic="parts"), "partition", "message_id", "end_offset")

    assert [row[:2] for row in rows] == [(0, "m-0"), (0, "m-1"), (0, "m-2"), (1, "m-3"), (1, "m-4")]
    assert {row[0]: row[2] for row in rows} == {0: packed(20, 3), 1: packed(21, 2)}


def test_an_output_topic_has_its_positions_as_those_of_the_record_about_a_message(
    spark: SparkSession,
) -> None:
    """They are not the message's; aborted and open rows keep their state, and markers are none."""
    found = _copied(spark, ANSWERS, "delivered")
    rows = rows_of(found, "message_id", "offset", "transaction_state")

    assert ("abort-0", None, "aborted") in rows
    assert ("open-0", None, "open") in rows
    assert len(rows) == 19


def test_while_a_topic_loads_everything_is_held_back_and_asked_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read then does not say that nothing is committed."""
    first = f"{_ENTRY}/5/entry/0"
    seen: list[str] = []

    def load(handler: BaseHTTPRequestHandler, path: str) -> bool:
        seen.append(path)
        if seen.count(first) < 3 and path.startswith(_ENTRY):
            return _changed(handler, path, "X-Pulsar-txn-uncommitted", "true")
        return False

    monkeypatch.setattr(pulsar, "_PAUSE", 0.01)
    with served(load) as (address, _):
        found = _read(spark, address, monkeypatch)

    _as_recorded(found)
    assert seen.count(first) == 3
    assert {row[0] for row in rows_of(found, "last_stable_offset")} == {packed(15, 6)}


def test_a_topic_that_never_loads_is_readable_up_to_what_is_held_back(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is then visible to anybody, and it is said why."""

    def load(handler: BaseHTTPRequestHandler, path: str) -> bool:
        return path.startswith(_ENTRY) and _changed(handler, path, "X-Pulsar-txn-uncommitted", "true")

    monkeypatch.setattr(pulsar, "_RECOVERY_SECONDS", 0.1)
    with served(load) as (address, _):
        found = _read(spark, address, monkeypatch)

    assert {row[0] for row in rows_of(found, "last_stable_offset")} == {packed(5, 0)}
    assert any("holds back entries from 5:0 on" in note for note in found.coverage.notes)


def test_a_transaction_that_ended_behind_what_is_read_is_as_the_broker_says(
    spark: SparkSession, copy: Path
) -> None:
    """Its marker came after the last confirmed entry that was asked for."""
    _rewrite(copy / STATISTICS, b'"lastConfirmedEntry":"15:8"', b'"lastConfirmedEntry":"15:1"')

    rows = rows_of(_copied(spark, copy), "message_id", "transaction_state", "last_stable_offset")

    assert ("commit-0", "committed", packed(15, 2)) in rows


def test_an_entry_that_cannot_be_read_is_a_faulty_row(spark: SparkSession, copy: Path) -> None:
    """It is named, and the others are read."""
    _rewrite(copy / _ENTRY / "5/entry/7", b"\x00\x00\x00\x15", b"\x7f\x00\x00\x15")

    found = _copied(spark, copy)

    assert found.coverage.unparsed == 1
    assert len(rows_of(found, "offset")) == 21 - 5
    assert found.coverage.notes[0] == "entry 5:7: message 0 of a batch of 5 is cut off"


@pytest.mark.parametrize(
    "first",
    [
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://broker-2:8080/x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_a_copy_has_the_heads_of_redirections_and_proxies_before_the_answer(
    spark: SparkSession, copy: Path, first: bytes
) -> None:
    """As `curl --include --location` writes them: a broker redirects to the one that serves the topic."""
    for file in copy.rglob("*"):
        if file.is_file():
            file.write_bytes(first + file.read_bytes())

    _as_recorded(_copied(spark, copy))


def test_a_redirection_alone_is_no_answer(spark: SparkSession, copy: Path) -> None:
    """Whoever did not follow it has to ask again."""
    (copy / STATISTICS).write_bytes(b"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\n\r\n")

    assert "expected an answer of status 200, found '307'" in _copied(spark, copy).coverage.notes[0]


@pytest.mark.parametrize(
    ("log", "row", "partition", "expected"),
    [
        ("orders", "persistent://public/default/orders", 0, "orders"),
        ("orders", "public/default/orders-partition-0", 0, "orders"),
        ("persistent://public/default/orders", "orders", 0, "persistent://public/default/orders"),
        ("orders", "persistent://acme/default/orders", 0, "persistent://acme/default/orders"),
        ("orders", "orders-partition-1", 0, "orders-partition-1"),
        ("orders", "Orders", 0, "Orders"),
    ],
)
def test_a_topic_has_one_name_in_all_ledgers(
    spark: SparkSession, copy: Path, log: str, row: str, partition: int, expected: str
) -> None:
    """Clients write the whole name, people a short one; another topic keeps its own."""
    (copy.parent / "sent.jsonl").write_text(
        json.dumps(
            {"message_id": "m-0", "topic": row, "partition": partition, "offset": 5, "outcome": "acked"}
        )
    )
    ledgers = {
        "log": {
            "source": {"kind": "pulsar", "path": "answers", "topic": log, "taken_at": "now"},
            "columns": _ID,
        },
        "produced": {"source": {"kind": "files", "format": "jsonl", "path": "sent.jsonl"}},
    }

    found = read_evidence(spark, contract_of(copy.parent, ledgers), WINDOW, NOW)

    assert rows_of(found[Ledger.PRODUCED], "topic") == [(expected,)]
    assert set(rows_of(found[Ledger.LOG], "topic")) == {(log,)}


def test_an_entry_that_is_not_there_keeps_the_ledger_from_covering(spark: SparkSession, copy: Path) -> None:
    """No tolerance covers it: a message would seem not to be in the log."""
    (copy / _ENTRY / "5/entry/3").unlink()

    found = _copied(spark, copy)

    assert any(f"{ORDERS}: no entry 5:3" in note for note in found.coverage.notes)
    assert found.coverage.complete_until is None or not found.coverage.is_sound


def test_ledgers_that_were_deleted_meanwhile_are_below_the_start(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention may run while a topic is read."""

    def trim(handler: BaseHTTPRequestHandler, path: str) -> bool:
        if path == STATISTICS and seen.count(STATISTICS):
            body = json.loads((ANSWERS / path).read_bytes().partition(b"\r\n\r\n")[2])
            body["ledgers"] = body["ledgers"][1:]
            return _respond(handler, 200, json.dumps(body).encode())
        seen.append(path)
        return path == f"{_ENTRY}/5/entry/7" and _respond(handler, 404, b"{}")

    seen: list[str] = []
    with served(trim) as (address, _):
        found = _read(spark, address, monkeypatch)

    assert {row[0] for row in rows_of(found, "log_start_offset")} == {packed(15, 0)}
    assert found.coverage.unparsed == 0
    assert any("ledgers before 15 were deleted" in note for note in found.coverage.notes)


def test_an_empty_topic_has_its_bounds(spark: SparkSession, copy: Path) -> None:
    """So that nothing is known to be in it."""
    _rewrite(copy / STATISTICS, b'"lastConfirmedEntry":"15:8"', b'"lastConfirmedEntry":"15:-1"')
    _rewrite(copy / STATISTICS, b'"entries":8', b'"entries":0')

    rows = rows_of(_copied(spark, copy), "offset", "log_start_offset", "end_offset")

    assert rows == [(None, packed(5, 0), packed(15, 0))]


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"<html>", "expected JSON"), (b"[]", "expected a JSON object"), (b"\xff", "found no text")],
)
def test_statistics_that_are_none_keep_the_ledger_from_covering(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, body: bytes, said: str
) -> None:
    """They are named by the path that was asked."""
    with served(lambda handler, path: path == STATISTICS and _respond(handler, 200, body)) as (address, _):
        found = _read(spark, address, monkeypatch)

    assert any(f"{STATISTICS}: " in note and said in note for note in found.coverage.notes)
    assert not found.coverage.is_sound


def test_a_topic_that_is_not_there_is_absent(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a broker and of a copy."""
    with served() as (address, _):
        found = _read(spark, address, monkeypatch, topic="nowhere")

    assert not found.coverage.is_present
    assert "the cluster of pulsar: no topic public/default/nowhere" in found.coverage.notes
    assert not _copied(spark, ANSWERS, topic="nowhere").coverage.is_present


def test_a_broker_that_falls_silent_ends_the_run_for_now(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run may be tried again."""

    def stop(handler: BaseHTTPRequestHandler, path: str) -> bool:
        return path == f"{_ENTRY}/15/entry/0" and _respond(handler, 503, b"")

    with (
        served(stop) as (address, _),
        pytest.raises(SourceUnreachableError, match="does not answer now: 503"),
    ):
        _read(spark, address, monkeypatch)


def test_a_topic_is_no_ledger_of_positions(spark: SparkSession) -> None:
    """Those are in cursors."""
    with pytest.raises(SourceError, match="pulsar is evidence for one of"):
        evidence_of(
            spark,
            ANSWERS.parent,
            "committed",
            source={"kind": "pulsar", "path": ANSWERS.name, "topic": "orders"},
        )


def _respond(handler: BaseHTTPRequestHandler, status: int, body: bytes) -> bool:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
    return True


def _changed(handler: BaseHTTPRequestHandler, path: str, name: str, value: str) -> bool:
    """Say what was recorded, with another value of a header."""
    head, _, body = (ANSWERS / path).read_bytes().partition(b"\r\n\r\n")
    handler.send_response(200)
    for line in head.decode("latin-1").split("\r\n")[1:]:
        known, _, recorded = line.partition(": ")
        if known.startswith("X-Pulsar-"):
            handler.send_header(known, value if known == name else recorded)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
    return True


def _rewrite(file: Path, old: bytes, new: bytes) -> None:
    """Replace bytes in an answer's body, and its length."""
    head, _, body = file.read_bytes().partition(b"\r\n\r\n")
    assert old in body
    body = body.replace(old, new)
    kept = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
    file.write_bytes(b"\r\n".join([*kept, b"Content-Length: %d" % len(body)]) + b"\r\n\r\n" + body)
