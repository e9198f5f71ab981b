"""COMMIT_AHEAD, COMMIT_REGRESSION, COMMIT_OUT_OF_RANGE, LOG_IDENTITY_CONFLICT, LOG_TRUNCATION, TORN_TRANSACTION.

Breaks that stand by themselves: of a commit, a position or a transaction, not of one message. Each function returns
rows of `STANDING_COLUMNS`. Docs: docs/reference/taxonomy.md, section 3.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.contracts.contract import Annotation
from tieout.engine.asserting import accepted_sends, placed_reads, standing_records
from tieout.engine.dispositions import is_accounted_after
from tieout.engine.joining import same
from tieout.engine.keys import PLACE
from tieout.engine.log_facts import absent_positions
from tieout.engine.matching import Matched
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Identity, Ledger, Locus

STANDING_COLUMNS: Final[tuple[str, ...]] = (
    "class", "kind", "subject", "message_id", "locus", "topic", "partition", "offset", "positions", "flags",
)  # fmt: skip
COMMIT_ROWS: Final = (
    "array<struct<topic:string,partition:int,first_offset:bigint,committed_offset:bigint,committed_at:timestamp,"
    "metadata:string>>"
)
CLUES: Final = {
    "sent_at": "timestamp",
    "acked_at": "timestamp",
    "is_plain_overlap": "boolean",
    "leader_epoch": "int",
    "generation_before": "bigint",
    "generation": "bigint",
    "before_at": "timestamp",
    "committed_at": "timestamp",
    "is_beyond_end": "boolean",
}
"""What the rows behind a standing break say about its cause; null where its class has none of it."""
ROWS_OF_POSITIONS: Final = ("commit_rows", "mirrored_rows")
"""The rows of `committed` and `mirrored` that prove a break of a commit."""
POSITIONS_KEPT: Final = 20
"""How many positions a break of many lists; the rest is behind its count."""


def standing(
    rows: DataFrame, name: BreakClass, kind: str, locus: Column, *, subject: Column, flags: Column
) -> DataFrame:
    """Return rows with `topic`, `partition`, `offset`, `positions` as standing breaks."""
    return rows.select(
        F.lit(name.value).alias("class"),
        F.lit(kind).alias("kind"),
        subject.alias("subject"),
        (F.col("message_id") if "message_id" in rows.columns else F.lit(None).cast("string")).alias(
            "message_id"
        ),
        locus.alias("locus"),
        "topic",
        "partition",
        F.col("offset").cast("bigint").alias("offset"),
        "positions",
        flags.cast("array<string>").alias("flags"),
        *[
            (F.col(name) if name in rows.columns else F.lit(None)).cast(COMMIT_ROWS).alias(name)
            for name in ROWS_OF_POSITIONS
        ],
        _clues(rows).alias("clues"),
        (F.col("is_shown") if "is_shown" in rows.columns else F.lit(True)).alias("is_covered"),
    )


def _clues(rows: DataFrame) -> Column:
    given = {name: F.col(name) if name in rows.columns else F.lit(None) for name in CLUES}
    return F.struct(*[value.cast(CLUES[name]).alias(name) for name, value in given.items()])


def commit_row(offset: str, at: str, first: str | None = None, metadata: str | None = None) -> Column:
    """Return one commit as it stands in a break's evidence, from the columns of these names."""
    none = F.lit(None)
    return F.struct(
        "topic",
        "partition",
        (none if first is None else F.col(first)).cast("bigint").alias("first_offset"),
        F.col(offset).alias("committed_offset"),
        F.col(at).alias("committed_at"),
        (none if metadata is None else F.col(metadata)).cast("string").alias("metadata"),
    )


def at_place(*extra: str) -> Column:
    """Return the subject of a break of a partition: its name, and what tells it from others there."""
    return F.to_json(F.struct(*PLACE, *extra))


