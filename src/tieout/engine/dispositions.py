"""What became of each message: delivered, accounted for in a legal way, lost, or not yet to be said.

Docs: docs/reference/taxonomy.md, section 2 (due) and section 3 (dispositions, in their order).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.joining import same, small_side
from tieout.engine.keys import NEVER, PLACE
from tieout.engine.materialising import materialised
from tieout.engine.multiplicity import is_in_doubt, is_whole
from tieout.engine.pairing import with_equals_elsewhere
from tieout.engine.positions import frontier_of, with_first_cover
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

_LOG_FACTS: Final = ("is_expired", "is_covered", "is_superseded", "is_compacted")
_LIMITS: Final = ("log_start", "stated_start", "log_end", "observed_at")


def disposed(
    scope: Scope,
    messages: DataFrame,
    bounds: DataFrame | None,
    superseding: DataFrame | None,
    commits: DataFrame | None,
    progress: DataFrame,
    *,
    may_share_ids: bool,
) -> DataFrame:
    """Return the messages with `disposition` (null unless accepted), `is_due`, and the facts about their positions.

    Position facts are worked out for messages without effect, by content for all: `is_passed`, `was_jumped` (the
    group is known beyond each visible one), `went_unread` (with a topic that was deleted), `is_committed` (the commits
    cover it), `covers` (the first commit beyond each visible one), `cover` (the first of these), `is_expired`,
    `is_covered_by_log`, `is_missing_in_log`, `is_compacted`.
    `superseding` is what takes a key's records from a compacted log (`superseding_of`), or None.
    `may_share_ids` says whether any id is used for several messages.
    """
    by_content = scope.contract.identity == Identity.CONTENT
    is_asked = F.col("acceptance").isin("accepted", "unproven") & (~is_whole(scope) | F.lit(by_content))
    asked = messages.filter(is_asked)
    facts = materialised(position_facts(scope, asked, bounds, superseding, commits, progress))
    facts = (small_side(facts) if scope.is_large else facts).withColumnRenamed("key", "facts_key")
    together = messages.join(facts, F.col("key") == F.col("facts_key"), how="left")
    known = with_ambiguity(scope, together.drop("facts_key"), may_share_ids=may_share_ids)
    due = known.withColumn("is_old_enough", _is_old_enough(scope)).withColumn(
        "is_missing_in_log", _is_missing(scope)
    )
    due = due.withColumn("is_due", F.col("is_old_enough") & _is_settled())
    if by_content:
        due = with_equals_elsewhere(
            due, _is_settled(), scope.covered_from(scope.effect_ledger, _began(scope))
        )
    return due.withColumn("disposition", _disposition(scope)).withColumn(
        "is_committed_ahead", _is_committed_ahead(scope)
    )


def _is_committed_ahead(scope: Scope) -> Column:
    """Return whether a commit covered a record without effect, the evidence being complete beyond what it may take."""
    is_open = F.col("disposition").isin("lost", "in_flight") & (F.col("effect_rows") == 0)
    if scope.contract.identity == Identity.CONTENT:
        is_open &= ~F.col("may_be_elsewhere")
    is_complete = F.exists("covers", lambda cover: is_accounted_after(scope, cover["committed_at"]))
    return F.coalesce(is_open & is_complete, F.lit(False))


def is_accounted_after(scope: Scope, committed_at: Column) -> Column:
    """Return whether what had no effect yet when it was committed would have shown one since."""
    return F.coalesce(scope.is_accounted(committed_at + F.lit(scope.patience)), F.lit(False))


def position_facts(
    scope: Scope,
    messages: DataFrame,
    bounds: DataFrame | None,
    superseding: DataFrame | None,
    commits: DataFrame | None,
    progress: DataFrame,
) -> DataFrame:
    """Return per message key what is known about all its visible or asserted positions together."""
    positions = messages.select(
        "key",
        F.explode("asserted").alias("position"),
        "sent_at",
        "done_at",
        F.array_max("sent_key_hash").alias("key_hash"),
        (F.size("visible") + F.col("written") + F.col("open")).alias("held_count"),
        "visible",
        F.array_contains("uncovered_copies", F.col("position")).alias("is_uncovered"),
    ).select("*", "position.topic", "position.partition", "position.offset")
    is_visible = F.array_contains("visible", F.col("position")) | F.lit(Ledger.LOG not in scope.evidence)
    positions = positions.withColumn("is_visible", is_visible).drop("position", "visible")
    positions = with_first_cover(positions, commits)
    reached = frontier_of(progress).select(
        *[F.col(name).alias(f"f_{name}") for name in PLACE], "passed", "committed"
    )
    positions = positions.join(F.broadcast(reached), same(PLACE, "f_"), how="left")
    positions = positions.drop("f_topic", "f_partition")
    positions = _with_log_facts(scope, positions, bounds, superseding, progress)
    positions = _with_deletion(scope, positions)
    cover = F.when(
        F.col("cover").isNotNull() & F.col("is_visible"),
        F.struct("cover.committed_at", "cover.committed_offset", "topic", "partition", "offset"),
    )
    facts = positions.groupBy("key").agg(
        F.bool_and(_is_passed() | F.col("went_unread")).alias("is_passed"),
        F.bool_and(F.when(F.col("is_visible"), F.col("offset") < F.col("passed"))).alias("was_jumped"),
        F.bool_and("went_unread").alias("went_unread"),
        F.bool_or(F.coalesce(F.col("offset") < F.col("committed"), F.lit(False))).alias("is_committed"),
        F.bool_and("is_expired").alias("is_expired"),
        F.bool_and(F.col("is_covered") | F.col("went_unread")).alias("is_covered_by_log"),
        F.bool_and("is_superseded").alias("is_superseded"),
        F.bool_and("is_compacted").alias("is_compacted"),
        F.collect_list(cover).alias("covers"),
    )
    return facts.withColumn("cover", F.array_min("covers"))


def _is_passed() -> Column:
    return F.coalesce(F.col("offset") <= F.col("passed"), F.lit(False))


def _with_deletion(scope: Scope, positions: DataFrame) -> DataFrame:
    """Return positions with `went_unread`: their topic was deleted before the group is known to have come that far.

    Nobody can come there any more; and a log that has another topic of the name lacks what this one held.
    """
    if scope.deleted is None:
        return positions.withColumn("went_unread", F.lit(False))
    gone = scope.deleted.select(F.col("topic").alias("deleted_topic"))
    known = positions.join(F.broadcast(gone), F.col("topic") == F.col("deleted_topic"), how="left")
    went_unread = F.col("deleted_topic").isNotNull() & ~_is_passed()
    return known.withColumn("went_unread", went_unread).drop("deleted_topic")


def with_first_records(
    scope: Scope,
    messages: DataFrame,
    attempts: DataFrame,
    records: DataFrame | None,
    bounds: DataFrame | None,
) -> DataFrame:
    """Return the messages with `has_first_record`: `produced` covers the first record of their topic, or partition.

    The log knows a topic's first record where it holds that at offset 0 of every partition, and all of it is dated: a
    compacted log begins at 0, too, and lacks what came first. An attempt at offset 0 is the first of its partition.
    """
    skew = F.lit(scope.contract.clock_skew)
    at_start = attempts.filter(F.col("offset") == 0)
    firsts = at_start.groupBy(*PLACE).agg(F.min("attempted_at").alias("at"))
    known = _covers_first(scope, messages, firsts, PLACE, skew, "has_first_of_partition")
    if records is None or bounds is None:
        return known.withColumnRenamed("has_first_of_partition", "has_first_record")
    whole = bounds.groupBy("topic").agg(
        (F.max(F.coalesce("log_start", F.lit(0))) == 0).alias("is_whole"),
        F.count_if(F.col("log_end") > 0).alias("used"),
    )
    stamps = records.groupBy("topic").agg(
        F.min("record_timestamp").alias("first"),
        F.bool_and(F.col("record_timestamp").isNotNull()).alias("is_dated"),
        F.count_if(F.col("offset") == 0).alias("begun"),
    )
    is_known = F.col("is_whole") & F.col("is_dated") & (F.col("begun") == F.col("used"))
    of_topic = whole.join(stamps, "topic").select("topic", F.when(is_known, F.col("first")).alias("at"))
    both = _covers_first(scope, known, of_topic, ("topic",), skew, "has_first_of_topic")
    has_first = F.coalesce("has_first_of_partition", F.lit(False)) | F.coalesce(
        "has_first_of_topic", F.lit(False)
    )
    return both.withColumn("has_first_record", has_first).drop("has_first_of_partition", "has_first_of_topic")


def _covers_first(
    scope: Scope, messages: DataFrame, firsts: DataFrame, place: tuple[str, ...], skew: Column, name: str
) -> DataFrame:
    """Return the messages with whether `produced` reaches back to the first record `at` of their place."""
    covered = firsts.select(
        *[F.col(column).alias(f"p_{column}") for column in place],
        scope.covered_from(Ledger.PRODUCED, F.col("at") - skew).alias(name),
    )
    joined = messages.join(F.broadcast(covered), same(place, "p_"), how="left")
    return joined.drop(*(f"p_{column}" for column in place))


def _with_log_facts(
    scope: Scope,
    positions: DataFrame,
    bounds: DataFrame | None,
    superseding: DataFrame | None,
    progress: DataFrame | None,
) -> DataFrame:
    """Return positions with `is_expired`, `is_covered`, `is_superseded` and `is_compacted`; all false without a log.

    `is_uncovered` says of a position that its own attempt, which may be later than the message's first, is not covered.
    """
    if bounds is None:
        return positions.withColumns(dict.fromkeys(_LOG_FACTS, F.lit(False)))
    covered = with_log_coverage(scope, positions, bounds)
    covered = covered.withColumn("is_covered", F.col("is_covered") & ~F.col("is_uncovered"))
    if superseding is None:
        return covered.withColumns(dict.fromkeys(("is_superseded", "is_compacted"), F.lit(False)))
    superseded = _with_superseding(covered, superseding)
    passed = superseded.withColumn("passed_at", F.lit(None).cast("timestamp"))
    if progress is not None:
        passed = with_first_passing(superseded, progress)
    was_passed = F.coalesce(F.col("passed_at") <= F.col("superseded_at"), F.lit(False))
    return passed.withColumn("is_compacted", F.col("is_superseded") & ~was_passed).drop(
        "passed_at", "superseded_at"
    )


def compacts(scope: Scope, bounds: DataFrame) -> bool:
    """Return whether any partition of the log may be compacted."""
    if not scope.has(Ledger.LOG, "cleanup_policy"):
        return False
    return not bounds.filter(F.col("cleanup_policy").contains("compact")).isEmpty()


def absent_positions(
    scope: Scope, attempts: DataFrame, log: DataFrame, bounds: DataFrame, records: DataFrame
) -> DataFrame:
    """Return the acked positions at which the log has no record, with `is_covered`, `is_expired`, `is_superseded`."""
    held = log.select(*[F.col(name).alias(f"held_{name}") for name in (*PLACE, "offset")])
    acked = attempts.filter((F.col("outcome") == "acked") & F.col("offset").isNotNull())
    absent = acked.join(held, same((*PLACE, "offset"), "held_"), how="left_anti").select(
        *PLACE,
        "offset",
        "message_id",
        "key_hash",
        F.col("attempted_at").alias("sent_at"),
        F.coalesce("completed_at", "attempted_at").alias("done_at"),
        F.lit(0).alias("held_count"),
        F.lit(False).alias("is_uncovered"),
    )
    return _with_log_facts(scope, absent, bounds, superseding_of(scope, records, attempts, bounds), None)


def with_log_coverage(scope: Scope, positions: DataFrame, bounds: DataFrame | None) -> DataFrame:
    """Return positions with `is_expired`, `is_covered` and `cleanup_policy`, given their `offset` and `done_at`.

    What lies below a start that the log states has expired. The log covers a position from its start on: below its end
    as far as its records are complete, from there on where the end was observed after the acknowledgement. An older
    observation cannot miss a younger record, and a partition of which the log shows nothing is none of its.
    """
    none = F.lit(None).cast("string")
    if bounds is None:
        return positions.withColumns(
            {"is_expired": F.lit(False), "is_covered": F.lit(False), "cleanup_policy": none}
        )
    limits = bounds.select(*[F.col(name).alias(f"b_{name}") for name in (*PLACE, *_LIMITS)], "cleanup_policy")
    known = positions.join(F.broadcast(limits), same(PLACE, "b_"), how="left")
    settled_at = F.col("done_at") + F.lit(scope.contract.clock_skew)
    was_observed = F.when(F.col("b_observed_at").isNotNull(), F.col("b_observed_at") >= settled_at).otherwise(
        scope.covered_until(Ledger.LOG, settled_at)
    )
    coverage = scope.evidence[Ledger.LOG].coverage
    is_told = F.lit(coverage.is_sound and coverage.complete_until is not None)
    is_below = F.coalesce(F.col("offset") < F.col("b_log_start"), F.lit(False))
    is_inside = F.coalesce(F.col("offset") < F.col("b_log_end"), F.lit(False))
    is_complete = F.col("done_at").isNull() | scope.covered_until(Ledger.LOG, F.col("done_at"))
    is_held = F.when(is_inside, is_complete).otherwise(F.coalesce(was_observed, F.lit(False)))
    is_reached = F.col("done_at").isNull() | scope.covered_from(Ledger.LOG, F.col("done_at"))
    is_sound = F.lit(coverage.is_sound) & is_reached
    is_shown = F.col("b_log_end").isNotNull()
    told = {
        "is_expired": is_told & F.coalesce(F.col("offset") < F.col("b_stated_start"), F.lit(False)),
        "is_covered": is_sound & is_shown & ~is_below & is_held,
    }
    return known.withColumns(told).drop(*[f"b_{name}" for name in (*PLACE, *_LIMITS)])


def superseding_of(
    scope: Scope, records: DataFrame, attempts: DataFrame, bounds: DataFrame
) -> DataFrame | None:
    """Return what takes a key's records from a compacted log: place, `key_hash`, `offset`, and `record`, since when.

    None where no partition may be compacted.
    A committed record takes those before it (`turn` 0). So does an acked tombstone, a keyed send that shows no payload
    where others of its topic do. It is gone itself in the end, nobody knows when (`turn` 2, before its own position).
    """
    if not compacts(scope, bounds):
        return None
    never = F.lit(NEVER).cast("timestamp")
    is_written = F.col("transaction_state").isin("none", "committed") & F.col("key_hash").isNotNull()
    stamped = F.coalesce("record_timestamp", never)
    later = records.filter(is_written).select(
        *PLACE, "key_hash", "offset", stamped.alias("record"), F.lit(0).alias("turn")
    )
    if not scope.has(Ledger.PRODUCED, "payload_hash"):
        return later
    held = records.select(*[F.col(name).alias(f"held_{name}") for name in (*PLACE, "offset")])
    shown = (
        attempts.filter(F.col("payload_hash").isNotNull())
        .select(F.col("topic").alias("told_topic"))
        .distinct()
    )
    is_tombstone = F.col("key_hash").isNotNull() & F.col("payload_hash").isNull()
    is_acked = (F.col("outcome") == "acked") & F.col("offset").isNotNull()
    gone = (
        attempts.filter(is_acked & is_tombstone)
        .join(shown, same(("topic",), "told_"), how="left_semi")
        .join(held, same((*PLACE, "offset"), "held_"), how="left_anti")
    )
    sent_at = F.coalesce("completed_at", "attempted_at", never)
    deleted = gone.groupBy(*PLACE, "key_hash", "offset").agg(F.min(sent_at).alias("record"))
    itself = deleted.withColumns({"record": never, "turn": F.lit(2)})
    return later.unionByName(deleted.withColumn("turn", F.lit(0))).unionByName(itself)


def _with_superseding(positions: DataFrame, superseding: DataFrame) -> DataFrame:
    """Return positions with `is_superseded`: gone, keyed, and something of `superseding` at or above them.

    `superseded_at` is since when, the end of time where that is not known.
    """
    names = positions.columns
    points = positions.withColumn("turn", F.lit(1))
    downwards = Window.partitionBy(*PLACE, "key_hash").orderBy(F.col("offset").desc(), F.col("turn").desc())
    nearest = F.last("record", ignorenulls=True).over(downwards.rowsBetween(Window.unboundedPreceding, 0))
    together = (
        points.unionByName(superseding, allowMissingColumns=True)
        .withColumn("superseded_at", nearest)
        .filter(F.col("turn") == 1)
    )
    is_compacting = F.coalesce(F.col("cleanup_policy").contains("compact"), F.lit(False))
    is_gone = F.col("is_covered") & (F.col("held_count") == 0) & F.col("key_hash").isNotNull()
    is_superseded = F.coalesce(is_gone & F.col("superseded_at").isNotNull() & is_compacting, F.lit(False))
    return together.withColumn("is_superseded", is_superseded).select(
        *names, "superseded_at", "is_superseded"
    )


def with_first_passing(positions: DataFrame, progress: DataFrame) -> DataFrame:
    """Return positions with `passed_at`, when a commit, a read or an effect first showed the group at or beyond them.

    What had been passed before compaction could take it was there to be read: compaction excuses nothing.
    """
    names = positions.columns
    marks = progress.select(*PLACE, "offset", F.col("at").alias("mark"), F.lit(0).alias("turn"))
    points = positions.withColumn("turn", F.lit(1))
    downwards = Window.partitionBy(*PLACE).orderBy(F.col("offset").desc(), F.col("turn"))
    first = F.min("mark").over(downwards.rowsBetween(Window.unboundedPreceding, 0))
    together = points.unionByName(marks, allowMissingColumns=True).withColumn("passed_at", first)
    return together.filter(F.col("turn") == 1).select(*names, "passed_at")


def with_ambiguity(scope: Scope, messages: DataFrame, *, may_share_ids: bool) -> DataFrame:
    """Return the messages with what else in their topic, or under their id, could be theirs.

    `has_unnamed_sends`, `has_unplaced_sends`, `has_orphans`, `has_nameless_orphans`: a send that shows no identity or
    no position, and an effect that shows nothing else, may be one and the same; while a topic has both, neither proves
    a loss nor a phantom. `shares_ambiguous_id`: an effect of the id fits none of its contents.
    `may_be_copy` is of `_with_copies`.
    """
    is_sent = (F.col("attempts") > 0) & (F.col("acceptance") != "failed")
    is_orphan = (F.col("attempts") == 0) & (F.col("effect_rows") > 0)
    by_content = scope.contract.identity == Identity.CONTENT
    by_position = F.lit(scope.contract.identity == Identity.POSITION)
    is_nameless = F.col("key").startswith("r:") if by_content else F.col("message_id").isNull() | by_position
    is_unnamed = ~F.col("has_identity") if by_content else F.col("message_id").isNull() & is_unplaced()
    by_topic = messages.groupBy(F.col("topic").alias("in_topic")).agg(
        _any(is_sent & is_unnamed).alias("has_unnamed_sends"),
        _any(is_sent & is_unplaced() & F.lit(not by_content)).alias("has_unplaced_sends"),
        _any(is_orphan).alias("has_orphans"),
        _any(is_orphan & is_nameless).alias("has_nameless_orphans"),
    )
    known = _with_copies(scope, messages)
    if not may_share_ids:
        known = known.withColumn("shares_ambiguous_id", F.lit(False))
    else:
        shared = messages.filter("is_ambiguous").select(F.col("message_id").alias("shared_id")).distinct()
        joined = known.join(shared, F.col("message_id") == F.col("shared_id"), how="left")
        known = joined.withColumn("shares_ambiguous_id", F.col("shared_id").isNotNull()).drop("shared_id")
    if scope.evidence[Ledger.PRODUCED].may_lack_position or by_content:
        by_topic = _over_unknown_topics(by_topic)
    return known.join(F.broadcast(by_topic), same(("topic",), "in_"), how="left").drop("in_topic")


def _with_copies(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return the messages with `may_be_copy`: an effect that shows no id holds what was sent, at no send's position.

    A retry inside a client writes a second record, and only one is acknowledged (taxonomy, trap 5).
    """
    shows_ids = scope.contract.identity == Identity.MESSAGE_ID and not (
        scope.evidence[scope.effect_ledger].may_lack_id
    )
    if shows_ids or scope.contract.identity == Identity.CONTENT:
        return messages.withColumn("may_be_copy", F.lit(False))
    is_named = F.col("message_id").isNotNull() & F.lit(scope.contract.identity == Identity.MESSAGE_ID)
    is_nameless = (F.col("attempts") == 0) & (F.col("effect_rows") > 0) & ~is_named
    content = F.explode(F.array_union("output_payload_hash", "logged_payload_hash")).alias("copied")
    shown = messages.filter(is_nameless).select(
        F.col("topic").alias("of_topic"), content, F.col("key").alias("of_key")
    )
    sent = messages.filter(F.col("attempts") > 0).select(
        "topic", F.explode("sent_payload_hash").alias("sent")
    )
    if scope.beside is not None and scope.beside.contents is not None:
        sent = sent.unionByName(scope.beside.contents)
    is_same = F.col("sent").eqNullSafe(F.col("copied")) & F.col("topic").eqNullSafe(F.col("of_topic"))
    copies = sent.join(F.broadcast(shown), is_same, how="inner").select("of_key").distinct()
    joined = messages.join(F.broadcast(copies), F.col("key") == F.col("of_key"), how="left")
    return joined.withColumn("may_be_copy", F.col("of_key").isNotNull()).drop("of_key")


