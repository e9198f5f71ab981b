"""Facts about a file, from its name or the file system, as columns of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.sources.source import FILE

_PATH: Final = "_tieout_path"
OWN_PREFIX: Final = "value_"
"""Prefix of a file's own column that has the same name as a fact's column."""


def with_facts(rows: DataFrame, facts: Mapping[str, tuple[object, ...]], columns: str) -> DataFrame:
    """Return the rows with columns of facts about their files.

    A column of the file with the same name as a fact is renamed to `value_…`: a sink's rows are the values of records.

    Args:
        rows: The rows of a reader of local files.
        facts: By path the values of the columns.
        columns: Their names and types, as Spark's DDL.
    """
    names = {part.split()[0].lower() for part in columns.split(",")}
    data_columns = [
        F.col(f"`{name.replace('`', '``')}`").alias(
            _renamed(name, rows.columns) if name.lower() in names else name
        )
        for name in rows.columns
    ]
    facts_by_path = rows.sparkSession.createDataFrame(
        [(path, *values) for path, values in facts.items()], f"{_PATH} STRING, {columns}"
    )
    placed = rows.select(*data_columns).withColumn(_PATH, _path_of(FILE))
    return placed.join(F.broadcast(facts_by_path), _PATH, how="left").drop(_PATH)


def _renamed(name: str, others: Sequence[str]) -> str:
    """Return the name with the prefix, repeated until it is unique."""
    used = {other.lower() for other in others}
    while name.lower() in used:
        name = f"{OWN_PREFIX}{name}"
    return name


def _path_of(uri: str) -> Column:
    """Return the path of a `file:` URI; a plus sign is kept."""
    decoded = F.url_decode(F.replace(uri, F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(decoded, "^file:/+", "/")
