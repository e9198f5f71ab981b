"""Facts about clean messages: their sums, and what the rules about other messages need to know of them.

Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.clean import Clean, Sums
from tieout.engine.joining import same, small_side
from tieout.engine.keys import PLACE, POSITION
from tieout.engine.materialising import materialised
from tieout.engine.prematch.bucket_scan import BucketScan, clean_in, compared_ledgers, judged_rows
from tieout.engine.prematch.comparing import Compared
from tieout.engine.prematch.early import comes_before
from tieout.engine.prematch.fingerprint import Widths, bucket_of, sampled_millis
from tieout.engine.prematch.log_bounds import as_records
from tieout.engine.prematch.orders import orders_of
from tieout.engine.prematch.position_sets import outside
from tieout.engine.prematch.remainder import Remainder
from tieout.engine.scope import Scope
from tieout.engine.session import settings_of
from tieout.model import Identity, Ledger


def _sums(compared: Compared, remainder: Remainder) -> Sums:
    """Return the sums over the clean messages that are not in the remainder."""
    scanned = (
        None
        if remainder.scan is None
        else materialised(_scanned(remainder.scan.marks, remainder, compared.widths))
    )
    return Sums(
        counts=materialised(_counts(compared, remainder.scan, scanned)),
        latencies=materialised(_latencies(compared, remainder.scan, scanned)),
        share=1 << compared.widths.bucket_bits,
    )


def clean_of(
    scope: Scope,
    compared: Compared,
    remainder: Remainder,
    remaining_rows: Mapping[Ledger, DataFrame],
    bounds: DataFrame | None,
) -> Clean:
    """Return the messages of the scope that are not in the remainder, with all facts that rules may need of them.

    `bounds` are the log's, None where none is declared.
    """
    rows = {
        ledger: outside(judged_rows(scope, ledger), remainder.positions) for ledger in compared_ledgers(scope)
    }
    reached = compared.arrived.filter("is_plain").withColumnsRenamed({"last": "offset", "latest": "at"})
    facts = {
        "clean_steps": steps_of(reached),
        "clean_progress": in_pauses(scope, rows[Ledger.DELIVERED]),
        "clean_contents": _contents(scope, remaining_rows, rows[Ledger.PRODUCED]),
    }
    return clean_with(scope, _sums(compared, remainder), rows, remaining_rows, bounds, facts)


def clean_with(
    scope: Scope,
    sums: Sums,
    rows: Mapping[Ledger, DataFrame],
    remaining_rows: Mapping[Ledger, DataFrame],
    bounds: DataFrame | None,
    facts: Mapping[str, DataFrame | None],
    placed: DataFrame | None = None,
) -> Clean:
    """Return clean messages with the given facts, and with those about their places in the log and in orders."""
    known = {name: materialised(found) for name, found in facts.items() if found is not None}
    if bounds is not None:
        rows = {**rows, Ledger.LOG: as_records(rows[Ledger.LOG])}
        known["clean_positions"] = materialised(_positions_in(scope, rows[Ledger.LOG], bounds))
    orders = orders_of(scope, rows, remaining_rows, placed)
    known |= {name: materialised(found) for name, found in orders.items()}
    return Clean(sums, rows, known, settings_of(scope.rows(Ledger.PRODUCED).sparkSession), placed)


def furthest_before_stamp(scope: Scope) -> int | None:
    """Return by how many microseconds, at most, a clean effect is earlier than its record's append time.

    None if no difference exceeds what clocks may differ by, or if the log has no append times.
    """
    clean = scope.clean
    if clean is None or Ledger.LOG not in clean.rows or not scope.has(Ledger.LOG, "timestamp_type"):
        return None
    is_own = F.lower("timestamp_type").contains("append")
    stamps = (
        clean.rows[Ledger.LOG]
        .filter(is_own)
        .select(
            *[F.col(name).alias(f"r_{name}") for name in POSITION], F.col("record_timestamp").alias("since")
        )
    )
    arrived = clean.rows[Ledger.DELIVERED] if clean.placed is None else clean.placed
    pairs = arrived.select(*POSITION, "processed_at").join(stamps, same(POSITION, "r_"))
    is_early = comes_before(scope.contract, F.col("processed_at"), F.col("since"))
    distance = F.max(F.unix_micros("since") - F.unix_micros("processed_at"))
    row = clean.computed(pairs.filter(is_early).agg(distance.alias("most"))).collect()[0]
    return None if row["most"] is None else int(row["most"])


def steps_of(reached: DataFrame) -> DataFrame:
    """Return the positions in `reached`, each with a time, whose time is later than that of all higher positions."""
    beyond = Window.partitionBy(*PLACE).orderBy(F.desc("offset")).rowsBetween(Window.unboundedPreceding, -1)
    since = reached.select(*PLACE, "offset", "at", F.max("at").over(beyond).alias("later"))
    return since.filter(F.col("later").isNull() | (F.col("at") > F.col("later"))).drop("later")


def in_pauses(scope: Scope, output: DataFrame) -> DataFrame | None:
    """Return the output in pauses between commits that are longer than the allowed latency; None where there is none.

    `output` are rows of clean messages with their positions.
    """
    if Ledger.COMMITTED not in scope.evidence or scope.contract.is_queue:
        return None
    coverage = scope.evidence[Ledger.COMMITTED].coverage
    if not coverage.is_sound:
        return None
    in_time = Window.partitionBy(*PLACE).orderBy("committed_at")
    is_dated = F.col("committed_offset").isNotNull() & F.col("committed_at").isNotNull()
    commits = scope.rows(Ledger.COMMITTED).filter(scope.is_ours(Ledger.COMMITTED) & is_dated)
    dated = commits.select(*PLACE, "committed_at").distinct()
    following = F.coalesce(F.lead("committed_at").over(in_time), F.lit(coverage.complete_until))
    pauses = materialised(
        dated.select(
            *[F.col(name).alias(f"of_{name}") for name in PLACE],
            F.col("committed_at").alias("since"),
            following.alias("following"),
        ).filter(F.col("following") - F.col("since") > F.lit(scope.allowed_latency))
    )
    if pauses.isEmpty():
        return None
    is_inside = same(PLACE, "of_") & (F.col("at") >= F.col("since")) & (F.col("at") < F.col("following"))
    effects = output.select(*PLACE, "offset", F.col("processed_at").alias("at"), F.lit("effect").alias("by"))
    return effects.join(F.broadcast(pauses), is_inside, how="left_semi")


def _positions_in(scope: Scope, records: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return how many clean records lie in the offsets that the window judges of each partition, and next to them.

    | topic | partition | is_below_start | is_judged | positions |
    |-------|-----------|----------------|-----------|-----------|
    | a     | 0         | false          | true      | 120       |
    | a     | 0         | false          | false     | 2         |

    The judged offsets are those appended in the window by the log's clock: up to the first one stamped at or after its
    end, or the log's end where there is none yet. The others follow, up to the last one stamped in the window.
    """
    stamp, offset = F.col("record_timestamp"), F.col("offset")
    seen = (
        judged_rows(scope, Ledger.LOG)
        .groupBy(*[F.col(name).alias(f"r_{name}") for name in PLACE])
        .agg(
            F.min(F.when(stamp >= F.lit(scope.window.start), offset)).alias("first_in"),
            F.max(F.when(scope.in_window(stamp), offset)).alias("last_in"),
            F.min(F.when(stamp >= F.lit(scope.window.end), offset)).alias("first_after"),
        )
    )
    ranges = materialised(
        bounds.join(seen, same(PLACE, "r_"), how="left").select(
            *[F.col(name).alias(f"b_{name}") for name in PLACE],
            F.coalesce("first_in", "log_end").alias("lo"),
            F.coalesce("first_after", "log_end").alias("hi"),
            F.greatest("last_in", F.coalesce("first_after", "log_end") - 1).alias("last"),
            "log_start",
        )
    )
    below = F.coalesce(offset < F.col("log_start"), F.lit(False)).alias("is_below_start")
    is_judged = (offset < F.col("hi")).alias("is_judged")
    is_near = same(PLACE, "b_") & (offset >= F.col("lo")) & (offset <= F.col("last"))
    near = records.select(*PLACE, "offset").join(F.broadcast(ranges), is_near)
    return near.groupBy(*PLACE, below, is_judged).agg(F.count("*").alias("positions"))


