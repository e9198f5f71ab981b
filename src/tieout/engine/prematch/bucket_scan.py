"""Scans the buckets that differ: finds their clean positions, and keeps the facts that the statement needs of these.

A position is clean if it has one plain row on each side, and one in the log where one is declared, all with the same
content and in time. The rows of a bucket go through one shuffle, each as a few numbers.
Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import PLACE
from tieout.engine.materialising import materialised
from tieout.engine.prematch.comparing import COMPARED_LEDGERS, SIDES, Compared
from tieout.engine.prematch.early import comes_before
from tieout.engine.prematch.fingerprint import BUCKET, LedgerRows, Shared, bucket_of, hashed, hashes_of
from tieout.engine.prematch.neighbours import EIGHT_BITS, bits_at, bits_of_marks
from tieout.engine.prematch.position_sets import as_set, reach, within
from tieout.engine.scope import Scope
from tieout.engine.session import ROWS_PER_TASK
from tieout.model import Ledger

FEW_BUCKETS: Final = 1 / 4
"""If a larger share of the buckets needs a scan, all are scanned."""
_SAMPLE: Final = 32
"""One bucket in this many is sampled, by a hash of its place."""
_WITH_NEIGHBOURS: Final = 3
"""A bucket is scanned with the one before and the one after it."""


@dataclass(frozen=True)
class BucketScan:
    """The scanned buckets, `touched`, the ledgers' `rows` in them, and the `marks` of their positions.

    `touched` is a set, or None for all buckets. `marks` have one row per eight offsets, `eight`. Bits say which of them
    have rows (`present`), which of these are not clean (`unclean`), and which clean ones have their effect in the
    window (`seen`). `latency_micros_…`, and `sample_hash_…`, by which a sample is drawn, are of the clean ones that the
    window owns.
    """

    touched: DataFrame | None
    rows: Mapping[Ledger, DataFrame]
    marks: DataFrame


def judged_rows(scope: Scope, ledger: Ledger) -> DataFrame:
    """Return the judged rows of a ledger: the group's rows of the output, and the records of the log."""
    rows = scope.rows(ledger)
    if ledger is Ledger.LOG:
        return rows.filter(F.col("offset").isNotNull())
    return rows if ledger is Ledger.PRODUCED else rows.filter(scope.is_ours())


def compared_ledgers(scope: Scope) -> tuple[Ledger, ...]:
    """Return both sides, and the log where it is declared."""
    return tuple(ledger for ledger in COMPARED_LEDGERS if ledger in scope.evidence)


def scan_buckets(scope: Scope, compared: Compared, forced: DataFrame | None) -> BucketScan | None:
    """Return the scan of the buckets that are uncertain or have `forced` positions; None where there are none."""
    known = _marked_unclean(compared, forced)
    counted = known.agg(F.count("*").alias("all"), F.count_if("is_unclean").alias("unclean")).collect()[0]
    if not counted["unclean"]:
        return None
    rows = {ledger: judged_rows(scope, ledger) for ledger in compared_ledgers(scope)}
    share, touched = counted["unclean"] / counted["all"], None
    if share <= FEW_BUCKETS:
        touched = as_set(_with_neighbours(known), "bucket")
        bucket, near = bucket_of(compared.widths), reach(touched, 1 << compared.widths.bucket_bits)
        rows = {
            ledger: materialised(within(side if near is None else side.filter(near), touched, bucket))
            for ledger, side in rows.items()
        }
    share = 1 if touched is None else _WITH_NEIGHBOURS * share
    positions = _compared_in(scope, compared, rows, share)
    return BucketScan(touched, rows, materialised(_marks(positions)))


def share_clean(scope: Scope, compared: Compared) -> float:
    """Return the share of clean positions in a sample of the window's buckets; 1 where the sample is empty."""
    is_drawn = F.pmod(F.xxhash64(*PLACE, bucket_of(compared.widths)), F.lit(_SAMPLE)) == 0
    rows = {ledger: judged_rows(scope, ledger).filter(is_drawn) for ledger in compared_ledgers(scope)}
    drawn = _compared_in(scope, compared, rows, share=1 / _SAMPLE)
    counted = drawn.agg(F.count("*").alias("all"), F.count_if("is_clean").alias("clean")).collect()[0]
    return float(counted["clean"] / counted["all"]) if counted["all"] else 1.0


