"""A topic that a row does not name may be any: what the histories that share a run cannot show."""

from __future__ import annotations

from tests.engine.histories import load_case
from tests.judging.kernel import kernel_statement


def test_an_output_without_topics_may_be_any_nameless_send() -> None:
    """A send without id and position is not lost while an output row, of whatever topic, has no sender."""
    case = load_case(
        "topics",
        {
            "name": "unknown topics",
            "because": "Each may be the other",
            "ledgers": {
                "produced": [{"at": "1m", "hash": "x"}, {"id": "b", "at": "2m", "topic": "other"}],
                "delivered": [{"id": "ghost", "at": "3m"}],
            },
            "expect": {},
        },
    )

    statement = kernel_statement(case)

    assert statement["classes"] == {"LOST": 1, "UNVERIFIABLE": 2}
    assert [row["message_id"] for row in statement["breaks"] if row["class"] == "LOST"] == ["b"]
