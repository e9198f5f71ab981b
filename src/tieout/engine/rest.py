"""What the fingerprints leave over: the messages of a window that are not quiet, and every row that may touch them.

A position is quiet where it has one plain row on each side, and in the log where one is declared, all with the same
content and in time. All else is left for the rules, and with it: each row whose id stands elsewhere too; the neighbours
of what is left, which tell where a run of breaks ends; the first position of a partition; and the records at which the
log, one of its leaders or the window begins or ends. Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.comparing import COMPARED_LEDGERS, SIDES, Compared
from tieout.engine.fingerprint import BUCKET, Side, bucket_of, hashed, hashes_of, id_hash
from tieout.engine.joining import same, small_side
from tieout.engine.keys import PLACE, POSITION, TRANSACTION
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.engine.session import set_to
from tieout.model import Identity, Ledger

MOST: Final = 1 / 3
"""Where a larger share of the messages is left, all are matched: to take the others out costs more than it saves."""
FEW_BUCKETS: Final = 1 / 4
"""Where a larger share of the buckets has to be looked into, all are."""
SHARE: Final = 250_000
"""So many hashes, a few megabytes, are searched at a time for such as stand twice."""
_FEWEST_SHARES: Final = 16
_MARKED: Final = {"is_sent": Ledger.PRODUCED, "is_effect": Ledger.DELIVERED, "is_logged": Ledger.LOG}
_LISTS_AT_ONCE: Final = "spark.sql.objectHashAggregate.sortBased.fallbackThreshold"
"""With more lists than this in one task, Spark sorts the rows instead."""


@dataclass(frozen=True)
class Look:
    """The buckets that were looked into, `touched`, the ledgers' `rows` in them, and a row a position: `marks`.

    `marks` say of a position whether it is quiet, whether it is `is_left` to the rules, and of quiet ones `done_at` and
    `seen_at`, whether the window owns them and whether it saw them, and `lot`, by which a sample is drawn.
    """

    touched: DataFrame
    rows: Mapping[Ledger, DataFrame]
    marks: DataFrame


@dataclass(frozen=True)
class Rest:
    """What is left of a window: each ledger's `rows` at some positions, or at none; None where nothing is.

    `positions` are these, in the shape that `without` takes. `look` is None where all buckets agreed. `forced` are
    positions that are left although nothing is wrong at them by themselves, the log's ends among them, or None.
    """

    look: Look | None
    positions: DataFrame | None
    rows: Mapping[Ledger, DataFrame] | None
    forced: DataFrame | None = None


def rest_of(
    scope: Scope, compared: Compared, progress: Callable[[str], None], most: float = MOST
) -> Rest | None:
    """Return what is left of the window for the rules, or None where that is more than `most` of the larger side."""
    limit = most * max(scope.evidence[ledger].coverage.rows for ledger in SIDES)
    progress("looking into the buckets that differ")
    # Where anything differs the rules are needed, and with them the log's ends: one look finds both.
    is_dirty = Ledger.LOG in scope.evidence and not compared.together.filter("is_dirty").isEmpty()
    forced = materialised(_ends_of_log(scope)) if is_dirty else None
    rest = _rest(scope, compared, forced, limit)
    if rest is not None and scope.contract.identity is Identity.MESSAGE_ID:
        progress("looking for ids that stand elsewhere")
        rest = _again(scope, compared, rest, _elsewhere(scope, compared, rest), limit)
    if rest is None:
        return None
    return _again(scope, compared, rest, _of_same_transactions(scope, rest, progress), limit)


def with_ends(scope: Scope, compared: Compared, rest: Rest) -> Rest:
    """Return what is left of the window together with the log's ends, or the same where no log is declared."""
    if Ledger.LOG not in scope.evidence or rest.forced is not None:
        return rest
    forced = materialised(_ends_of_log(scope))
    return _rest(scope, compared, forced, float("inf")) or rest


