"""The engine on evidence of which parts were taken away: it reads coverage and judges as the oracle does."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.engine.histories import READ_AT
from tests.engine.judging import engine_statements
from tests.oracle import OracleCoverage, judge_history
from tests.oracle.deleting import FORMS, WATERMARK, Deletion, deletions
from tests.oracle.expecting import expected_by
from tests.oracle.random_histories import Setting

from tieout.engine.ledger import SCHEMAS
from tieout.engine.session import suited_to
from tieout.engine.sources.covering import Bounds, bounds_of
from tieout.model import Ledger

LEDGERS = (Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED)
SETTING = Setting(False, {"guarantee": "exactly_once"}, LEDGERS, {}, (), {})
EACH = 2


def _sample() -> list[Deletion]:
    """Return deletions of rows that a contract's numbers, lists or bounds, or other ledgers, expect, and of others.

    As many of each form of coverage; where nothing says that a ledger is complete, others are not of interest.
    """
    found: list[Deletion] = []
    for number in range(60):
        rng = Random(f"sample/{number}")  # noqa: S311 - repeatable, not secret
        found += deletions(SETTING, rng, f"sample/{number}")
    kinds: dict[tuple[str, bool], list[Deletion]] = defaultdict(list)
    for one in found:
        is_expected = expected_by(one) is not None
        if is_expected or one.form != "nothing":
            kinds[one.form, is_expected].append(one)
    by_ledger = [sorted(alike, key=lambda one: one.ledger) for alike in kinds.values()]
    return [one for alike in by_ledger for one in alike[:: len(alike) // EACH][:EACH]]


@pytest.mark.timeout(1200)
def test_the_engine_misses_what_the_oracle_misses(spark: SparkSession, tmp_path: Path) -> None:
    """Coverage and verdict of both agree; what anybody expects is missed, and who is to be believed is told."""
    sample = _sample()
    assert {one.form for one in sample if expected_by(one) is not None} == set(FORMS)
    assert {one.form for one in sample if expected_by(one) is None} == set(FORMS) - {"nothing"}
    assert {one.ledger for one in sample} == set(LEDGERS)
    (tmp_path / "extracted_at.txt").write_text(WATERMARK.isoformat())
    bounds = [_bounds(spark, one, tmp_path) for one in sample]
    histories = [
        replace(one.after, coverage={ledger: _covered(found) for ledger, found in coverage.items()})
        for one, coverage in zip(sample, bounds, strict=True)
    ]

    statements = engine_statements(spark, histories)

    for one, coverage, history, statement in zip(sample, bounds, histories, statements, strict=True):
        expected = judge_history(
            history.contract, history.window, history.rows, one.after.coverage, history.present
        )
        assert history.coverage == one.after.coverage, str(one)
        assert statement["verdict"] == expected["verdict"], str(one)
        if statement["verdict"] == "KEPT":
            assert expected_by(one) is None, str(one)
            assert all(found.stated_by for found in coverage.values()), str(one)


def _bounds(spark: SparkSession, deletion: Deletion, folder: Path) -> dict[Ledger, Bounds]:
    """Return how far the engine finds each ledger to be complete."""
    after = deletion.after
    contract = after.contract.located_in(folder)
    found = {}
    for ledger, rows in after.rows.items():
        schema = SCHEMAS[ledger]
        frame = spark.createDataFrame([tuple(row.get(name) for name in schema.names) for row in rows], schema)
        with suited_to(spark, is_small=True):
            found[ledger] = bounds_of(frame, ledger, contract, after.window, READ_AT, None)
    return found


def _covered(found: Bounds) -> OracleCoverage:
    return OracleCoverage(
        covers_from=found.covers_from,
        complete_until=found.complete_until,
        is_sound=not found.has_sequence_gaps and not found.silent,
        names_all_producers=found.names_all_producers,
    )