def _untouched(buckets: DataFrame, scan: BucketScan | None) -> DataFrame:
    """Return the buckets that were not scanned."""
    if scan is None:
        return buckets
    return buckets.limit(0) if scan.touched is None else outside(buckets, scan.touched, F.col("bucket"))


def _scanned(marks: DataFrame, remainder: Remainder, widths: Widths) -> DataFrame:
    """Return the sums over the scanned positions outside the remainder, one row per bucket.

    | topic | partition | sent | seen | micros | latency_micros |
    |-------|-----------|------|------|--------|----------------|
    | a     | 0         | 126  | 126  | 63000  | 500            |

    Of the messages that the window owns, `micros` is the sum of the latencies, and `latency_micros` the latency of the
    one with the lowest `sample_hash`; null where it owns none.
    """
    return (
        outside(clean_in(marks), remainder.positions)
        .groupBy(*PLACE, bucket_of(widths))
        .agg(
            F.count("latency_micros").alias("sent"),
            F.count_if("is_seen").alias("seen"),
            F.sum(F.col("latency_micros").cast("decimal(38,0)")).alias("micros"),
            F.min_by("latency_micros", "sample_hash").alias("latency_micros"),
        )
        .select(*PLACE, "sent", "seen", "micros", "latency_micros")
    )


