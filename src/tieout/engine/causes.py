"""Causes: why a break happened, told only where the evidence leaves one; else `admissible` lists those that fit.

Docs: docs/reference/taxonomy.md, section 4, which says of each cause what proves it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.added_partitions import with_added_partitions
from tieout.engine.epochs import (
    is_after_election,
    is_of_former_topic,
    is_of_older_leader,
    was_before_topic,
    with_epochs,
)
from tieout.engine.joining import joined_by_key, same
from tieout.engine.keys import PLACE
from tieout.engine.matching import Matched
from tieout.engine.positions import with_first_passing
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Cause, Ledger, Locus

_MOVES: Final = ("seek", "reset")
_RUN: Final = ("run", *PLACE, "class", "locus", "own_cause", "flags", "commit")
"""What the breaks of one run have in common; what tells most of them apart is compared first."""


def own_cause() -> Column:
    """Return the cause that a message's own row proves, else null."""
    is_plain = F.coalesce(F.col("has_plain_record") & ~F.col("has_idempotent_record"), F.lit(False))
    is_idempotent = F.coalesce(F.col("has_idempotent_record") & ~F.col("has_plain_record"), F.lit(False))
    sends = F.col("acked") + F.when(is_idempotent, F.col("unknown")).otherwise(0)
    is_phantom = F.col("class").eqNullSafe(BreakClass.PHANTOM_ABORTED.value)
    one_each = F.size("effect_positions") == F.col("effect_rows")
    is_doubled_by_it = (
        (F.col("class") == BreakClass.OUTPUT_DUPLICATE.value) & ~_is_doubled_in_log() & one_each
    )
    return (
        F.when(
            _is_doubled_in_log() & (F.col("attempts") == 1) & is_plain, Cause.RETRY_WITHOUT_IDEMPOTENCE.value
        )
        .when(_is_doubled_in_log() & (sends >= F.size("visible")) & (sends >= 2), Cause.RESEND.value)
        .when(F.col("is_from_aborted") & (is_phantom | is_doubled_by_it), Cause.ABORTED_READ.value)
        .when(_is_zombie(), Cause.ZOMBIE.value)
        .when((F.col("class") == BreakClass.LOST.value) & F.col("went_unread"), Cause.TOPIC_RECREATED.value)
        .when(_is_lost_in(Locus.SINK) & F.coalesce("is_prepared", F.lit(False)), Cause.NOT_COMMITTED.value)
    )


def _is_lost_in(locus: Locus) -> Column:
    return (F.col("class") == BreakClass.LOST.value) & (F.col("locus") == locus.value)


def _is_doubled_in_log() -> Column:
    return (F.col("class") == BreakClass.LOG_DUPLICATE.value) | F.array_contains("flags", "inherited")


def _is_zombie() -> Column:
    """Return whether a consumer of an older generation wrote last: it had been replaced, and did not know."""
    newest = F.array_max("effect_readers.generation")
    is_stale = F.col("last_effect.generation") < newest
    is_double = F.col("class") == BreakClass.OUTPUT_DUPLICATE.value
    return F.coalesce(is_double & ~_is_doubled_in_log() & is_stale, F.lit(False))


def admissible() -> Column:
    """Return the causes that the kind of break admits, before evidence decides between them."""
    name, locus = F.col("class"), F.col("locus")
    is_lost = name == BreakClass.LOST.value
    is_read_by_two = (name == BreakClass.OUTPUT_DUPLICATE.value) & (F.size("effect_readers") >= 2)
    resets = (Cause.OFFSET_RESET, Cause.OFFSETS_EXPIRED)
    return (
        F.when(_is_doubled_in_log(), _listed(Cause.RETRY_WITHOUT_IDEMPOTENCE, Cause.RESEND))
        .when(is_read_by_two, _listed(Cause.PROCESS_BEFORE_COMMIT, Cause.ZOMBIE, Cause.OFFSET_RESET))
        .when(is_lost & F.array_contains("flags", "EXPIRED"), _listed(Cause.RETENTION_OVERRUN, *resets))
        .when(is_lost & (locus == Locus.BROKER.value), _listed(Cause.UNCLEAN_ELECTION, Cause.TOPIC_RECREATED))
        .when(
            is_lost & (locus == Locus.CONSUMER.value),
            _listed(Cause.COMMIT_BEFORE_PROCESS, Cause.POISON, *resets),
        )
        .when(is_lost & (locus == Locus.BROKER_TO_CONSUMER.value), _listed(*resets))
        .when(is_lost & (locus == Locus.SINK.value), _listed(Cause.NOT_COMMITTED))
        .when(is_lost & F.coalesce("is_superseded", F.lit(False)), _listed(Cause.COMPACTION))
        .when(
            name == BreakClass.REDELIVERY.value,
            _listed(Cause.PROCESS_BEFORE_COMMIT, Cause.ZOMBIE, Cause.OFFSET_RESET),
        )
        .otherwise(F.array().cast("array<string>"))
    )


