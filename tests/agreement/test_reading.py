"""Evidence is counted under Spark Connect as in a classic session, which tests/engine/sources look at closely."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, jsonl


def test_what_cannot_be_read_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A row that is no JSON, and one whose offset is no number, must not be silence."""
    good = '{"message_id": "a", "offset": 1, "processed_at": "2026-11-20T10:00:00Z"}'
    lines = [good, good.replace("1,", '"x",'), "no JSON"]
    (tmp_path / "out.jsonl").write_text("".join(f"{line}\n" for line in lines))

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("out.jsonl"))

    assert (found.coverage.rows, found.coverage.unparsed, found.rows.count()) == (1, 2, 1)
