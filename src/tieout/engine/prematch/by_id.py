"""Prematch for output without positions: both sides are compared id by id.

Buckets of positions hold rows that are close in time. Buckets of ids would not, so their sums could not show whether a
message came in time. Instead each row goes through one shuffle, by the hash of its id and as a few numbers. An id is
clean if it has one plain row on each side, both with the same content and in time. All other ids remain, with the
messages next to them, and so do two ids with the same hash. Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine.clean import Clean, Sums
from tieout.engine.joining import same, small_side
from tieout.engine.keys import PLACE, POSITION
from tieout.engine.materialising import materialised
from tieout.engine.prematch.bucket_scan import clean_among, compared_ledgers, judged_rows, narrow, tasks_for
from tieout.engine.prematch.clean_facts import clean_with, in_pauses, steps_of
from tieout.engine.prematch.comparing import SIDES
from tieout.engine.prematch.fingerprint import STANDARD, Widths, compared_columns, id_hash
from tieout.engine.prematch.log_bounds import statements_of
from tieout.engine.prematch.neighbours import EIGHT_BITS, bits_of_marks, remaining_positions
from tieout.engine.prematch.position_sets import as_set, within
from tieout.engine.prematch.remainder import ends_of_log, repeated, sharing_transactions
from tieout.engine.scope import Scope
from tieout.model import Ledger

_ID: Final = "id_hash"
_FEW_IDS: Final = 500_000
"""Up to this many ids, some 30 MB as rows of a hash table, are broadcast."""
_SAMPLED: Final = 100_000
"""If there are more latencies, a sample of about this many, or down to half as many, is drawn."""


@dataclass(frozen=True)
class Pairs:
    """Both sides by id, one row per hash of an id, and the topic partitions that were sent to.

    | id_hash | place | is_clean | is_seen | latency_micros |   | place | topic  | partition |
    |---------|-------|----------|---------|----------------|   |-------|--------|-----------|
    | 17      | 5     | true     | true    | 1500           |   | 5     | orders | 0         |

    `latency_micros` is null where the window does not own the message; `is_seen`: its effect is in the window.
    """

    ids: DataFrame
    places: DataFrame
    widths: Widths


def shows_ids_alone(present: Mapping[Ledger, frozenset[str]]) -> bool:
    """Return whether messages can be compared by id, and not by position, given the ledgers' columns.

    The output has ids and no positions. Sends have whole positions, or no offsets, and then the output names a topic
    only if sends do: a message's partition must not depend on the output. With a log, sends and log have both.
    """
    sent, arrived = present[Ledger.PRODUCED], present[Ledger.DELIVERED]
    shows_no_positions = not arrived & {"partition", "offset"}
    names_places = {*POSITION} <= sent or (
        "offset" not in sent and ("topic" in sent or "topic" not in arrived)
    )
    is_logged = {"message_id", *POSITION}
    return (
        shows_no_positions
        and names_places
        and {"message_id", "attempted_at", "outcome"} <= sent
        and {"message_id", "processed_at"} <= arrived
        and (Ledger.LOG not in present or is_logged <= sent & present[Ledger.LOG])
    )


def pairs_of(scope: Scope, widths: Widths = STANDARD) -> Pairs:
    """Return both sides, and the log where it is declared, compared id by id.

    Rows without an id count as one id, which is not clean.
    """
    ledgers = compared_ledgers(scope)
    columns = compared_columns({ledger: scope.evidence[ledger].present for ledger in ledgers})
    rows = {ledger: judged_rows(scope, ledger) for ledger in ledgers}
    number = F.monotonically_increasing_id().alias("place")
    places = materialised(rows[Ledger.PRODUCED].select(*PLACE).distinct().select(number, *PLACE))
    named = small_side(places.select("place", *[F.col(name).alias(f"p_{name}") for name in PLACE]))
    rows[Ledger.PRODUCED] = rows[Ledger.PRODUCED].join(named, same(PLACE, "p_"), how="left")
    nowhere, by = F.lit(None).cast("bigint"), {_ID: id_hash(widths)}
    narrowed = [
        narrow(
            scope,
            columns,
            ledger,
            rows[ledger],
            by | {"place": F.col("place") if ledger is Ledger.PRODUCED else nowhere},
        )
        for ledger in ledgers
    ]
    gathered = reduce(DataFrame.unionByName, narrowed).repartition(tasks_for(scope, share=1), _ID)
    ids = clean_among(scope, columns, gathered, (_ID,), "place").drop("sample_hash")
    return Pairs(materialised(ids), places, widths)


def unclean_ids(scope: Scope, pairs: Pairs, limit: float) -> DataFrame | None:
    """Return the ids that are not clean, materialised; None where they are more than the limit.

    With them are the ids at positions that occur twice, and those that share a transaction with one of all these.
    """
    unclean = materialised(pairs.ids.filter(~F.col("is_clean")).select(_ID))
    if unclean.count() > limit:
        return None
    unclean = _with(unclean, *_at_shared_positions(scope, pairs.widths))
    return _with(unclean, *_of_same_transactions(scope, unclean, pairs.widths))


def scope_of_remaining_ids(
    scope: Scope, pairs: Pairs, unclean: DataFrame, bounds: DataFrame | None, limit: float = float("inf")
) -> Scope | None:
    """Return the scope of the window's remainder, given the ids that are not clean, and its clean messages.

    None where more messages remain than the limit. `bounds` are the log's, None where none is declared.
    """
    remaining = _with_neighbours(scope, _with_ends(scope, unclean, pairs.widths), pairs.widths)
    if remaining.count() > limit:
        return None
    remaining_ids = _as_set(remaining)
    rows = {
        ledger: materialised(
            _with_id(judged_rows(scope, ledger), pairs.widths)
            .join(remaining_ids, _ID, how="left_semi")
            .drop(_ID)
        )
        for ledger in compared_ledgers(scope)
    }
    clean = _clean_by_id(scope, pairs, bounds, remaining_ids, rows)
    if Ledger.LOG in rows:
        rows[Ledger.LOG] = materialised(rows[Ledger.LOG].unionByName(statements_of(scope)))
    return scope.with_remainder(rows, clean)


def _with(ids: DataFrame, *more: DataFrame) -> DataFrame:
    """Return all of these ids, once each and materialised."""
    return materialised(reduce(DataFrame.unionByName, more, ids).distinct()) if more else ids


def _as_set(ids: DataFrame) -> DataFrame:
    """Return materialised ids with a hint for joins with many rows: broadcast, or a shuffled hash join."""
    return F.broadcast(ids) if ids.count() <= _FEW_IDS else ids.hint("shuffle_hash")


def _with_id(rows: DataFrame, widths: Widths) -> DataFrame:
    return rows.withColumn(_ID, id_hash(widths))


def _placed(scope: Scope, widths: Widths) -> dict[Ledger, DataFrame]:
    """Return the positions of the ledgers that show them, with the hash of the id there."""
    return {
        ledger: _with_id(judged_rows(scope, ledger).filter(F.col("offset") >= 0), widths).select(
            *POSITION, _ID
        )
        for ledger in compared_ledgers(scope)
        if scope.has(ledger, *POSITION)
    }


def _at_shared_positions(scope: Scope, widths: Widths) -> Iterator[DataFrame]:
    """Yield the ids of each ledger whose position occurs in more than one of its rows.

    Positions are compared by a hash, so a few of them may occur once. Leaving a clean message to the rules is correct.
    """
    for ledger, rows in _placed(scope, widths).items():
        known = rows.select(_ID, F.xxhash64(*POSITION).alias("position_hash"))
        hashes = known.select(F.col("position_hash").alias("hash"))
        shared = repeated(hashes, scope.evidence[ledger].coverage.rows)
        if not shared.isEmpty():
            is_shared = F.col("position_hash") == F.col("hash")
            yield known.join(small_side(shared), is_shared, how="left_semi").select(_ID)


def _of_same_transactions(scope: Scope, unclean: DataFrame, widths: Widths) -> Iterator[DataFrame]:
    """Yield the ids of all messages that share a transaction with one that is not clean, as each side names it."""
    for ledger in SIDES:
        if scope.has(ledger, "transaction_id"):
            unclean_rows = _with_id(judged_rows(scope, ledger), widths).join(
                _as_set(unclean), _ID, how="left_semi"
            )
            members = sharing_transactions(scope, ledger, unclean_rows)
            if members is not None:
                yield _with_id(members, widths).select(_ID)


def _with_ends(scope: Scope, ids: DataFrame, widths: Widths) -> DataFrame:
    """Return the given ids and those of the records that determine the log's bounds, materialised."""
    if Ledger.LOG not in scope.evidence:
        return ids
    ends = small_side(
        materialised(ends_of_log(scope).withColumnsRenamed({name: f"e_{name}" for name in POSITION}))
    )
    at_ends = _placed(scope, widths)[Ledger.LOG].join(ends, same(POSITION, "e_"), how="left_semi").select(_ID)
    return _with(ids, at_ends)