def _over_unknown_topics(by_topic: DataFrame) -> DataFrame:
    """Return the same facts where a topic that is not known may be any: what holds of one holds of the other."""
    everywhere = Window.partitionBy(F.lit(True))
    names = [name for name in by_topic.columns if name != "in_topic"]
    of_any, of_unknown = F.col("in_topic").isNull(), {}
    for name in names:
        anywhere = F.bool_or(name).over(everywhere)
        untold = F.coalesce(F.bool_or(F.when(of_any, F.col(name))).over(everywhere), F.lit(False))
        of_unknown[name] = F.when(of_any, anywhere).otherwise(F.col(name) | untold)
    return by_topic.withColumns(of_unknown)


def is_unplaced() -> Column:
    """Return whether nothing shows where in the log the message is, and no effect that it arrived."""
    is_logged = F.col("written") + F.col("aborted") + F.col("open") > 0
    return (F.size("asserted") == 0) & (F.col("effect_rows") == 0) & ~is_logged


def _any(condition: Column) -> Column:
    """Return whether the condition holds in any row of the group; null counts as not."""
    return F.coalesce(F.bool_or(condition), F.lit(False))


def _is_old_enough(scope: Scope) -> Column:
    """Return whether both sides cover the message and its deadline has passed in the covered evidence."""
    sent_at = F.col("first_attempt.at")
    is_sent_covered = scope.covered_between(Ledger.PRODUCED, sent_at, sent_at)
    return is_sent_covered & scope.is_accounted(F.col("deadline"), since=_began(scope))


