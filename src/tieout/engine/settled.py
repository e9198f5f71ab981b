"""What is asked beside the fingerprints before a window is settled, and what a settled window's statement is made of.

In a window whose every message was sent once and delivered once, a row of either side is a message: rules about order
and commits are put to the rows themselves. Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.classes.reordered import reorder_consumer, reorder_output, reorder_producer
from tieout.engine.classes.standing import COMMIT_ROWS, commit_regression
from tieout.engine.classes.stretches import commit_stale
from tieout.engine.fingerprint import BUCKET, done_at, sampled_millis
from tieout.engine.joining import same
from tieout.engine.materialising import materialised
from tieout.engine.positions import PLACE, commits_of
from tieout.engine.scope import Scope
from tieout.engine.statement import COUNTS
from tieout.model import Ledger

_ACCURACY: Final = 10_000
_ONCE_PER_MESSAGE: Final = ("attempts", "acked_attempts", "messages", "accepted", "delivered")
_ONCE_PER_EFFECT: Final = ("effects", "first_effects")


def doubtful_commits(scope: Scope) -> Iterator[DataFrame]:
    """Yield the commits below their predecessors, and those that output went on without for longer than it may."""
    commits = commits_of(scope)
    if commits is None:
        return
    yield commit_regression(scope, commits).select("topic")
    if scope.evidence[Ledger.COMMITTED].coverage.is_sound:
        yield from _stale(scope, commits)


def _stale(scope: Scope, commits: DataFrame) -> Iterator[DataFrame]:
    """Yield the commits that output went on without; only the output in long pauses between commits is looked at."""
    until = scope.evidence[Ledger.COMMITTED].coverage.complete_until
    in_time = Window.partitionBy(*PLACE).orderBy("committed_at")
    dated = commits.filter(F.col("committed_at").isNotNull()).select(*PLACE, "committed_at").distinct()
    pauses = materialised(
        dated.select(
            *[F.col(name).alias(f"of_{name}") for name in PLACE],
            F.col("committed_at").alias("since"),
            F.coalesce(F.lead("committed_at").over(in_time), F.lit(until)).alias("following"),
        ).filter(F.col("following") - F.col("since") > F.lit(scope.patience))
    )
    if pauses.isEmpty():
        return
    is_inside = same(PLACE, "of_") & (F.col("at") >= F.col("since")) & (F.col("at") < F.col("following"))
    output = scope.rows(Ledger.DELIVERED).filter(scope.is_ours())
    effects = output.select(*PLACE, "offset", F.col("processed_at").alias("at"), F.lit("effect").alias("by"))
    inside = effects.join(F.broadcast(pauses), is_inside, how="left_semi")
    yield commit_stale(scope, commits, inside).select("topic")


def reorders(scope: Scope) -> Iterator[DataFrame]:
    """Yield the reorders that the evidence allows to judge, one frame a class."""
    if scope.has(Ledger.PRODUCED, "sequence"):
        yield reorder_producer(scope, _messages(scope, Ledger.PRODUCED)).select("topic")
    if scope.has(Ledger.DELIVERED, "consumer_id", "generation", "processed_at"):
        yield reorder_consumer(scope, scope.rows(Ledger.DELIVERED).filter(scope.is_ours())).select("topic")
    if scope.has(Ledger.PRODUCED, "key_hash"):
        yield reorder_output(scope, _messages(scope, Ledger.DELIVERED)).select("topic")


def _messages(scope: Scope, ledger: Ledger) -> DataFrame:
    """Return the rows of one side as the messages they are, with what rules about order ask of them."""
    rows = scope.rows(ledger)
    facts: dict[str, Column] = {
        "first_offset": F.col("offset"),
        "acceptance": F.lit("accepted"),
        "sent_key_hash": F.array_compact(F.array("key_hash")),
        "has_plain_record": F.lit(False),
        "has_idempotent_record": F.lit(False),
    }
    if ledger is Ledger.PRODUCED:
        at = F.col("attempted_at").alias("at")
        facts["first_attempt"] = F.struct(at, "sequence", "producer_id", "producer_session")
        facts["first_sent"] = facts["first_attempt"]
        facts["first_acked"] = F.struct(at, done_at().alias("done_at"))
    else:
        rows = rows.filter(scope.is_ours())
        at = F.col("processed_at").alias("at")
        facts["first_effect"] = F.struct(at, "delivery_sequence", "consumer_id")
    return rows.select(*PLACE, "message_id", *[fact.alias(name) for name, fact in facts.items()])


def partition_counts_of(sent: DataFrame, arrived: DataFrame) -> DataFrame:
    """Return the statement's counts per topic partition that the window touches, from the buckets of both sides."""
    nothing = F.lit(0).cast("bigint")
    inside = F.col("inside")
    summed = (
        sent.select(*PLACE, inside.alias("sent"), nothing.alias("seen"))
        .unionByName(arrived.select(*PLACE, nothing.alias("sent"), inside.alias("seen")))
        .groupBy(*PLACE)
        .agg(F.sum("sent").alias("sent"), F.sum("seen").alias("seen"))
        .filter((F.col("sent") > 0) | (F.col("seen") > 0))
    )
    values = dict.fromkeys(COUNTS, nothing)
    values |= dict.fromkeys(_ONCE_PER_MESSAGE, F.col("sent")) | dict.fromkeys(_ONCE_PER_EFFECT, F.col("seen"))
    return summed.select(*PLACE, *[value.alias(name) for name, value in values.items()])


