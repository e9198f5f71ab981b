"""Statistics of Pulsar that name more entries than there are: the work is bounded by what is there."""

from __future__ import annotations

import json
import shutil
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, rows_of
from tests.pulsar import ANSWERS, ORDERS, STATISTICS, served

from tieout.engine.evidence import Evidence
from tieout.engine.pulsar_samples import newest_messages
from tieout.engine.sources import pulsar

_LEDGERS = 1_000_000
_MOST = (1 << 20) - 1
_ENTRY = f"{ORDERS}/ledger"


def _claimed(ledgers: int = _LEDGERS) -> bytes:
    """Return statistics with ledgers 5 and 15 as recorded, and very many others of a million entries each."""
    reported = json.loads((ANSWERS / STATISTICS).read_bytes().partition(b"\r\n\r\n")[2])
    reported["ledgers"] += [{"ledgerId": number, "entries": _MOST} for number in range(16, 16 + ledgers)]
    reported["ledgers"][1]["entries"] = 9
    reported["lastConfirmedEntry"] = f"{15 + ledgers}:{_MOST - 1}"
    return json.dumps(reported).encode()


def _read(spark: SparkSession, base_dir: Path, **source: str) -> Evidence:
    return evidence_of(spark, base_dir, "log", source={"kind": "pulsar", "topic": "orders", **source})


def _say(handler: BaseHTTPRequestHandler, body: bytes) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
    return True


def test_a_copy_is_looked_through_for_what_it_has(spark: SparkSession, tmp_path: Path) -> None:
    """10^12 entries that statistics claim are counted; a few are named, none is asked for."""
    folder = tmp_path / "answers"
    shutil.copytree(ANSWERS, folder)
    body = _claimed()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    (folder / STATISTICS).write_bytes(head + body)
    (folder / _ENTRY / "5/entry/6").unlink()

    found = _read(spark, tmp_path, path="answers", taken_at="now")

    missing = _LEDGERS * _MOST + 1
    named = "5:6, 16:0, 16:1, 16:2, 16:3"
    assert f"{ORDERS}: no entry {named} and {missing - 5} more" in found.coverage.notes
    assert len(rows_of(found, "offset")) == 21 - 1
    assert not found.coverage.is_sound


def test_a_copy_s_entries_have_the_broker_s_names(spark: SparkSession, tmp_path: Path) -> None:
    """Other files are none: a leading zero, a name that is no number, one that is too large."""
    folder = tmp_path / "answers"
    shutil.copytree(ANSWERS, folder)
    entries = folder / _ENTRY / "15/entry"
    for name in ("09", "٣", "0.bak", "99999999999999999999"):
        shutil.copy(entries / "0", entries / name)

    found = _read(spark, tmp_path, path="answers", taken_at="now")

    assert len(rows_of(found, "offset")) == 21
    assert found.coverage.is_sound


@pytest.mark.parametrize("entry", ["15/entry/9", "16/entry/0"])
def test_statistics_that_are_older_than_the_entries_bound_nothing(
    spark: SparkSession, tmp_path: Path, entry: str
) -> None:
    """What was sent after they were asked for is no message that the broker lost."""
    folder = tmp_path / "answers"
    shutil.copytree(ANSWERS, folder)
    (folder / _ENTRY / entry).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / _ENTRY / "15/entry/0", folder / _ENTRY / entry)

    found = _read(spark, tmp_path, path="answers", taken_at="now")

    place = entry.replace("/entry/", ":")
    assert found.coverage.notes[0].startswith(f"{ORDERS}: has entry {place}, beyond the last")
    assert not found.coverage.is_sound


@pytest.mark.parametrize("kept", [b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b""])
def test_a_question_that_nobody_answered_is_no_newer_entry(
    spark: SparkSession, tmp_path: Path, kept: bytes
) -> None:
    """Whoever asks until there is no more keeps an answer that says so, or none at all."""
    folder = tmp_path / "answers"
    shutil.copytree(ANSWERS, folder)
    (folder / _ENTRY / "15/entry/9").write_bytes(kept)

    found = _read(spark, tmp_path, path="answers", taken_at="now")

    assert found.coverage.is_sound


def test_a_copy_whose_entries_lie_elsewhere_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """As a link to an answer is: a folder that somebody sends leads nowhere else."""
    folder = tmp_path / "answers"
    shutil.copytree(ANSWERS, folder)
    shutil.move(folder / _ENTRY / "15", tmp_path / "elsewhere")
    (folder / _ENTRY / "15").symlink_to(tmp_path / "elsewhere")

    found = _read(spark, tmp_path, path="answers", taken_at="now")

    assert any("found a link out of it" in note for note in found.coverage.notes)
    assert not found.coverage.is_sound


def test_a_broker_that_has_none_of_what_it_claims_is_not_asked_for_all(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many in a row that it does not have, the rest counts as missing."""
    monkeypatch.setattr(pulsar, "_IN_A_ROW", 50)
    monkeypatch.setattr(pulsar, "_AHEAD", 20)
    body = _claimed(1000)
    with served(lambda handler, path: path == STATISTICS and _say(handler, body)) as (address, requested):
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
        found = _read(spark, ANSWERS, connection="pulsar")

    assert len(requested) < 150
    assert any("none of the 63 entries before 16:63 is there" in note for note in found.coverage.notes)
    assert len(rows_of(found, "offset")) == 21
    assert not found.coverage.is_sound


def test_entries_of_ledgers_that_are_deleted_meanwhile_are_passed_over(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are: the broker says where it begins now."""
    monkeypatch.setattr(pulsar, "_IN_A_ROW", 4)
    monkeypatch.setattr(pulsar, "_AHEAD", 2)

    def trim(handler: BaseHTTPRequestHandler, path: str) -> bool:
        reported = json.loads((ANSWERS / STATISTICS).read_bytes().partition(b"\r\n\r\n")[2])
        if path == STATISTICS and STATISTICS in requested[:-1]:
            reported["ledgers"] = reported["ledgers"][1:]
            return _say(handler, json.dumps(reported).encode())
        if path.startswith(f"{_ENTRY}/5/"):
            handler.send_response(404)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return True
        return False

    with served(trim) as (address, requested):
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
        found = _read(spark, ANSWERS, connection="pulsar")

    assert found.coverage.unparsed == 0
    assert any("ledgers before 15 were deleted" in note for note in found.coverage.notes)
    assert sum(path.startswith(f"{_ENTRY}/5/") for path in requested) < 8


def test_a_sample_is_of_the_newest_entries_whatever_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tieout init` lists no more places than it asks for."""
    body = _claimed()
    with served(lambda handler, path: path == STATISTICS and _say(handler, body)) as (address, requested):
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR", address)
        _, messages = newest_messages("pulsar:pulsar:orders", "--source", 3)

    assert messages == []
    assert sum("/entry/" in path for path in requested) == 4
