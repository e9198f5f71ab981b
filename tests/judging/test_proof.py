"""The rows that prove a break, as the rounds hand them out."""

from __future__ import annotations

from tests.engine.histories import load_cases
from tests.judging.kernel import kernel_statement


def test_what_nobody_sent_and_was_read_again_is_proved_by_its_reads() -> None:
    """By content a position that no send names has no message: its reads are found by what they hold."""
    name = "by content a position is redelivered whoever sent what lies there"
    case = next(one for one in load_cases() if one.name == name)

    (found,) = kernel_statement(case)["breaks"]

    assert found["flags"] == ["REDELIVERY"]
    assert [row["offset"] for row in found["evidence"]["read"]] == [1, 1]
