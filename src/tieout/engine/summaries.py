"""Bounded summaries of messages and breaks: the only numbers that reach the driver.

Docs: docs/reference/taxonomy.md, section 3 (`classes`, `flags`) and section 4 (incidents).
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.coverage import standing_is_told
from tieout.engine.materialising import materialised
from tieout.engine.quiet import Sums
from tieout.engine.scope import Scope
from tieout.engine.suspicions import doubted_of
from tieout.model import BreakClass, Ledger

_NEVER_FLAGS: Final = (BreakClass.DELIVERED.value, BreakClass.RECOVERED.value, BreakClass.NOT_SENT.value)

_COMPARED: Final = (
    BreakClass.CORRUPTED_VALUE.value,
    BreakClass.CORRUPTED_KEY.value,
    BreakClass.CORRUPTED_HEADER.value,
    BreakClass.CORRUPTED_TIMESTAMP.value,
    BreakClass.MISROUTED.value,
)
"""Classes that show only where what was sent is known."""
_NOT_OF_QUEUES: Final = (BreakClass.LOST.value, BreakClass.COMMIT_AHEAD.value, BreakClass.SKIPPED.value)
"""Classes that hold of what a reader in order went past; a member of a share group may still be given it."""
_ISOLATION: Final = (BreakClass.PHANTOM_ABORTED.value, BreakClass.PHANTOM_UNCOMMITTED.value)
"""Classes that show only where the ends of transactions are known."""


def tallied(scope: Scope, messages: DataFrame, breaks: DataFrame, *by: str) -> DataFrame:
    """Return how often each primary class occurs with each set of classes and flags, per `by`.

    Columns: `by`, `class`, `held` (the class and all flags), `doubtful` (what of these the evidence does not confirm),
    `count`. Few rows, however many messages.
    """
    held = F.array_distinct(F.concat(F.array("class"), "flags"))
    of_messages = messages.filter("is_judged_here").select(
        *by,
        "class",
        held.alias("held"),
        F.array_union(_doubtful(scope, held), _misread(scope, held)).alias("doubtful"),
    )
    is_told = F.col("class").isin(told_standing(scope)) & F.col("is_covered")
    doubtful = F.when(~is_told, held).otherwise(F.array_intersect(held, doubted_of(scope.suspicions.doubted)))
    standing = breaks.filter(F.col("kind") != "message").select(
        *by, "class", held.alias("held"), F.array_union(doubtful, _misread(scope, held)).alias("doubtful")
    )
    tally = of_messages.unionByName(standing).groupBy(*by, "class", "held", "doubtful").count()
    return tally if scope.beside is None else tally.unionByName(_quiet_tally(scope.beside.sums, *by))


def _quiet_tally(quiet: Sums, *by: str) -> DataFrame:
    """Return the tally of messages that no rule looked at: each is DELIVERED, and nothing else."""
    name = F.lit(BreakClass.DELIVERED.value)
    return (
        quiet.counts.filter("delivered > 0")
        .groupBy(*by)
        .agg(F.sum("delivered").alias("count"))
        .filter("count > 0")
        .select(
            *by,
            name.alias("class"),
            F.array(name).alias("held"),
            F.array().cast("array<string>").alias("doubtful"),
            "count",
        )
    )


def told_standing(scope: Scope) -> list[str]:
    """Return the standing classes whose ledgers say enough to confirm a break."""
    return [name.value for name in BreakClass if standing_is_told(scope, name)]


def counts_of(tally: Iterable[Any]) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return the counts of primary classes, of everything that holds, and of what its ledgers do not cover."""
    classes: dict[str, int] = {}
    flags: dict[str, int] = {}
    unconfirmed: dict[str, int] = {}
    for row in tally:
        count = row["count"]
        classes[row["class"]] = classes.get(row["class"], 0) + count
        for name in row["held"]:
            if name in _NEVER_FLAGS:
                continue
            flags[name] = flags.get(name, 0) + count
            if name in row["doubtful"]:
                unconfirmed[name] = unconfirmed.get(name, 0) + count
    return dict(sorted(classes.items())), dict(sorted(flags.items())), dict(sorted(unconfirmed.items()))


