"""Evidence is counted under Spark Connect as in a classic session, which tests/engine/sources look at closely."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, jsonl, rows_of

from tieout.engine.sources.expressions import require_plain
from tieout.errors import SourceError


def test_what_cannot_be_read_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A row that is no JSON, and one whose offset is no number, must not be silence."""
    good = '{"message_id": "a", "offset": 1, "processed_at": "2026-11-20T10:00:00Z"}'
    lines = [good, good.replace("1,", '"x",'), "no JSON"]
    (tmp_path / "out.jsonl").write_text("".join(f"{line}\n" for line in lines))

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("out.jsonl"))

    assert (found.coverage.rows, found.coverage.unparsed, found.rows.count()) == (1, 2, 1)


def test_expressions_are_refused_by_their_text(spark: SparkSession, tmp_path: Path) -> None:
    """There is no plan to look at here, and what names itself is refused all the same; anything else is read."""
    (tmp_path / "out.jsonl").write_text('{"message_id": "a", "body": "x"}')

    found = evidence_of(
        spark, tmp_path, "delivered", source=jsonl("out.jsonl"), columns={"payload_hash": "upper(body)"}
    )

    assert rows_of(found, "payload_hash") == [("X",)]
    with pytest.raises(SourceError, match="uuid: it gives another value each time"):
        require_plain(spark.range(1), {"ledgers.delivered.where": "uuid() = 'x'"})
