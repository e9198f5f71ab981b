"""What the statement says of what the evidence leaves open."""

from __future__ import annotations

from tieout.engine.statement.undecided import Undecided, names_undecided, orders_undecided
from tieout.model import Identity


def test_positions_that_were_given_twice_are_counted_and_one_is_named() -> None:
    """Of all topics; an order that is undecided stands beside them."""
    rows = [
        {"topic": "orders", "names": 2, "example": {"partition": 1, "offset": 7}},
        {"topic": "bills", "names": 1, "example": {"partition": 0, "offset": 3}},
    ]
    order = {"topic": "orders", "unnumbered": 1, "uncompleted": 0, "close": 0}
    example = {"partition": 0, "offset": 4, "message_id": "m"}

    found = orders_undecided([{**order, "example": example}]).joined(names_undecided(rows, Identity.POSITION))

    assert found.counts == {"REORDER_OUTPUT": 1, "LOG_IDENTITY_CONFLICT": 3}
    assert "3 positions were acknowledged to two sends" in found.sentences[1]
    assert "The first is bills-0 offset 3" in found.sentences[1]
    assert names_undecided([], Identity.POSITION) == Undecided()


def test_ids_that_were_given_twice_may_hide_a_loss() -> None:
    """One effect accounts for both payloads of an id."""
    rows = [{"topic": "orders", "names": 2, "example": {"partition": 1, "offset": 7, "message_id": "o-1"}}]

    found = names_undecided(rows, Identity.MESSAGE_ID)

    assert found.counts == {"LOST": 2}
    assert found.sentences[0].startswith("2 ids were acknowledged with two payloads")
    assert "The first is o-1; map" in found.sentences[0]
