"""Tables of positions that were printed at several moments: `taken_at` is one, and a group has one position then."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, rows_of

_HEADER = "GROUP   TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET\n"


@pytest.mark.parametrize("is_one_file", [True, False], ids=["in one file", "in two files"])
@pytest.mark.parametrize("later", ["6", "2", "-"], ids=["equal", "another", "none"])
def test_a_group_has_one_position_at_one_moment(
    spark: SparkSession, tmp_path: Path, is_one_file: bool, later: str
) -> None:
    """Which of two holds nothing says: taking the higher one would show as lost what a reset lets be read again."""
    tables = [
        f"{_HEADER}loader  orders  {partition}  {offset}  6\n" for partition, offset in ((0, "6"), (0, later))
    ]
    tables[0] += "loader  orders  1  4  6\n"
    texts = ["\n".join(tables)] if is_one_file else tables
    for number, text in enumerate(texts):
        (tmp_path / f"group-{number}.txt").write_text(text)

    found = evidence_of(
        spark,
        tmp_path,
        "committed",
        source={"kind": "kafka_consumer_groups", "path": "group-*.txt", "group": "loader"},
    )

    own = {("orders", 0, 6), ("orders", 1, 4)} if later == "6" else {("orders", 1, 4)}
    assert set(rows_of(found, "topic", "partition", "committed_offset")) == own
    assert found.coverage.is_within_tolerance is (later == "6")
