"""A look into buckets: which of their positions are quiet, and what is kept of those.

A position is quiet where it has one plain row on each side, and in the log where one is declared, all with the same
content and in time. The rows of a bucket go through one shuffle, each as a few numbers.
Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.comparing import COMPARED_LEDGERS, SIDES, Compared
from tieout.engine.fingerprint import BUCKET, Side, bucket_of, hashed, hashes_of
from tieout.engine.joining import same
from tieout.engine.keys import PLACE, POSITION
from tieout.engine.materialising import materialised
from tieout.engine.position_sets import as_set, within
from tieout.engine.scope import Scope
from tieout.model import Ledger

FEW_BUCKETS: Final = 1 / 4
"""Where a larger share of the buckets has to be looked into, all are."""
SHARE: Final = 200_000
"""So many rows, some megabytes, are added up at a time: a processor's own memory holds that, or nearly."""


@dataclass(frozen=True)
class Look:
    """The buckets that were looked into, `touched`, the ledgers' `rows` in them, and a row a position: `marks`.

    `touched` is a set, or None for all buckets. `marks` say of a position whether it is quiet by itself, and of quiet
    ones whether the window owns them and whether it saw them, how many microseconds they `took`, and `lot`, by which a
    sample is drawn.
    """

    touched: DataFrame | None
    rows: Mapping[Ledger, DataFrame]
    marks: DataFrame


def ours(scope: Scope, ledger: Ledger) -> DataFrame:
    """Return a ledger's rows: of the output those of the judged group, of the log those that are records."""
    rows = scope.rows(ledger)
    if ledger is Ledger.LOG:
        return rows.filter(F.col("offset").isNotNull())
    return rows if ledger is Ledger.PRODUCED else rows.filter(scope.is_ours())


def compared_ledgers(scope: Scope) -> tuple[Ledger, ...]:
    """Return both sides, and the log where it is declared."""
    return tuple(ledger for ledger in COMPARED_LEDGERS if ledger in scope.evidence)


def look_into(scope: Scope, compared: Compared, forced: DataFrame | None) -> Look | None:
    """Return a look into the buckets that are not certain or have `forced` positions, None where there are none."""
    known = _told_apart(compared, forced)
    counted = known.agg(F.count("*").alias("all"), F.count_if("is_odd").alias("odd")).collect()[0]
    if not counted["odd"]:
        return None
    rows = {ledger: ours(scope, ledger) for ledger in compared_ledgers(scope)}
    touched = None
    if counted["odd"] <= FEW_BUCKETS * counted["all"]:
        touched = as_set(_with_neighbours(known), "bucket")
        bucket = bucket_of(compared.widths)
        rows = {ledger: materialised(within(side, touched, bucket)) for ledger, side in rows.items()}
    every = [_narrow(scope, compared, ledger, side) for ledger, side in rows.items()]
    return Look(touched, rows, materialised(_marks(scope, every, compared)))


def _told_apart(compared: Compared, forced: DataFrame | None) -> DataFrame:
    """Return the buckets, with `is_odd` where they have to be looked into, and `is_sent` where anything was sent."""
    odd = F.col("is_dirty") | F.col("is_unclear")
    known = compared.together.select(*BUCKET, odd.alias("is_odd"), (F.col("sent") > 0).alias("is_sent"))
    if forced is None:
        return known
    at = forced.select(*PLACE, bucket_of(compared.widths).alias("bucket")).distinct()
    marked = at.select(*[F.col(name).alias(f"n_{name}") for name in BUCKET], F.lit(True).alias("is_forced"))
    is_odd = F.col("is_odd") | F.coalesce("is_forced", F.lit(False))
    joined = known.join(marked, same(BUCKET, "n_"), how="left")
    return joined.select(*BUCKET, is_odd.alias("is_odd"), "is_sent")