def _with_neighbours(scope: Scope, ids: DataFrame, widths: Widths) -> DataFrame:
    """Return the given ids, those at neighbouring positions, and those at each partition's first, materialised."""
    placed = [*_placed(scope, widths).values()]
    if not placed or ids.isEmpty():
        return ids
    positions = reduce(DataFrame.unionByName, placed)
    marked = positions.join(_as_set(ids.withColumn("is_unclean", F.lit(True))), _ID, how="left")
    marks = marked.groupBy(*PLACE, F.shiftright("offset", EIGHT_BITS).alias("eight")).agg(
        *[F.bit_or(bit).alias(name) for name, bit in bits_of_marks(is_unclean=F.col("is_unclean")).items()]
    )
    near = within(positions, as_set(remaining_positions(materialised(marks), None))).select(_ID)
    return _with(ids, near)


def _clean_by_id(
    scope: Scope,
    pairs: Pairs,
    bounds: DataFrame | None,
    remaining_ids: DataFrame,
    remaining_rows: Mapping[Ledger, DataFrame],
) -> Clean:
    """Return the messages of the scope whose ids are not in `remaining_ids`.

    `remaining_rows` are the rows of the other messages. Rules need no contents of clean messages: an effect without an
    id has no position either, and belongs to no message for certain.
    """

    def outside(ids_or_rows: DataFrame) -> DataFrame:
        return ids_or_rows.join(remaining_ids, _ID, how="left_anti")

    rows = {
        ledger: outside(_with_id(judged_rows(scope, ledger), pairs.widths)).drop(_ID)
        for ledger in compared_ledgers(scope)
    }
    sent = rows[Ledger.PRODUCED]
    placed = _as_sent(sent, rows[Ledger.DELIVERED])
    facts = {
        "clean_steps": _steps(sent, placed, remaining_rows[Ledger.PRODUCED]),
        "clean_progress": in_pauses(scope, placed),
    }
    sums = _sums(outside(pairs.ids.filter("is_clean")), pairs.places)
    return clean_with(scope, sums, rows, remaining_rows, bounds, facts, placed)


