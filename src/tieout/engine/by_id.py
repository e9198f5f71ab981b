"""The first level where the output shows no positions: both sides held together id by id.

Positions make buckets whose rows are close in time; ids do not, so that sums over them could not tell whether a message
came in time. Each row goes through one shuffle instead, by the hash of its id and as a few numbers. An id is quiet
where it has one plain row on each side, both with the same content and in time; all other ids are left to the rules,
with the messages next to them. Two ids with one hash are left as well. Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine.classes.reordered import reorder_output, reorder_producer
from tieout.engine.comparing import SIDES
from tieout.engine.fingerprint import STANDARD, Widths, compared_columns, id_hash
from tieout.engine.joining import same, small_side
from tieout.engine.keys import PLACE, POSITION, SESSION, TRANSACTION
from tieout.engine.ledger import SCHEMAS
from tieout.engine.looking import narrow, ours, quiet_among, tasks_for
from tieout.engine.materialising import materialised, no_rows
from tieout.engine.neighbours import EIGHT_BITS, bits_at, left_of
from tieout.engine.position_sets import as_set, within
from tieout.engine.quiet import Quiet, Sums, as_messages
from tieout.engine.rest import MOST, repeated
from tieout.engine.rising import Order, in_doubt
from tieout.engine.scope import Scope
from tieout.engine.session import settings_of
from tieout.engine.settled import contents_of, counts_by_place, doubtful_commits, progress_of_quiet
from tieout.model import Ledger

_ID: Final = "id_hash"
_FEW_IDS: Final = 1_000_000
"""So many numbers take some 20 MB, which every executor can hold."""


@dataclass(frozen=True)
class Pairs:
    """Both sides by id, one row a hash of ids, and the topic partitions that were sent to.

    | id_hash | place | is_quiet | is_seen | took |   | place | topic  | partition |
    |---------|-------|----------|---------|------|   |-------|--------|-----------|
    | 17      | 5     | true     | true    | 1500 |   | 5     | orders | 0         |

    `took` is in microseconds, and null where the window does not own the message; `is_seen` says whether its effect is
    in the window.
    """

    ids: DataFrame
    places: DataFrame
    widths: Widths


def shows_ids_alone(present: Mapping[Ledger, frozenset[str]]) -> bool:
    """Return whether it takes ids to tell what became of a message, and these do, given the columns of both sides.

    The output shows ids and no positions. Where a send shows a position it shows all of it, and where it shows none it
    alone names the topic: what a message's partition is must not depend on the output.
    """
    sent, arrived = present[Ledger.PRODUCED], present[Ledger.DELIVERED]
    shows_no_positions = not arrived & {"partition", "offset"}
    names_places = {*POSITION} <= sent or (
        "offset" not in sent and ("topic" in sent or "topic" not in arrived)
    )
    return (
        shows_no_positions
        and names_places
        and {"message_id", "attempted_at", "outcome"} <= sent
        and {"message_id", "processed_at"} <= arrived
    )


def pairs_of(scope: Scope, widths: Widths = STANDARD) -> Pairs:
    """Return both sides held together id by id; rows without an id are one id's, which is not quiet."""
    columns = compared_columns({ledger: scope.evidence[ledger].present for ledger in SIDES})
    sent, arrived = (ours(scope, ledger) for ledger in SIDES)
    number = F.monotonically_increasing_id().alias("place")
    places = materialised(sent.select(*PLACE).distinct().select(number, *PLACE))
    named = small_side(places.select("place", *[F.col(name).alias(f"p_{name}") for name in PLACE]))
    numbered = sent.join(named, same(PLACE, "p_"), how="left")
    nowhere = F.lit(None).cast("bigint")
    every = [
        narrow(scope, columns, ledger, rows, {_ID: id_hash(widths), "place": place})
        for ledger, rows, place in zip(SIDES, (numbered, arrived), (F.col("place"), nowhere), strict=True)
    ]
    gathered = reduce(DataFrame.unionByName, every).repartition(tasks_for(scope, share=1), _ID)
    ids = quiet_among(scope, columns, gathered, (_ID,), "place").drop("lot")
    return Pairs(materialised(ids), places, widths)


