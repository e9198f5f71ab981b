"""What the statement says of what the evidence leaves open."""

from __future__ import annotations

from tieout.engine.statement.undecided import Undecided, orders_undecided, positions_undecided


def test_positions_that_were_given_twice_are_counted_and_one_is_named() -> None:
    """Of all topics; an order that is undecided stands beside them."""
    rows = [
        {"topic": "orders", "positions": 2, "example": {"partition": 1, "offset": 7}},
        {"topic": "bills", "positions": 1, "example": {"partition": 0, "offset": 3}},
    ]
    order = {"topic": "orders", "unnumbered": 1, "uncompleted": 0, "close": 0}
    example = {"partition": 0, "offset": 4, "message_id": "m"}

    found = orders_undecided([{**order, "example": example}]).beside(positions_undecided(rows))

    assert found.counts == {"REORDER_OUTPUT": 1, "LOG_IDENTITY_CONFLICT": 3}
    assert "3 positions were acknowledged to two sends" in found.sentences[1]
    assert "The first is bills-0 offset 3" in found.sentences[1]
    assert positions_undecided([]) == Undecided()
