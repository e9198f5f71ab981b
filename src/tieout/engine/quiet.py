"""Quiet messages: sent once, delivered once, unchanged and in time, with an id that stands nowhere else.

A window's quiet messages need no rule to be matched: each is DELIVERED, a row of either side is the whole message, and
all that others can learn from it is kept here. Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.fingerprint import done_at
from tieout.engine.joining import same, small_side
from tieout.engine.keys import PLACE, POSITION, SESSION, id_key, position_key
from tieout.engine.materialising import materialised
from tieout.engine.session import set_to
from tieout.model import Identity, Ledger


@dataclass(frozen=True)
class Sums:
    """What quiet messages add up to in a statement.

    `counts` has one row a topic partition, as `statement.partition_counts`; `latencies` one row a bucket of `share`
    positions, `micros` of all its messages and `seconds` of one of them.
    """

    counts: DataFrame
    latencies: DataFrame
    share: int


@dataclass(frozen=True)
class Quiet:
    """The quiet messages of a window, which are not among the rows that the rules are put to.

    `rows` are theirs in each ledger, not kept. `progress` shows how far the group came with them, as
    `positions.progress_of`; `contents` which topics and payloads of theirs others show as well, None where nobody can;
    `writers` are their rows in a log that names who wrote them, and `positions` how many of theirs a log has, as
    `balance.quiet_positions`; None without one. `placed` are their rows of the output with the positions and keys that
    they were sent with, where the output shows no positions; else None.
    `roomy` are the settings for a pass over all rows.
    """

    sums: Sums
    rows: Mapping[Ledger, DataFrame]
    progress: DataFrame
    contents: DataFrame | None
    writers: DataFrame | None
    positions: DataFrame | None
    roomy: Mapping[str, str]
    placed: DataFrame | None = None

    def sent(self) -> DataFrame:
        """Return the messages as their sends show them, with what their records say of who wrote them."""
        sent = as_messages(self.rows[Ledger.PRODUCED], Ledger.PRODUCED)
        if self.writers is None:
            return sent
        by = F.col("broker_producer_id")
        writers = self.writers.select(*[F.col(name).alias(f"w_{name}") for name in POSITION], by)
        is_there = same(PLACE, "w_") & (F.col("first_offset") == F.col("w_offset"))
        facts = {
            "has_plain_record": F.coalesce(by < 0, F.lit(False)),
            "has_idempotent_record": F.coalesce(by >= 0, F.lit(False)),
        }
        return sent.join(writers, is_there, how="left").withColumns(facts).select(*sent.columns)

    def topics(self) -> frozenset[str | None]:
        """Return the topics that were sent to."""
        found = self.computed(self.rows[Ledger.PRODUCED].select("topic").distinct())
        return frozenset(row["topic"] for row in found.collect())

    def arrived(self) -> DataFrame:
        """Return the messages as their effects show them."""
        return as_messages(self.arrived_at(), Ledger.DELIVERED)

    def arrived_at(self) -> DataFrame:
        """Return their rows of the output with positions: those of the output, or those they were sent to."""
        return self.rows[Ledger.DELIVERED] if self.placed is None else self.placed

    def read(self) -> DataFrame:
        """Return their rows of the output."""
        return self.rows[Ledger.DELIVERED]

    def read_by_key(self) -> DataFrame:
        """Return their rows of the output that have a key, as `order_key`."""
        return by_key(self.read())

    def computed(self, rows: DataFrame) -> DataFrame:
        """Return rows that it takes a pass over all messages to get, computed now and kept."""
        with set_to(rows.sparkSession, self.roomy):
            return materialised(rows)

    def keyed_at(self, positions: DataFrame, identity: Identity) -> dict[Ledger, DataFrame]:
        """Return the rows at the positions with the `key` of their message."""
        key = position_key() if identity is Identity.POSITION else id_key()
        wanted = small_side(positions.select(*[F.col(name).alias(f"w_{name}") for name in POSITION]))
        return {
            ledger: self.computed(
                rows.join(wanted, same(POSITION, "w_"), how="left_semi").withColumn("key", key)
            )
            for ledger, rows in self.rows.items()
        }


def by_key(rows: DataFrame) -> DataFrame:
    """Return the rows that have a key, as `order_key`."""
    return rows.filter(F.col("key_hash").isNotNull()).withColumn("order_key", F.col("key_hash"))


def as_messages(rows: DataFrame, ledger: Ledger) -> DataFrame:
    """Return rows of one side as the messages they are, with what rules about order ask of them."""
    facts: dict[str, Column] = {
        "first_offset": F.col("offset"),
        "acceptance": F.lit("accepted"),
        "sent_key_hash": F.array_compact(F.array("key_hash")),
        "has_plain_record": F.lit(False),
        "has_idempotent_record": F.lit(False),
    }
    if ledger is Ledger.PRODUCED:
        at = F.col("attempted_at").alias("at")
        facts["first_attempt"] = F.struct(at, "sequence", *SESSION)
        facts["first_sent"] = facts["first_attempt"]
        facts["first_acked"] = F.struct(at, done_at().alias("done_at"))
    else:
        at = F.col("processed_at").alias("at")
        facts["first_effect"] = F.struct(at, "delivery_sequence", "consumer_id")
    return rows.select(*PLACE, "message_id", *[fact.alias(name) for name, fact in facts.items()])