def _listed(*causes: Cause) -> Column:
    return F.array(*[F.lit(cause.value) for cause in causes])


def with_causes(scope: Scope, breaks: DataFrame, line: DataFrame, found: Matched) -> DataFrame:
    """Return the breaks of messages with `cause`: what the message, its run or its position proves, else `unknown`.

    `breaks` are `breaks.broken_messages`, `line` is `breaks.lined_up`. Only the causes in `admissible` that were not
    proved stay open; `fitting` are all that the kind of break admits.
    """
    whole = (Window.unboundedPreceding, Window.unboundedFollowing)
    of_run = Window.partitionBy(*_RUN).orderBy("rank").rowsBetween(*whole)
    ends = line.select(
        "line_key",
        *_RUN,
        "offset",
        F.min("offset").over(of_run).alias("run_first"),
        F.max("offset").over(of_run).alias("run_last"),
        F.first("previous_offset").over(of_run).alias("run_previous"),
        F.last("next_offset").over(of_run).alias("run_next"),
        F.first("reader_before").over(of_run).alias("run_before"),
        F.last("reader_after").over(of_run).alias("run_after"),
        F.first("previous_effect_at").over(of_run).alias("before_processed_at"),
        F.min("last_effect_at").over(of_run).alias("restarted_at"),
    )
    runs = _with_retention(scope, _with_restart_position(ends, found.commits), found.progress)
    own = [name for name in runs.columns if name not in breaks.columns]
    known = joined_by_key(breaks, runs.select(*own), "line_key")
    known = with_epochs(scope, known, found.log)
    known = with_added_partitions(scope, known, found.progress)
    is_lost = F.col("class") == BreakClass.LOST.value
    is_lost_by_broker = is_lost & (F.col("locus") == Locus.BROKER.value)
    cause = F.coalesce(
        F.col("own_cause"),
        F.when(F.lit(found.commits is not None) & _is_commit_first(scope), Cause.COMMIT_BEFORE_PROCESS.value),
        F.when(_is_range_lost(), Cause.COMMIT_BEFORE_PROCESS.value),
        F.when(_is_process_first(), Cause.PROCESS_BEFORE_COMMIT.value),
        F.when(is_lost_by_broker & is_after_election(scope), Cause.UNCLEAN_ELECTION.value),
        F.when(is_lost_by_broker & was_before_topic(scope, F.col("acked_at")), Cause.TOPIC_RECREATED.value),
        F.when(is_lost & F.col("is_overrun"), Cause.RETENTION_OVERRUN.value),
        F.when(_begins_partition() & F.col("is_of_added"), Cause.PARTITIONS_ADDED.value),
        F.lit(Cause.UNKNOWN.value),
    )
    fitting = F.when(_begins_partition(), F.concat("admissible", _listed(Cause.PARTITIONS_ADDED))).otherwise(
        F.col("admissible")
    )
    caused = known.withColumn("cause", cause)
    return caused.withColumns({"fitting": fitting, "admissible": _left_open(fitting)})


def _begins_partition() -> Column:
    """Return whether a run of losses that the group went over is the first that its partition ever held."""
    was_passed = F.col("locus").isin(Locus.CONSUMER.value, Locus.BROKER_TO_CONSUMER.value)
    is_lost = F.col("class") == BreakClass.LOST.value
    return F.coalesce(is_lost & was_passed & (F.col("run_first") == 0), F.lit(False))


def _left_open(fitting: Column) -> Column:
    return F.when(F.col("cause") == Cause.UNKNOWN.value, fitting).otherwise(F.array("cause"))


def _is_commit_first(scope: Scope) -> Column:
    """Return whether a run of losses ends at the commit that covered it, where readers change, and was committed first.

    First, because the message before the run was processed after that commit: an offset reset leaves the same run, but
    behind a commit that follows what was processed.
    """
    ends_at_commit = (F.col("commit") > F.col("run_last")) & (
        F.col("run_next").isNull() | (F.col("commit") <= F.col("run_next"))
    )
    committed_at = F.col("cover.committed_at") + F.lit(scope.contract.clock_skew)
    is_first = F.col("before_processed_at") > committed_at
    holds = (
        (F.col("class") == BreakClass.LOST.value)
        & (F.col("locus") == Locus.CONSUMER.value)
        & ends_at_commit
        & (F.col("run_before") != F.col("run_after"))
        & is_first
    )
    return F.coalesce(holds, F.lit(False))


