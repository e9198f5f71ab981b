"""Following messages in evidence: whose rows are shown, and that the finding is the engine's own."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from pyspark.sql import SparkSession
from tests.engine.histories import load_case
from tests.engine.judging import scope_of

from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.engine.tracing import traced
from tieout.reporting.schema import trace_schema
from tieout.reporting.trace import RequestedBy, TraceRequest

HISTORY = {
    "name": "a key's messages",
    "because": "one lost, one doubled, one id used for two contents, one of another key, one before the window",
    "ledgers": {
        "produced": [
            {"id": "early", "at": "-5m", "pos": "0/0", "key": "k", "seq": 1},
            {"id": "lost", "at": "5m", "pos": "0/1", "key": "k", "seq": 2},
            {"id": "doubled", "at": "6m", "pos": "0/2", "key": "k", "seq": 3},
            {"id": "reused", "at": "7m", "pos": "0/3", "key": "k", "hash": "a", "seq": 4},
            {"id": "reused", "at": "8m", "pos": "0/4", "key": "k", "hash": "b", "session": "s2", "seq": 1},
            {"id": "other", "at": "9m", "pos": "0/5", "key": "K", "seq": 5},
        ],
        "log": [
            {"id": "early", "at": "-5m", "pos": "0/0", "key": "k"},
            {"id": "lost", "at": "5m", "pos": "0/1", "key": "k"},
            {"id": "doubled", "at": "6m", "pos": "0/2", "key": "k"},
            {"id": "reused", "at": "7m", "pos": "0/3", "key": "k", "hash": "a"},
            {"id": "reused", "at": "8m", "pos": "0/4", "key": "k", "hash": "b"},
            {"id": "other", "at": "9m", "pos": "0/5", "key": "K"},
        ],
        "delivered": [
            {"id": "early", "at": "-4m", "pos": "0/0"},
            {"id": "doubled", "at": "7m", "pos": "0/2"},
            {"id": "doubled", "at": "8m", "pos": "0/2"},
            {"id": "reused", "at": "9m", "pos": "0/3", "hash": "a"},
            {"id": "other", "at": "10m", "pos": "0/5"},
        ],
        "committed": [
            {"pos": "0/0", "next": 6, "at": "11m", "group": "loader"},
            {"pos": "0/0", "next": 6, "at": "12m", "group": "another"},
        ],
    },
    "expect": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def scope(spark: SparkSession) -> Scope:
    """The history as evidence that has been read."""
    case = load_case("tracing", HISTORY)
    return scope_of(spark, case, case.rows, case.present)


def _traced(spark: SparkSession, scope: Scope, requested: TraceRequest, *, is_judged: bool) -> dict[str, Any]:
    with suited_to(spark, is_small=True):
        found = traced(scope, requested, is_judged=is_judged)
    jsonschema.Draft202012Validator(trace_schema()).validate(found)
    return found


def _totals(message: dict[str, Any]) -> dict[str, int]:
    return {stage["stage"]: stage["total"] for stage in message["journey"] if stage["stage"] != "read"}


def test_a_keys_messages_are_judged_as_the_window_is(spark: SparkSession, scope: Scope) -> None:
    """Every message of the key, in time, each with its own rows; one id of two contents is two messages."""
    found = _traced(spark, scope, TraceRequest(RequestedBy.KEY, "k"), is_judged=True)

    reported = {message["positions"][0]["offset"]: message for message in found["messages"]}
    judgements = {offset: message["judgement"] for offset, message in reported.items()}
    assert [message["message_id"] for message in found["messages"]] == [
        "early", "lost", "doubled", "reused", "reused",
    ]  # fmt: skip
    assert found["messages_total"] == 5
    assert {offset: one["class"] for offset, one in judgements.items()} == {
        0: None, 1: "LOST", 2: "OUTPUT_DUPLICATE", 3: "DELIVERED", 4: "LOST",
    }  # fmt: skip
    assert "belongs to the window of its first attempt" in judgements[0]["words"]
    assert [one["class"] for one in judgements[1]["breaks"]] == ["LOST"]
    assert judgements[3]["breaks"] == []
    assert _totals(reported[1]) == {
        "attempted": 1,
        "acknowledged": 1,
        "stored": 1,
        "written": 0,
        "committed": 1,
    }
    assert _totals(reported[2])["written"] == 2
    assert (_totals(reported[3])["written"], _totals(reported[4])["written"]) == (1, 0)


def test_by_content_the_matching_says_whose_an_effect_is(spark: SparkSession) -> None:
    """Asked by position: the effect names none, and is the earliest send's of its payload."""
    written = {
        "name": "equal payloads",
        "because": "identity: content",
        "contract": {"identity": "content"},
        "ledgers": {
            "produced": [{"at": "5m", "pos": "0/1", "hash": "h"}, {"at": "6m", "pos": "0/2", "hash": "h"}],
            "log": [{"at": "5m", "pos": "0/1", "hash": "h"}, {"at": "6m", "pos": "0/2", "hash": "h"}],
            "delivered": [{"at": "7m", "hash": "h"}],
            "committed": [{"pos": "0/0", "next": 3, "at": "11m", "group": "loader"}],
        },
        "expect": {},
    }
    case = load_case("tracing", written)
    scope = scope_of(spark, case, case.rows, case.present)

    found = _traced(
        spark, scope, TraceRequest(RequestedBy.POSITION, "orders/0/1", ("orders", 0, 1)), is_judged=True
    )

    (message,) = found["messages"]
    assert _totals(message) == {"attempted": 1, "acknowledged": 1, "stored": 1, "written": 1, "committed": 1}
    assert (message["message_id"], message["judgement"]["class"]) == (None, "DELIVERED")


def test_without_a_window_rows_are_shown_and_nothing_is_judged(spark: SparkSession, scope: Scope) -> None:
    """By id, position and key; another group's commit is not this group's."""
    by_id = _traced(spark, scope, TraceRequest(RequestedBy.MESSAGE_ID, "lost"), is_judged=False)
    by_place = _traced(
        spark, scope, TraceRequest(RequestedBy.POSITION, "orders/0/2", ("orders", 0, 2)), is_judged=False
    )
    by_key = _traced(spark, scope, TraceRequest(RequestedBy.KEY, "K"), is_judged=False)
    of_nobody = _traced(
        spark, scope, TraceRequest(RequestedBy.POSITION, "orders/0/9", ("orders", 0, 9)), is_judged=False
    )

    (lost,), (doubled,), (other,) = by_id["messages"], by_place["messages"], by_key["messages"]
    assert _totals(lost) == {"attempted": 1, "acknowledged": 1, "stored": 1, "written": 0, "committed": 1}
    assert (lost["judgement"], by_id["coverage"], by_id["window"]) == (None, None, None)
    assert (_totals(doubled)["written"], other["message_id"]) == (2, "other")
    assert (of_nobody["messages"], of_nobody["messages_total"]) == ([], 0)


def test_a_commit_alone_is_no_trace(spark: SparkSession, scope: Scope) -> None:
    """Every commit passes every lower position; a message that no ledger names is not found, and nothing is judged."""
    found = _traced(spark, scope, TraceRequest(RequestedBy.MESSAGE_ID, "never sent"), is_judged=True)

    assert found["messages"] == []
