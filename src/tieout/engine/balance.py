"""The offset balance: every position of the log in the window's range, in exactly one state.

Docs: docs/reference/taxonomy.md, section 5, last item, and section 7, traps 1 and 2.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine.classes.phantoms import origin_is_covered
from tieout.engine.joining import same
from tieout.engine.keys import PLACE
from tieout.engine.ranges import ranges_frame
from tieout.engine.scope import Scope
from tieout.model import OFFSET_STATES


def ranges_of(scope: Scope, log: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return per topic partition the judged offsets `[from, to)`: those appended in the window by the log's clock.

    `to` is the first offset stamped at or after the window's end, or the log's end where there is none yet. A window
    that is ranges of offsets says them itself.
    """
    if scope.window.offsets:
        return _at_place(ranges_frame(scope, bounds), bounds).select(
            *PLACE, "from", "to", "log_start", "cleanup_policy", "lacks_markers"
        )
    stamped = F.col("record_timestamp")
    first_in = F.min(F.when(stamped >= F.lit(scope.window.start), F.col("offset")))
    first_after = F.min(F.when(stamped >= F.lit(scope.window.end), F.col("offset")))
    seen = log.groupBy(*PLACE).agg(first_in.alias("first_in"), first_after.alias("first_after"))
    known = _at_place(bounds, seen)
    return known.select(
        *PLACE,
        F.coalesce("first_in", "log_end").alias("from"),
        F.coalesce("first_after", "log_end").alias("to"),
        "log_start",
        "cleanup_policy",
        "lacks_markers",
    )


def balanced(
    scope: Scope, log: DataFrame, keyed: DataFrame, bounds: DataFrame, messages: DataFrame
) -> DataFrame:
    """Return per topic partition its range, the count of positions in each state, and `unexplained`."""
    ranges = ranges_of(scope, log, bounds)
    present = _present_states(scope, log, keyed, messages, ranges)
    states = present.unionByName(_absent_states(log, messages, ranges))
    if scope.beside is not None and scope.beside.positions is not None:
        states = states.unionByName(scope.beside.positions)
    return balance_of(ranges, states)