def _again(scope: Scope, compared: Compared, rest: Rest, more: DataFrame | None, limit: float) -> Rest | None:
    """Return what is left where more positions are left in any case, and with them the log's ends."""
    if more is None:
        return rest
    forced = rest.forced
    if forced is None and Ledger.LOG in scope.evidence:
        forced = _ends_of_log(scope)
    every = more if forced is None else materialised(forced.unionByName(more).distinct())
    return _rest(scope, compared, every, limit)


def without(rows: DataFrame, positions: DataFrame | None) -> DataFrame:
    """Return the rows that are at none of the positions of a `Rest`."""
    return rows if positions is None else rows.join(positions, same(POSITION, "n_"), how="left_anti")


def ours(scope: Scope, ledger: Ledger) -> DataFrame:
    """Return a ledger's rows: of the output those of the judged group, of the log those that are records."""
    rows = scope.rows(ledger)
    if ledger is Ledger.LOG:
        return rows.filter(F.col("offset").isNotNull())
    return rows if ledger is Ledger.PRODUCED else rows.filter(scope.is_ours())


def compared_ledgers(scope: Scope) -> tuple[Ledger, ...]:
    """Return both sides, and the log where it is declared."""
    return tuple(ledger for ledger in COMPARED_LEDGERS if ledger in scope.evidence)


def _rest(scope: Scope, compared: Compared, forced: DataFrame | None, limit: float) -> Rest | None:
    """Return what is left where the positions `forced` are left in any case; None where it is more than the limit."""
    look = _look(scope, compared, forced)
    if look is None:
        return Rest(None, None, None, forced)
    count = look.marks.filter("is_left").count()
    if count == 0:
        return Rest(look, None, None, forced)
    if count > limit:
        return None
    positions = _named(materialised(look.marks.filter("is_left OR offset = 0").select(*POSITION)))
    rows = {
        ledger: materialised(side.join(positions, same(POSITION, "n_"), how="left_semi"))
        for ledger, side in look.rows.items()
    }
    return Rest(look, positions, rows, forced)


def _named(positions: DataFrame) -> DataFrame:
    return small_side(positions.select(*[F.col(name).alias(f"n_{name}") for name in POSITION]))


def _look(scope: Scope, compared: Compared, forced: DataFrame | None) -> Look | None:
    """Return a look into the buckets that are not certain, None where all are."""
    odd = F.col("is_dirty") | F.col("is_unclear")
    known = compared.together.select(*BUCKET, odd.alias("is_odd"), (F.col("sent") > 0).alias("is_sent"))
    if forced is not None:
        at = forced.select(*PLACE, bucket_of(compared.widths).alias("bucket")).distinct()
        marked = at.select(
            *[F.col(name).alias(f"n_{name}") for name in BUCKET], F.lit(True).alias("is_forced")
        )
        known = known.join(marked, same(BUCKET, "n_"), how="left").withColumn(
            "is_odd", F.col("is_odd") | F.coalesce("is_forced", F.lit(False))
        )
    counted = known.agg(F.count("*").alias("all"), F.count_if("is_odd").alias("odd")).collect()[0]
    if not counted["odd"]:
        return None
    is_whole = counted["odd"] > FEW_BUCKETS * counted["all"]
    touched = materialised(_with_neighbours(known, is_whole=is_whole))
    rows = {ledger: ours(scope, ledger) for ledger in compared_ledgers(scope)}
    if not is_whole:
        wanted = F.broadcast(touched.select(*[F.col(name).alias(f"n_{name}") for name in BUCKET]))
        bucket = bucket_of(compared.widths)
        rows = {
            ledger: materialised(
                side.withColumn("bucket", bucket)
                .join(wanted, same(BUCKET, "n_"), how="left_semi")
                .select(*side.columns)
            )
            for ledger, side in rows.items()
        }
    every = [_hashed(scope, compared, ledger, side) for ledger, side in rows.items()]
    return Look(touched, rows, materialised(_marks(scope, every, hashes_of(compared.columns), forced)))


