"""Histories in which every message is clean, and an order, a commit or a row's spelling is not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.agreement.test_two_levels import EPOCH, STAMP, C, D, L, P, Rows, _remaining
from tests.engine.histories import GRACE_END, WINDOW, contract_for
from tests.engine.judging import scope_together, statements_of
from tests.oracle.history import OracleCoverage
from tests.oracle.random_histories import COLUMNS, RANGES, RandomHistory

from tieout.engine.prematch.fingerprint import Widths
from tieout.engine.prematch.prematching import is_eligible
from tieout.engine.session import suited_to
from tieout.model import Ledger

UNSTAMPED = {P: STAMP, D: STAMP | EPOCH}
BY_KEY = {"ordering": "key"}


def _messages() -> Rows:
    """Return six messages of one key and one consumer, each a second after the other on both sides."""
    common = [
        {
            "message_id": f"m{n}",
            "topic": "t",
            "partition": 0,
            "offset": n,
            "payload_hash": f"h{n}",
            "key_hash": "k",
        }
        for n in range(6)
    ]
    at = [WINDOW.start + timedelta(seconds=n) for n in range(6)]
    return {
        P: [row | {"attempted_at": at[n], "outcome": "acked"} for n, row in enumerate(common)],
        D: [
            row | {"processed_at": at[n], "consumer_id": "c", "generation": 1} for n, row in enumerate(common)
        ],
    }


def _history(
    rows: Rows, terms: dict[str, Any], lacking: dict[Ledger, frozenset[str]] | None = None
) -> RandomHistory:
    more = {D: {"delivery_sequence"}}
    present = {
        ledger: (COLUMNS[ledger] | more.get(ledger, set()))
        - ({C: RANGES} | (lacking or {})).get(ledger, frozenset())
        for ledger in rows
    }
    shown = {
        ledger: [
            {name: value for name, value in row.items() if name in present[ledger]} for row in rows[ledger]
        ]
        for ledger in rows
    }
    coverage = dict.fromkeys(rows, OracleCoverage(None, GRACE_END, True, True))
    return RandomHistory("trap", contract_for([*rows], terms), WINDOW, shown, coverage, present)


def _turns_of_some() -> Rows:
    """One key's effects are turned round, which only their numbers tell; a row of another key between has none."""
    rows = _messages()
    rows[P][2]["key_hash"] = rows[D][2]["key_hash"] = "other"
    at = rows[D][3]["processed_at"]
    rows[D][0] |= {"processed_at": at, "delivery_sequence": 5}
    rows[D][1] |= {"processed_at": at, "consumer_id": "d"}
    rows[D][2] |= {"processed_at": at}
    rows[D][3] |= {"delivery_sequence": 4}
    return rows


def _turned() -> Rows:
    rows = _messages()
    rows[D][2]["processed_at"], rows[D][3]["processed_at"] = (
        rows[D][3]["processed_at"],
        rows[D][2]["processed_at"],
    )
    return rows


def _committed(rows: Rows, *offsets: int) -> Rows:
    """Return the rows with a commit a minute."""
    rows[C] = [
        {
            "topic": "t",
            "partition": 0,
            "committed_offset": offset,
            "committed_at": WINDOW.start + timedelta(minutes=n),
        }
        for n, offset in enumerate(offsets, 1)
    ]
    return rows


def _logged() -> Rows:
    """Return the six messages with their records, and the log's bounds in a row of their own."""
    rows = _messages()
    rows[L] = [
        {name: value for name, value in row.items() if name not in ("attempted_at", "outcome")}
        | {"record_timestamp": row["attempted_at"], "broker_producer_id": -1}
        for row in rows[P]
    ]
    bounds = {"log_start_offset": 0, "end_offset": 6, "observed_at": GRACE_END}
    rows[L].append({"topic": "t", "partition": 0} | bounds)
    return rows


def _sent_at_once() -> Rows:
    """A producer without idempotence had two batches in flight, and the later one was written first."""
    rows = _logged()
    for number, row in enumerate(rows[P]):
        row |= {"producer_id": "p", "producer_session": "s", "sequence": (0, 1, 3, 2, 4, 5)[number]}
        row["completed_at"] = row["attempted_at"] + timedelta(seconds=2)
    return rows


@pytest.mark.parametrize(
    ("history", "classes"),
    [
        (_history(_turns_of_some(), BY_KEY), ["REORDER_CONSUMER"]),
        (_history(_turned(), BY_KEY, {P: frozenset({"key_hash"})}), []),
        (_history(_committed(_messages(), 4, 2, 6), {}), ["COMMIT_REGRESSION"]),
        (_history(_sent_at_once(), {}, UNSTAMPED), ["REORDER_PRODUCER"]),
        (_history(_committed(_logged(), 9), {}, UNSTAMPED), ["COMMIT_OUT_OF_RANGE"]),
        (_history(_logged(), {}, UNSTAMPED), []),
    ],
    ids=[
        "turns of some",
        "keys of the output alone",
        "a commit that fell back",
        "two batches in flight",
        "a commit beyond the end",
        "a log in order",
    ],
)
def test_what_quiet_messages_show_together(
    spark: SparkSession, history: RandomHistory, classes: list[str]
) -> None:
    """It is found as by judging every row, with the same proof."""
    with suited_to(spark, is_small=True):
        remaining = _remaining(spark, [history], Widths())
        assert remaining is not None
        assert remaining[1].rows is None, "nothing but the whole is out of order"
        found = statements_of(remaining[0], [history])
        whole = scope_together(spark, [history])
        assert found == statements_of(whole, [history])

    assert [one["class"] for one in found[0]["breaks"]] == classes


def test_ranges_and_second_positions_are_left_to_the_rules() -> None:
    """Prematch knows neither ranges, sets and sparse positions nor a second position."""
    history = _history(_committed(_messages(), 6), {})
    assert is_eligible(history.contract, history.present)
    assert not is_eligible(history.contract, history.present | {C: history.present[C] | {"first_offset"}})

    assert not is_eligible(history.contract, history.present | {C: history.present[C] | {"is_individual"}})

    logged = _history(_logged(), {}, UNSTAMPED)
    assert is_eligible(logged.contract, logged.present)
    sparse = logged.present | {L: logged.present[L] | {"is_sparse"}}
    assert not is_eligible(logged.contract, sparse)

    second = _history(_committed(_messages(), 6) | {Ledger.MIRRORED: []}, {})
    assert not is_eligible(second.contract, second.present)


def test_where_keys_have_an_order_the_output_must_name_its_messages() -> None:
    """A reorder of the output names its message, which only the send knows where the output shows no ids."""
    history = _history(_messages(), {})
    assert is_eligible(history.contract, history.present)
    assert not is_eligible(history.contract, history.present | {D: history.present[D] - {"message_id"}})
