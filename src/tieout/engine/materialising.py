"""Cut points of a run: what is used many times is computed once, and its plan ends there.

A plan is a tree. A frame that later steps use five times stands in it five times over, and those steps in theirs:
without cuts, analysing the plan of a few hundred rows takes minutes. What is cut lies in the executors' memory and
on their disks; losing an executor fails the job, which Airflow repeats, and never changes a result.
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
"""Steps of a plan that hand on the columns of the step before as they are."""


def no_rows(spark: SparkSession, schema: StructType | str) -> DataFrame:
    """Return a frame of this schema without rows.

    PySpark would start Python beside the executors to read an empty list, which takes the better part of a second.
    """
    types = cast(StructType, StructType.fromDDL(schema)) if isinstance(schema, str) else schema
    return spark.range(0).select(*[F.lit(None).cast(one.dataType).alias(one.name) for one in types])


def materialised(rows: DataFrame) -> DataFrame:
    """Return the same rows, computed now and kept, with a plan that begins here.

    Of little evidence they become one partition, and Spark knows it: later steps then need no exchange. Of much, a
    column that is the same in every row is not kept but stands in the plan, where what follows from it costs nothing:
    a message has a hundred columns, and without a log half of them say so. Much is kept as bytes: millions of rows
    that live long are millions of objects, which Java's collector would walk through again and again.
    """
    if has_one_partition(rows.sparkSession):
        return rows.coalesce(1).localCheckpoint(eager=True)
    same_in_all = {name: value.alias(name) for name, value in _constants(rows)}
    if len(same_in_all) == len(rows.columns):
        return _kept(rows)
    kept = _kept(rows.drop(*same_in_all))
    # A column that is named anew, be it the same name, is another one to Spark, which forgets how rows are partitioned.
    return kept.select(*[same_in_all.get(name, F.col(name)) for name in rows.columns])


def _kept(rows: DataFrame) -> DataFrame:
    return rows.localCheckpoint(eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK)


def nulls_in(rows: DataFrame) -> frozenset[str]:
    """Return the columns of which Spark's optimiser knows that they are null in all rows."""
    return frozenset(name for name, value in _literals(rows) if value.value() is None)


def _constants(rows: DataFrame) -> Iterator[tuple[str, Column]]:
    """Yield each column of which Spark's optimiser knows that all rows have one value, with that value."""
    types = {field.name: field.dataType for field in rows.schema}
    for name, literal in _literals(rows):
        value = _value_of(literal)
        if value is not None:
            yield name, value.cast(types[name])


def _literals(rows: DataFrame) -> Iterator[tuple[str, Any]]:
    """Yield each column that has one value in all rows, as the optimiser's `Literal`.

    Through Spark Connect nobody is told. Docs: Catalyst's `LogicalPlan`, `Project`, `Alias` and `Literal`.
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


def _each(found: Any) -> Iterator[Any]:
    """Yield the members of a sequence of Scala's."""
    return (found.apply(place) for place in range(found.size()))


def _value_of(literal: Any) -> Column | None:
    """Return a literal of the optimiser as a column; None where it is no null, truth, number, word or empty array."""
    value = literal.value()
    if value is None:
        return F.lit(None)
    kind = literal.dataType().typeName()
    if kind in ("boolean", "integer", "long"):
        return F.lit(value)
    if kind == "string":
        return F.lit(value.toString())
    return F.array() if kind == "array" and value.numElements() == 0 else None