def _compared_in(
    scope: Scope, compared: Compared, rows: Mapping[Ledger, DataFrame], share: float
) -> DataFrame:
    """Return one row per position of the ledgers' rows in some buckets, with the columns of `clean_among`."""
    at = {name: F.col(name) for name in (*PLACE, "offset")} | {"bucket": bucket_of(compared.widths)}
    narrowed = [narrow(scope, compared.columns, ledger, side, at) for ledger, side in rows.items()]
    gathered = reduce(DataFrame.unionByName, narrowed).repartition(tasks_for(scope, share), *BUCKET)
    return clean_among(scope, compared.columns, gathered, (*BUCKET, "offset"))


def _marked_unclean(compared: Compared, forced: DataFrame | None) -> DataFrame:
    """Return the buckets: `is_unclean` where a scan is needed, `is_sent` where anything was sent."""
    is_uncertain = F.col("is_dirty") | F.col("is_unclear")
    known = compared.together.select(
        *BUCKET, is_uncertain.alias("is_unclean"), (F.col("sent") > 0).alias("is_sent")
    )
    if forced is None:
        return known
    at = forced.select(*PLACE, bucket_of(compared.widths).alias("bucket")).distinct()
    marked = at.select(*[F.col(name).alias(f"n_{name}") for name in BUCKET], F.lit(True).alias("is_forced"))
    is_unclean = F.col("is_unclean") | F.coalesce("is_forced", F.lit(False))
    joined = known.join(marked, same(BUCKET, "n_"), how="left")
    return joined.select(*BUCKET, is_unclean.alias("is_unclean"), "is_sent")


def _with_neighbours(buckets: DataFrame) -> DataFrame:
    """Return the buckets that are not clean, those before and after them, and each partition's first."""
    in_order = Window.partitionBy(*PLACE).orderBy("bucket")
    near = [F.coalesce(neighbour("is_unclean").over(in_order), F.lit(False)) for neighbour in (F.lag, F.lead)]
    known = buckets.filter("is_unclean OR is_sent").withColumn("is_near", reduce(Column.__or__, near))
    return known.filter("is_unclean OR is_near OR bucket = 0").select(*BUCKET)


def narrow(
    scope: Scope, columns: Shared, ledger: Ledger, rows: DataFrame, by: Mapping[str, Column]
) -> DataFrame:
    """Return the columns of a ledger's rows for `clean_among`, and `by`; hashes of other ledgers' pairs are null."""
    known = hashed(LedgerRows(rows, scope.evidence[ledger].present, {}), ledger, scope.contract, columns)
    own, nothing = hashes_of(columns, ledger), F.lit(None).cast("bigint")
    is_plain, is_inside = _bits(ledger)
    fact = F.lit(is_plain) + F.when(scope.in_window(F.col("own_time")), is_inside).otherwise(0)
    return known.select(
        *[value.alias(name) for name, value in by.items()],
        *[(F.col(name) if name in own else nothing).alias(name) for name in hashes_of(columns)],
        "time",
        F.col("own_time").alias("began"),
        F.when(F.col("is_plain"), fact).otherwise(0).alias("facts"),
    )


def _bits(ledger: Ledger) -> tuple[int, int]:
    """Return the two bits of the ledger: that a row is plain, and that it is plain and in the window."""
    place = 2 * COMPARED_LEDGERS.index(ledger)
    return 1 << place, 2 << place


