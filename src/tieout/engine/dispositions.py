"""What became of each message: delivered, accounted for in a legal way, lost, or not yet to be said.

Docs: docs/reference/taxonomy.md, section 2 (due) and section 3 (dispositions, in their order).
"""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.early import is_early, is_stray
from tieout.engine.joining import same, small_side
from tieout.engine.keys import PLACE
from tieout.engine.log_facts import with_log_facts
from tieout.engine.materialising import materialised
from tieout.engine.multiplicity import is_in_doubt, is_set_aside_whole, is_whole
from tieout.engine.pairing import with_equals_elsewhere
from tieout.engine.positions import frontier_of, with_first_cover
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger


def disposed(
    scope: Scope,
    messages: DataFrame,
    bounds: DataFrame | None,
    superseding: DataFrame | None,
    commits: DataFrame | None,
    progress: DataFrame,
    doubts: DataFrame | None,
    *,
    may_share_ids: bool,
) -> DataFrame:
    """Return the messages with `disposition` (null unless accepted), `is_due`, and the facts about their positions.

    Position facts are worked out for messages without effect, by content for all: `is_passed`, `was_jumped` (the
    group is known beyond each visible one), `went_unread` (with a topic that was deleted), `is_committed` (the commits
    cover it), `covers` (the first commit beyond each visible one), `cover` (the first of these), `is_expired`,
    `is_covered_by_log`, `is_missing_in_log`, `is_superseded`, `is_compacted`, `was_committed_first`.
    `superseding` is what takes a key's records from a compacted log (`superseding_of`), or None. `doubts` is how
    far polls of unknown outcome may have come; `may_have_passed_first`: one may have, before compaction could take it.
    `may_share_ids` says whether any id is used for several messages.
    """
    if scope.contract.is_queue:
        progress = progress.filter(
            F.col("by") == "commit"
        )  # what was acknowledged is a set: nothing else is passed
    by_content = scope.contract.identity == Identity.CONTENT
    is_asked = F.col("acceptance").isin("accepted", "unproven") & (~is_whole(scope) | F.lit(by_content))
    asked = messages.filter(is_asked)
    facts = materialised(position_facts(scope, asked, bounds, superseding, commits, progress, doubts))
    facts = (small_side(facts) if scope.is_large else facts).withColumnRenamed("key", "facts_key")
    together = messages.join(facts, F.col("key") == F.col("facts_key"), how="left")
    known = with_ambiguity(scope, together.drop("facts_key"), may_share_ids=may_share_ids)
    known = known.withColumn("due_at", _due_at(scope))
    due = known.withColumn("is_old_enough", _is_old_enough(scope)).withColumn(
        "is_missing_in_log", _is_missing(scope)
    )
    due = due.withColumn("is_due", F.col("is_old_enough") & _is_settled(scope))
    if by_content:
        due = with_equals_elsewhere(
            due, _is_settled(scope), scope.covered_from(scope.effect_ledger, _began(scope))
        )
    return due.withColumn("disposition", _disposition(scope)).withColumn(
        "is_committed_ahead", _is_committed_ahead(scope)
    )


def _is_committed_ahead(scope: Scope) -> Column:
    """Return whether a commit covered a record without effect, the evidence being complete beyond what it may take."""
    if Ledger.COMMITTED not in scope.evidence:
        return F.lit(False)
    is_open = F.col("disposition").isin("lost", "in_flight") & (F.col("effect_rows") == 0)
    is_open &= ~may_be_set_aside()
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
    doubts: DataFrame | None = None,
) -> DataFrame:
    """Return per message key what is known about all its visible or asserted positions together."""
    positions = messages.select(
        "key",
        F.explode("own_positions").alias("position"),
        "sent_at",
        "done_at",
        F.array_max("sent_key_hash").alias("key_hash"),
        (F.size("visible") + F.col("written") + F.col("open")).alias("held_count"),
        "visible",
        F.array_contains("uncovered_copies", F.col("position")).alias("is_uncovered"),
    ).select("*", "position.topic", "position.partition", "position.offset")
    is_visible = F.array_contains("visible", F.col("position")) | F.lit(Ledger.LOG not in scope.evidence)
    positions = positions.withColumn("is_visible", is_visible).drop("position", "visible")
    has_ranges = commits is not None and scope.has(Ledger.COMMITTED, "first_offset")
    positions = with_first_cover(positions, commits, has_ranges=has_ranges)
    reached = frontier_of(progress).select(
        *[F.col(name).alias(f"f_{name}") for name in PLACE], "passed", "committed"
    )
    positions = positions.join(F.broadcast(reached), same(PLACE, "f_"), how="left")
    positions = positions.drop("f_topic", "f_partition")
    if superseding is not None:  # or the plan is too deep for Spark Connect
        positions = materialised(positions)
    positions = with_log_facts(scope, positions, bounds, superseding, progress, doubts)
    positions = _with_deletion(scope, positions)
    cover = F.when(
        F.col("cover").isNotNull() & F.col("is_visible"),
        F.struct(
            "cover.committed_at",
            "cover.committed_offset",
            "topic",
            "partition",
            "offset",
            "cover.first_offset",
            "cover.is_next",
        ),
    )
    facts = positions.groupBy("key").agg(
        F.bool_and(_is_passed(scope) | F.col("went_unread")).alias("is_passed"),
        F.bool_and(F.when(F.col("is_visible"), F.col("offset") < F.col("passed"))).alias("was_jumped"),
        F.bool_and("went_unread").alias("went_unread"),
        F.bool_or(F.coalesce(F.col("offset") < F.col("committed"), F.lit(False))).alias("is_committed"),
        F.bool_and("is_expired").alias("is_expired"),
        F.bool_and(F.col("is_covered") | F.col("went_unread")).alias("is_covered_by_log"),
        F.bool_and("is_superseded").alias("is_superseded"),
        F.bool_and("is_compacted").alias("is_compacted"),
        F.bool_and("was_committed_first").alias("was_committed_first"),
        F.bool_or("may_have_passed_first").alias("may_have_passed_first"),
        F.max(_acknowledged_at(scope)).alias("acknowledged_at"),
        F.collect_list(cover).alias("covers"),
    )
    return facts.withColumn("cover", F.array_min("covers"))


