"""Identity `content`: which rows of the output are whose where only the payload tells.

Equal payloads cannot be told apart, so a hash is two queues: in the order of time, each row of the output takes the
earliest attempt made before it that is still free. What a row may take only grows with its time, so whether it gets
one, and which in their order, follows from running counts over attempts and rows in one order of time: one sort a hash,
and no join of equals with equals, however many there are. Docs: docs/reference/taxonomy.md, section 1 (Messages), and
docs/reference/interpretations.md, 65 to 69.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import row_digest
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Ledger

_PAYLOAD: Final = "payload_hash"
_OUTCOMES: Final = ("acked", "unknown", "failed")
_CERTAINTIES: Final = ("ok", "unknown")
_PLACE: Final = (_PAYLOAD, "source", "place")
_TIES: Final = ("topic", "partition", "offset", "number", "tie")
_LINE: Final = (_PAYLOAD, "moment", "is_taker", *_TIES, "offered", "attempt_key", "wanted", "row")


def content_key() -> Column:
    """Return the key of what nobody sent and is known by its payload alone."""
    return F.concat(F.lit("h:"), _PAYLOAD)


def excess_key() -> Column:
    """Return the key of what may be a copy of an attempt as well as somebody else's."""
    return F.concat(F.lit("e:"), _PAYLOAD)


def _in_time() -> WindowSpec:
    """Return the order of a payload's attempts and takers: attempts of one moment come first, undated rows last."""
    ties = [F.col(name).asc_nulls_last() for name in _TIES]
    return Window.partitionBy(_PAYLOAD).orderBy(F.col("moment").asc_nulls_last(), "is_taker", *ties)


def with_content_keys(scope: Scope, rows: DataFrame, attempts: DataFrame) -> DataFrame:
    """Return consumer rows with the `key` of the attempt that each effect, certain or not, was paired with.

    `attempts` are `contents.sent_by_content`. Certain effects take attempts first. A row for which every fitting
    attempt is taken is one more effect of the latest of them where nobody else can have sent it; else, like a row
    without hash, it has `has_identity` false. Rows that are no effect keep the key of their position. `is_unserved`
    are certain effects that found no free attempt.
    """
    is_effect, is_known = F.col("effect_state").isin(*_CERTAINTIES), F.col(_PAYLOAD).isNotNull()
    effects = rows.filter(is_effect & is_known)
    moment = F.col("processed_at") + F.lit(scope.contract.clock_skew)
    paired = _paired(attempts, effects, moment, F.col("delivery_sequence"), F.col("effect_state"))
    seen_at, skew = F.col("processed_at"), F.lit(scope.contract.clock_skew)
    is_told = excess_is_told(scope, seen_at - F.lit(scope.contract.look_back), seen_at + skew)
    known = with_nameless_sends(paired, attempts)
    is_copy = F.col("latest_key").isNotNull() & is_told & ~F.col("may_be_nameless")
    is_unsent = F.col("latest_key").isNull()
    key = F.coalesce(
        "paired_key",
        F.when(is_copy, F.col("latest_key")),
        F.when(is_unsent, content_key()),
        excess_key(),
    )
    is_told_apart = F.col("paired_key").isNotNull() | is_copy | is_unsent
    is_unserved = F.col("paired_key").isNull() & (F.col("effect_state") == "ok")
    told = {"key": key, "has_identity": is_told_apart, "is_unserved": is_unserved}
    keyed = known.withColumns(told).select(*rows.columns, "is_unserved")
    nameless = rows.filter(is_effect & ~is_known).withColumns(
        {"key": F.concat(F.lit("r:"), row_digest(rows.columns)), "has_identity": F.lit(False)}
    )
    others = nameless.unionByName(rows.filter(~is_effect)).withColumn("is_unserved", F.lit(False))
    return keyed.unionByName(others)


