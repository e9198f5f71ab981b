"""Evidence that one task judges: what Spark takes and DuckDB refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.engine.histories import Case, load_cases
from tests.engine.judging import scope_of

from tieout.engine.judging.task import judged_by
from tieout.engine.scope import Scope
from tieout.engine.statement.numbers import numbers_of, suspected
from tieout.errors import JudgingError
from tieout.model import Ledger


def _delivered_case() -> Case:
    return next(
        case
        for case in load_cases()
        if case.expect.get("classes") == {"DELIVERED": 2}
        and set(case.rows) == {Ledger.PRODUCED, Ledger.DELIVERED}
        and case.contract.identity == "message_id"
    )


@pytest.fixture
def scope(spark: SparkSession) -> Scope:
    """The scope of two messages, both delivered, whose ids are no UTF-8."""
    case = _delivered_case()
    given = scope_of(spark, case, case.rows, case.present)
    torn = F.concat(F.unhex(F.lit("FF")).cast("string"), "message_id")
    return replace(
        given,
        evidence={
            ledger: replace(found, rows=found.rows.withColumn("message_id", torn))
            for ledger, found in given.evidence.items()
        },
    )


def test_ids_that_are_no_utf8_are_distinguished(scope: Scope) -> None:
    """Two ids that are no text stay two messages, and end no run."""
    judged = judged_by(scope)
    numbers = numbers_of(suspected(scope, judged.tables), judged.tables)
    assert numbers.classes == {"DELIVERED": 2}
    assert judged.breaks.rows().count() == 0


def test_too_little_memory_is_an_error_that_says_what_to_raise(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of a stack of Python's and Java's."""
    case = _delivered_case()
    monkeypatch.setattr("tieout.settings.bucket_memory", lambda **_: 1 << 20)

    with pytest.raises(JudgingError, match="raise TIEOUT_BUCKET_MB"):
        judged_by(scope_of(spark, case, case.rows, case.present))