def quiet_positions(rows: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return counts of the positions in range at which quiet messages are: each is its message's first, delivered."""
    inside = _in_range(rows.select(*PLACE, "offset"), ranges)
    counted = inside.groupBy(*PLACE, "is_below_start").agg(F.count("*").alias("positions"))
    return counted.withColumns({"state": F.lit("delivered"), "is_present": F.lit(True)})


def balance_of(ranges: DataFrame, states: DataFrame) -> DataFrame:
    """Return the balance of these ranges, given the counts of positions that are accounted for, by state."""
    counted = states.groupBy(*PLACE).agg(
        F.sum(F.when(F.col("is_present"), F.col("positions")).otherwise(0)).alias("present"),
        F.sum("positions").alias("stated"),
        F.sum(F.when(F.col("is_below_start"), F.col("positions")).otherwise(0)).alias("stated_below_start"),
        *[
            F.sum(F.when(F.col("state") == name, F.col("positions")).otherwise(0)).alias(name)
            for name in OFFSET_STATES
        ],
    )
    return _with_rest(_at_place(ranges, counted))


def _at_place(left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the left rows with the right columns of the same topic partition, null where it has none."""
    named = right.withColumnsRenamed({"topic": "r_topic", "partition": "r_partition"})
    return left.join(named, same(PLACE, "r_"), how="left").drop("r_topic", "r_partition")


def _in_range(rows: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return the rows whose offset lies in their partition's range, with `is_below_start`."""
    limits = ranges.select(*PLACE, F.col("from").alias("lo"), F.col("to").alias("hi"), "log_start")
    placed = _at_place(rows, F.broadcast(limits)).filter(
        (F.col("offset") >= F.col("lo")) & (F.col("offset") < F.col("hi"))
    )
    below = F.coalesce(F.col("offset") < F.col("log_start"), F.lit(False))
    return placed.withColumn("is_below_start", below).drop("lo", "hi", "log_start")


def _states_of(messages: DataFrame, scope: Scope | None) -> DataFrame:
    """Return per message key what a position that is its first, or any other, counts as."""
    untold = F.lit("unattempted")
    if scope is not None:
        record_at = F.coalesce("from_record_at", "record_at")
        untold = F.when(origin_is_covered(scope, record_at), "unattempted").otherwise("unverifiable")
    state = F.when(F.col("attempts") == 0, untold).otherwise(F.coalesce("disposition", F.lit("in_flight")))
    return messages.select(
        F.col("key").alias("message_key"),
        state.alias("message_state"),
        F.struct("topic", "partition", "first_offset").alias("first"),
        (F.col("attempts") > 0).alias("is_attempted"),
    )


def _present_states(
    scope: Scope, log: DataFrame, keyed: DataFrame, messages: DataFrame, ranges: DataFrame
) -> DataFrame:
    """Return counts of the records in range by state."""
    controls = _in_range(log.filter("is_control").select(*PLACE, "offset"), ranges).select(
        *PLACE, "is_below_start", F.lit("control").alias("state")
    )
    data = _in_range(keyed.select(*PLACE, "offset", "transaction_state", "key"), ranges)
    joined = data.join(_states_of(messages, scope), F.col("key") == F.col("message_key"), how="left")
    is_first = F.struct("topic", "partition", F.col("offset").alias("first_offset")).eqNullSafe(
        F.col("first")
    )
    tx = F.col("transaction_state")
    state = (
        F.when(tx.isin("aborted", "open"), tx)
        .when(F.col("is_attempted") & ~is_first, "duplicate")
        .otherwise(F.coalesce("message_state", F.lit("unverifiable")))
    )
    every = joined.select(*PLACE, "is_below_start", state.alias("state")).unionByName(controls)
    return (
        every.groupBy(*PLACE, "is_below_start", "state")
        .agg(F.count("*").alias("positions"))
        .withColumn("is_present", F.lit(True))
    )


def _absent_states(log: DataFrame, messages: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return counts of positions that a message asserts and the log lacks, by that message's disposition."""
    asserted = (
        messages.filter(F.col("disposition").isNotNull())
        .select(F.explode("asserted").alias("at"), "disposition")
        .select("at.topic", "at.partition", "at.offset", "disposition")
    )
    one_each = asserted.groupBy(*PLACE, "offset").agg(F.min("disposition").alias("state"))
    held = log.select(*[F.col(name).alias(f"held_{name}") for name in (*PLACE, "offset")])
    missing = one_each.join(held, same((*PLACE, "offset"), "held_"), how="left_anti")
    absent = _in_range(missing, ranges)
    counted = absent.groupBy(*PLACE, "is_below_start", "state").agg(F.count("*").alias("positions"))
    return counted.withColumn("is_present", F.lit(False))


def _with_rest(counted: DataFrame) -> DataFrame:
    """Return the balance with the positions nobody claims: expired, compacted, markers not given, or unexplained."""
    zero = F.lit(0).cast("bigint")
    filled = counted.fillna(0, subset=["present", "stated", "stated_below_start", *OFFSET_STATES])
    width = F.col("to") - F.col("from")
    below = F.greatest(F.least("to", F.coalesce("log_start", F.col("from"))) - F.col("from"), zero)
    expired = F.greatest(below - F.col("stated_below_start"), zero)
    rest = width - F.col("stated") - expired
    is_compacted = F.coalesce(F.col("cleanup_policy").contains("compact"), F.lit(False))
    lacks_markers = F.coalesce("lacks_markers", F.lit(False))
    return filled.withColumn("rest", rest).select(
        *PLACE,
        "from",
        "to",
        *[F.col(name) for name in OFFSET_STATES if name not in ("expired", "compacted", "control")],
        (F.col("expired") + expired).alias("expired"),
        (F.col("compacted") + F.when(is_compacted, F.col("rest")).otherwise(zero)).alias("compacted"),
        (F.col("control") + F.when(~is_compacted & lacks_markers, F.col("rest")).otherwise(zero)).alias(
            "control"
        ),
        F.when(is_compacted | lacks_markers, zero).otherwise(F.col("rest")).alias("unexplained"),
    )
