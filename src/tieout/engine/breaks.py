"""Breaks: what the rules found, one row each, with a lasting id and an incident; causes are in `causes.py`.

Docs: docs/reference/taxonomy.md, section 4 (causes, incidents) and section 6 (`break_id`).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.causes import admissible, own_cause
from tieout.engine.classes.standing import COMMIT_ROWS, ROWS_OF_POSITIONS
from tieout.engine.classifying import NO_BREAK
from tieout.engine.joining import joined_by_key, same
from tieout.engine.keys import PLACE
from tieout.engine.scope import Scope
from tieout.model import BreakClass

_COLUMNS: Final = (
    "key", "class", "kind", "locus", "topic", "partition", "offset", "positions", "flags", "message_id", "producer_id",
    "cause", "admissible", *ROWS_OF_POSITIONS, "is_covered", "break_id", "incident_id", "rule",
)  # fmt: skip
_ALIKE: Final = ("class", "locus", "own_cause", "flags", "commit")
"""What the breaks of one run have in common, beside their topic partition."""
_OF_INCIDENT: Final = ("class", "locus", "cause", *PLACE, "flags")
"""What the breaks of one incident have in common, beside their run."""


def places_of_breaks(messages: DataFrame) -> DataFrame:
    """Return the topic partitions that have a broken or overdue message of this window."""
    return messages.filter(_is_break()).select(*PLACE).distinct()


def _is_break() -> Column:
    """Return whether a message is broken or overdue, and this window's."""
    is_calm = (F.col("class") == BreakClass.IN_FLIGHT.value) & ~F.array_contains("flags", "OVERDUE")
    is_marked = F.array_contains("flags", BreakClass.PHANTOM_ABORTED.value)
    is_break = (~F.col("class").isin([name.value for name in NO_BREAK]) & ~is_calm) | is_marked
    return F.col("is_judged_here") & is_break


def broken_messages(messages: DataFrame) -> DataFrame:
    """Return the broken and overdue messages of this window, with what causes, incidents and proof need to know."""
    identity = F.coalesce(F.when(F.col("key").startswith("m:"), F.col("message_id")), F.col("key"))
    return messages.filter(_is_break()).select(
        *PLACE,
        "key",
        "class",
        F.lit("message").alias("kind"),
        identity.alias("subject"),
        "locus",
        _offset().alias("offset"),
        F.slice(F.sort_array(F.array_union("asserted", "effect_positions")), 1, 20).alias("positions"),
        "flags",
        "message_id",
        F.col("first_attempt.producer_id").alias("producer_id"),
        "cover",
        admissible().alias("admissible"),
        "effect_readers",
        "last_effect",
        F.col("first_attempt.at").alias("sent_at"),
        F.col("first_acked.done_at").alias("acked_at"),
    )


def _offset() -> Column:
    return F.coalesce("first_offset", F.array_min("effect_positions")["offset"])


def lined_up(messages: DataFrame, places: DataFrame) -> DataFrame:
    """Return the broken messages' runs and neighbours by position, as `line_key` and what is told of that message.

    `places` are `places_of_breaks`. `run` is the first offset of the touching breaks of one class, locus and covering
    commit. It does not depend on what lies before the run: an incident keeps its id when older evidence is gone.
    `rank`, `previous_offset`, `previous_effect_at`, `next_offset`, `reader_before` and `reader_after` say where among
    all messages of its partition it stands, and who processed those next to it. A break without position has none of
    these. `own_cause` and `commit` are what its row proves, and the commit that covered it.

    A partition is sorted in one task, so that a row has only what a line needs.
    """
    upwards = Window.partitionBy(*PLACE).orderBy("first_offset", "key")
    before = upwards.rowsBetween(Window.unboundedPreceding, -1)
    of_line = {
        "rank": F.row_number().over(upwards),
        "previous_offset": F.lag("first_offset").over(upwards),
        "previous_effect_at": F.lag("first_effect_at").over(upwards),
        "next_offset": F.lead("first_offset").over(upwards),
        "reader_before": F.last("reader", ignorenulls=True).over(before),
        "reader_after": F.expr("lead(reader) IGNORE NULLS").over(upwards),
    }
    is_placed = F.col("first_offset").isNotNull()
    alike = F.when(is_placed, F.col("alike"))
    ranked = _in_line(messages, places).withColumns(
        of_line | {"begins": ~alike.eqNullSafe(F.lag(alike).over(upwards))}
    )
    begun = F.when(F.col("begins"), F.col("first_offset"))
    run = F.last(begun, ignorenulls=True).over(upwards.rowsBetween(Window.unboundedPreceding, 0))
    told = [F.when(is_placed, F.col(name)).alias(name) for name in (*of_line, "run")]
    return (
        ranked.withColumn("run", run)
        .filter(F.col("alike").isNotNull())
        .select(F.col("key").alias("line_key"), *PLACE, "alike.*", "offset", "last_effect_at", *told)
    )


