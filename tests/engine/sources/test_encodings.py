"""Encodings: what PowerShell redirects into a file is read by every reader of text, and said in a note."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, jsonl, rows_of

from tieout.encodings import encoding_of, opened

_LINES = '{"message_id": "a\u00e9\U0001f600"}\r\nbad\r\n\r\n{"message_id": "b", "topic": "t"}\r\n'
_IDS = [("a\u00e9\U0001f600",), ("b",)]
_MARKED = {
    "utf-16": codecs.BOM_UTF16_LE + _LINES.encode("utf-16-le"),
    "utf-16-be": codecs.BOM_UTF16_BE + _LINES.encode("utf-16-be"),
    "utf-32": codecs.BOM_UTF32_LE + _LINES.encode("utf-32-le"),
    "utf-8": codecs.BOM_UTF8 + _LINES.encode(),
}
_UNMARKED = {codec: _LINES.encode(codec) for codec in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")}


@pytest.mark.parametrize("content", [*_MARKED.values(), *_UNMARKED.values()])
@pytest.mark.parametrize("packed", [False, True])
def test_json_lines_in_every_encoding(
    spark: SparkSession, tmp_path: Path, content: bytes, packed: bool
) -> None:
    """With a mark or without, packed or not: the rows are read, and a bad line has its number in the file itself."""
    name = "a.jsonl.gz" if packed else "a.jsonl"
    (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    (tmp_path / "b.jsonl").write_text('{"message_id": "c"}\n')

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*.jsonl*"))

    assert rows_of(found, "message_id") == [*_IDS, ("c",)]
    assert found.coverage.unparsed == 1
    noted, fault = found.coverage.notes[:2]
    assert noted.startswith(f"{name}: ")
    assert noted.endswith(("byte order mark shows", "first bytes shows", "byte order mark was left out"))
    assert fault == f"{name}:2: the line is not one JSON object"


def test_csv_and_a_watermark_in_utf_16(spark: SparkSession, tmp_path: Path) -> None:
    """A header is found, and a file that is cut within a character has one line that is no text."""
    rows = "message_id,attempted_at\n1,2026-11-20T10:00:00Z\n2,2026-11-20T10:00:01Z"
    (tmp_path / "a.csv").write_bytes(rows.encode("utf-16")[:-1])
    (tmp_path / "until.txt").write_bytes("2026-11-20T12:00:00Z\r\n".encode("utf-16"))

    found = evidence_of(
        spark,
        tmp_path,
        "produced",
        source={"kind": "files", "format": "csv", "path": "a.csv"},
        coverage={"watermark_file": "until.txt"},
    )

    assert rows_of(found, "message_id") == [("1",)]
    assert found.coverage.unparsed == 1
    assert "a.csv:3: the line is not UTF-8" in found.coverage.notes
    assert str(found.coverage.complete_until) == "2026-11-20 12:00:00+00:00"


def test_what_tools_print_in_utf_16(spark: SparkSession, tmp_path: Path) -> None:
    """The offsets of a group, and the events of a client, which is called after its own file."""
    table = "GROUP  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG\nloader orders 0 17 20 3\n"
    (tmp_path / "group.txt").write_bytes(table.encode("utf-16"))
    event = (
        '{"timestamp":1795168800000,"name":"producer_send_success","key":null,"value":"0","topic":"orders"'
    )
    (tmp_path / "web-1.log").write_bytes(f'{event},"partition":0,"offset":0}}\n'.encode("utf-16"))

    held = evidence_of(
        spark,
        tmp_path,
        "committed",
        source={"kind": "kafka_consumer_groups", "path": "group.txt", "taken_at": "now"},
    )
    sent = evidence_of(
        spark, tmp_path, "produced", source={"kind": "verifiable_producer", "path": "web-1.log"}
    )

    assert rows_of(held, "topic", "partition", "committed_offset") == [("orders", 0, 17)]
    assert rows_of(sent, "producer_id", "offset") == [("web-1", 0)]
    for found, name in ((held, "group.txt"), (sent, "web-1.log")):
        assert f"{name}: read as UTF-16, which its byte order mark shows" in found.coverage.notes
        assert found.coverage.unparsed == 0


def test_only_what_is_surely_another_encoding_is_read_as_one(tmp_path: Path) -> None:
    """Two characters of ASCII, as wide as they are, show an encoding without a mark; anything else is UTF-8."""
    assert encoding_of(b"") == encoding_of(b"a") == encoding_of(b"a\0") == encoding_of(b"\0\0\0\0")
    assert encoding_of(b"ab\0\0").is_utf8
    assert encoding_of(b"\x01\0\x02\0").is_utf8
    assert encoding_of('"\u4e2d"'.encode("utf-16-le")).is_utf8
    (tmp_path / "a.txt").write_bytes(codecs.BOM_UTF8 + b"a\r\nb\xff")
    with opened(tmp_path / "a.txt") as file:
        assert file.read() == "a\nb\ufffd"
