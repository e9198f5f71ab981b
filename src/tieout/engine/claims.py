"""Claims: who is meant by a position, where a row of another ledger shows nothing that says more.

The record in the log claims its position first, then who was read there, then who sent there, the latest acknowledged
first. Where a log was written over there are several claims. Docs: docs/reference/interpretations.md, 17, 38 and 83.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.asserting import placed_reads
from tieout.engine.joining import same, small_side
from tieout.engine.keys import NEVER, POSITION
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope

_RECORD, _READ, _SENT, _NAMELESS_RECORD = 0, 1, 2, 3
"""Whose claim comes first: the lower rank. A record that shows no id and that nobody sent there comes last."""
_ORDER: Final = ("rank", "is_doubtful", "ago")
HELD: Final = ("held_state", "held_until", "held_at")
_PLACE: Final = tuple(f"owned_{name}" for name in POSITION)


def sent_claims(scope: Scope, attempts: DataFrame) -> DataFrame:
    """Return a claim for each attempt at its position."""
    done_at = F.coalesce("completed_at", "attempted_at", F.lit(NEVER).cast("timestamp"))
    return _claims(
        attempts.filter(F.col("offset").isNotNull()),
        rank=F.lit(_SENT),
        is_doubtful=F.col("outcome") != "acked",
        ago=-F.unix_micros(done_at),
        name=F.col(scope.identity_column),
        session=_session(scope, attempts),
    )


def record_claims(records: DataFrame) -> DataFrame:
    """Return a claim for each data record of the log, given with its `key`, `named_id` and `is_claimed`."""
    is_told = F.col("is_claimed") | F.col("named_id").isNotNull()
    return _claims(
        records,
        rank=F.when(is_told, _RECORD).otherwise(_NAMELESS_RECORD),
        name=F.col("named_id"),
        state=F.col("transaction_state"),
        open_until=F.col("open_until"),
        recorded_at=F.col("record_timestamp"),
    )


def read_claims(scope: Scope, reads: DataFrame, attempts: DataFrame) -> DataFrame:
    """Return a claim for each position at which a read shows a message; what nobody attempted claims nothing."""
    ours = placed_reads(reads).filter(F.col("has_identity") & ~F.col("is_ambiguous"))
    attempted = ours.join(attempts.select("key").distinct(), "key", how="left_semi")
    session = _session(scope, attempted)
    return _claims(attempted, rank=F.lit(_READ), name=F.col(scope.identity_column), session=session)


def _session(scope: Scope, rows: DataFrame) -> Column:
    """Return the session that is part of a row's identity, null where ids are global or the row names none."""
    is_part = scope.contract.id_scope == "session" and "producer_session" in rows.columns
    return F.col("producer_session") if is_part else F.lit(None).cast("string")


def _claims(rows: DataFrame, **values: Column) -> DataFrame:
    untold = {
        "session": F.lit(None).cast("string"),
        "is_doubtful": F.lit(False),
        "ago": F.lit(0).cast("bigint"),
        "state": F.lit(None).cast("string"),
        "open_until": F.lit(None).cast("timestamp"),
        "recorded_at": F.lit(None).cast("timestamp"),
    }
    place = [F.col(name).alias(owned) for name, owned in zip(POSITION, _PLACE, strict=True)]
    chosen = [value.alias(name) for name, value in (untold | values).items()]
    return rows.select(*place, "key", "payload_hash", *chosen)