def with_unsent_keys(reads: DataFrame, attempts: DataFrame) -> DataFrame:
    """Return keyed reads of which those of what nobody sent to their position have the keys of effects without sender.

    Where their payload was sent elsewhere they stand twice: such an effect may be a copy.
    """
    is_unsent = F.col(_PAYLOAD).isNotNull() & F.col("key").rlike("^[uh]:")
    sent = attempts.select(F.col(_PAYLOAD).alias("sent_payload")).distinct()
    is_sent = F.col("sent_payload").isNotNull()
    keys = F.when(~is_unsent, F.array("key")).when(is_sent, F.array(content_key(), excess_key()))
    joined = reads.join(sent, is_unsent & (F.col(_PAYLOAD) == F.col("sent_payload")), how="left")
    return joined.withColumn("key", F.explode(F.coalesce(keys, F.array(content_key())))).drop("sent_payload")


def with_later_equals(effects: DataFrame, waiting: DataFrame) -> DataFrame:
    """Return keyed effects of which those that found no free attempt are nobody's for certain if an equal one waits.

    As many as there are `waiting` attempts, which nothing accounts for, the earliest first. One that lay before such an
    effect, it would have taken: they were made later, unless the clocks differ, or keep whole seconds.
    """
    counts = waiting.groupBy(F.col(_PAYLOAD).alias("of_payload")).agg(F.count("*").alias("left"))
    in_time = Window.partitionBy(_PAYLOAD, "is_unserved").orderBy(
        F.col("processed_at").asc_nulls_last(), "delivery_sequence", row_digest(effects.columns)
    )
    turned = effects.withColumn("turn", F.row_number().over(in_time))
    joined = turned.join(counts, F.col(_PAYLOAD) == F.col("of_payload"), how="left")
    is_open = F.coalesce(F.col("is_unserved") & (F.col("turn") <= F.col("left")), F.lit(False))
    changed = {
        "key": F.when(is_open, excess_key()).otherwise(F.col("key")),
        "has_identity": F.col("has_identity") & ~is_open,
    }
    return joined.withColumns(changed).drop("of_payload", "left", "turn", "is_unserved")


def met_early(attempts: DataFrame, waiting: DataFrame, unserved: DataFrame) -> DataFrame:
    """Return attempts with `may_be_met_early`: a row that found no free attempt may be theirs, by its payload.

    As many of the `waiting` ones as there are such rows, the earliest first; `unserved` are the rows' payloads.
    """
    counts = unserved.groupBy(F.col(_PAYLOAD).alias("of_payload")).agg(F.count("*").alias("rows"))
    names = ("attempted_at", "topic", "partition", "offset", "sequence", "key")
    in_time = Window.partitionBy(_PAYLOAD).orderBy(*[F.col(name).asc_nulls_last() for name in names])
    turned = waiting.withColumn("turn", F.row_number().over(in_time))
    met = turned.join(counts, F.col(_PAYLOAD) == F.col("of_payload")).filter("turn <= rows")
    named = met.select(F.col("key").alias("met_key"))
    joined = attempts.join(named, F.col("key") == F.col("met_key"), how="left")
    return joined.withColumn("may_be_met_early", F.col("met_key").isNotNull()).drop("met_key")


def with_set_aside_keys(rows: DataFrame, attempts: DataFrame) -> DataFrame:
    """Return set-aside rows with the `key` of the attempt that each accounts for; those without hash keep theirs.

    `attempts` are those that nothing accounts for yet; a row that finds none, it `is_unserved`, accounts for nothing.
    """
    is_known = F.col(_PAYLOAD).isNotNull()
    paired = _paired(attempts, rows.filter(is_known), F.col("at"), F.lit(None).cast("bigint"), F.lit("ok"))
    told = {"key": F.coalesce("paired_key", excess_key()), "is_unserved": F.col("paired_key").isNull()}
    keyed = paired.withColumns(told).select(*rows.columns, "is_unserved")
    return keyed.unionByName(rows.filter(~is_known).withColumn("is_unserved", F.lit(False)))


