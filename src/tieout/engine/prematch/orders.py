"""Clean messages that rules about order need: those next to the remainder, and those that are out of order.

Rules about order compare neighbours: of a session by sequence, of a consumer or a key by offset. So a clean message
matters if its neighbour is in the remainder, or if the two are out of order. Most windows have neither: a scan shows
that all values rise with their offsets. Only partitions for which it does not are sorted.
Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.joining import at_positions, same, small_side
from tieout.engine.keys import PLACE, POSITION, SESSION
from tieout.engine.materialising import materialised
from tieout.engine.prematch.bucket_scan import judged_rows
from tieout.engine.prematch.nonmonotonic import Order, is_nonmonotonic
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

_READER: Final = (*PLACE, "consumer_id", "generation")
_PROCESSING_COLUMNS: Final = ("processed_at", "delivery_sequence")
_MAX_NAMED_PLACES: Final = 1_000


def orders_of(
    scope: Scope,
    clean: Mapping[Ledger, DataFrame],
    remaining_rows: Mapping[Ledger, DataFrame],
    placed: DataFrame | None,
) -> dict[str, DataFrame]:
    """Return the clean messages that rules about order need, by the name of their table in a bucket.

    Args:
        scope: The whole window.
        clean: The rows of clean messages by ledger.
        remaining_rows: The rows of the remainder.
        placed: The clean rows of the output with the positions they were sent to, where the output shows none.
    """
    shows_sequences = scope.has(Ledger.PRODUCED, "sequence", *POSITION)
    shows_keys = scope.has(Ledger.PRODUCED, "key_hash", *POSITION)
    shows_processing_order = _shows_processing_order(scope)
    if not (shows_sequences or shows_keys or shows_processing_order):
        return {}
    points = _points(scope, remaining_rows)
    tables = {}
    uncertain = _uncertain_places(scope, points)
    if shows_sequences:
        order = Order((*SESSION, *PLACE), "sequence")
        sent = _uncertain_rows(
            judged_rows(scope, Ledger.PRODUCED), clean[Ledger.PRODUCED], [order], uncertain
        )
        if sent is not None:
            tables["clean_sends"] = _sends(scope, sent, points, clean.get(Ledger.LOG))
    arrived = placed if shows_keys else None
    if placed is None and (shows_processing_order or shows_keys):
        orders = _orders_of_output(scope)
        arrived = _uncertain_rows(
            judged_rows(scope, Ledger.DELIVERED), clean[Ledger.DELIVERED], orders, uncertain
        )
    if arrived is None:
        return tables
    if shows_processing_order:
        by = [*_READER, "key_hash"] if scope.contract.ordering == "key" else [*_READER]
        tables["clean_handed"] = _next_to(arrived, points, by, ["offset"], _PROCESSING_COLUMNS)
    if shows_keys:
        by_key = arrived.filter(F.col("key_hash").isNotNull())
        tables["clean_effects"] = _next_to(
            by_key, points, [*PLACE, "key_hash"], ["offset"], _PROCESSING_COLUMNS
        )
    return tables


def _shows_processing_order(scope: Scope) -> bool:
    """Return whether the output shows who processed what and when, and the keys where only these have an order.

    A queue promises no order of delivery.
    """
    shows_keys = scope.contract.ordering != "key" or scope.has(Ledger.PRODUCED, "key_hash")
    shows_readers = scope.has(Ledger.DELIVERED, "consumer_id", "generation", "processed_at")
    return not scope.contract.is_queue and shows_keys and shows_readers


def _sends(scope: Scope, sent: DataFrame, points: DataFrame, log: DataFrame | None) -> DataFrame:
    """Return the sends next to the remainder or out of order, with their record's producer id if the log has it."""
    by = [*SESSION, *PLACE, *(["key_hash"] if scope.contract.ordering == "key" else [])]
    known = sent.filter(F.col("sequence").isNotNull())
    neighbours = _next_to(known, points, by, ["sequence", "offset"], ["offset"])
    if log is None or not scope.has(Ledger.LOG, "broker_producer_id"):
        return neighbours
    neighbours = materialised(neighbours)
    names = {name: f"w_{name}" for name in POSITION}
    writers = at_positions(log.select(*POSITION, "broker_producer_id"), neighbours).withColumnsRenamed(names)
    return neighbours.join(writers, same(POSITION, "w_"), how="left").drop(*names.values())


def _orders_of_output(scope: Scope) -> list[Order]:
    """Return the orders to check: while they hold, no position of a partition or key came before a lower one."""
    orders = [Order(PLACE, "unix_micros(processed_at)")]
    if scope.has(Ledger.DELIVERED, "delivery_sequence"):
        orders.append(Order((*PLACE, "consumer_id"), "delivery_sequence"))
    return orders


def _uncertain_rows(
    all_rows: DataFrame, clean: DataFrame, orders: Sequence[Order], uncertain: Column | None
) -> DataFrame | None:
    """Return the clean rows of partitions that are `uncertain` or have rows that may not rise; None where none are."""
    condition = is_nonmonotonic(all_rows, orders)
    falling = None if condition is None else _places_of(all_rows.filter(condition))
    conditions = [one for one in (falling, uncertain) if one is not None]
    return clean.filter(reduce(Column.__or__, conditions)) if conditions else None