def _is_range_lost() -> Column:
    """Return whether a run of losses is a whole range that was committed, and that began where the one before ended.

    Not where nothing beside the run had an effect: an output that was emptied loses whole ranges, too.
    """
    first, end = F.col("cover.first_offset"), F.col("cover.committed_offset")
    is_whole = (F.col("run_first") >= first) & (F.col("run_last") < end)
    is_whole &= F.col("run_previous").isNull() | (F.col("run_previous") < first)
    is_whole &= F.col("run_next").isNull() | (F.col("run_next") >= end)
    has_neighbour = F.col("run_before").isNotNull() | F.col("run_after").isNotNull()
    holds = _is_lost_in(Locus.CONSUMER) & F.col("cover.is_next") & is_whole & has_neighbour
    return F.coalesce(holds, F.lit(False))


def _is_process_first() -> Column:
    """Return whether a run that two readers processed begins where the commits stood; the first of them came first.

    A run that had been committed before was not read again for want of a commit: the commit was taken back.
    """
    starts_at_commit = (F.col("restart_offset") <= F.col("run_first")) & (
        F.col("run_previous").isNull() | (F.col("restart_offset") > F.col("run_previous"))
    )
    was_committed = F.col("reached_offset") > F.col("run_first")
    last = F.struct("last_effect.consumer_id", "last_effect.generation")
    holds = (
        (F.col("class") == BreakClass.OUTPUT_DUPLICATE.value)
        & ~F.array_contains("flags", "inherited")
        & (F.size("effect_readers") >= 2)
        & ~last.eqNullSafe(F.col("run_before"))
        & starts_at_commit
        & ~was_committed
    )
    return F.coalesce(holds, F.lit(False))


def _with_restart_position(breaks: DataFrame, commits: DataFrame | None) -> DataFrame:
    """Return breaks with `restart_offset` and `reached_offset`.

    The former is where the commits stood when the run's messages had their last effect, the latter how far
    they had ever come by then.
    """
    none = F.lit(None).cast("bigint")
    if commits is None:
        return breaks.withColumns({"restart_offset": none, "reached_offset": none})
    names = breaks.columns
    marks = commits.filter(F.col("committed_at").isNotNull()).select(
        *PLACE,
        F.col("committed_at").alias("restarted_at"),
        F.lit(0).alias("turn"),
        F.col("committed_offset").alias("stood"),
    )
    points = breaks.withColumns({"turn": F.lit(1), "stood": F.lit(None).cast("bigint")})
    by_time = (
        Window.partitionBy(*PLACE).orderBy("restarted_at", "turn").rowsBetween(Window.unboundedPreceding, 0)
    )
    together = points.unionByName(marks, allowMissingColumns=True).withColumns(
        {
            "restart_offset": F.last("stood", ignorenulls=True).over(by_time),
            "reached_offset": F.max("stood").over(by_time),
        }
    )
    return together.filter(F.col("turn") == 1).select(*names, "restart_offset", "reached_offset")


def _with_retention(scope: Scope, breaks: DataFrame, progress: DataFrame) -> DataFrame:
    """Return breaks with `is_overrun`: the log began above the position before the group had come that far.

    When the log's start passed a position is known from the observations of its bounds; that the group was on its way,
    from a commit, a read or an effect no later than that.
    """
    if not scope.has(Ledger.LOG, "log_start_offset", "observed_at"):
        return breaks.withColumn("is_overrun", F.lit(False))
    names = breaks.columns
    seen = scope.rows(Ledger.LOG).filter(
        F.col("log_start_offset").isNotNull() & F.col("observed_at").isNotNull()
    )
    starts = seen.groupBy(*PLACE, (F.col("log_start_offset") - 1).alias("offset")).agg(
        F.min("observed_at").alias("mark")
    )
    points = breaks.withColumn("turn", F.lit(1))
    downwards = Window.partitionBy(*PLACE).orderBy(F.col("offset").desc(), F.col("turn"))
    first = F.min("mark").over(downwards.rowsBetween(Window.unboundedPreceding, 0))
    gone = (
        points.unionByName(starts.withColumn("turn", F.lit(0)), allowMissingColumns=True)
        .withColumn("gone_at", first)
        .filter(F.col("turn") == 1)
        .select(*names, "gone_at")
    )
    passed = with_first_passing(gone, progress)
    begun = progress.groupBy(*[F.col(name).alias(f"s_{name}") for name in PLACE]).agg(
        F.min("at").alias("begun_at")
    )
    known = passed.join(F.broadcast(begun), same(PLACE, "s_"), how="left").drop("s_topic", "s_partition")
    was_below = F.col("passed_at").isNull() | (F.col("passed_at") > F.col("gone_at"))
    is_overrun = F.array_contains("flags", "EXPIRED") & was_below & (F.col("begun_at") <= F.col("gone_at"))
    return known.withColumn("is_overrun", F.coalesce(is_overrun, F.lit(False)))


