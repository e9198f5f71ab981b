"""The queues of equal payloads against the oracle's plain search, and on a payload that half the world shares."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engine.histories import GRACE_END, START, WINDOW, contract_for
from tests.engine.judging import scope_of
from tests.oracle.history import History, OracleCoverage, Row
from tests.oracle.messages import messages_of
from tests.oracle.pairing import effects_by_payload, excess_settled
from tests.oracle.random_histories import COLUMNS, RandomHistory

from tieout.engine.pairing import with_content_keys
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.model import Ledger

PAYLOADS = 1_500
COVERED = OracleCoverage(None, GRACE_END, True, True)
ATTEMPTS = (
    "key string, payload_hash string, topic string, partition int, offset bigint, sequence bigint, "
    "attempted_at timestamp, standing string"
)
EFFECTS = (
    "key string, has_identity boolean, payload_hash string, topic string, partition int, offset bigint, "
    "delivery_sequence bigint, processed_at timestamp, effect_state string"
)


@pytest.fixture
def history() -> History:
    """Up to seven attempts and seven effects of each payload, at few moments, so that ties and shortages abound."""
    rng = Random(5)  # noqa: S311 - repeatable, not secret
    produced: list[Row] = []
    delivered: list[Row] = []
    for payload in range(PAYLOADS):
        for _ in range(rng.randrange(8)):
            row = _row(rng, payload, "attempted_at") | {
                "outcome": rng.choice(("acked", "acked", "unknown", "failed"))
            }
            produced.append(row | {"sequence": len(produced)})
        for _ in range(rng.randrange(8)):
            row = _row(rng, payload, "processed_at") | {"outcome": rng.choice(("ok", "ok", "ok", "unknown"))}
            delivered.append(row | {"delivery_sequence": len(delivered)})
    rows = {Ledger.PRODUCED: produced, Ledger.DELIVERED: delivered}
    contract = contract_for([*rows], {"identity": "content", "clock_skew": "30s"})
    return History(contract, WINDOW, rows, dict.fromkeys(rows, COVERED))


def _row(rng: Random, payload: int, time: str) -> Row:
    at = None if rng.random() < 0.03 else START + timedelta(seconds=rng.choice((0, 20, 40, 60, 90, 600)))
    return {"payload_hash": f"h{payload}", "topic": "orders", time: at}


def _scope(spark: SparkSession, history: History) -> Scope:
    """Return the terms and coverage of the history; the rows are handed over beside it."""
    present = {ledger: COLUMNS[ledger] for ledger in history.ledgers}
    nothing: dict[Ledger, list[Row]] = {ledger: [] for ledger in history.ledgers}
    given = RandomHistory("pairing", history.contract, WINDOW, nothing, history.coverage, present)
    return scope_of(spark, given, nothing, present)


def _by_oracle(history: History) -> dict[int, str | None]:
    """Return per effect the attempt that it belongs to, None where to none."""
    messages = messages_of(history)
    rows = history.rows(Ledger.DELIVERED)
    by_payload: dict[Any, tuple[list[Any], list[Row]]] = {}
    for message in messages:
        by_payload.setdefault(message.attempts[0].row["payload_hash"], ([], []))[0].append(message)
    for row in rows:
        by_payload.setdefault(row["payload_hash"], ([], []))[1].append(row)
    for same, found in by_payload.values():
        certain = [row for row in found if row["outcome"] == "ok"]
        excess = effects_by_payload(history, same, certain, lambda one: one.effects)
        uncertain = [row for row in found if row["outcome"] == "unknown"]
        doubtful = effects_by_payload(history, same, uncertain, lambda one: one.uncertain)
        excess_settled(history, same, excess, lambda one: one.effects, may_be_later=False)
        excess_settled(history, same, doubtful, lambda one: one.uncertain, may_be_later=False)
    owned = {
        row["delivery_sequence"]: f"a{message.attempts[0].row['sequence']}"
        for message in messages
        for row in message.effects + message.uncertain
    }
    return {row["delivery_sequence"]: owned.get(row["delivery_sequence"]) for row in rows}


def test_equal_payloads_are_paired_as_the_oracle_pairs_them(spark: SparkSession, history: History) -> None:
    """Each effect gets the attempt that a search through all free attempts finds, whatever the outcomes and times."""
    expected = _by_oracle(history)
    attempts = spark.createDataFrame(list(_attempts(history)), ATTEMPTS)
    effects = spark.createDataFrame(list(_effects(history)), EFFECTS)
    scope = _scope(spark, history)

    with suited_to(spark, is_small=True):
        rows = with_content_keys(scope, effects, attempts).select("delivery_sequence", "key").collect()

    found = {row["delivery_sequence"]: row["key"] if row["key"].startswith("a") else None for row in rows}
    assert len(found) == len(rows) == len(expected) > 4_000
    assert sum(key is None for key in expected.values()) > 200
    assert {number: (expected[number], key) for number, key in found.items() if key != expected[number]} == {}


def _attempts(history: History) -> Iterator[tuple[Any, ...]]:
    for row in history.rows(Ledger.PRODUCED):
        key = f"a{row['sequence']}"
        yield (
            key,
            row["payload_hash"],
            "orders",
            None,
            None,
            row["sequence"],
            row["attempted_at"],
            row["outcome"],
        )


def _effects(history: History) -> Iterator[tuple[Any, ...]]:
    for row in history.rows(Ledger.DELIVERED):
        number, at = row["delivery_sequence"], row["processed_at"]
        yield None, True, row["payload_hash"], "orders", None, None, number, at, row["outcome"]


@pytest.mark.timeout(600)
def test_a_payload_that_half_of_all_messages_share_is_only_sorted(
    spark: SparkSession, history: History
) -> None:
    """Two hundred thousand equal messages are two queues: nobody joins each with each, and each finds its own."""
    size = 200_000
    numbers = spark.range(size)
    attempts = _typed(numbers, START, "attempted_at").withColumns(
        {"standing": F.lit("acked"), "sequence": F.col("id"), "key": F.concat(F.lit("a"), "id")}
    )
    effects = _typed(numbers, START + timedelta(hours=1), "processed_at").withColumns(
        {
            "effect_state": F.lit("ok"),
            "delivery_sequence": F.col("id"),
            "key": F.lit(None).cast("string"),
            "has_identity": F.lit(True),
        }
    )
    scope = _scope(spark, history)

    rows = with_content_keys(scope, effects, attempts)
    matched = rows.agg(
        F.count("*").alias("rows"),
        F.count_if(F.col("key") == F.concat(F.lit("a"), F.col("delivery_sequence"))).alias("own"),
    ).collect()[0]

    assert (matched["rows"], matched["own"]) == (size, size)


def _typed(numbers: DataFrame, start: Any, time: str) -> DataFrame:
    return numbers.select(
        "id",
        F.lit("hot").alias("payload_hash"),
        F.lit("orders").alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
        F.timestamp_micros(F.unix_micros(F.lit(start)) + F.col("id")).alias(time),
    )
