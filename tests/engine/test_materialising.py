"""What is kept at a cut: the same rows, without the columns that Spark knows to be the same in all of them."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tieout.engine.materialising import materialised, no_rows
from tieout.engine.session import suited_to

PLACES = "array<struct<topic:string,partition:int>>"
CONSTANTS = {
    "no_text": "cast(null as string)",
    "no_struct": "cast(null as struct<at:timestamp,number:bigint>)",
    "no_array": f"cast(null as {PLACES})",
    "empty": f"cast(array() as {PLACES})",
    "number": "7",
    "long": "1099511627776L",
    "truth": "false",
    "word": "'it''s \\\\ \"so\"'",
}
OTHERS = {
    "id": "id",
    "text": "if(id % 2 = 0, 'even', null)",
    "moment": "timestamp '2026-11-20 10:00:00'",
    "some": "array('a')",
}


def _cut(rows: DataFrame) -> Any:
    """Return the step of Spark's plan that reads what was kept, below the plan's constants."""
    step = rows._jdf.queryExecution().analyzed()
    while step.children().size():
        step = step.children().apply(0)
    return step


def _kept_columns(rows: DataFrame) -> set[str]:
    """Return the columns that lie in what was kept."""
    output = _cut(rows).output()
    return {output.apply(place).name() for place in range(output.size())}


def _is_kept_as_objects(rows: DataFrame) -> bool:
    """Return whether what was kept lies in memory as one object a row."""
    return bool(_cut(rows).rdd().getStorageLevel().deserialized())


def _rows(spark: SparkSession) -> DataFrame:
    constants, others = iter(CONSTANTS), iter(OTHERS)
    # Both kinds in turn, so that a column in the wrong place shows.
    in_turn = [*chain.from_iterable(zip(others, constants, strict=False)), *constants]
    columns = CONSTANTS | OTHERS
    return spark.range(0, 20, 1, 3).select(*[F.expr(columns[name]).alias(name) for name in in_turn])


def test_constants_are_not_kept_and_come_out_the_same(spark: SparkSession) -> None:
    """Nulls, empty arrays, numbers, truths and words leave the kept rows, and rows and types are what they were."""
    rows = _rows(spark)

    cut = materialised(rows)

    assert _kept_columns(cut) == set(OTHERS)
    assert [(f.name, f.dataType) for f in cut.schema] == [(f.name, f.dataType) for f in rows.schema]
    assert sorted(cut.collect()) == sorted(rows.collect())
    assert cut.count() == 20


@pytest.mark.parametrize("step", ["filter", "observe", "rename"])
def test_constants_are_found_below_steps_that_hand_them_on(spark: SparkSession, step: str) -> None:
    """A filter, counting on the way, or another name does not hide that a column is the same in all rows."""
    rows = _rows(spark)
    steps = {
        "filter": rows.filter("id < 9"),
        "observe": rows.observe(Observation(), F.count("*").alias("rows")),
        "rename": rows.withColumnsRenamed({name: f"{name}_of" for name in rows.columns}),
    }

    cut = materialised(steps[step])

    ending = "_of" if step == "rename" else ""
    assert _kept_columns(cut) == {f"{name}{ending}" for name in OTHERS}
    assert sorted(cut.collect()) == sorted(steps[step].collect())


def test_a_constant_of_one_side_is_none_of_a_union_or_an_outer_join(spark: SparkSession) -> None:
    """What one branch has in all rows, another may not have: such columns are kept."""
    one = spark.range(3).select("id", F.lit("one").alias("side"))
    other = spark.range(3, 6).select("id", F.lit("other").alias("side"))
    joined = spark.range(6).join(
        one.withColumnRenamed("id", "one_id"), F.col("id") == F.col("one_id"), how="left"
    )

    stacked, outer = materialised(one.unionByName(other)), materialised(joined)

    assert {row["side"] for row in stacked.collect()} == {"one", "other"}
    assert {row["id"]: row["side"] for row in outer.collect()} == dict.fromkeys(
        range(3), "one"
    ) | dict.fromkeys(range(3, 6))


def test_rows_that_are_all_alike_are_counted(spark: SparkSession) -> None:
    """Rows of nothing but constants are as many as before."""
    cut = materialised(spark.range(5).select(F.lit(1).alias("one"), F.lit(None).cast("string").alias("none")))

    assert [tuple(row) for row in cut.collect()] == [(1, None)] * 5


def test_little_evidence_is_kept_as_it_is(spark: SparkSession) -> None:
    """Where planning costs more than keeping, nothing is asked of the optimiser."""
    with suited_to(spark, is_small=True):
        cut = materialised(_rows(spark))

        assert _kept_columns(cut) == {*CONSTANTS, *OTHERS}


def test_much_is_kept_as_bytes_that_kryo_wrote(spark: SparkSession) -> None:
    """Millions of objects that live long are walked through by each collection; few are read faster as they are."""
    assert str(spark.sparkContext.getConf().get("spark.serializer")).endswith(".KryoSerializer")
    with suited_to(spark, is_small=False):
        assert not _is_kept_as_objects(materialised(_rows(spark)))
    with suited_to(spark, is_small=True):
        assert _is_kept_as_objects(materialised(_rows(spark)))


def test_a_frame_without_rows_has_its_schema_and_starts_no_python(spark: SparkSession) -> None:
    """An empty list of Python's would be read by Python, started for nothing else."""
    schema = "`at` timestamp,`number` bigint,`flags` array<string>,`places` " + PLACES

    empty = no_rows(spark, schema)

    assert empty.schema == spark.createDataFrame([], schema).schema
    assert _cut(empty).nodeName() == "Range"
    assert empty.collect() == []
