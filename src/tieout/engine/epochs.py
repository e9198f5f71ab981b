"""Leader epochs: what the order in which a partition's leaders followed each other proves of a break.

Epochs rise while a topic lives, whoever is elected (KIP-101, "Alter Replication Protocol to use Leader Epoch rather
than High Watermark for Truncation"), and begin at 0 with every topic. A record's time is taken for that of its send.
Docs: docs/reference/taxonomy.md, section 4.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.joining import same
from tieout.engine.keys import PLACE
from tieout.engine.scope import Scope
from tieout.model import Ledger

_EPOCHS: Final = (
    "array<struct<leader_epoch:int,first:bigint,last:bigint,began_at:timestamp,ended_at:timestamp>>"
)


def with_epochs(scope: Scope, breaks: DataFrame, log: DataFrame | None) -> DataFrame:
    """Return breaks with `epochs`: of each leader epoch in their partition's log its offsets and when they were sent.

    | topic  | partition | epochs                           |
    |--------|-----------|----------------------------------|
    | orders | 0         | [(0, 0, 9, 10:01, 10:05), (2, …)] |
    """
    if log is None or not scope.has(Ledger.LOG, "leader_epoch"):
        return breaks.withColumn("epochs", F.lit(None).cast(_EPOCHS))
    each = (
        log.filter(F.col("leader_epoch").isNotNull())
        .groupBy(*PLACE, "leader_epoch")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.min("record_timestamp").alias("began_at"),
            F.max("record_timestamp").alias("ended_at"),
        )
    )
    together = F.collect_list(F.struct("leader_epoch", "first", "last", "began_at", "ended_at"))
    known = each.groupBy(*[F.col(name).alias(f"e_{name}") for name in PLACE]).agg(together.alias("epochs"))
    return breaks.join(F.broadcast(known), same(PLACE, "e_"), how="left").drop("e_topic", "e_partition")


def is_after_election(scope: Scope) -> Column:
    """Return whether the break's position was in the tail of a leader that its successor did not have.

    A newer epoch holds the position, or the log ends in one before it, beyond everything that former leaders left in
    the log; and the message was sent after the first of that, and before the newer epoch's first record.
    """
    skew = F.lit(scope.contract.clock_skew)
    holding = F.array_min(F.filter("epochs", lambda epoch: epoch["last"] >= F.col("offset")))
    newer = F.coalesce(holding, F.array_max("epochs"))
    older = F.filter("epochs", lambda epoch: epoch["leader_epoch"] < newer["leader_epoch"])
    is_tail = F.forall(older, lambda epoch: epoch["last"] < F.col("offset"))
    was_theirs = F.exists(older, lambda epoch: epoch["began_at"] <= F.col("sent_at") + skew)
    came_before = F.col("sent_at") <= newer["began_at"] + skew
    return _surely((newer["first"] <= F.col("offset")) & is_tail & was_theirs & came_before)


def was_before_topic(scope: Scope, answered_at: Column) -> Column:
    """Return whether what was acknowledged then was another topic's of the name.

    The log begins at offset 0 with records of a topic's first leader, and all of those were sent later.
    """
    since = answered_at + F.lit(scope.contract.clock_skew)
    return _surely(
        F.exists(
            "epochs",
            lambda epoch: (epoch["leader_epoch"] == 0) & (epoch["first"] == 0) & (epoch["began_at"] > since),
        )
    )


def is_of_older_leader(epoch: Column) -> Column:
    """Return whether the log has a record of a newer leader than this epoch's: it may have been cut when that came."""
    return _surely(F.exists("epochs", lambda one: one["leader_epoch"] > epoch))


def is_of_former_topic(scope: Scope, epoch: Column, at: Column) -> Column:
    """Return whether a record was sent under an older leader than this epoch's, although later: epochs began anew."""
    since = at + F.lit(scope.contract.clock_skew)
    return _surely(F.exists("epochs", lambda one: (one["leader_epoch"] < epoch) & (one["ended_at"] > since)))


def _surely(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))