def left_by_id(
    scope: Scope, pairs: Pairs, progress: Callable[[str], None], most: float = MOST
) -> Scope | None:
    """Return the scope of what is left of the window, with its quiet messages beside it, or None where much is left.

    Much is more than `most` of the larger side. The scope has no rows where all are quiet.
    """
    limit = most * max(scope.evidence[ledger].coverage.rows for ledger in SIDES)
    odd = materialised(pairs.ids.filter(~F.col("is_quiet")).select(_ID))
    if odd.count() > limit:
        return None
    progress("looking for what else is left to the rules")
    for more in (_at_shared_positions(scope, pairs.widths), _of_same_transactions(scope, odd, pairs.widths)):
        if more is not None:
            odd = materialised(odd.unionByName(more).distinct())
    if odd.isEmpty():
        spark = scope.rows(Ledger.PRODUCED).sparkSession
        rows = {ledger: no_rows(spark, SCHEMAS[ledger]) for ledger in SIDES}
        return _scope_of(scope, rows, _quiet(scope, pairs, None, rows))
    left = _with_neighbours(scope, odd, pairs.widths)
    if left.count() > limit:
        return None
    wanted = _as_set(left)
    rows = {
        ledger: materialised(
            _with_id(ours(scope, ledger), pairs.widths).join(wanted, _ID, how="left_semi").drop(_ID)
        )
        for ledger in SIDES
    }
    return _scope_of(scope, rows, _quiet(scope, pairs, wanted, rows))


def doubts(scope: Scope, quiet: Quiet) -> Iterator[DataFrame]:
    """Yield what is wrong with commits, and the reorders that the evidence allows to judge, all messages being quiet.

    In which order positions were handed out, an output that shows none cannot tell.
    """
    yield from doubtful_commits(scope, None, quiet.arrived_at())
    if scope.has(Ledger.PRODUCED, "sequence", *POSITION):
        sent = in_doubt(ours(scope, Ledger.PRODUCED), [Order((*SESSION, *PLACE), "sequence")])
        yield reorder_producer(scope, as_messages(sent, Ledger.PRODUCED)).select("topic")
    if scope.has(Ledger.PRODUCED, "key_hash", *POSITION):
        yield reorder_output(scope, quiet.arrived()).select("topic")


def _scope_of(scope: Scope, rows: Mapping[Ledger, DataFrame], quiet: Quiet) -> Scope:
    evidence = {
        ledger: replace(found, rows=rows[ledger]) if ledger in rows else found
        for ledger, found in scope.evidence.items()
    }
    size = sum(found.rows.count() for found in evidence.values())
    return replace(scope, evidence=evidence, beside=quiet, size=size)


def _as_set(ids: DataFrame) -> DataFrame:
    """Return rows with an id that were materialised, to be looked up beside rows that are many."""
    return F.broadcast(ids) if ids.count() <= _FEW_IDS else ids.hint("shuffle_hash")


def _with_id(rows: DataFrame, widths: Widths) -> DataFrame:
    return rows.withColumn(_ID, id_hash(widths))


def _placed(scope: Scope) -> DataFrame:
    """Return the sends that show their position."""
    return scope.rows(Ledger.PRODUCED).filter(F.col("offset") >= 0)


def _at_shared_positions(scope: Scope, widths: Widths) -> DataFrame | None:
    """Return the ids of the sends whose position stands in more than one, None where there are none.

    By a hash, so that now and then one is among them that stands alone: to leave a quiet message to the rules is right.
    """
    if not scope.has(Ledger.PRODUCED, *POSITION):
        return None
    sent = _with_id(_placed(scope), widths).select(_ID, F.xxhash64(*POSITION).alias("position_hash"))
    hashes = sent.select(F.col("position_hash").alias("hash"))
    shared = repeated(hashes, scope.evidence[Ledger.PRODUCED].coverage.rows)
    if shared.isEmpty():
        return None
    return sent.join(small_side(shared), F.col("position_hash") == F.col("hash"), how="left_semi").select(_ID)


