"""CSV whose quotes within quotes have a backslash before them, as Spark writes them unless it is told otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, rows_of

_HASH = {"message_id": "id", "payload_hash": "body"}


def _csv(**options: Any) -> dict[str, Any]:
    return {"kind": "files", "format": "csv", "path": "a.csv", "options": options}


@pytest.mark.parametrize(
    "written", [r'"say \"hi\""', r'"{\"a\":1}"', r'"\"x\" y"', r'"x \"y\",z"', r'"ends with \""', r'"\""']
)
def test_a_quote_behind_a_backslash_is_no_value_of_another_kind(
    spark: SparkSession, tmp_path: Path, written: str
) -> None:
    """Without the option the row is unreadable, and the note names the option; with it the value is what was meant."""
    (tmp_path / "a.csv").write_text(f"id,body\n1,{written}\n2,y\n")

    found = evidence_of(spark, tmp_path, "produced", source=_csv(), columns=_HASH)
    with_escape = evidence_of(spark, tmp_path, "produced", source=_csv(escape="\\"), columns=_HASH)

    assert rows_of(found, "message_id") == [("2",)]
    assert "options: {escape: '\\'} reads it" in found.coverage.notes[0]
    assert rows_of(with_escape, "message_id", "payload_hash") == [
        ("1", written[1:-1].replace('\\"', '"')),
        ("2", "y"),
    ]


def test_backslashes_that_escape_no_quote_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """A path that ends with one, and a doubled quote behind one, are values as any other."""
    values = {
        r'"C:\x\"': "C:\\x\\",
        r'"a\""b"': r"a\"b",
        r"5\" pipe": r"5\" pipe",
        r'"a, ""b\"': r'a, "b' + "\\",
    }
    (tmp_path / "a.csv").write_text("id,body\n" + "".join(f"{one},{one}\n" for one in values))

    found = evidence_of(spark, tmp_path, "produced", source=_csv(), columns={"payload_hash": "body"})

    assert found.coverage.unparsed == 0, found.coverage.notes
    assert sorted(rows_of(found, "payload_hash")) == sorted((one,) for one in values.values())