def with_standing_causes(scope: Scope, breaks: DataFrame, found: Matched) -> DataFrame:
    """Return standing breaks with `cause` and `admissible`, from their `clues` and from log and assignments."""
    clued = breaks.withColumn("sent_at", F.col("clues.sent_at"))
    known = _with_moves(scope, with_epochs(scope, clued, found.log))
    name, clues = F.col("class"), F.col("clues")
    is_of_log = name.isin(BreakClass.LOG_TRUNCATION.value, BreakClass.LOG_IDENTITY_CONFLICT.value)
    is_regression = name == BreakClass.COMMIT_REGRESSION.value
    is_same_reader = clues["generation"] == clues["generation_before"]
    is_annotated = F.array_contains("flags", "annotated")
    cut_off = (name == BreakClass.COMMIT_OUT_OF_RANGE.value) & clues["is_beyond_end"]
    proved = {
        Cause.UNCLEAN_ELECTION: is_of_log & is_after_election(scope),
        Cause.SEVERAL_IN_FLIGHT: clues["is_plain_overlap"],
        Cause.OFFSET_RESET: is_regression & (is_annotated | F.col("was_reset")),
        Cause.ZOMBIE: is_regression & (clues["generation"] < clues["generation_before"]),
        Cause.PARALLEL_COMMITS: is_regression & is_same_reader & F.col("stayed"),
        Cause.COMMIT_AFTER_TRUNCATION: cut_off & is_of_older_leader(clues["leader_epoch"]),
        Cause.TOPIC_RECREATED: is_of_log & was_before_topic(scope, clues["acked_at"])
        | cut_off & is_of_former_topic(scope, clues["leader_epoch"], clues["committed_at"]),
    }
    told = [F.when(F.coalesce(holds, F.lit(False)), cause.value) for cause, holds in proved.items()]
    fitting = (
        F.when(is_of_log, _listed(Cause.UNCLEAN_ELECTION, Cause.TOPIC_RECREATED))
        .when(name == BreakClass.REORDER_PRODUCER.value, _listed(Cause.SEVERAL_IN_FLIGHT))
        .when(is_regression, _listed(Cause.PARALLEL_COMMITS, Cause.OFFSET_RESET, Cause.ZOMBIE))
        .when(cut_off, _listed(Cause.COMMIT_AFTER_TRUNCATION, Cause.TOPIC_RECREATED))
        .when(name == BreakClass.COMMIT_OUT_OF_RANGE.value, _listed(Cause.RETENTION_OVERRUN))
        .when(name == BreakClass.COMMIT_AHEAD.value, _listed(Cause.COMMIT_BEFORE_PROCESS))
        .otherwise(F.array().cast("array<string>"))
    )
    return (
        known.withColumn("cause", F.coalesce(*told, F.lit(Cause.UNKNOWN.value)))
        .withColumn("admissible", _left_open(fitting))
        .select(*breaks.columns, "cause", "admissible")
    )


def _with_moves(scope: Scope, breaks: DataFrame) -> DataFrame:
    """Return breaks with whether the group's position `was_reset`, or certainly `stayed`, between two commits."""
    if not scope.has(Ledger.ASSIGNED, "kind") or not scope.evidence[Ledger.ASSIGNED].coverage.is_sound:
        return breaks.withColumns({"was_reset": F.lit(False), "stayed": F.lit(False)})
    moves = (
        scope.rows(Ledger.ASSIGNED)
        .filter(scope.is_ours() & F.lower("kind").isin(*_MOVES))
        .select(F.explode("partitions").alias("place"), F.lower("kind").alias("kind"), "assigned_at")
        .groupBy(F.col("place.topic").alias("m_topic"), F.col("place.partition").alias("m_partition"))
        .agg(F.collect_list(F.struct("kind", "assigned_at")).alias("moves"))
    )
    known = breaks.join(F.broadcast(moves), same(PLACE, "m_"), how="left").drop("m_topic", "m_partition")
    between = F.filter(
        "moves",
        lambda move: move["assigned_at"].between(F.col("clues.before_at"), F.col("clues.committed_at")),
    )
    is_reset = F.exists(between, lambda move: move["kind"] == "reset")
    covers = scope.covered_until(Ledger.ASSIGNED, F.col("clues.committed_at"))
    return known.withColumns(
        {
            "was_reset": F.coalesce(is_reset, F.lit(False)),
            "stayed": covers & (F.col("moves").isNull() | (F.size(between) == 0)),
        }
    ).drop("moves")