def _acknowledged_at(scope: Scope) -> Column:
    """Return when a commit first covered a position, an undated one when its table was taken; null where none does."""
    if not scope.contract.is_queue or Ledger.COMMITTED not in scope.evidence:
        return F.lit(None).cast("timestamp")
    taken_at = F.lit(scope.evidence[Ledger.COMMITTED].coverage.complete_until).cast("timestamp")
    return F.when(F.col("cover").isNotNull(), F.coalesce("cover.committed_at", taken_at))


def _due_at(scope: Scope) -> Column:
    """Return until when the message may be without effect: its deadline, of a queue also by acknowledgement and lock.

    A record that a member was given is locked for it, and may be given to another one once the lock has run out.
    """
    if not scope.contract.is_queue:
        return F.col("deadline")
    patience = F.lit(scope.patience)
    unlocked_at = F.col("last_read_at") + F.lit(scope.contract.redelivery or timedelta(0))
    return F.greatest("deadline", F.col("acknowledged_at") + patience, unlocked_at + patience)


def _is_passed(scope: Scope) -> Column:
    """Return whether the group went past the position; what a queue acknowledged is a set, and not what lies below."""
    if scope.contract.is_queue:
        return F.col("cover").isNotNull()
    return F.coalesce(F.col("offset") <= F.col("passed"), F.lit(False))


def _with_deletion(scope: Scope, positions: DataFrame) -> DataFrame:
    """Return positions with `went_unread`: their topic was deleted before the group is known to have come that far.

    Nobody can come there any more; and a log that has another topic of the name lacks what this one held.
    """
    if scope.deleted is None:
        return positions.withColumn("went_unread", F.lit(False))
    gone = scope.deleted.select(F.col("topic").alias("deleted_topic"))
    known = positions.join(F.broadcast(gone), F.col("topic") == F.col("deleted_topic"), how="left")
    went_unread = F.col("deleted_topic").isNotNull() & ~_is_passed(scope)
    return known.withColumn("went_unread", went_unread).drop("deleted_topic")


def with_first_records(
    scope: Scope,
    messages: DataFrame,
    attempts: DataFrame,
    records: DataFrame | None,
    bounds: DataFrame | None,
) -> DataFrame:
    """Return the messages with `has_first_record`: `produced` covers what their topic, or partitions, began with.

    The log knows a topic's first record where it holds that at offset 0 of every partition, and all of it is dated: a
    compacted log begins at 0, too, and lacks what came first. An attempt at offset 0 is the first of its partition; all
    effects must then be known to come from such partitions.
    """
    skew = F.lit(scope.contract.clock_skew)
    at_start = attempts.filter(F.col("offset") == 0)
    firsts = at_start.groupBy(*PLACE).agg(F.min("attempted_at").alias("at"))
    covered = firsts.filter(scope.covered_from(Ledger.PRODUCED, F.col("at") - skew))
    begun = covered.agg(F.collect_set(F.struct(*PLACE)).alias("begun"))
    places = F.transform("effect_positions", lambda at: F.struct(at["topic"], at["partition"]))
    is_begun = (F.size(places) > 0) & (F.col("unplaced_effects") == 0)
    is_begun &= F.size(F.array_except(places, "begun")) == 0
    known = messages.crossJoin(F.broadcast(begun)).withColumn(
        "has_first_of_partition", F.when((F.col("attempts") == 0), is_begun)
    )
    known = known.drop("begun")
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
    both = _covers_first(scope, known, of_topic, skew)
    has_first = F.coalesce("has_first_of_partition", F.lit(False)) | F.coalesce(
        "has_first_of_topic", F.lit(False)
    )
    return both.withColumn("has_first_record", has_first).drop("has_first_of_partition", "has_first_of_topic")