def _points(scope: Scope, remaining_rows: Mapping[Ledger, DataFrame]) -> DataFrame:
    """Return where the remainder may lie in an order, materialised: its rows, with each key and number of the message.

    The rules decide which of its positions, keys and numbers a message has, so each of them is a point.
    """
    facts = ("sequence", *SESSION, "consumer_id", "generation", "key_hash")
    rows = [
        found.select(
            *POSITION,
            "message_id",
            F.lit(ledger.value).alias("of"),
            *[name if name in found.columns else F.lit(None).alias(name) for name in facts],
        )
        for ledger, found in remaining_rows.items()
    ]
    points = materialised(reduce(lambda one, other: one.unionByName(other), rows))
    if scope.contract.identity is Identity.POSITION:
        return points
    send_columns = {name: f"s_{name}" for name in ("message_id", "sequence", *SESSION, "key_hash")}
    is_send = (F.col("of") == Ledger.PRODUCED.value) & F.col("message_id").isNotNull()
    sent = points.filter(is_send).select(
        *[F.col(name).alias(of_send) for name, of_send in send_columns.items()]
    )
    others = points.join(
        small_side(sent.distinct()), F.col("message_id") == F.col("s_message_id"), how="inner"
    )
    with_send_facts = others.select(
        *POSITION,
        "message_id",
        "of",
        F.col("s_sequence").alias("sequence"),
        *[F.col(f"s_{name}").alias(name) for name in SESSION],
        "consumer_id",
        "generation",
        F.col("s_key_hash").alias("key_hash"),
    )
    return materialised(points.unionByName(with_send_facts).distinct())


def _uncertain_places(scope: Scope, points: DataFrame) -> Column | None:
    """Return whether a row is in a partition with a remaining message whose place in an order is uncertain.

    Its rows show several positions or sequences, or a row lacks its position. Only the rules know which rows count, so
    no scan of rows shows its order. None where there is no such message.
    """
    if scope.contract.identity is Identity.POSITION:
        return None
    placing = [ledger.value for ledger in Ledger if scope.has(ledger, *POSITION)]
    of_placing = points.filter(F.col("of").isin(placing))
    is_nowhere = ~F.coalesce(F.col("offset") >= 0, F.lit(False))
    is_send = F.col("of") == Ledger.PRODUCED.value
    messages = of_placing.groupBy("message_id").agg(
        F.count_distinct(F.when(is_send, F.struct(*SESSION, "sequence"))).alias("numbers"),
        F.count_distinct(F.when(~is_nowhere, F.struct(*POSITION))).alias("positions"),
        F.bool_or(is_nowhere).alias("is_unplaced"),
    )
    is_uncertain = (
        F.col("message_id").isNull() | F.col("is_unplaced") | (F.greatest("numbers", "positions") > 1)
    )
    named = messages.filter(is_uncertain).select(F.col("message_id").alias("u_message_id"))
    return _places_of(points.join(named, same(["message_id"], "u_"), how="left_semi"))


def _places_of(rows: DataFrame) -> Column | None:
    """Return whether a row is in a partition of these rows, by a hash; None if there are no rows."""
    place = F.xxhash64(*PLACE)
    hashes = rows.select(place.alias("place")).distinct().limit(_MAX_NAMED_PLACES + 1).collect()
    if len(hashes) > _MAX_NAMED_PLACES:
        return F.lit(True)
    return place.isin([row["place"] for row in hashes]) if hashes else None


def _next_to(
    clean: DataFrame, points: DataFrame, by: Sequence[str], at: Sequence[str], values: Sequence[str]
) -> DataFrame:
    """Return the clean rows that, in the order of `at`, are next to a point or out of order with a neighbour.

    Values rise over the rows that are left out. So two returned rows or points that become neighbours are out of order
    only if they are so among all rows. This may not hold for a group in which some rows lack a value: all its rows are
    returned.
    """
    marks = points.filter(F.col(at[0]).isNotNull()).select(*by, *at).distinct()
    rows = clean.withColumn("is_remaining", F.lit(False)).unionByName(
        marks.withColumn("is_remaining", F.lit(True)), allowMissingColumns=True
    )
    in_order = Window.partitionBy(*by).orderBy(*at)
    reasons = []
    for step in (F.lag, F.lead):
        reasons.append(step("is_remaining").over(in_order))
    of_all = Window.partitionBy(*by)
    for name in values:
        reasons.append(F.col(name) < F.lag(name).over(in_order))
        reasons.append(F.lead(name).over(in_order) < F.col(name))
        known = F.count(name).over(of_all)
        reasons.append((known > 0) & (known < F.count_if(~F.col("is_remaining")).over(of_all)))
    is_needed = reduce(Column.__or__, [F.coalesce(reason, F.lit(False)) for reason in reasons])
    return (
        rows.withColumn("is_needed", is_needed)
        .filter("is_needed AND NOT is_remaining")
        .select(*clean.columns)
    )
