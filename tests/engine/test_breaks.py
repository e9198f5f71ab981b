"""Breaks as a bucket packs them: files of Parquet, those that people read apart from the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.engine.histories import load_case
from tests.judging.kernel import scope_of

from tieout.engine.judging.breaks import BREAK_COLUMNS, ORDER, Breaks, Part, Shape, packed, shape_of
from tieout.engine.judging.task import HANDED
from tieout.engine.session import set_to
from tieout.engine.staging import break_lines

CASE = load_case(
    "breaks",
    {
        "name": "two ledgers",
        "because": "its contract says what breaks look like",
        "ledgers": {"produced": [{"id": "a", "at": "1m"}], "delivered": [{"id": "a", "at": "2m"}]},
        "expect": {},
    },
)
_NO_ROWS = "NULL::STRUCT(a INTEGER)[]"
_BREAKS = f"""
CREATE TABLE named_breaks AS
SELECT
    number + 1 AS number, lpad(number::VARCHAR, 9, '0') AS break_id,
    CASE WHEN number % 3 > 0 THEN ['LATE', 'LOST', 'PHANTOM_UNKNOWN'][number % 3] END AS class,
    CASE WHEN number % 10 = 1 THEN ['PHANTOM_ABORTED'] ELSE [] END::VARCHAR[] AS flags,
    CASE WHEN number % 4 > 0 THEN 'orders' END AS topic,
    CASE WHEN number % 5 > 0 THEN number % 2 END::INTEGER AS "partition",
    CASE WHEN number % 7 > 0 THEN number % 10 END::BIGINT AS "offset",
    CASE WHEN number % 6 > 0 THEN 'message' ELSE 'order' END AS kind,
    NULL::VARCHAR AS message_id, NULL::VARCHAR AS producer_id, 'broker' AS locus, 'unknown' AS cause,
    NULL::VARCHAR AS rule, NULL::VARCHAR AS incident_id, []::VARCHAR[] AS admissible,
    []::STRUCT(topic VARCHAR, "partition" INTEGER, "offset" BIGINT)[] AS positions,
    {{'produced': [], 'log': {_NO_ROWS}, 'delivered': [], 'committed': [], 'mirrored': []}} AS evidence
FROM range(?) AS numbers (number);
CREATE VIEW proven_breaks AS FROM named_breaks;
"""  # noqa: S608 - words of this file


@pytest.fixture(scope="module")
def shape(spark: SparkSession) -> Shape:
    """What the breaks of the case's contract look like."""
    return shape_of(scope_of(CASE, CASE.rows, CASE.present))


@pytest.mark.parametrize("at_once", [1, 7, 20, 59, 60])
def test_slices_of_numbers_are_all_breaks_once(
    shape: Shape, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Also where the last slice is not full."""
    monkeypatch.setattr("tieout.engine.judging.breaks._BREAKS_AT_ONCE", at_once)
    found = _packed(shape, 60, 30)
    every = _rows([file for files in found.values() for file in files])
    assert sorted(row["break_id"] for row in every) == [f"{number:09}" for number in range(60)]


def _packed(shape: Shape, count: int, most: int) -> dict[Part, list[bytes]]:
    with duckdb.connect() as connection:
        making, viewing = _BREAKS.strip().split(";\n")
        connection.execute(making, [count])
        connection.execute(viewing)
        found = defaultdict(list)
        for part, file in packed(connection, shape, most):
            found[part].append(file)
    return found


def _handed(found: dict[Part, list[bytes]]) -> list[tuple[Any, ...]]:
    return [(None, None, file, *vars(part).values()) for part, files in found.items() for file in files]


def _rows(files: Iterator[bytes] | list[bytes]) -> list[dict[str, Any]]:
    return [row for file in files for row in pq.read_table(BytesIO(file)).to_pylist()]


def _in_order(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple((row[name] is not None, row[name] or 0) for name in ORDER)


@pytest.mark.parametrize("most", [1, 2, 7, 30, 59, 60, 61])
def test_the_first_breaks_are_distinguished(shape: Shape, most: int) -> None:
    """Also where what they are ordered by is null, or the same."""
    found = _packed(shape, 60, most)
    every = sorted(_rows([file for files in found.values() for file in files]), key=_in_order)
    first = _rows([file for part, files in found.items() if part.is_first for file in files])
    assert sorted(first, key=_in_order) == every[:most]
    assert len(every) == 60


def test_breaks_without_a_message_are_distinguished(shape: Shape) -> None:
    """One in six of these is of an order."""
    found = _packed(shape, 60, 100)
    non_message_rows = [row for part, files in found.items() if part.is_non_message for row in _rows(files)]
    assert sorted(int(row["break_id"]) for row in non_message_rows) == [*range(0, 60, 6)]


def test_a_bucket_without_breaks_has_files_all_the_same(shape: Shape) -> None:
    """Whoever reads the folder finds the columns."""
    found = _packed(shape, 0, 100)
    assert len(found) == 4
    assert pq.read_table(BytesIO(found[Part(is_non_message=False, is_first=False)][0])).column_names == list(
        BREAK_COLUMNS
    )


def test_the_severity_is_the_flags_where_an_aborted_effect_is_among_them(shape: Shape) -> None:
    """An aborted effect is graver than most of what it may come with."""
    rows = _rows([file for files in _packed(shape, 12, 100).values() for file in files])
    of_class = {row["class"]: row["severity"] for row in rows if not row["flags"]}
    assert {row["severity"] for row in rows if row["flags"]} == {shape.severities["PHANTOM_ABORTED"]}
    assert all(of_class[name] == shape.severities[name] for name in of_class if name is not None)


MOST = "2m"
"""So much the driver takes of one job's results: enough for what is kept, too little for all."""


@pytest.fixture
def narrow_driver(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with a driver that takes little, and as many tasks as many breaks have."""
    conf: Any = spark.sparkContext._jsc.sc().conf()
    before = conf.get("spark.driver.maxResultSize", "1g")
    conf.set("spark.driver.maxResultSize", MOST)
    try:
        with set_to(spark, {"spark.sql.shuffle.partitions": "40", "spark.sql.adaptive.enabled": "false"}):
            yield spark
    finally:
        conf.set("spark.driver.maxResultSize", before)


def test_the_driver_gets_no_more_breaks_than_are_kept(
    narrow_driver: SparkSession, shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the first of each bucket, in their order, whatever else the buckets found."""
    monkeypatch.setattr("tieout.engine.staging.BREAKS_KEPT", 2_000)
    kept = narrow_driver.createDataFrame(_handed(_packed(shape, 40_000, 2_000)), HANDED).repartition(4)

    found = list(break_lines(Breaks(kept, shape.schema)))

    assert len(found) == 2_000
    assert [_in_order(row) for row in found] == sorted(_in_order(row) for row in found)


def test_files_are_put_into_their_folder_once(spark: SparkSession, shape: Shape, tmp_path: Any) -> None:
    """A task that runs twice leaves the same files, and no drafts."""
    files = _handed(_packed(shape, 60, 10))
    kept = spark.createDataFrame([*files, *files], HANDED)
    folder = tmp_path / "of [all] breaks"

    Breaks(kept, shape.schema).write(folder)

    assert sorted(file.name for file in folder.iterdir()) == sorted(
        file.name for file in folder.glob("part-*.parquet")
    )
    assert pq.read_table(folder).num_rows == 60
    assert Breaks(kept, shape.schema).rows(["break_id"]).select(F.col("break_id")).distinct().count() == 60