def _with_neighbours(buckets: DataFrame) -> DataFrame:
    """Return the odd buckets, those before and after them, and each partition's first."""
    in_order = Window.partitionBy(*PLACE).orderBy("bucket")
    near = [F.coalesce(beside("is_odd").over(in_order), F.lit(False)) for beside in (F.lag, F.lead)]
    known = buckets.filter("is_odd OR is_sent").withColumn("is_near", reduce(Column.__or__, near))
    return known.filter("is_odd OR is_near OR bucket = 0").select(*BUCKET)


def _narrow(scope: Scope, compared: Compared, ledger: Ledger, rows: DataFrame) -> DataFrame:
    """Return what `_marks` asks of one ledger's rows; hashes of pairs that it is not of are null."""
    known = hashed(Side(rows, scope.evidence[ledger].present, {}), ledger, scope.contract, compared.columns)
    own, nothing = hashes_of(compared.columns, ledger), F.lit(None).cast("bigint")
    is_plain, is_inside = _bits(ledger)
    fact = F.lit(is_plain) + F.when(scope.in_window(F.col("own_time")), is_inside).otherwise(0)
    return known.select(
        *PLACE,
        bucket_of(compared.widths).alias("bucket"),
        "offset",
        *[(F.col(name) if name in own else nothing).alias(name) for name in hashes_of(compared.columns)],
        "time",
        F.when(F.col("is_plain"), fact).otherwise(0).alias("facts"),
    )


def _bits(ledger: Ledger) -> tuple[int, int]:
    """Return the two bits that say of a row that it is a plain one of the ledger, and that it is one of the window."""
    place = 2 * COMPARED_LEDGERS.index(ledger)
    return 1 << place, 2 << place


def _marks(scope: Scope, rows: Sequence[DataFrame], compared: Compared) -> DataFrame:
    """Return the marks of a look at these rows of the ledgers.

    A position has one plain row of each ledger where it has as many rows as there are ledgers, and plain ones of all.
    Two equal values, and no other two, leave nothing under XOR; a hash that a ledger has not is null, and passed over.
    """
    ledgers = compared_ledgers(scope)
    is_sent, is_effect = (_has(_bits(ledger)[0]) for ledger in SIDES)
    one_each = (F.count("*") == len(ledgers)) & reduce(
        Column.__and__, [_has(_bits(ledger)[0], F.bit_or("facts")) for ledger in ledgers]
    )
    is_equal = reduce(Column.__and__, [F.bit_xor(name) == 0 for name in hashes_of(compared.columns)])
    # Hardly any position has two rows in one task: to add up before the shuffle would be to add up twice.
    positions = (
        reduce(DataFrame.unionByName, rows)
        .repartition(_tasks(scope), *BUCKET)
        .groupBy(*BUCKET, "offset")
        .agg(
            F.coalesce(one_each & is_equal, F.lit(False)).alias("is_matched"),
            F.max(F.when(is_sent, F.col("time"))).alias("done_at"),
            F.max(F.when(is_effect, F.col("time"))).alias("seen_at"),
            F.bit_or("facts").alias("facts"),
            F.min("first").alias("lot"),
        )
    )
    is_in_time = F.coalesce(F.col("seen_at") <= F.col("done_at") + F.lit(scope.patience), F.lit(False))
    is_quiet = F.col("is_matched") & is_in_time
    took = F.when(is_quiet, F.unix_micros("seen_at") - F.unix_micros("done_at"))
    is_owned, is_seen = (_has(_bits(ledger)[1]) for ledger in SIDES)
    return positions.select(
        *POSITION,
        is_quiet.alias("is_quiet"),
        is_owned.alias("is_owned"),
        is_seen.alias("is_seen"),
        took.alias("took"),
        "lot",
    )


def _has(bit: int, facts: Column | None = None) -> Column:
    told = F.col("facts") if facts is None else facts
    return told.bitwiseAND(bit) != 0


def _tasks(scope: Scope) -> int:
    """Return in how many tasks the positions are added up, so that each has few enough to be quick."""
    return 1 + sum(scope.evidence[ledger].coverage.rows for ledger in compared_ledgers(scope)) // SHARE