def commit_ahead(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return one break a commit that covered accepted records in flight; a lost one is flagged, not repeated here.

    A message at several positions was covered by a commit at each of them.
    """
    pending = messages.filter(F.col("is_committed_ahead") & (F.col("disposition") == "in_flight"))
    covered = pending.select("message_id", F.explode("covers").alias("cover"))
    ahead = covered.filter(is_accounted_after(scope, F.col("cover.committed_at")))
    position, committed_at = F.struct("cover.topic", "cover.partition", "cover.offset"), F.col("committed_at")
    by_commit = (
        ahead.groupBy(
            *[f"cover.{name}" for name in (*PLACE, "committed_at", "committed_offset", "first_offset")]
        )
        .agg(
            F.min("cover.offset").alias("offset"),
            F.min_by("message_id", "cover.offset").alias("message_id"),
            F.array_sort(F.collect_set(position)).alias("all_positions"),
        )
        .filter(scope.holds(committed_at, F.col("offset")))
        .withColumn("positions", F.slice("all_positions", 1, POSITIONS_KEPT))
        .withColumn("commit_rows", F.array(commit_row("committed_offset", "committed_at", "first_offset")))
        .withColumn("is_shown", scope.covered_between(Ledger.COMMITTED, committed_at, committed_at))
    )
    subject = at_place("committed_at", "committed_offset", "first_offset")
    return standing(
        by_commit,
        BreakClass.COMMIT_AHEAD,
        "commit",
        F.lit(Locus.OFFSET_STORE.value),
        subject=subject,
        flags=F.array(),
    )


def commit_regression(scope: Scope, commits: DataFrame) -> DataFrame:
    """Return one break a commit below its predecessor, flagged `annotated` where an operator's reset lies between them.

    Commits of one instant have no order among themselves: a regression must be one in every order they can have. Those
    that say where they begin are held against each other by that: see `ranges.intersections`.
    """
    instants = (
        commits.filter(F.col("committed_at").isNotNull() & F.col("first_offset").isNull())
        .groupBy(*PLACE, "committed_at")
        .agg(
            F.min("committed_offset").alias("low"),
            F.when(F.min("generation") == F.max("generation"), F.max("generation")).alias("generation"),
        )
    )
    by_time = Window.partitionBy(*PLACE).orderBy("committed_at")
    pairs = instants.withColumns(
        {
            "before": F.lag("low").over(by_time),
            "before_at": F.lag("committed_at").over(by_time),
            "generation_before": F.lag("generation").over(by_time),
        }
    ).filter((F.col("low") < F.col("before")) & scope.holds(F.col("committed_at"), F.col("low")))
    position = F.struct("topic", "partition", F.col("low").alias("offset"))
    pair = F.array(commit_row("before", "before_at"), commit_row("low", "committed_at"))
    is_shown = scope.covered_between(Ledger.COMMITTED, F.col("before_at"), F.col("committed_at"))
    rows = pairs.withColumns(
        {"offset": F.col("low"), "positions": F.array(position), "commit_rows": pair, "is_shown": is_shown}
    )
    flags = F.array_compact(F.array(F.when(is_annotated(scope), "annotated")))
    subject = at_place("committed_at", "low")
    return standing(
        rows,
        BreakClass.COMMIT_REGRESSION,
        "commit",
        F.lit(Locus.OFFSET_STORE.value),
        subject=subject,
        flags=flags,
    )


def resets_of(scope: Scope) -> list[Annotation]:
    """Return the annotations of an operator's resets of the group."""
    groups = (None, scope.contract.group)
    return [
        note for note in scope.contract.annotations if note.kind == "offset_reset" and note.group in groups
    ]


def is_annotated(scope: Scope) -> Column:
    """Return whether an operator's reset of the group lies between `before_at` and `committed_at`, as clocks agree."""
    skew, holds = F.lit(scope.contract.clock_skew), F.lit(False)
    for note in resets_of(scope):
        noted_at = F.lit(note.at)
        holds |= (F.col("before_at") <= noted_at + skew) & (F.col("committed_at") >= noted_at - skew)
    return F.coalesce(holds, F.lit(False))


def commit_out_of_range(scope: Scope, commits: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return one break a partition whose latest commit lies outside log bounds observed no earlier than it.

    A commit without a time stood when its table was taken. A log only grows, so it lay beyond an end that was observed
    no earlier, and below a start that was observed no later. Its break is one of every window that begins before.
    """
    stood_at = F.coalesce("committed_at", "taken_at")
    last = F.max(F.struct(stood_at.alias("stood_at"), "committed_at", "committed_offset", "leader_epoch"))
    latest = commits.filter(stood_at.isNotNull()).groupBy(*PLACE).agg(last.alias("latest"))
    place = [F.col(name).alias(f"b_{name}") for name in PLACE]
    limits = bounds.select(*place, "stated_start", "log_end", "observed_at")
    committed, committed_at = F.col("latest.committed_offset"), F.col("latest.committed_at")
    is_dated, taken_at, observed_at = committed_at.isNotNull(), F.col("latest.stood_at"), F.col("observed_at")
    is_below = F.coalesce(committed < F.col("stated_start"), F.lit(False))
    is_above = committed > F.col("log_end")
    is_outside = F.when(is_dated, (is_above | is_below) & (observed_at >= committed_at)).otherwise(
        (is_above & (observed_at >= taken_at)) | (is_below & (observed_at <= taken_at))
    )
    is_here = F.when(is_dated, scope.in_window(committed_at)).otherwise(taken_at >= F.lit(scope.window.start))
    rows = (
        latest.join(F.broadcast(limits), same(PLACE, "b_"), how="inner")
        .filter(is_outside & is_here)
        .withColumn("offset", committed)
        .withColumn("positions", F.array(F.struct("topic", "partition", "offset")))
        .withColumn("committed_at", committed_at)
        .withColumn("leader_epoch", F.col("latest.leader_epoch"))
        .withColumn("is_beyond_end", committed > F.col("log_end"))
        .withColumn("commit_rows", F.array(commit_row("offset", "committed_at")))
    )
    locus = F.lit(Locus.OFFSET_STORE.value)
    return standing(
        rows, BreakClass.COMMIT_OUT_OF_RANGE, "commit", locus, subject=at_place("offset"), flags=F.array()
    )


def log_truncation(scope: Scope, absent: DataFrame) -> DataFrame:
    """Return one break an acked position that a covering log lacks, neither expired nor compacted.

    `absent` holds the acked positions at which the log has no record at all (`log_facts.absent_positions`).
    """
    sent_at = F.col("sent_at")
    is_sent_covered = scope.covered_between(Ledger.PRODUCED, sent_at, sent_at)
    rows = absent.filter(
        F.col("is_covered") & ~F.col("is_superseded") & scope.holds(F.col("sent_at"), F.col("offset"))
    ).withColumns(
        {
            "positions": F.array(F.struct("topic", "partition", "offset")),
            "acked_at": F.col("done_at"),
            "is_shown": is_sent_covered,
        }
    )
    locus, subject = F.lit(Locus.BROKER.value), at_place("offset", "message_id")
    return standing(rows, BreakClass.LOG_TRUNCATION, "position", locus, subject=subject, flags=F.array())


def log_identity_conflict(scope: Scope, messages: DataFrame, found: Matched) -> DataFrame:
    """Return one break a position that two identities, or two accepted attempts that differ, claim.

    It is a break of the window of the latest send that claims the position, else of the latest read.
    """
    key, named = F.when(~F.col("is_read"), F.col("key")), F.col("name")
    if scope.contract.identity == Identity.POSITION:
        named = F.lit(None).cast("string")
    rows = (
        _claims_of_positions(scope, messages, found)
        .groupBy(*PLACE, "offset")
        .agg(
            (F.min(named) != F.max(named)).alias("has_two_names"),
            (F.min("payload_hash") != F.max("payload_hash")).alias("differs"),
            F.coalesce(F.min(key) != F.max(key), F.lit(False)).alias("is_told_without_reads"),
            F.coalesce(F.max("attempted_at"), F.max("read_at")).alias("at"),
            F.min("attempted_at").alias("sent_at"),
            F.max("attempted_at").alias("last_sent_at"),
            F.min("answered_at").alias("acked_at"),
            F.max("read_at").alias("last_read_at"),
        )
        .filter(F.col("is_told_without_reads") | F.col("has_two_names") | F.col("differs"))
        .filter(scope.holds(F.col("at"), F.col("offset")))
        .withColumn("positions", F.array(F.struct("topic", "partition", "offset")))
        .withColumn("is_shown", _is_conflict_shown(scope))
    )
    return standing(
        rows,
        BreakClass.LOG_IDENTITY_CONFLICT,
        "position",
        F.lit(Locus.BROKER.value),
        subject=at_place("offset"),
        flags=F.array(),
    )


def _claims_of_positions(scope: Scope, messages: DataFrame, found: Matched) -> DataFrame:
    """Return what asserts positions: sends, and records and reads whose identity is known."""
    nothing = {
        **dict.fromkeys(("attempted_at", "answered_at", "read_at"), "timestamp"),
        "payload_hash": "string",
    }

    def claims(rows: DataFrame, *, is_read: bool = False, **told: Column) -> DataFrame:
        name = F.col(scope.identity_column).alias("name")
        values = {column: told.get(column, F.lit(None)).cast(kind) for column, kind in nothing.items()}
        named = [value.alias(column) for column, value in values.items()]
        return rows.select(*PLACE, "offset", "key", name, F.lit(is_read).alias("is_read"), *named)

    answered_at = F.when(F.col("outcome") == "acked", F.coalesce("completed_at", "attempted_at"))
    sends = accepted_sends(messages, found.keyed[Ledger.PRODUCED])
    parts = [
        claims(
            sends,
            attempted_at=F.col("attempted_at"),
            answered_at=answered_at,
            payload_hash=F.col("payload_hash"),
        )
    ]
    is_known = F.col(scope.identity_column).isNotNull()
    if Ledger.LOG in found.keyed:
        parts.append(claims(standing_records(found.keyed[Ledger.LOG]).filter(is_known)))
    if found.reads is not None:
        told = placed_reads(found.reads).filter(is_known)
        parts.append(claims(told, is_read=True, read_at=F.col("processed_at")))
    return reduce(DataFrame.unionByName, parts)


def _is_conflict_shown(scope: Scope) -> Column:
    """Return whether the ledgers cover the sends of a conflict, and its reads where these tell of it."""
    sends = scope.covered_between(Ledger.PRODUCED, F.col("sent_at"), F.col("last_sent_at"))
    is_sent = F.col("sent_at").isNull() | sends
    if Ledger.READ not in scope.evidence:
        return is_sent
    reads = scope.covered_between(Ledger.READ, F.col("last_read_at"), F.col("last_read_at"))
    return is_sent & (F.col("is_told_without_reads") | F.coalesce("differs", F.lit(False)) | reads)


def torn_transaction(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return one break a transaction with a delivered record and a lost one, in the window of its earliest lost one."""
    lost = F.struct(
        F.col("first_attempt.at").alias("at"), "topic", "partition", F.col("first_offset").alias("offset")
    )
    members = messages.filter(F.size("transactions") > 0).select(
        F.explode("transactions").alias("transaction"), "disposition", lost.alias("member")
    )
    rows = (
        members.groupBy("transaction")
        .agg(
            F.bool_or(F.col("disposition") == "delivered").alias("has_delivered"),
            F.min(F.when(F.col("disposition") == "lost", F.col("member"))).alias("lost"),
        )
        .filter("has_delivered")
        .select("transaction", "lost.*")
        .filter(scope.holds(F.col("at"), F.col("offset")))
        .withColumn("positions", F.array(F.struct("topic", "partition", "offset")))
    )
    locus = F.lit(Locus.UNKNOWN.value)
    subject = F.to_json("transaction")
    return standing(rows, BreakClass.TORN_TRANSACTION, "transaction", locus, subject=subject, flags=F.array())


def standing_breaks(scope: Scope, messages: DataFrame, found: Matched) -> list[DataFrame]:
    """Return the standing breaks of every class that the evidence allows to judge."""
    attempts, records = found.keyed[Ledger.PRODUCED], found.keyed.get(Ledger.LOG)
    breaks = [log_identity_conflict(scope, messages, found)]
    if scope.has(Ledger.PRODUCED, "transaction_id"):
        breaks.append(torn_transaction(scope, messages))
    if found.log is not None and found.bounds is not None and records is not None:
        absent = absent_positions(scope, attempts, found.log, found.bounds, records)
        breaks.append(log_truncation(scope, absent))
    if found.commits is not None:
        breaks += [commit_ahead(scope, messages), commit_regression(scope, found.commits)]
        if found.bounds is not None:
            breaks.append(commit_out_of_range(scope, found.commits, found.bounds))
    return breaks