def sampled_latency(together: DataFrame, pairs: DataFrame | None, messages: int) -> dict[str, Any]:
    """Return the statement's latency: the mean of all `messages`, percentiles of `sample` of them, no maximum.

    `together` are both sides' buckets; each that belongs to the window as a whole gives its sums, and one message
    chosen by its hash. Of buckets that are split, `pairs` has the messages themselves.
    """
    whole = together.filter((F.col("owned") > 0) & ~F.col("is_split"))
    millis = sampled_millis(F.col("seen_sample")) - sampled_millis(F.col("done_sample"))
    micros = (F.col("seen_micros") - F.col("done_micros")).cast("decimal(38,0)").alias("micros")
    sampled = whole.select((millis / 1000).alias("seconds"), micros)
    if pairs is not None:
        split = together.filter("is_split").select(*[F.col(name).alias(f"s_{name}") for name in BUCKET])
        mine = pairs.filter("is_owned").join(F.broadcast(split), same(BUCKET, "s_"), how="left_semi")
        micros = F.col("micros").cast("decimal(38,0)").alias("micros")
        sampled = sampled.unionByName(mine.select((F.col("micros") / 1_000_000).alias("seconds"), micros))
    levels = F.array(F.lit(0.5), F.lit(0.95), F.lit(0.99))
    row = sampled.agg(
        F.count("*").alias("sample"),
        F.sum("micros").alias("micros"),
        F.percentile_approx("seconds", levels, F.lit(_ACCURACY)).alias("p"),
    ).collect()[0]
    p50, p95, p99 = row["p"] or (None, None, None)
    mean = round(float(row["micros"]) / messages / 1_000_000, 6) if messages else None
    return {
        "count": messages,
        "mean_s": mean,
        "p50_s": p50,
        "p95_s": p95,
        "p99_s": p99,
        "max_s": None,
        "sample": row["sample"],
    }


def no_breaks(scope: Scope, columns: tuple[str, ...]) -> DataFrame:
    """Return the breaks of a settled window: none, in the columns that a clean window's breaks have."""
    types = dict.fromkeys(columns, "string") | {
        "flags": "array<string>",
        "partition": "int",
        "offset": "bigint",
        "positions": "array<struct<topic:string,partition:int,offset:bigint>>",
        "admissible": "array<string>",
        "evidence": f"struct<{Ledger.COMMITTED.value}:{COMMIT_ROWS}>",
    }
    schema = ",".join(f"`{name}` {types[name]}" for name in columns)
    return scope.rows(Ledger.PRODUCED).sparkSession.createDataFrame([], schema)
