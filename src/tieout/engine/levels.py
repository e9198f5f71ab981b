"""Two levels: what the first proves to be in order is never matched.

A window is settled where both sides agree in every bucket, every row is a plain acknowledged send or a plain effect, no
position and no id was sent twice, nothing is late, and neither orders nor commits show a break. Then each message has
one send, one effect at the same position with the same content, and is DELIVERED; its counts are sums. Whatever else
the first level sees, the window is matched in full. Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import add
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.evidence import Evidence
from tieout.engine.fingerprint import (
    BUCKET,
    POSITION,
    STANDARD,
    SUMS,
    Side,
    Widths,
    buckets_of,
    compared_columns,
    done_at,
)
from tieout.engine.joining import same
from tieout.engine.materialising import materialised
from tieout.engine.reading import OpenLedger
from tieout.engine.scope import Scope
from tieout.engine.session import SMALL_BYTES
from tieout.engine.settled import doubtful_commits, partition_counts_of, reorders, sampled_latency
from tieout.engine.sources.source import is_of_spark
from tieout.model import Identity, Ledger, Window

JUDGED: Final = frozenset({Ledger.PRODUCED, Ledger.DELIVERED, Ledger.COMMITTED})
"""The ledgers that the first level understands; with any other declared, windows are matched in full."""
_BOTH: Final = (Ledger.PRODUCED, Ledger.DELIVERED)
_ALL_BITS: Final = 64


@dataclass(frozen=True)
class Settled:
    """A window in which every message was delivered once and in order: its counts per partition, and its latency."""

    scope: Scope
    counts: DataFrame
    delivered: int
    latency: dict[str, Any]


def is_eligible(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    """Return whether the first level can judge the contract's windows, given the columns that each source has.

    Both sides must show positions: they make buckets that are close in time, and tell whether anything stands twice.
    """
    if not set(contract.ledgers) <= JUDGED or not {Ledger.PRODUCED, Ledger.DELIVERED} <= set(present):
        return False
    is_one_each = contract.multiplicity.kind != "one_to_many" and contract.id_scope == "global"
    sent, arrived = present[Ledger.PRODUCED], present[Ledger.DELIVERED]
    shows_order = "key_hash" not in sent or "key_hash" in arrived
    return (
        contract.identity in (Identity.MESSAGE_ID, Identity.POSITION)
        and is_one_each
        and shows_order
        and {*POSITION, "attempted_at", "outcome"} <= sent
        and {*POSITION, "processed_at"} <= arrived
        and not any("topic_id" in columns for columns in present.values())
    )


def settled_window(
    contract: Contract,
    window: Window,
    opened: Mapping[Ledger, OpenLedger],
    progress: Callable[[str], None],
) -> Settled | dict[Ledger, Evidence] | None:
    """Return the window settled, or the evidence as far as it had to be kept, or None where nothing was done.

    Small windows are matched at once: there the first level costs more than it saves. Columnar files are read again
    where the window has to be matched; what had to be parsed is parsed once and kept.
    """
    present = {ledger: known.found.present for ledger, known in opened.items() if known.found is not None}
    if set(present) != set(contract.ledgers) or not is_eligible(contract, present):
        return None
    if sum(opened[ledger].reading.size for ledger in _BOTH) <= SMALL_BYTES:
        return None
    evidence = {ledger: known.kept() for ledger, known in opened.items() if not known.is_left_alone}
    progress("comparing the sides' fingerprints")
    produced, delivered = (_side(opened[ledger], evidence.get(ledger)) for ledger in _BOTH)
    try:
        compared = compare(contract, window, produced, delivered)
    except Exception as error:
        if not is_of_spark(error):
            raise
        compared = None  # what does not read is found, named and left out where the ledgers are kept
    if compared is not None:
        told = {
            ledger: opened[ledger].told(compared.counts[ledger]) for ledger in _BOTH if ledger not in evidence
        }
        found = settled(Scope(contract, window, evidence | told), compared)
        if found is not None:
            return found
    return {ledger: evidence.get(ledger) or known.kept() for ledger, known in opened.items()}


def _side(opened: OpenLedger, kept: Evidence | None) -> Side:
    """Return a ledger for the first level: as it was kept, else as it lies in its source."""
    if kept is not None:
        return Side(kept.rows, kept.present, {})
    if opened.found is None:
        raise ValueError(f"the ledger {opened.request.ledger} has no rows to compare")
    return Side(opened.found.rows, opened.found.present, opened.counted)


@dataclass(frozen=True)
class Compared:
    """Both sides of a window, read once: their buckets, each side's and together, and the counts taken on the way.

    `together` has one row a bucket: `is_dirty` where the sides differ, a position stands twice or a row is not plain;
    `is_unclear` where only times are in question: a message may be late, or belong to another window (`is_split`).
    """

    sent: DataFrame
    arrived: DataFrame
    together: DataFrame
    counts: Mapping[Ledger, Mapping[str, int]]
    widths: Widths


def compare(
    contract: Contract, window: Window, produced: Side, delivered: Side, widths: Widths = STANDARD
) -> Compared:
    """Read each side once, and return their buckets; the rows are not kept."""
    columns = compared_columns(produced.present, delivered.present)
    buckets, counts = {}, {}
    for ledger, side in zip(_BOTH, (produced, delivered), strict=True):
        rows = buckets_of(side, ledger, contract, window, columns, widths)
        buckets[ledger] = materialised(rows)
        totals = [F.coalesce(F.sum(f"counted_{name}"), F.lit(0)).alias(name) for name in side.counted]
        counts[ledger] = buckets[ledger].agg(*totals).collect()[0].asDict() if totals else {}
    sent, arrived = (buckets[ledger] for ledger in _BOTH)
    patience = contract.max_latency + contract.clock_skew
    return Compared(sent, arrived, materialised(_together(sent, arrived, patience)), counts, widths)


def _together(sent: DataFrame, arrived: DataFrame, patience: timedelta) -> DataFrame:
    """Return one row a bucket of both sides: what is left of it when one side is taken from the other."""
    is_sent, is_plain = F.col("sign") == 1, F.col("is_plain")
    words = [name for name in sent.columns if name.startswith("word_")]
    positions = reduce(add, (F.bit_count(name) for name in words))
    left = {
        name: F.sum(F.when(is_plain, F.col("sign") * F.col(name)).otherwise(0)) for name in ("rows", *SUMS)
    }
    merged = (
        sent.withColumns({"sign": F.lit(1), "done_at": F.col("earliest")})
        .unionByName(
            arrived.withColumns({"sign": F.lit(-1), "seen_at": F.col("latest")}), allowMissingColumns=True
        )
        .groupBy(*BUCKET)
        .agg(
            F.array(*left.values()).alias("left"),
            F.sum("rough").alias("rough"),
            F.bool_or(is_plain & (F.col("rows") != positions)).alias("is_repeated"),
            F.coalesce(F.sum(F.when(is_sent & is_plain, F.col("rows"))), F.lit(0)).alias("sent"),
            F.coalesce(F.sum(F.when(is_sent & is_plain, F.col("inside"))), F.lit(0)).alias("owned"),
            F.min(F.when(is_plain, F.col("done_at"))).alias("done_at"),
            F.max(F.when(is_plain, F.col("seen_at"))).alias("seen_at"),
            F.sum(F.when(is_plain & is_sent, F.col("micros"))).alias("done_micros"),
            F.sum(F.when(is_plain & ~is_sent, F.col("micros"))).alias("seen_micros"),
            F.max(F.when(is_plain & is_sent, F.col("sample"))).alias("done_sample"),
            F.max(F.when(is_plain & ~is_sent, F.col("sample"))).alias("seen_sample"),
        )
    )
    is_left = F.exists("left", lambda difference: difference != 0)
    is_in_time = F.coalesce(F.col("seen_at") <= F.col("done_at") + F.lit(patience), F.lit(False))
    is_split = (F.col("owned") > 0) & (F.col("owned") < F.col("sent"))
    return merged.withColumns(
        {
            "is_dirty": is_left | (F.col("rough") > 0) | F.col("is_repeated"),
            "is_split": is_split,
            "is_unclear": ((F.col("sent") > 0) & ~is_in_time) | is_split,
        }
    )


def settled(scope: Scope, compared: Compared) -> Settled | None:
    """Return the window with its counts where nothing speaks against it, else None."""
    pairs = None
    if any(not doubt.isEmpty() for doubt in _cheap_doubts(scope, compared)):
        return None
    if not compared.together.filter("is_unclear").isEmpty():
        pairs = unclear_pairs(scope, compared)
    if any(not doubt.isEmpty() for doubt in _costly_doubts(scope, compared, pairs)):
        return None
    counts = materialised(
        partition_counts_of(*[side.filter("is_plain") for side in (compared.sent, compared.arrived)])
    )
    messages = counts.agg(F.coalesce(F.sum("delivered"), F.lit(0)).alias("messages")).collect()[0]["messages"]
    return Settled(scope, counts, messages, sampled_latency(compared.together, pairs, messages))


def doubts(scope: Scope, compared: Compared) -> Iterator[DataFrame]:
    """Yield what speaks against a window: frames with a `topic` or `message_id`, empty where nothing does."""
    yield from _cheap_doubts(scope, compared)
    yield from _costly_doubts(scope, compared, unclear_pairs(scope, compared))


def _cheap_doubts(scope: Scope, compared: Compared) -> Iterator[DataFrame]:
    yield compared.together.filter("is_dirty").select("topic")
    yield from doubtful_commits(scope)


def _costly_doubts(scope: Scope, compared: Compared, pairs: DataFrame | None) -> Iterator[DataFrame]:
    """Yield what takes another look at the rows; each look builds on those before having found nothing."""
    if pairs is not None:
        yield pairs.filter("is_late").select("topic")
    if scope.contract.identity == Identity.MESSAGE_ID:
        yield repeated_ids(scope.rows(Ledger.PRODUCED).select("message_id"), compared.widths.id_bits)
    yield from reorders(scope)


def unclear_pairs(scope: Scope, compared: Compared) -> DataFrame:
    """Return the messages of unclear buckets with `is_late`, whether the window owns them, and their `micros`."""
    unclear = compared.together.filter("is_unclear").select(
        *[F.col(name).alias(f"u_{name}") for name in BUCKET]
    )
    bucket = F.shiftright("offset", compared.widths.bucket_bits).alias("bucket")

    def inside(rows: DataFrame) -> DataFrame:
        return rows.withColumn("bucket", bucket).join(
            F.broadcast(unclear), same(BUCKET, "u_"), how="left_semi"
        )

    is_owned = scope.in_window(F.col("attempted_at")).alias("is_owned")
    sent = inside(scope.rows(Ledger.PRODUCED)).select(*POSITION, done_at().alias("done_at"), is_owned)
    arrived = inside(scope.rows(Ledger.DELIVERED).filter(scope.is_ours())).select(
        *[F.col(name).alias(f"at_{name}") for name in POSITION], F.col("processed_at").alias("seen_at")
    )
    is_same = [F.col(name) == F.col(f"at_{name}") for name in POSITION]
    return materialised(
        sent.join(arrived, is_same, how="inner").select(
            *("topic", "partition", bucket, "is_owned"),
            (F.col("seen_at") > F.col("done_at") + F.lit(scope.patience)).alias("is_late"),
            (F.unix_micros("seen_at") - F.unix_micros("done_at")).alias("micros"),
        )
    )


def repeated_ids(ids: DataFrame, bits: int) -> DataFrame:
    """Return the ids that stand twice: by so many bits of a hash, and where these are equal, by the ids themselves.

    Rows without an id are not plain, and need no second look. Sums cannot tell: a message sent twice and delivered
    twice cancels itself. This look costs a shuffle of one side's hashes, about as much as both scans.
    """
    hashed = F.xxhash64("message_id")
    if bits < _ALL_BITS:
        hashed = F.shiftrightunsigned(hashed, _ALL_BITS - bits)
    named = ids.filter(F.col("message_id").isNotNull())
    hashes = named.groupBy(hashed.alias("suspected")).agg(F.count("*").alias("rows"))
    suspected = materialised(hashes.filter("rows > 1").select("suspected"))
    if suspected.isEmpty():
        return suspected.select(F.lit(None).cast("string").alias("message_id"))
    is_suspected = F.col("hashed") == F.col("suspected")
    again = named.withColumn("hashed", hashed).join(suspected, is_suspected, how="left_semi")
    return again.groupBy("message_id").agg(F.count("*").alias("rows")).filter("rows > 1").select("message_id")