def with_equals_elsewhere(messages: DataFrame, is_settled: Column, is_shown: Column) -> DataFrame:
    """Return messages with `may_be_unseen` and `may_be_elsewhere`, none of them due: an equal may have their effect.

    By content an effect is the earliest attempt's. That one may be older than the ledger of effects, which then need
    not show its own; or lie where the group has not been. As many equals without effect, the earliest, may be the
    ones that arrived, and nothing is lost yet. `is_shown` says whether the ledger reaches back to a message,
    `is_settled` whether nothing can still be on its way at any position of it.
    """
    is_accepted, has_effect = F.col("acceptance") == "accepted", F.col("effect_rows") > 0
    payload = F.get("sent_payload_hash", F.lit(0))
    is_older = is_accepted & has_effect & ~is_shown
    is_ahead = is_accepted & has_effect & is_shown & ~is_settled
    is_left = is_accepted & ~has_effect & F.col("is_due") & payload.isNotNull()
    equals = Window.partitionBy("payload")
    names = ("first_attempt.at", "topic", "partition", "first_offset", "first_attempt.sequence", "key")
    in_time = equals.orderBy(*[F.col(name).asc_nulls_last() for name in names])
    told = {"payload": payload, "is_older": is_older, "is_ahead": is_ahead, "is_left": is_left}
    turn = F.count_if("is_left").over(in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    older, ahead = (F.count_if(name).over(equals) for name in ("is_older", "is_ahead"))
    may_be = {
        "may_be_unseen": F.col("is_left") & (turn <= older),
        "may_be_elsewhere": F.col("is_left") & (turn > older) & (turn <= older + ahead),
    }
    return (
        messages.withColumns(told)
        .withColumns({name: F.coalesce(held, F.lit(False)) for name, held in may_be.items()})
        .withColumn("is_due", F.col("is_due") & ~F.col("may_be_unseen") & ~F.col("may_be_elsewhere"))
        .drop(*told)
    )


def excess_is_told(scope: Scope, since: Column, until: Column) -> Column:
    """Return whether `produced` would show the origin of one row more than there are attempts, had it another one."""
    if not scope.evidence[Ledger.PRODUCED].coverage.names_all_producers:
        return F.lit(False)
    return scope.covered_between(Ledger.PRODUCED, since, until)


def with_nameless_sends(rows: DataFrame, attempts: DataFrame) -> DataFrame:
    """Return rows with `may_be_nameless`: a send of which the payload is not known may be theirs, by their `topic`."""
    is_nameless = F.col(_PAYLOAD).isNull() & (F.col("standing") != "failed")
    told = attempts.filter(is_nameless).agg(
        F.collect_set("topic").alias("nameless_topics"),
        F.count("*").alias("nameless"),
        F.count_if(F.col("topic").isNull()).alias("without_topic"),
    )
    is_there = F.col("topic").isNull() | F.array_contains("nameless_topics", F.col("topic"))
    may_be = (F.col("nameless") > 0) & (is_there | (F.col("without_topic") > 0))
    return (
        rows.crossJoin(F.broadcast(told))
        .withColumn("may_be_nameless", may_be)
        .drop("nameless_topics", "nameless", "without_topic")
    )


def _paired(
    attempts: DataFrame, rows: DataFrame, moment: Column, number: Column, wanted: Column
) -> DataFrame:
    """Return rows with `paired_key`, the attempt each takes, and `latest_key`, the latest that fits; null for none.

    `moment` is the time before which an attempt must lie, `number` orders rows of one moment, `wanted` in {ok, unknown}
    is the certainty: certain rows are served first.
    """
    offers = attempts.filter(F.col(_PAYLOAD).isNotNull()).select(
        *(_PAYLOAD, "topic", "partition", "offset"),
        F.col("attempted_at").alias("moment"),
        F.lit(False).alias("is_taker"),
        F.col("sequence").alias("number"),
        F.col("key").alias("tie"),
        F.col("standing").alias("offered"),
        F.col("key").alias("attempt_key"),
    )
    takers = rows.select(
        *(_PAYLOAD, "topic", "partition", "offset"),
        moment.alias("moment"),
        F.lit(True).alias("is_taker"),
        number.alias("number"),
        row_digest(rows.columns).alias("tie"),
        wanted.alias("wanted"),
        F.struct(*rows.columns).alias("row"),
    )
    lines = offers.unionByName(takers, allowMissingColumns=True).select(*_LINE)
    queued = materialised(_queued(lines))
    places = queued.filter("NOT is_taker").select(
        *[F.col(name).alias(f"at_{name}") for name in _PLACE], F.col("attempt_key").alias("paired_key")
    )
    takers = queued.filter("is_taker").select("row", *_PLACE, "latest_key")
    is_taken = F.col("place").isNotNull() & same(_PLACE, "at_")
    return takers.join(places, is_taken, how="left").select("row.*", "paired_key", "latest_key")


def _queued(lines: DataFrame) -> DataFrame:
    """Return lines with `source` and `place`: of an attempt its outcome and number, of a row those of what it takes.

    `latest_key` is the last attempt before the line.
    """
    so_far = _in_time().rowsBetween(Window.unboundedPreceding, Window.currentRow)
    counts = {_offers(outcome): F.count_if(F.col("offered") == outcome) for outcome in _OUTCOMES}
    counted = lines.withColumns(
        {name: count.over(so_far) for name, count in counts.items()}
        | {"latest_key": F.last("attempt_key", ignorenulls=True).over(so_far), "source": F.col("offered")}
    )
    number = F.coalesce(*[F.when(F.col("offered") == name, F.col(_offers(name))) for name in _OUTCOMES])
    rows = counted.withColumn("place", number)
    for certainty in _CERTAINTIES:
        for outcome in _OUTCOMES:
            rows = _served(rows, certainty, outcome)
    return rows


def _offers(outcome: str) -> str:
    """Return the column that counts the attempts of an outcome so far."""
    return f"{outcome}_so_far"


def _served(lines: DataFrame, certainty: str, outcome: str) -> DataFrame:
    """Return lines of which the waiting rows of one certainty took what is left of the attempts of one outcome.

    With `spare` the free attempts so far less the rows that waited so far, up to a row as many were served as waited,
    plus the lowest `spare` so far where that is below zero. So a row is served unless it itself sets a new low.
    """
    so_far = _in_time().rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = _in_time().rowsBetween(Window.unboundedPreceding, -1)
    zero = F.lit(0).cast("bigint")
    is_waiting = (F.col("wanted") == certainty) & F.col("place").isNull()
    is_taken = F.col("is_taker") & (F.col("source") == outcome)
    taken = F.max(F.when(is_taken, F.col("place"))).over(Window.partitionBy(_PAYLOAD))
    free = F.greatest(F.col(_offers(outcome)) - F.col("taken"), zero)
    counted = (
        lines.withColumn("is_waiting", F.coalesce(is_waiting, F.lit(False)))
        .withColumns({"taken": F.coalesce(taken, zero), "queue": F.count_if("is_waiting").over(so_far)})
        .withColumn("spare", free - F.col("queue"))
    )
    lowest = F.min(F.when(F.col("is_waiting"), F.col("spare"))).over(before)
    is_served = F.col("is_waiting") & (F.col("spare") >= F.col("low"))
    place = F.col("taken") + F.col("queue") + F.col("low")
    return (
        counted.withColumn("low", F.least(F.coalesce(lowest, zero), zero))
        .withColumns(
            {
                "source": F.when(is_served, outcome).otherwise(F.col("source")),
                "place": F.when(is_served, place).otherwise(F.col("place")),
            }
        )
        .drop("is_waiting", "taken", "queue", "spare", "low")
    )