def _with_neighbours(buckets: DataFrame, *, is_whole: bool) -> DataFrame:
    """Return the odd buckets, those before and after them, and each partition's first; all of them where `is_whole`."""
    if is_whole:
        return buckets.select(*BUCKET)
    in_order = Window.partitionBy(*PLACE).orderBy("bucket")
    near = [F.coalesce(beside("is_odd").over(in_order), F.lit(False)) for beside in (F.lag, F.lead)]
    known = buckets.filter("is_odd OR is_sent").withColumn("is_near", reduce(Column.__or__, near))
    return known.filter("is_odd OR is_near OR bucket = 0").select(*BUCKET)


def _hashed(scope: Scope, compared: Compared, ledger: Ledger, rows: DataFrame) -> DataFrame:
    """Return what `_marks` asks of one ledger's rows; hashes of pairs that it is not of are null."""
    known = hashed(Side(rows, scope.evidence[ledger].present, {}), ledger, scope.contract, compared.columns)
    own, nothing = hashes_of(compared.columns, ledger), F.lit(None).cast("bigint")
    return known.select(
        *POSITION,
        *[(F.col(name) if name in own else nothing).alias(name) for name in hashes_of(compared.columns)],
        *("time", "own_time", "is_plain"),
        *[F.lit(ledger is one).alias(name) for name, one in _MARKED.items()],
    )


def _marks(
    scope: Scope, rows: Sequence[DataFrame], hashes: Sequence[str], forced: DataFrame | None
) -> DataFrame:
    """Return the marks of a look at these rows of the ledgers."""
    is_sent, is_effect = F.col("is_sent"), F.col("is_effect")
    ledgers = [name for name, ledger in _MARKED.items() if ledger in scope.evidence]
    one_each = reduce(Column.__and__, [F.count_if(name) == 1 for name in ledgers])
    # A hash that a ledger has not is null, and neither the least nor the greatest.
    is_equal = reduce(Column.__and__, [F.min(name) == F.max(name) for name in hashes])
    # Hardly any position has two rows in one task: to add up before the shuffle would be to add up twice.
    positions = (
        reduce(DataFrame.unionByName, rows)
        .repartition(*POSITION)
        .groupBy(*POSITION)
        .agg(
            (one_each & is_equal & F.bool_and("is_plain")).alias("is_matched"),
            F.max(F.when(is_sent, F.col("time"))).alias("done_at"),
            F.max(F.when(is_effect, F.col("time"))).alias("seen_at"),
            F.max(F.when(is_sent, F.col("own_time"))).alias("sent_at"),
            F.min("first").alias("lot"),
        )
    )
    is_in_time = F.coalesce(F.col("seen_at") <= F.col("done_at") + F.lit(scope.patience), F.lit(False))
    told = positions.select(
        *POSITION,
        *("done_at", "seen_at", "lot"),
        (F.col("is_matched") & is_in_time).alias("is_quiet"),
        scope.in_window(F.col("sent_at")).alias("is_owned"),
        scope.in_window(F.col("seen_at")).alias("is_seen"),
    )
    if forced is not None:
        marked = _named(forced).withColumn("is_forced", F.lit(True))
        told = (
            told.join(marked, same(POSITION, "n_"), how="left")
            .withColumn("is_quiet", F.col("is_quiet") & F.col("is_forced").isNull())
            .drop("is_forced", *(f"n_{name}" for name in POSITION))
        )
    in_order = Window.partitionBy(*PLACE).orderBy("offset")
    near = [~F.coalesce(beside("is_quiet").over(in_order), F.lit(True)) for beside in (F.lag, F.lead)]
    return told.withColumn("is_left", ~F.col("is_quiet") | near[0] | near[1])


