"""A topic that a row does not name may be any: what the histories that share a run cannot show."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tests.engine.histories import load_case
from tests.engine.judging import scope_of

from tieout.engine.matching import matched
from tieout.engine.session import suited_to


def test_an_output_without_topics_may_be_any_nameless_send(spark: SparkSession) -> None:
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
    scope = scope_of(spark, case, case.rows, case.present)

    with suited_to(spark, is_small=True):
        rows = matched(scope).messages.select("message_id", "disposition", "has_unnamed_sends").collect()

    found = {row["message_id"]: (row["disposition"], row["has_unnamed_sends"]) for row in rows}
    assert found[None] == ("unverifiable", True)
    assert found["ghost"] == (None, True)
    assert found["b"] == ("lost", False)