def _in_line(messages: DataFrame, places: DataFrame) -> DataFrame:
    """Return the messages that have a position or are broken, of partitions with breaks, and what a line needs.

    What a message without position would say of its neighbours is left out: it stands before all others. Broken ones
    have `alike`.
    """
    wanted = places.select(*[F.col(name).alias(f"broken_{name}") for name in PLACE])
    there = messages.join(F.broadcast(wanted), same(PLACE, "broken_"), how="left_semi")
    is_placed, is_break = F.col("first_offset").isNotNull(), _is_break()
    reader = F.struct("first_effect.consumer_id", "first_effect.generation")
    is_lost = F.col("class") == BreakClass.LOST.value
    alike = {
        "own_cause": own_cause(),
        "commit": F.when(is_lost, F.col("cover.committed_offset")),
    }
    in_common = F.struct(*[alike.get(name, F.col(name)).alias(name) for name in _ALIKE])
    return there.filter(is_placed | is_break).select(
        *PLACE,
        "first_offset",
        "key",
        F.when(is_placed, F.col("first_effect_at")).alias("first_effect_at"),
        F.when(is_placed & (F.col("effect_rows") > 0), reader).alias("reader"),
        F.when(is_break, in_common).alias("alike"),
        F.when(is_break, _offset()).alias("offset"),
        F.when(is_break, F.col("last_effect.at")).alias("last_effect_at"),
    )


def named_messages(scope: Scope, breaks: DataFrame) -> DataFrame:
    """Return breaks of messages with their ids, in the columns of all breaks; they have a cause."""
    told = breaks.select("key", "run", *_OF_INCIDENT, "offset")
    starts = _with_incident_start(told).select(F.col("key").alias("start_key"), "incident_start")
    own = dict.fromkeys(ROWS_OF_POSITIONS, F.lit(None).cast(COMMIT_ROWS)) | {"is_covered": F.lit(True)}
    return _named(scope, joined_by_key(breaks, starts, "start_key").withColumns(own))


def named_standing(scope: Scope, breaks: DataFrame) -> DataFrame:
    """Return breaks that stand by themselves with their ids, in the columns of all breaks."""
    text = F.lit(None).cast("string")
    known = breaks.withColumns({"key": text, "producer_id": text, "run": F.col("subject")})
    return _named(scope, _with_incident_start(known))


def _with_incident_start(breaks: DataFrame) -> DataFrame:
    """Return breaks with `incident_start`, the first offset of those of one cause, partition and run."""
    # The run comes first: it tells most breaks apart, and what is sorted is compared by its first column first.
    return breaks.withColumn("incident_start", F.min("offset").over(Window.partitionBy("run", *_OF_INCIDENT)))


def _named(scope: Scope, breaks: DataFrame) -> DataFrame:
    """Return breaks with `break_id` and `incident_id`; breaks of one cause, partition and run share the latter."""
    judged = F.struct(F.lit(scope.contract.pipeline), F.lit(scope.contract.group))
    run = F.col("run").cast("string")
    incident = F.struct(
        judged, "class", "locus", "cause", "topic", "partition", run, F.concat_ws(",", "flags")
    )
    subject = F.struct(judged, "kind", F.when(F.col("kind") != "message", F.col("class")), "subject")
    return (
        breaks.withColumn("break_id", _digest(subject))
        .withColumn("incident_id", _digest(F.struct(incident, "incident_start")))
        .withColumn("rule", F.lower("class"))
        .select(*_COLUMNS)
    )


def _digest(value: Column) -> Column:
    """Return 32 hex digits that name the value; JSON with field names keeps ('a', 'bc') and ('ab', 'c') apart."""
    return F.substring(F.sha2(F.to_json(value), 256), 1, 32)