def _of_same_transactions(scope: Scope, odd: DataFrame, widths: Widths) -> DataFrame | None:
    """Return the ids of all messages of the transactions that an odd one is in, None where nobody names any."""
    found = []
    for ledger in SIDES:
        if scope.has(ledger, "transaction_id"):
            names = TRANSACTION if ledger is Ledger.PRODUCED else ("transaction_id",)
            members = _with_id(ours(scope, ledger).filter(F.col("transaction_id").isNotNull()), widths)
            of_odd = members.join(_as_set(odd), _ID, how="left_semi")
            named = of_odd.select(*[F.col(name).alias(f"t_{name}") for name in names]).distinct()
            found.append(members.join(small_side(materialised(named)), same(names, "t_"), how="left_semi"))
    return reduce(DataFrame.unionByName, (rows.select(_ID) for rows in found)) if found else None


def _with_neighbours(scope: Scope, odd: DataFrame, widths: Widths) -> DataFrame:
    """Return the odd ids, and where sends show positions those next to them and at each partition's first, kept."""
    if not scope.has(Ledger.PRODUCED, *POSITION):
        return odd
    sent, offset = _with_id(_placed(scope), widths).select(*POSITION, _ID), F.col("offset")
    marked = sent.join(_as_set(odd.withColumn("is_odd", F.lit(True))), _ID, how="left")
    bits = {f"standing{way}": bit for way, bit in bits_at(offset).items()}
    bits |= {f"odd{way}": bit for way, bit in bits_at(offset, F.col("is_odd")).items()}
    marks = marked.groupBy(*PLACE, F.shiftright(offset, EIGHT_BITS).alias("eight")).agg(
        *[F.bit_or(bit).alias(name) for name, bit in bits.items()]
    )
    near = within(sent, as_set(left_of(materialised(marks), None))).select(_ID)
    return materialised(odd.unionByName(near).distinct())


def _quiet(scope: Scope, pairs: Pairs, left: DataFrame | None, rows: Mapping[Ledger, DataFrame]) -> Quiet:
    """Return the messages that are not left to the rules; `rows` are what is."""

    def outside(every: DataFrame) -> DataFrame:
        return every if left is None else every.join(left, _ID, how="left_anti")

    every = {ledger: outside(_with_id(ours(scope, ledger), pairs.widths)).drop(_ID) for ledger in SIDES}
    sent, arrived = (every[ledger] for ledger in SIDES)
    furthest = sent.filter(F.col("offset") >= 0).groupBy(*PLACE).agg(F.max("offset").alias("offset"))
    placed = _as_sent(sent, arrived)
    return Quiet(
        sums=_sums(outside(pairs.ids.filter("is_quiet")), pairs.places),
        rows=every,
        progress=materialised(progress_of_quiet(scope, furthest, placed)),
        contents=None if left is None else contents_of(scope, rows, sent),
        writers=None,
        positions=None,
        roomy=settings_of(sent.sparkSession),
        placed=placed,
    )


def _sums(quiet: DataFrame, places: DataFrame) -> Sums:
    """Return what quiet ids add up to; the latency of each is known, so that all of them are the sample."""
    at = quiet.groupBy("place").agg(F.count("took").alias("sent"), F.count_if("is_seen").alias("seen"))
    took = quiet.filter(F.col("took").isNotNull())
    return Sums(
        counts=materialised(counts_by_place(at.join(places, "place").select(*PLACE, "sent", "seen"))),
        latencies=took.select(
            (F.col("took") / 1_000_000).alias("seconds"), F.col("took").cast("decimal(38,0)").alias("micros")
        ),
        share=1,
    )


def _as_sent(sent: DataFrame, arrived: DataFrame) -> DataFrame:
    """Return rows of the output with the position and the key that their message was sent with, if it shows one."""
    shown = sent.filter(F.col("offset") >= 0).select(
        F.col("message_id").alias("sent_id"), *POSITION, "key_hash"
    )
    kept = arrived.select("message_id", "processed_at", "delivery_sequence", "consumer_id")
    return kept.join(shown, F.col("message_id") == F.col("sent_id"), how="inner").drop("sent_id")
