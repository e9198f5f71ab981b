"""What contracts say of coverage, held against the rows by engine and oracle: both find the same."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.engine.histories import READ_AT, Case, load_cases

from tieout.contracts import CoverageSpec
from tieout.engine.ledger import SCHEMAS
from tieout.engine.session import suited_to
from tieout.engine.sources.covering import bounds_of
from tieout.model import Ledger

SAID = [
    (case, ledger)
    for case in load_cases()
    for ledger, spec in case.contract.ledgers.items()
    if isinstance(spec.coverage, CoverageSpec)
]


def test_golden_histories_say_their_coverage() -> None:
    """There is something to compare."""
    assert len(SAID) > 10


@pytest.mark.parametrize(("case", "ledger"), SAID, ids=str)
def test_engine_and_oracle_read_coverage_alike(spark: SparkSession, case: Case, ledger: Ledger) -> None:
    """From when until when, whether it is sound and names all producers: of every golden history that says it."""
    schema = SCHEMAS[ledger]
    rows = spark.createDataFrame(
        [tuple(row.get(name) for name in schema.names) for row in case.rows[ledger]], schema
    )

    with suited_to(spark, is_small=True):
        found = bounds_of(rows, ledger, case.contract, case.window, READ_AT, None)

    expected = case.coverage[ledger]
    assert (not found.has_sequence_gaps and not found.silent) is expected.is_sound
    assert found.covers_from == expected.covers_from
    assert found.names_all_producers is expected.names_all_producers
    assert found.complete_until == expected.complete_until