def clean_among(
    scope: Scope, columns: Shared, rows: DataFrame, by: Sequence[str], *kept_columns: str
) -> DataFrame:
    """Return one row per value of `by`, and whether it is clean, given the `narrow` rows of all ledgers together.

    | … | is_clean | is_seen | latency_micros | sample_hash |
    |---|----------|---------|----------------|-------------|
    | … | true     | true    | 1500           | -83         |

    The `kept_columns`, which one ledger alone fills, are kept. A value has one plain row of each ledger if it has as
    many rows as there are ledgers, and a plain one of each. Two hashes are equal if their XOR is 0; a hash that a
    ledger does not have is null, and skipped.
    """
    ledgers = compared_ledgers(scope)
    is_sent, is_effect = (_has(_bits(ledger)[0]) for ledger in SIDES)
    one_each = (F.count("*") == len(ledgers)) & reduce(
        Column.__and__, [_has(_bits(ledger)[0], F.bit_or("facts")) for ledger in ledgers]
    )
    is_equal = reduce(Column.__and__, [F.bit_xor(name) == 0 for name in hashes_of(columns)])
    # Callers shuffle first: before that hardly any value has two rows in one task, and adding up there saves nothing.
    known = rows.groupBy(*by).agg(
        *[F.max(name).alias(name) for name in kept_columns],
        F.coalesce(one_each & is_equal, F.lit(False)).alias("is_matched"),
        F.max(F.when(is_sent, F.col("time"))).alias("done_at"),
        F.max(F.when(is_effect, F.col("time"))).alias("seen_at"),
        F.max(F.when(is_sent, F.col("began"))).alias("began_at"),
        F.bit_or("facts").alias("facts"),
        F.min("first").alias("sample_hash"),
    )
    is_in_time = F.coalesce(F.col("seen_at") <= F.col("done_at") + F.lit(scope.allowed_latency), F.lit(False))
    is_early = comes_before(scope.contract, F.col("seen_at"), F.col("began_at"))
    is_clean = F.col("is_matched") & is_in_time & ~is_early
    is_owned, is_seen = (is_clean & _has(_bits(ledger)[1]) for ledger in SIDES)
    latency = F.unix_micros("seen_at") - F.unix_micros("done_at")
    return known.select(
        *by,
        *kept_columns,
        is_clean.alias("is_clean"),
        is_seen.alias("is_seen"),
        F.when(is_owned, latency).alias("latency_micros"),
        F.when(is_owned, F.col("sample_hash")).alias("sample_hash"),
    )


def _marks(positions: DataFrame) -> DataFrame:
    """Return the `marks` of a `BucketScan`. One row per position would take four times the memory."""
    offset = F.col("offset")
    bits = bits_of_marks(is_unclean=~F.col("is_clean"))
    bits["seen"] = bits_at(offset, F.col("is_seen"))[""]
    place = offset.bitwiseAND((1 << EIGHT_BITS) - 1)
    of_one = [
        F.max(F.when(place == number, F.col(name))).alias(f"{name}_{number}")
        for name in ("latency_micros", "sample_hash")
        for number in range(1 << EIGHT_BITS)
    ]
    of_all = [F.bit_or(bit).alias(name) for name, bit in bits.items()]
    return positions.groupBy(*BUCKET, F.shiftright(offset, EIGHT_BITS).alias("eight")).agg(*of_all, *of_one)


def clean_in(marks: DataFrame) -> DataFrame:
    """Return one row per clean position that the window owns or has the effect of.

    | topic | partition | offset | is_seen | latency_micros | sample_hash |
    |-------|-----------|--------|---------|----------------|-------------|
    | a     | 0         | 17     | true    | 1500           | -83         |

    `latency_micros` and `sample_hash` are null where the window does not own it.
    """
    positions = []
    for number in range(1 << EIGHT_BITS):
        offset = F.shiftleft("eight", EIGHT_BITS).bitwiseOR(number)
        is_seen = F.col("seen").bitwiseAND(bits_at(offset)[""]) != 0
        columns = {"offset": offset, "is_seen": is_seen}
        columns |= {name: F.col(f"{name}_{number}") for name in ("latency_micros", "sample_hash")}
        positions.append(F.struct(*[value.alias(name) for name, value in columns.items()]))
    return marks.select(*PLACE, F.inline(F.array(*positions))).filter("is_seen OR latency_micros IS NOT NULL")


def _has(bit: int, facts: Column | None = None) -> Column:
    bits = F.col("facts") if facts is None else facts
    return bits.bitwiseAND(bit) != 0


def tasks_for(scope: Scope, share: float) -> int:
    """Return the number of tasks for a share of the rows, so that each task has few enough to be quick."""
    rows = sum(scope.evidence[ledger].coverage.rows for ledger in compared_ledgers(scope))
    return 1 + int(share * rows) // ROWS_PER_TASK
