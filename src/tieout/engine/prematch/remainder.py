"""The remainder: the messages of a window that are not clean, and every clean row that the rules about them need.

The positions that are not clean remain, and with them: each row whose id occurs elsewhere too; the neighbours of what
remains, which show where a run of breaks ends; the first position of a partition; and the records at which the log,
one of its leaders or the window begins or ends. Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine.joining import same, small_side
from tieout.engine.keys import PLACE, POSITION, TRANSACTION
from tieout.engine.materialising import materialised
from tieout.engine.prematch.bucket_scan import BucketScan, judged_rows, scan_buckets, share_clean
from tieout.engine.prematch.comparing import SIDES, Compared
from tieout.engine.prematch.fingerprint import id_hash
from tieout.engine.prematch.neighbours import remaining_positions
from tieout.engine.prematch.position_sets import as_set, outside, within
from tieout.engine.scope import Scope
from tieout.engine.session import set_to
from tieout.model import Identity, Ledger

MAX_SHARE: Final = 1 / 3
"""If a larger share of the messages remains, all are judged: taking out the others would cost more than it saves."""
_NEARLY_ALL: Final = 9 / 10
"""If a larger share of the buckets is dirty, a sample first shows whether it is worthwhile to scan all of them."""
SHARE: Final = 250_000
"""About this many hashes, a few megabytes, are searched for repeats at a time."""
_FEWEST_SHARES: Final = 16
_LISTS_AT_ONCE: Final = "spark.sql.objectHashAggregate.sortBased.fallbackThreshold"
"""With more lists than this in one task, Spark sorts the rows instead."""


@dataclass(frozen=True)
class Remainder:
    """What remains of a window: each ledger's `rows` at some positions, or at none; None where nothing remains.

    `positions` are the set of these, and `unclean` those that are not clean. `scan` is None where all buckets agree.
    `forced` are positions that remain although nothing is wrong at them, the log's ends among them, or None.
    """

    scan: BucketScan | None
    positions: DataFrame | None
    unclean: DataFrame | None
    rows: Mapping[Ledger, DataFrame] | None
    forced: DataFrame | None = None


def remainder_of(
    scope: Scope, compared: Compared, progress: Callable[[str], None], max_share: float = MAX_SHARE
) -> Remainder | None:
    """Return the window's remainder, or None where it is more than `max_share` of the larger side."""
    limit = max_share * max(scope.evidence[ledger].coverage.rows for ledger in SIDES)
    progress("looking into the buckets that differ")
    if _is_mostly_unclean(scope, compared, max_share):
        return None
    # If anything differs, the rules need the log's ends as well: one scan finds both.
    is_dirty = Ledger.LOG in scope.evidence and not compared.together.filter("is_dirty").isEmpty()
    forced = materialised(ends_of_log(scope)) if is_dirty else None
    remainder = _remainder(scope, compared, forced, limit)
    if remainder is not None and scope.contract.identity is Identity.MESSAGE_ID:
        progress("looking for ids that stand elsewhere")
        remainder = _extended(
            scope, compared, remainder, _with_repeated_ids(scope, compared, remainder), limit
        )
    if remainder is None:
        return None
    return _extended(scope, compared, remainder, _of_same_transactions(scope, remainder, progress), limit)


def _is_mostly_unclean(scope: Scope, compared: Compared, max_share: float) -> bool:
    """Return whether clearly more than `max_share` of the window remains, as far as a sample shows."""
    counted = compared.together.agg(
        F.count("*").alias("all"), F.count_if("is_dirty").alias("dirty")
    ).collect()[0]
    if counted["dirty"] <= _NEARLY_ALL * counted["all"]:
        return False
    return share_clean(scope, compared) < (1 - max_share) / 2


def with_ends(scope: Scope, compared: Compared, remainder: Remainder) -> Remainder:
    """Return the remainder with the log's ends in it; the same one where it has them, or no log is declared."""
    if Ledger.LOG not in scope.evidence or remainder.forced is not None:
        return remainder
    forced = materialised(ends_of_log(scope))
    return _remainder(scope, compared, forced, float("inf"), remainder.scan) or remainder


def _extended(
    scope: Scope, compared: Compared, remainder: Remainder, more: DataFrame | None, limit: float
) -> Remainder | None:
    """Return the remainder with `more` positions and the log's ends forced into it; None where it is over the limit."""
    if more is None:
        return remainder
    forced = remainder.forced
    if forced is None and Ledger.LOG in scope.evidence:
        forced = ends_of_log(scope)
    all_forced = more if forced is None else materialised(forced.unionByName(more).distinct())
    return _remainder(scope, compared, all_forced, limit, remainder.scan)


def _remainder(
    scope: Scope, compared: Compared, forced: DataFrame | None, limit: float, known: BucketScan | None = None
) -> Remainder | None:
    """Return the remainder with the positions `forced` in it; None where it is over the limit.

    A `known` scan is used again if it was of all buckets.
    """
    is_known = known is not None and known.touched is None
    scan = known if is_known else scan_buckets(scope, compared, forced)
    if scan is None:
        return Remainder(None, None, None, None, forced)
    remaining = remaining_positions(scan.marks, forced)
    count = remaining.filter("is_remaining").count()
    if count == 0:
        return Remainder(scan, None, None, None, forced)
    if count > limit:
        return None
    chosen = as_set(remaining)
    rows = {ledger: materialised(within(side, chosen)) for ledger, side in scan.rows.items()}
    return Remainder(scan, chosen, remaining.filter("is_unclean").select(*POSITION), rows, forced)


