"""The balance sheet of a statement: every account's terms, once each, beside their whole."""

from __future__ import annotations

from typing import Any

from tieout.reporting.sheet import accounts


def test_unexplained_offsets_are_one_line_and_no_difference(statement: dict[str, Any]) -> None:
    """A statement names them beside the other states and beside its partition; the sheet adds them up once."""
    row = next(row for row in statement["partitions"] if row["offsets"])
    states = dict.fromkeys(row["offsets"], 0) | {"from": 10, "to": 13, "delivered": 1, "unexplained": 2}
    row |= {"offsets": states, "unexplained": 2}
    statement["partitions"] = [row]

    offsets = accounts(statement)[-1]

    assert [term.values for term in offsets.terms if term.name == "unexplained"] == [(2,)]
    assert offsets.difference == 0