def _doubtful(scope: Scope, held: Column) -> Column:
    """Return the classes and flags of a message that the ledgers which show them do not cover.

    Effects must lie in their ledger's coverage, and the attempts in theirs that a changed or misrouted message is held
    against; the log must be sound that shows a transaction open or aborted. That all attempts failed has its own
    question. Loss carries its own proof, and of an unknown phantom one effect is enough; unless the evidence as a whole
    is suspected.
    """
    ledger = scope.effect_ledger
    is_unknown = F.col("class").eqNullSafe(F.lit(BreakClass.PHANTOM_UNKNOWN.value))
    first, last = (
        F.when(is_unknown, F.col("first_seen_at")).otherwise(end)
        for end in (F.col("first_effect_at"), F.col("last_effect.at"))
    )
    is_covered = scope.covered_between(ledger, first, last)
    is_aborted = F.col("class").eqNullSafe(F.lit(BreakClass.PHANTOM_ABORTED.value))
    effects_hold = (F.col("effect_rows") == 0) | is_covered
    may_have_succeeded = is_aborted & ~_have_all_failed(scope)
    attempts_hold = scope.covered_between(
        Ledger.PRODUCED, F.col("first_attempt.at"), F.col("last_attempt_at")
    )
    undecided = _ISOLATION if _is_log_unsound(scope) else ()
    doubted = [F.when(~attempts_hold, name) for name in _COMPARED]
    doubted += [F.when(may_have_succeeded, BreakClass.PHANTOM_ABORTED.value), *map(F.lit, undecided)]
    uncovered = F.when(~effects_hold, F.array_except(held, F.array(F.lit(BreakClass.LOST.value)))).otherwise(
        F.array_intersect(held, F.array(*doubted))
    )
    return F.array_union(uncovered, F.array_intersect(held, doubted_of(scope.suspicions.doubted)))


def _misread(scope: Scope, held: Column) -> Column:
    """Return which of the classes and flags may only seem to hold because a queue was read as a log."""
    misread = sorted(misread_classes(scope))
    return F.array_intersect(held, F.array(*map(F.lit, misread)).cast("array<string>"))


def misread_classes(scope: Scope) -> frozenset[str]:
    """Return the classes that are not confirmed because the evidence shows a queue and the contract says a log."""
    return frozenset(_NOT_OF_QUEUES if scope.is_misread_queue else ())


def _is_log_unsound(scope: Scope) -> bool:
    """Return whether the log may lack the marker that decided a transaction otherwise."""
    return Ledger.LOG in scope.evidence and not scope.evidence[Ledger.LOG].coverage.is_sound


def _have_all_failed(scope: Scope) -> Column:
    """Return whether an attempt that succeeded would be known: by `produced` up to the effects, and by the log.

    A later attempt may have been acknowledged, and a failed one may have left its record in a declared log, as one that
    an effect names and nobody sent. Of a committed transaction it may have done so in any log.
    """
    first, last = F.col("first_attempt.at"), F.col("last_attempt_at")
    until = F.greatest(last, F.col("last_effect.at") + F.lit(scope.contract.clock_skew))
    is_told = scope.covered_between(Ledger.PRODUCED, F.least(first, F.col("first_effect_at")), until)
    if Ledger.LOG not in scope.evidence:
        return is_told & ~F.col("is_contradicted")
    is_logged = scope.covered_between(Ledger.LOG, first, last)
    return is_told & ((F.col("aborted") > 0) | (is_logged & ~F.col("is_from_written")))


def latency_of(messages: DataFrame) -> dict[str, Any]:
    """Return the seconds from acknowledgement to first effect over the delivered messages, null without any."""
    return told_latency(latencies(messages).collect()[0])