def owners_of(scope: Scope, claims: list[DataFrame]) -> DataFrame:
    """Return per position the message that claims it, and all `claims`, the best first, where there are several.

    Columns: `owned_topic`, `owned_partition`, `owned_offset`, `only` (`key`, `name`, `session`, `is_nameless`),
    `claims`, and of what lies there `held_state` (that of its transaction), `held_until` (when it was open) and
    `held_at` (its time).
    """
    every = reduce(DataFrame.unionByName, claims)
    one = F.struct(
        F.min("key").alias("key"),
        F.min("name").alias("name"),
        F.min("session").alias("session"),
        (F.min("rank") == _NAMELESS_RECORD).alias("is_nameless"),
    )
    owned = every.groupBy(*_PLACE).agg(
        one.alias("only"),
        (F.min("key") != F.max("key")).alias("is_contested"),
        F.max("state").alias("held_state"),
        F.max("open_until").alias("held_until"),
        F.max("recorded_at").alias("held_at"),
    )
    if not scope.is_large:
        return _with_lists(owned, every)
    owned = materialised(owned)
    contested = materialised(owned.filter("is_contested").select(*_PLACE))
    if contested.isEmpty():
        return owned.withColumn("claims", F.lit(None).cast(_lists(every).schema["claims"].dataType))
    several = every.join(small_side(_prefixed(contested)), same(_PLACE, "at_"), how="left_semi")
    return _with_lists(owned, several)


def _with_lists(owned: DataFrame, claims: DataFrame) -> DataFrame:
    """Return the positions with `claims`, null where only one message claims them."""
    lists = _prefixed(_lists(claims).filter(F.size("claims") > 1))
    return owned.join(lists, same(_PLACE, "at_"), how="left").drop(*(f"at_{name}" for name in _PLACE))


def _prefixed(rows: DataFrame) -> DataFrame:
    return rows.withColumnsRenamed({name: f"at_{name}" for name in _PLACE})


def _lists(claims: DataFrame) -> DataFrame:
    """Return per position its `claims`: one a message, the best first, with the contents that it shows there."""
    of_message = claims.groupBy(*_PLACE, "key").agg(
        F.min(F.struct(*_ORDER)).alias("order"),
        F.min("name").alias("name"),
        F.min("session").alias("session"),
        (F.min("rank") == _NAMELESS_RECORD).alias("is_nameless"),
        F.collect_set(F.when(F.col("rank") < _NAMELESS_RECORD, F.col("payload_hash"))).alias("contents"),
    )
    claim = F.struct("order", "key", "name", "session", "is_nameless", "contents")
    return of_message.groupBy(*_PLACE).agg(F.array_sort(F.collect_list(claim)).alias("claims"))


def with_owner(scope: Scope, rows: DataFrame, owners: DataFrame) -> DataFrame:
    """Return rows with the best claim on their position that they do not contradict, null where there is none.

    A claim of the row's own content comes before all others. Columns: `owner` (its key), `owner_name`, `is_nameless`
    (a record that shows no id and that nobody sent there), and what `owners_of` says of what lies there.
    """
    shown, content = F.col(scope.identity_column), F.col("payload_hash")
    session = _session(scope, rows)

    def fits(claim: Column) -> Column:
        is_same_id = F.coalesce(claim["name"] == shown, F.lit(True))
        return is_same_id & F.coalesce(claim["session"] == session, F.lit(True))

    def chosen(claim: Column) -> Column:
        return F.struct(*[claim[name].alias(name) for name in ("key", "name", "session", "is_nameless")])

    fitting = F.filter("claims", fits)
    of_content = F.filter(fitting, lambda claim: F.array_contains(claim["contents"], content))
    first = F.coalesce(F.get(of_content, F.lit(0)), F.get(fitting, F.lit(0)))
    only = F.when(fits(F.col("only")), F.col("only"))
    joined = rows.join(owners, same(POSITION, "owned_") & F.col("offset").isNotNull(), how="left")
    return joined.withColumn(
        "claim", F.when(F.col("claims").isNull(), only).otherwise(F.when(first.isNotNull(), chosen(first)))
    ).select(
        *rows.columns,
        F.col("claim.key").alias("owner"),
        F.col("claim.name").alias("owner_name"),
        F.coalesce("claim.is_nameless", F.lit(False)).alias("is_nameless"),
        *HELD,
    )