def _steps(sent: DataFrame, placed: DataFrame, remaining_rows: DataFrame) -> DataFrame:
    """Return the positions that the group reached, as far as clean messages show, and when.

    Only the highest, and without a time, if no remaining message that may lie below was sent later: it passed them all.
    `placed` are the output rows of the messages that were `sent`, with their positions.
    """
    ends = F.max("offset").alias("offset"), F.max_by("attempted_at", "offset").alias("sent_at")
    furthest = materialised(sent.filter(F.col("offset") >= 0).groupBy(*PLACE).agg(*ends))
    beyond = furthest.select(*[F.col(name).alias(f"f_{name}") for name in POSITION], "sent_at")
    is_below = F.col("offset").isNull() | (F.col("offset") < F.col("f_offset"))
    younger = remaining_rows.join(F.broadcast(beyond), same(PLACE, "f_")).filter(
        is_below & (F.col("attempted_at") > F.col("sent_at"))
    )
    if younger.isEmpty():
        return furthest.select(*POSITION, F.lit(None).cast("timestamp").alias("at"))
    runs = placed.groupBy(*PLACE, F.shiftright("offset", EIGHT_BITS))
    return steps_of(runs.agg(F.max("offset").alias("offset"), F.max("processed_at").alias("at")))


def _sums(clean: DataFrame, places: DataFrame) -> Sums:
    """Return the sums over clean ids. The latency of each is known; if they are many, a sample is drawn."""
    at = clean.groupBy("place").agg(
        F.count("latency_micros").alias("sent"), F.count_if("is_seen").alias("seen")
    )
    counts = materialised(at.join(places, "place").select(*PLACE, "sent", "seen"))
    latency = F.col("latency_micros")
    message_count = counts.agg(F.coalesce(F.sum("sent"), F.lit(0)).alias("sent")).collect()[0]["sent"]
    share = 1 << max(0, (message_count // _SAMPLED).bit_length())
    is_drawn = F.pmod(_ID, F.lit(share)) == 0
    latencies = (
        clean.filter(latency.isNotNull())
        .withColumn("drawn", F.when(is_drawn, F.col(_ID)))
        .groupBy("drawn")
        .agg(
            F.sum(latency.cast("decimal(38,0)")).alias("micros"),
            F.max(F.when(is_drawn, latency)).alias("one"),
            F.max(latency).alias("longest"),
        )
    )
    sampled_latencies = latencies.select("micros", F.col("one").alias("took"), "longest")
    return Sums(counts, materialised(sampled_latencies), share)


def _as_sent(sent: DataFrame, arrived: DataFrame) -> DataFrame:
    """Return the output rows with the position and the key of their send; those whose send has a position."""
    shown = sent.filter(F.col("offset") >= 0).select(
        F.col("message_id").alias("sent_id"), *POSITION, "key_hash"
    )
    kept = arrived.select("message_id", "processed_at", "delivery_sequence", "consumer_id")
    return kept.join(shown, F.col("message_id") == F.col("sent_id"), how="inner").drop("sent_id")