def latencies(messages: DataFrame, *by: str) -> DataFrame:
    """Return one row per `by` of what `told_latency` says, over the delivered messages."""
    seconds = _took() / F.lit(1_000_000)
    return (
        _delivered(messages)
        .groupBy(*by)
        .agg(
            F.count(seconds).alias("count"),
            F.sum(_took().cast("decimal(38,0)")).alias("micros"),
            _percentiles(seconds).alias("p"),
            F.max(seconds).alias("max"),
        )
    )


def told_latency(row: Any) -> dict[str, Any]:
    """Return the statement's `latency` of a row of `latencies`; None stands for no messages."""
    count, micros = (row["count"], row["micros"]) if row else (0, None)
    p50, p95, p99 = (row["p"] if row else None) or (None, None, None)
    return {
        "count": count,
        "mean_s": _mean(micros, count),
        "p50_s": p50,
        "p95_s": p95,
        "p99_s": p99,
        "max_s": row["max"] if row else None,
    }


def sampled_latency(quiet: Sums, messages: DataFrame | None) -> dict[str, Any]:
    """Return the same of quiet messages and those that were matched: the mean of all, percentiles of a sample.

    The sample has one quiet message a bucket, and about the same share of the others; nobody knows the maximum, unless
    every message is a bucket of its own.
    """
    count = quiet.counts.agg(F.coalesce(F.sum("delivered"), F.lit(0)).alias("count")).collect()[0]["count"]
    latencies = quiet.latencies
    if messages is not None:
        took = _took()
        is_drawn = F.pmod(F.xxhash64("key"), F.lit(quiet.share)) == 0
        seconds = F.when(is_drawn, took / F.lit(1_000_000)).alias("seconds")
        matched = materialised(
            _delivered(messages).select(seconds, took.cast("decimal(38,0)").alias("micros"))
        )
        count += matched.count()
        latencies = latencies.unionByName(matched)
    row = latencies.agg(
        F.count("seconds").alias("sample"),
        F.sum("micros").alias("micros"),
        _percentiles(F.col("seconds")).alias("p"),
        F.max("seconds").alias("max"),
    ).collect()[0]
    p50, p95, p99 = row["p"] or (None, None, None)
    known = {"max_s": row["max"]} if quiet.share == 1 else {"max_s": None, "sample": row["sample"]}
    return {
        "count": count,
        "mean_s": _mean(row["micros"], count),
        "p50_s": p50,
        "p95_s": p95,
        "p99_s": p99,
        **known,
    }


def _mean(micros: Decimal | None, count: int) -> float | None:
    """Return the mean in seconds, rounded to microseconds, null without any.

    >>> _mean(Decimal(5), 2)
    3e-06
    """
    if micros is None:
        return None
    return float((micros / count / 1_000_000).quantize(Decimal("0.000001"), ROUND_HALF_UP))


def _took() -> Column:
    """Return the microseconds from a message's acknowledgement to its first effect."""
    return F.unix_micros("first_effect_at") - F.unix_micros("done_at")


def _delivered(messages: DataFrame) -> DataFrame:
    return messages.filter(F.col("is_owned") & (F.col("disposition") == "delivered") & _took().isNotNull())


def _percentiles(seconds: Column) -> Column:
    return F.percentile_approx(seconds, F.array(F.lit(0.5), F.lit(0.95), F.lit(0.99)), F.lit(10_000))


def incidents_of(breaks: DataFrame, limit: int) -> list[dict[str, Any]]:
    """Return the incidents, largest first, at most `limit`.

    Breaks of one incident are of one class with the same flags, so of one severity.
    """
    shared = ("incident_id", "class", "locus", "cause", "topic", "partition")
    grouped = (
        breaks.groupBy(*shared, "severity")
        .agg(
            F.min("offset").alias("first_position"),
            F.max("offset").alias("last_position"),
            F.count("*").alias("breaks"),
        )
        .select(*shared, "first_position", "last_position", "breaks", "severity")
        .orderBy(F.col("breaks").desc(), "incident_id")
        .limit(limit)
    )
    # Each task has its own largest: executors put these together, where `collect` would leave it to the driver.
    return [row.asDict() for row in grouped.toLocalIterator()]