def _began(scope: Scope) -> Column:
    """Return the earliest that an effect of the message can be, by the consumer's clock."""
    return F.col("first_attempt.at") - F.lit(scope.contract.clock_skew)


def _is_missing(scope: Scope) -> Column:
    """Return whether a log that covers the message lacks it; what was aborted elsewhere is not what was acked."""
    if Ledger.LOG not in scope.evidence:
        return F.lit(False)
    is_absent = (F.size("visible") == 0) & (F.col("written") == 0) & (F.col("open") == 0)
    return is_absent & (F.size("asserted") > 0) & F.coalesce("is_covered_by_log", F.lit(False))


def _is_settled() -> Column:
    """Return whether nothing can still be on its way at any position of the message."""
    return (
        (F.size("asserted") == 0)
        | F.coalesce("is_passed", F.lit(False))
        | F.coalesce("is_expired", F.lit(False))
        | F.col("is_missing_in_log")
    )


def lacks_evidence(scope: Scope) -> Column:
    """Return whether what would decide on a message without effect is missing, rather than its time not having come."""
    horizon = scope.window.end + scope.contract.grace
    is_untold = ~scope.is_accounted(F.least(F.col("deadline"), F.lit(horizon)), since=_began(scope))
    sent_at = F.col("first_attempt.at")
    is_unattested = ~scope.covered_between(Ledger.PRODUCED, sent_at, sent_at)
    return is_untold | is_unattested


def _is_ambiguous(scope: Scope) -> Column:
    """Return whether an effect or a record that is tied to nobody could be this message's."""
    by_content = scope.contract.identity == Identity.CONTENT
    may_be_any = F.lit(True) if by_content else is_unplaced()
    return (
        (F.col("may_be_unseen") if by_content else F.lit(False))
        | (~F.col("has_identity") & F.col("has_orphans"))
        | (may_be_any & F.col("has_nameless_orphans"))
        | F.coalesce("shares_ambiguous_id", F.lit(False))
    )


def _disposition(scope: Scope) -> Column:
    """Return the first disposition that holds for an accepted message."""
    held = (
        F.when(is_whole(scope), "delivered")
        .when(F.coalesce("is_dead_lettered", F.lit(False)), "dead_lettered")
        .when(F.coalesce("is_filtered", F.lit(False)), "filtered")
        .when(is_in_doubt(scope) | lacks_evidence(scope) | _is_ambiguous(scope), "unverifiable")
        .when(F.coalesce("is_compacted", F.lit(False)), "compacted")
        .when(F.col("is_due"), "lost")
        .otherwise("in_flight")
    )
    return F.when(F.col("acceptance") == "accepted", held)
