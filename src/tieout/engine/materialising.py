"""Checkpoints of a run: a frame that is used many times is computed once, and its plan is cut there.

A plan is a tree. A frame that later steps use five times is in it five times, and so on for those steps: without
checkpoints, analysing the plan of a few hundred rows takes minutes. A checkpoint is in the executors' memory and on
their disks. Losing an executor fails the job, which Airflow repeats, and never changes a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tieout.engine.session import has_one_partition

_PASSING_ON: Final = ("Project", "Filter", "CollectMetrics")
"""Steps of a plan that pass on the columns of the step before unchanged."""


def no_rows(spark: SparkSession, schema: StructType | str) -> DataFrame:
    """Return a frame of this schema without rows.

    For an empty list PySpark would start Python workers, which takes most of a second.
    """
    types = cast(StructType, StructType.fromDDL(schema)) if isinstance(schema, str) else schema
    return spark.range(0).selectExpr(
        *[f"CAST(NULL AS {one.dataType.simpleString()}) AS `{one.name}`" for one in types]
    )


def materialised(rows: DataFrame) -> DataFrame:
    """Return the same rows, computed now and checkpointed, with a plan that begins here.

    Little evidence becomes one partition, and Spark knows it: later steps then need no exchange. Of much evidence, a
    column with one value in all rows is not kept but becomes a literal in the plan, which the optimiser can use: a
    message has a hundred columns, half of them constant without a log. Much is kept as bytes: millions of long-lived
    rows would be millions of objects, which Java's garbage collector would traverse again and again.
    """
    if has_one_partition(rows.sparkSession):
        return rows.coalesce(1).localCheckpoint(eager=True)
    same_in_all = {name: value.alias(name) for name, value in _constants(rows)}
    if len(same_in_all) == len(rows.columns):
        return _kept(rows)
    kept = _kept(rows.drop(*same_in_all))
    # An alias, even with the same name, is a new column to Spark, which then forgets how rows are partitioned.
    return kept.select(*[same_in_all.get(name, F.col(name)) for name in rows.columns])


def _kept(rows: DataFrame) -> DataFrame:
    return rows.localCheckpoint(eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK)


def nulls_in(rows: DataFrame) -> frozenset[str]:
    """Return the columns that Spark's optimiser knows to be null in all rows."""
    return frozenset(name for name, value in _literals(rows) if value.value() is None)


def _constants(rows: DataFrame) -> Iterator[tuple[str, Column]]:
    """Yield each column that Spark's optimiser knows to have one value in all rows, with that value."""
    types = {field.name: field.dataType for field in rows.schema}
    for name, literal in _literals(rows):
        value = _value_of(literal)
        if value is not None:
            yield name, value.cast(types[name])


def _literals(rows: DataFrame) -> Iterator[tuple[str, Any]]:
    """Yield each column that has one value in all rows, as the optimiser's `Literal`.

    Spark Connect does not show it. Docs: Catalyst's `LogicalPlan`, `Project`, `Alias` and `Literal`.
    """
    classic: Any = getattr(rows, "_jdf", None)
    if classic is None:
        return
    top = step = classic.queryExecution().optimizedPlan()
    literals: dict[int, Any] = {}
    while step.nodeName() in _PASSING_ON:
        if step.nodeName() == "Project":
            literals |= {
                column.exprId().id(): column.child()
                for column in _each(step.projectList())
                if column.nodeName() == "Alias" and column.child().nodeName() == "Literal"
            }
        step = step.child()
    for column in _each(top.output()):
        if column.exprId().id() in literals:
            yield column.name(), literals[column.exprId().id()]


def _each(sequence: Any) -> Iterator[Any]:
    """Yield the members of a Scala sequence."""
    return (sequence.apply(place) for place in range(sequence.size()))


def _value_of(literal: Any) -> Column | None:
    """Return an optimiser's literal as a column; None if it is no null, boolean, integer, string or empty array."""
    value = literal.value()
    if value is None:
        return F.lit(None)
    kind = literal.dataType().typeName()
    if kind in ("boolean", "integer", "long"):
        return F.lit(value)
    if kind == "string":
        return F.lit(value.toString())
    return F.array() if kind == "array" and value.numElements() == 0 else None