def _covers_first(scope: Scope, messages: DataFrame, firsts: DataFrame, skew: Column) -> DataFrame:
    """Return the messages with `has_first_of_topic`: `produced` reaches back to their topic's first record."""
    covered = firsts.select(
        F.col("topic").alias("p_topic"),
        scope.covered_from(Ledger.PRODUCED, F.col("at") - skew).alias("has_first_of_topic"),
    )
    return messages.join(F.broadcast(covered), same(("topic",), "p_"), how="left").drop("p_topic")


def with_ambiguity(scope: Scope, messages: DataFrame, *, may_share_ids: bool) -> DataFrame:
    """Return the messages with what else in their topic, or under their id, could be theirs.

    `has_unnamed_sends`, `has_unplaced_sends`, `has_orphans`, `has_nameless_orphans`: a send that shows no identity or
    no position, and an effect that shows nothing else, may be one and the same; while a topic has both, neither proves
    a loss nor a phantom. `shares_ambiguous_id`: an effect of the id fits none of its contents.
    `may_be_copy` is of `_with_copies`.
    """
    is_sent = (F.col("attempts") > 0) & (F.col("acceptance") != "failed")
    is_orphan = (F.col("attempts") == 0) & (F.col("effect_rows") > 0) & ~is_stray()
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
    if scope.is_large:
        shown = materialised(shown)
        contents = materialised(shown.select("of_topic", "copied").distinct())
        sent = sent.join(small_side(contents), is_same, how="left_semi")
    copies = shown.join(sent, is_same, how="left_semi").select("of_key").distinct()
    joined = messages.join(copies.hint("shuffle_hash"), F.col("key") == F.col("of_key"), how="left")
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


def may_be_set_aside() -> Column:
    """Return whether an open transaction would set the message aside if it were committed."""
    return F.col("open_set_aside_rows") > 0


def _is_old_enough(scope: Scope) -> Column:
    """Return whether both sides cover the message and its deadline has passed in the covered evidence."""
    sent_at = F.col("first_attempt.at")
    is_sent_covered = scope.covered_between(Ledger.PRODUCED, sent_at, sent_at)
    return is_sent_covered & scope.is_accounted(F.col("due_at"), since=_began(scope))


def _began(scope: Scope) -> Column:
    """Return the earliest that an effect of the message can be, by the consumer's clock."""
    return F.col("first_attempt.at") - F.lit(scope.contract.clock_skew)


def _is_missing(scope: Scope) -> Column:
    """Return whether a log that covers the message lacks it; what was aborted elsewhere is not what was acked."""
    if Ledger.LOG not in scope.evidence:
        return F.lit(False)
    is_absent = (F.size("visible") == 0) & (F.col("written") == 0) & (F.col("open") == 0)
    return is_absent & (F.size("asserted") > 0) & F.coalesce("is_covered_by_log", F.lit(False))


def _is_settled(scope: Scope) -> Column:
    """Return whether nothing can still be on its way at any position of the message.

    In a queue that takes an acknowledgement of each, or a log that lacks it; without `committed` nobody knows.
    """
    if scope.contract.is_queue:
        is_acknowledged = (F.size("own_positions") > 0) & F.coalesce("is_passed", F.lit(False))
        return F.lit(Ledger.COMMITTED in scope.evidence) & (is_acknowledged | F.col("is_missing_in_log"))
    return (
        (F.size("own_positions") == 0)
        | F.coalesce("is_passed", F.lit(False))
        | F.coalesce("is_expired", F.lit(False))
        | F.col("is_missing_in_log")
    )


def lacks_evidence(scope: Scope) -> Column:
    """Return whether what would decide on a message without effect is missing, rather than its time not having come."""
    horizon = scope.window.end + scope.contract.grace
    is_untold = ~scope.is_accounted(F.least(F.col("due_at"), F.lit(horizon)), since=_began(scope))
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
        | (F.col("strays") > 0)
    )


def _disposition(scope: Scope) -> Column:
    """Return the first disposition that holds for an accepted message."""
    held = (
        F.when(is_early(scope), "unverifiable")
        .when(is_whole(scope), "delivered")
        .when(F.coalesce("is_dead_lettered", F.lit(False)) & is_set_aside_whole(scope), "dead_lettered")
        .when(F.coalesce("is_filtered", F.lit(False)) & is_set_aside_whole(scope), "filtered")
        .when(is_in_doubt(scope) | lacks_evidence(scope) | _is_ambiguous(scope), "unverifiable")
        .when(may_be_set_aside(), F.when(F.col("is_due"), "unverifiable").otherwise("in_flight"))
        .when(F.col("is_compacted") & F.col("may_have_passed_first"), "unverifiable")
        .when(F.coalesce("is_compacted", F.lit(False)), "compacted")
        .when(F.col("is_due") & F.col("may_be_met_early"), "unverifiable")
        .when(F.col("is_due"), "lost")
        .otherwise("in_flight")
    )
    return F.when(F.col("acceptance") == "accepted", held)