def _with_repeated_ids(scope: Scope, compared: Compared, remainder: Remainder) -> DataFrame | None:
    """Return the clean positions whose id occurs elsewhere as well, None where there are none.

    Ids are compared by a hash, so a few of these ids may occur once. Leaving a clean message to the rules is correct.
    """
    produced, count = scope.rows(Ledger.PRODUCED), scope.evidence[Ledger.PRODUCED].coverage.rows
    hashes = _id_hashes(outside(produced, remainder.positions), compared)
    if remainder.rows is not None:
        remaining = reduce(
            DataFrame.unionByName, (_id_hashes(rows, compared) for rows in remainder.rows.values())
        )
        hashes = hashes.unionByName(remaining.distinct())
    suspected = repeated(hashes, count)
    if suspected.isEmpty():
        return None
    is_suspected = F.col("own_hash") == F.col("hash")
    hashed = produced.withColumn("own_hash", id_hash(compared.widths))
    matches = hashed.join(small_side(suspected), is_suspected, how="left_semi")
    return materialised(outside(matches, remainder.positions).select(*POSITION).distinct())


def _of_same_transactions(
    scope: Scope, remainder: Remainder, progress: Callable[[str], None]
) -> DataFrame | None:
    """Return all positions of the transactions that have a message which is not clean, None where there are none."""
    sides = [ledger for ledger in SIDES if scope.has(ledger, "transaction_id")]
    if remainder.unclean is None or remainder.rows is None or not sides:
        return None
    progress("looking for what shares a transaction")
    unclean = as_set(remainder.unclean)
    members = [
        sharing_transactions(scope, ledger, within(remainder.rows[ledger], unclean)) for ledger in sides
    ]
    positions = [rows.select(*POSITION) for rows in members if rows is not None]
    return materialised(reduce(DataFrame.unionByName, positions).distinct()) if positions else None


def sharing_transactions(scope: Scope, ledger: Ledger, some: DataFrame) -> DataFrame | None:
    """Return the ledger's rows that share a transaction with some of them, None where these are in none."""
    of_some = F.col("transaction_id").isNotNull()
    names = TRANSACTION if ledger is Ledger.PRODUCED else ("transaction_id",)
    named = [F.col(name).alias(f"t_{name}") for name in names]
    transactions = materialised(some.filter(of_some).select(*named).distinct())
    if transactions.isEmpty():
        return None
    members = judged_rows(scope, ledger).filter(of_some)
    return members.join(small_side(transactions), same(names, "t_"), how="left_semi")


def ends_of_log(scope: Scope) -> DataFrame:
    """Return the positions of the log's records that determine its bounds, its leaders and the window's ranges.

    With these in the remainder, rules that take a minimum or maximum over the whole log get the same one. The
    neighbours of these positions remain as well.
    """
    at, stamp = F.col("offset"), F.col("record_timestamp")
    extremes = (
        F.min(at),
        F.max(at),
        F.min_by(at, stamp),
        F.max_by(at, stamp),
        F.min(F.when(stamp >= F.lit(scope.window.start), at)),
        F.min(F.when(stamp >= F.lit(scope.window.end), at)),
        F.max(F.when(scope.in_window(stamp), at)),
    )
    is_data = ~F.coalesce("is_control", F.lit(False))
    of_leaders = judged_rows(scope, Ledger.LOG).filter(is_data).groupBy(*PLACE, "leader_epoch")
    ends = of_leaders.agg(F.array_compact(F.array(*extremes)).alias("offsets"))
    return ends.select(*PLACE, F.explode("offsets").alias("offset")).distinct()


def _id_hashes(rows: DataFrame, compared: Compared) -> DataFrame:
    return rows.filter(F.col("message_id").isNotNull()).select(id_hash(compared.widths).alias("hash"))


def repeated(hashes: DataFrame, count: int) -> DataFrame:
    """Return each `hash` that occurs in more than one of about `count` rows, materialised.

    Hashes are shuffled as lists, one per task and share: as rows of a hash table they would cost three times as much.
    A share has about `SHARE` hashes, however many there are.
    """
    shares = 1 << max(_FEWEST_SHARES, count // SHARE).bit_length()
    with set_to(hashes.sparkSession, {_LISTS_AT_ONCE: str(2 * shares)}):
        share = F.col("hash").bitwiseAND(shares - 1).alias("share")
        lists = hashes.groupBy(share).agg(F.collect_list("hash").alias("list"))
        uneven = lists.filter(F.size(F.array_distinct("list")) < F.size("list"))
        in_order = uneven.select(F.sort_array("list").alias("list"))
        repeats = F.filter("list", lambda value, place: (place > 0) & (F.get("list", place - 1) == value))
        return materialised(in_order.select(F.explode(F.array_distinct(repeats)).alias("hash")))
