"""Runs the engine, Spark and all, on golden and random histories and returns what it says, in the oracle's shape.

One run of the engine costs seconds however small its evidence, so histories that share contract and coverage are judged
in one run: see `marking.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engine.histories import History
from tests.engine.marking import (
    MARK,
    batches,
    coverage_for,
    is_unplaced,
    marked_window,
    number_of,
    rows_together,
    unmarked,
)
from tests.judging.kernel import statements_by_history

from tieout.engine.clean import Clean
from tieout.engine.evidence import Evidence
from tieout.engine.incarnations import told_apart
from tieout.engine.judging.breaks import BREAK_COLUMNS, proven
from tieout.engine.judging.task import judged_by
from tieout.engine.ledger import SCHEMAS
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.model import Ledger

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def engine_statements(
    spark: SparkSession, histories: Sequence[History], *, is_small: bool = True
) -> list[dict[str, Any]]:
    """Return the engine's statement of each history, with its `breaks` as rows, in their order."""
    found: dict[int, dict[str, Any]] = {}
    for batch in batches(histories):
        found.update(zip(batch.places, _judged_together(spark, batch.histories, is_small), strict=True))
    return [found[place] for place in range(len(histories))]


def _judged_together(
    spark: SparkSession, histories: Sequence[History], is_small: bool
) -> list[dict[str, Any]]:
    with suited_to(spark, is_small=is_small, rows=1):
        scope = told_apart(scope_together(spark, histories))
        return statements_of(scope, histories)


def scope_together(spark: SparkSession, histories: Sequence[History]) -> Scope:
    """Return one scope of histories that share all but their rows; `numbered` says whose a row is."""
    first, (owned, present) = histories[0], rows_together(histories)
    return replace(scope_of(spark, first, owned, present), window=marked_window(first.window, len(histories)))


def statements_of(scope: Scope, histories: Sequence[History]) -> list[dict[str, Any]]:
    """Return the engine's statement of each history of a scope that holds them together, with its `breaks` as rows."""
    judged = judged_by(scope)
    tables, breaks = judged.tables, judged.breaks
    lines = proven(scope, breaks, tables).rows().select(F.to_json(F.struct("*")).alias("line")).collect()
    nothing = dict.fromkeys(BREAK_COLUMNS)
    rows = [nothing | json.loads(row["line"]) for row in lines]
    clean = [None if scope.clean is None else _OfOne(scope.clean, number) for number in range(len(histories))]
    return statements_by_history(scope, histories, tables, rows, clean)


class _OfOne:
    """The clean messages of one history among those of several."""

    def __init__(self, every: Clean, number: int) -> None:
        self._every, self._number = every, number
        self.sums = every.sums
        self.rows = {ledger: self._own(rows) for ledger, rows in every.rows.items()}
        self.computed = every.computed

    def topics(self) -> frozenset[str | None]:
        """Return its topics as its rows name them."""
        named = [topic for topic in self._every.topics() if number_of(topic) == self._number]
        return frozenset(unmarked({"topic": topic})["topic"] for topic in named)

    def _own(self, rows: DataFrame) -> DataFrame:
        is_own = F.regexp_extract("topic", MARK.pattern, 1) == str(self._number)
        return rows.filter(is_own).withColumn("topic", F.regexp_replace("topic", MARK.pattern, ""))


def scope_of(
    spark: SparkSession,
    history: History,
    rows: Mapping[Ledger, list[dict[str, Any]]],
    present: Mapping[Ledger, frozenset[str]],
) -> Scope:
    """Return the scope of these rows under the history's contract and coverage."""
    evidence = {}
    for ledger in history.contract.ledgers:
        found = rows.get(ledger, [])
        values = [tuple(row.get(name) for name in SCHEMAS[ledger].names) for row in found]
        evidence[ledger] = Evidence(
            ledger=ledger,
            rows=spark.createDataFrame(values, SCHEMAS[ledger]),
            present=present.get(ledger, frozenset()),
            coverage=coverage_for(ledger, history.coverage.get(ledger), found),
            may_lack_id=any(row.get("message_id") is None for row in found),
            may_lack_position=any(is_unplaced(row) for row in found),
            may_lack_identity=any(row.get("message_id") is None and is_unplaced(row) for row in found),
        )
    return Scope(history.contract, history.window, evidence)