def _elsewhere(scope: Scope, compared: Compared, rest: Rest) -> DataFrame | None:
    """Return the quiet positions whose id stands elsewhere as well, None where there are none.

    By a hash, so that now and then one is among them whose id does not: to leave a quiet message to the rules is right.
    """
    produced, count = scope.rows(Ledger.PRODUCED), scope.evidence[Ledger.PRODUCED].coverage.rows
    hashes = _id_hashes(without(produced, rest.positions), compared)
    if rest.rows is not None:
        left = reduce(DataFrame.unionByName, (_id_hashes(rows, compared) for rows in rest.rows.values()))
        hashes = hashes.unionByName(left.distinct())
    suspected = repeated(hashes, count)
    if suspected.isEmpty():
        return None
    is_suspected = F.col("own_hash") == F.col("hash")
    again = produced.withColumn("own_hash", id_hash(compared.widths))
    found = again.join(small_side(suspected), is_suspected, how="left_semi")
    return materialised(without(found, rest.positions).select(*POSITION).distinct())


def _of_same_transactions(scope: Scope, rest: Rest, progress: Callable[[str], None]) -> DataFrame | None:
    """Return all positions of the transactions that have a message which is not quiet, None where there are none."""
    sides = [ledger for ledger in SIDES if scope.has(ledger, "transaction_id")]
    if rest.look is None or rest.rows is None or not sides:
        return None
    progress("looking for what shares a transaction")
    odd = _named(materialised(rest.look.marks.filter("NOT is_quiet").select(*POSITION)))
    of_some, found = F.col("transaction_id").isNotNull(), []
    for ledger in sides:
        names = TRANSACTION if ledger is Ledger.PRODUCED else ("transaction_id",)
        named = [F.col(name).alias(f"t_{name}") for name in names]
        left = rest.rows[ledger].filter(of_some).join(odd, same(POSITION, "n_"), how="left_semi")
        transactions = materialised(left.select(*named).distinct())
        if not transactions.isEmpty():
            members = ours(scope, ledger).filter(of_some)
            found.append(members.join(small_side(transactions), same(names, "t_"), how="left_semi"))
    if not found:
        return None
    return materialised(reduce(DataFrame.unionByName, (rows.select(*POSITION) for rows in found)).distinct())


def _ends_of_log(scope: Scope) -> DataFrame:
    """Return the positions of the log's records that its bounds, its leaders and the window's ranges are told by.

    What rules read off the whole log as a least or a greatest they so read off what is left of it.
    """
    at, stamp = F.col("offset"), F.col("record_timestamp")
    extremes = (
        F.min(at),
        F.max(at),
        F.min_by(at, stamp),
        F.max_by(at, stamp),
        F.min(F.when(stamp >= F.lit(scope.window.start), at)),
        F.min(F.when(stamp >= F.lit(scope.window.end), at)),
    )
    is_data = ~F.coalesce("is_control", F.lit(False))
    of_leaders = ours(scope, Ledger.LOG).filter(is_data).groupBy(*PLACE, "leader_epoch")
    found = of_leaders.agg(F.array_compact(F.array(*extremes)).alias("offsets"))
    return found.select(*PLACE, F.explode("offsets").alias("offset")).distinct()


def _id_hashes(rows: DataFrame, compared: Compared) -> DataFrame:
    return rows.filter(F.col("message_id").isNotNull()).select(id_hash(compared.widths).alias("hash"))


def repeated(hashes: DataFrame, count: int) -> DataFrame:
    """Return each `hash` that stands in more than one of about `count` rows, kept.

    Hashes are shuffled as lists, one a task and share of them: as rows of a hash table they would cost three times as
    much. However many there are, a share has about `SHARE`.
    """
    shares = 1 << max(_FEWEST_SHARES, count // SHARE).bit_length()
    with set_to(hashes.sparkSession, {_LISTS_AT_ONCE: str(2 * shares)}):
        share = F.col("hash").bitwiseAND(shares - 1).alias("share")
        lists = hashes.groupBy(share).agg(F.collect_list("hash").alias("list"))
        uneven = lists.filter(F.size(F.array_distinct("list")) < F.size("list"))
        in_order = uneven.select(F.sort_array("list").alias("list"))
        again = F.filter("list", lambda value, place: (place > 0) & (F.get("list", place - 1) == value))
        return materialised(in_order.select(F.explode(F.array_distinct(again)).alias("hash")))
