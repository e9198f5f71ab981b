"""What a null says of a message's content where a file lacks the column, and what the statement says of the unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.histories import load_case
from tests.engine.judging import engine_statements, scope_of
from tests.judging import kernel

from tieout.engine.prematch.fingerprint import LedgerRows, compared_columns, hashed
from tieout.engine.statement.coverage import limits_of
from tieout.model import Ledger

LACKS = "lacks: payload_hash"


def _case(produced: list[dict[str, Any]], delivered: list[dict[str, Any]], **more: Any) -> Any:
    ledgers = {"produced": produced, "delivered": delivered}
    written = {"name": "n", "because": "b", "ledgers": ledgers, "expect": {}, **more}
    return load_case("f", written)


_LACKING: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({}, {"hash": None, "content": LACKS}, "UNVERIFIABLE", "UNKNOWN"),
    ({"hash": None, "content": LACKS}, {}, "UNVERIFIABLE", "UNKNOWN"),
    ({"hash": None}, {"hash": None, "content": LACKS}, "UNVERIFIABLE", "UNKNOWN"),
    ({"hash": None, "content": "unknown"}, {"hash": None, "content": LACKS}, "DELIVERED", "KEPT"),
    ({"hash": None, "content": LACKS}, {"hash": None, "content": LACKS}, "DELIVERED", "KEPT"),
    ({"key": "k"}, {"key": None, "hash": None, "content": LACKS}, "CORRUPTED_KEY", "BROKEN"),
]
"""What is shown of a send and of its effect: the output's file lacks it, the send's, beside nothing, beside what is
unknown, both lack it, and another column differs."""


def test_what_a_file_lacks_is_unverifiable_against_what_the_other_side_knows(spark: SparkSession) -> None:
    """Also where that is that there is nothing; other columns of the row are judged all the same."""
    cases = [
        _case([{"id": "a", "at": "1m", "pos": "0/0", **produced}], [{"id": "a", "at": "2m", **delivered}])
        for produced, delivered, _, _ in _LACKING
    ]

    found = [(one["classes"], one["verdict"]) for one in engine_statements(spark, cases)]

    assert found == [({name: 1}, verdict) for _, _, name, verdict in _LACKING]


@pytest.mark.parametrize(
    ("sent", "came", "verdict"),
    [("empty", None, "UNKNOWN"), (None, "empty", "UNKNOWN"), ("other", None, "BROKEN"), (None, None, "KEPT")],
)
def test_an_empty_field_of_csv_may_be_an_empty_text(sent: str | None, came: str | None, verdict: str) -> None:
    """Against the hash of an empty text nobody can tell; any other hash is not that of an empty field."""
    case = _case(
        [{"id": "a", "at": "1m", "pos": "0/0", "hash": sent}], [{"id": "a", "at": "2m", "hash": came}]
    )
    scope = kernel.scope_of(case, case.rows, case.present)
    csv = Ledger.DELIVERED if came is None else Ledger.PRODUCED
    evidence = {**scope.evidence, csv: replace(scope.evidence[csv], empty={"payload_hash": "empty"})}

    found = kernel.scope_statement(replace(scope, evidence=evidence), case.rows)

    assert found["verdict"] == verdict


def test_the_first_level_leaves_what_a_file_lacks_to_the_rules(spark: SparkSession) -> None:
    """Both sides show null, but only one of them says that there is nothing."""
    rows = [{"id": "a", "at": "2m", "hash": None, "content": LACKS}, {"id": "b", "at": "2m", "hash": None}]
    case = _case([], [dict(row, pos=f"0/{n}") for n, row in enumerate(rows)])
    scope = scope_of(spark, case, case.rows, case.present)
    delivered = scope.evidence[Ledger.DELIVERED]
    side = LedgerRows(delivered.rows, delivered.present, {})

    found = hashed(
        side, Ledger.DELIVERED, case.contract, compared_columns({Ledger.DELIVERED: delivered.present})
    )

    plain = {row["message_id"]: (row["is_plain"], row["is_rough"]) for row in found.collect()}
    assert plain == {"a": (False, True), "b": (True, False)}


def test_the_statement_says_of_how_many_rows_a_content_is_unknown(spark: SparkSession) -> None:
    """Only of contents that another ledger shows: what nobody compares is listed as not judged already."""
    case = _case(
        [{"id": "a", "at": "1m", "key": "k", "header_hash": "h"}], [{"id": "a", "at": "2m", "key": "k"}]
    )
    scope = scope_of(spark, case, case.rows, case.present)
    sent = scope.evidence[Ledger.PRODUCED]
    coverage = replace(sent.coverage, unknown=(("key_hash", 1), ("header_hash", 1)), rows=3)
    stated = replace(scope, evidence={**scope.evidence, Ledger.PRODUCED: replace(sent, coverage=coverage)})

    assert limits_of(stated, {}) == [
        "produced: key_hash is unknown in 1 of 3 rows: there CORRUPTED_KEY is not judged"
    ]
    assert limits_of(scope, {}) == []
