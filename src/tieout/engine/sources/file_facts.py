"""What is known of a file, by its name or by what the file system says, as columns of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.sources.source import FILE

_PATH: Final = "_tieout_path"
OWN_PREFIX: Final = "value_"
"""What stands before the name of a file's own column that is called like one that is told of the file."""


def with_facts(rows: DataFrame, facts: Mapping[str, tuple[object, ...]], columns: str) -> DataFrame:
    """Return the rows with columns of what is known of their files.

    A column of the file that has the name of one of them is called `value_…` from here on, as a sink's rows are the
    values of records.

    Args:
        rows: The rows of a reader of local files.
        facts: By path the values of the columns.
        columns: Their names and types, as Spark's DDL.
    """
    names = {part.split()[0].lower() for part in columns.split(",")}
    own = [
        F.col(f"`{name.replace('`', '``')}`").alias(
            _renamed(name, rows.columns) if name.lower() in names else name
        )
        for name in rows.columns
    ]
    known = rows.sparkSession.createDataFrame(
        [(path, *values) for path, values in facts.items()], f"{_PATH} STRING, {columns}"
    )
    placed = rows.select(*own).withColumn(_PATH, _path_of(FILE))
    return placed.join(F.broadcast(known), _PATH, how="left").drop(_PATH)


def _renamed(name: str, others: Sequence[str]) -> str:
    """Return the name with the prefix, as often as it takes to be no other's."""
    taken = {other.lower() for other in others}
    while name.lower() in taken:
        name = f"{OWN_PREFIX}{name}"
    return name


def _path_of(uri: str) -> Column:
    """Return the path that a `file:` URI names; a plus sign in it is one."""
    decoded = F.url_decode(F.replace(uri, F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(decoded, "^file:/+", "/")