def _counts(compared: Compared, scan: BucketScan | None, scanned: DataFrame | None) -> DataFrame:
    """Return per topic partition the number of clean messages that the window owns, and of effects in it."""
    nothing = F.lit(0).cast("bigint")
    sent, arrived = (_untouched(side.filter("is_plain"), scan) for side in (compared.sent, compared.arrived))
    inside = sent.select(*PLACE, F.col("inside").alias("sent"), nothing.alias("seen")).unionByName(
        arrived.select(*PLACE, nothing.alias("sent"), F.col("inside").alias("seen"))
    )
    if scanned is not None:
        inside = inside.unionByName(scanned.select(*PLACE, "sent", "seen"))
    return inside.groupBy(*PLACE).agg(F.sum("sent").alias("sent"), F.sum("seen").alias("seen"))


def _latencies(compared: Compared, scan: BucketScan | None, scanned: DataFrame | None) -> DataFrame:
    """Return per bucket the summed latency of its clean messages, `micros`, and one of them, `took`."""
    whole = _untouched(compared.together.filter("owned > 0"), scan)
    millis = sampled_millis(F.col("seen_sample")) - sampled_millis(F.col("done_sample"))
    micros = F.try_subtract("seen_micros", "done_micros").cast("decimal(38,0)").alias("micros")
    known = whole.select(micros, (millis * 1000).alias("took"))
    if scanned is not None:
        known = known.unionByName(
            scanned.filter("sent > 0").select("micros", F.col("latency_micros").alias("took"))
        )
    return known.withColumn("longest", F.lit(None).cast("bigint"))


def _contents(scope: Scope, remaining_rows: Mapping[Ledger, DataFrame], sent: DataFrame) -> DataFrame | None:
    """Return the topics and payloads that were sent cleanly and that an effect without identity shows as well.

    The remaining records of the log count as well, as one may be the record of such an effect.
    """
    by_position = scope.contract.identity is Identity.POSITION
    may_be_nameless = by_position or scope.evidence[Ledger.DELIVERED].may_lack_id
    if not may_be_nameless:
        return None
    effects = remaining_rows[Ledger.DELIVERED]
    nameless = effects if by_position else effects.filter(F.col("message_id").isNull())
    nameless = nameless.select("topic", "payload_hash")
    if Ledger.LOG in remaining_rows:
        nameless = nameless.unionByName(remaining_rows[Ledger.LOG].select("topic", "payload_hash"))
    shown = materialised(
        nameless.filter(F.col("payload_hash").isNotNull())
        .select(F.col("topic").alias("of_topic"), F.col("payload_hash").alias("copied"))
        .distinct()
    )
    if shown.isEmpty():
        return None
    is_same = F.col("payload_hash").eqNullSafe(F.col("copied")) & F.col("topic").eqNullSafe(F.col("of_topic"))
    return sent.join(small_side(shown), is_same, how="left_semi").select("topic", "payload_hash").distinct()
