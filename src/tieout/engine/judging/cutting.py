"""Buckets of topic partitions: the rows that one task judges together, where it cannot hold the whole window.

Rules need all rows of a partition, of an id, of a transaction, and of a key where keys are in order. So a bucket has
whole partitions, and two partitions that share any of these are in one bucket. Buckets exchange facts of topics and
clocks. Partitions are hashed into slots; the slots that a tie connects are the bits of one number, so that the data
that reaches the driver does not grow with the rows.
Docs: docs/decisions/one-task-judges-a-bucket-with-sql.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

SLOTS: Final = 63
"""The bits of a positive long, and the most buckets of a window."""
BUCKET: Final = "bucket"
_SHOWING_IDS: Final = (
    Ledger.PRODUCED, Ledger.LOG, Ledger.READ, Ledger.DELIVERED, Ledger.FILTERED, Ledger.DEAD_LETTERS, Ledger.STAGED,
)  # fmt: skip
_SHOWING_CONTENTS: Final = (Ledger.PRODUCED, Ledger.LOG, Ledger.READ, Ledger.DELIVERED)
_NAMELESS: Final = tuple(f"evidence_{ledger.value}" for ledger in _SHOWING_CONTENTS[1:])
_TO_ALL: Final = ("evidence_assigned", "clean_contents")
"""Tables that rules only look up in, and that are never counted: every bucket gets all their rows."""


@dataclass(frozen=True)
class Tie:
    """Rows that are equal in these columns must be judged together; a row whose last column is null has no such tie.

    `of_nameless` ties only rows without an id.
    """

    kind: str
    columns: tuple[str, ...]
    of_nameless: bool = False


def ties_of(scope: Scope, *, has_nameless: bool) -> dict[str, list[Tie]]:
    """Return the ties between rows of each table that a bucket is given, except their partition.

    `has_nameless`: some row has no id, and may be of any message with its payload.
    """
    ties = {f"evidence_{ledger.value}": [Tie("id", ("message_id",))] for ledger in _SHOWING_IDS}
    ties["evidence_produced"].append(
        Tie("transaction", ("producer_id", "producer_session", "transaction_id"))
    )
    for ledger in (Ledger.READ, Ledger.DELIVERED):
        ties[f"evidence_{ledger.value}"].append(Tie(f"{ledger.value} transaction", ("transaction_id",)))
    if has_nameless:
        for ledger in _SHOWING_CONTENTS:
            is_of_all = ledger is Ledger.PRODUCED or scope.contract.identity is Identity.POSITION
            ties[f"evidence_{ledger.value}"].append(Tie("payload", ("payload_hash",), not is_of_all))
    if scope.contract.ordering == "key" and scope.has(Ledger.PRODUCED, "key_hash"):
        for table in ("evidence_produced", "clean_effects"):
            ties.setdefault(table, []).append(Tie("key", ("topic", "key_hash")))
    return ties


@dataclass(frozen=True)
class Cut:
    """The assignment of rows to `count` buckets: `bucket_of` has the bucket of each slot.

    `tied` has the slots of each tie, as bits; None where all rows have a partition.
    """

    count: int
    bucket_of: tuple[int, ...]
    ties: Mapping[str, Sequence[Tie]]
    tied: DataFrame | None

    def of(self, table: str, rows: DataFrame) -> DataFrame:
        """Return a table's rows with their `bucket`; rows of look-up tables are repeated for every bucket."""
        if table in _TO_ALL:
            return rows.withColumn(BUCKET, F.explode(F.sequence(F.lit(0), F.lit(self.count - 1))))
        buckets = F.array(*map(F.lit, self.bucket_of))
        own = F.coalesce(F.element_at(buckets, _slot(rows) + 1), F.lit(0))
        ties = _ties(rows, self.ties.get(table, ()))
        if self.tied is None or ties is None:
            return rows.withColumn(BUCKET, own)
        lowest = F.bit_count(F.col("mask").bitwiseAND(-F.col("mask")) - 1).cast("int")
        of_tie = F.when(F.col("mask") > 0, F.element_at(buckets, lowest + 1)).otherwise(
            F.pmod("tie", F.lit(self.count)).cast("int")
        )
        unplaced = rows.filter(_slot(rows).isNull()).withColumn("tie", F.get(ties, F.lit(0)))
        found = unplaced.join(self.tied, "tie", "left").select(
            *rows.columns, F.coalesce(of_tie, F.lit(0)).alias(BUCKET)
        )
        return rows.filter(_slot(rows).isNotNull()).withColumn(BUCKET, own).unionByName(found)


def cut(scope: Scope, rows_by_table: Mapping[str, DataFrame], most_rows: int) -> Cut | None:
    """Return the cut of the rows into buckets of about `most_rows`, None where one bucket has all.

    One bucket has all where contents are identities, where the window is ranges of offsets, where a row has an offset
    without its partition, and where a row without a partition has more than one tie.
    """
    if scope.contract.identity is Identity.CONTENT or scope.window.offsets:
        return None
    evidence = {
        table: rows
        for table, rows in rows_by_table.items()
        if table.startswith("evidence_") and table not in _TO_ALL
    }
    facts = _facts(evidence)
    if any(row["is_misplaced"] for row in facts):
        return None
    by_position = scope.contract.identity is Identity.POSITION
    ties = ties_of(scope, has_nameless=by_position or any(row["is_nameless"] for row in facts))
    tying = _union(
        [
            rows.select(_mask(rows).alias("mask"), found.alias("ties"))
            for table, rows in rows_by_table.items()
            if (found := _ties(rows, ties.get(table, ()))) is not None
        ]
    )
    sizes = {row["slot"]: row["rows"] for row in facts}
    unplaced = sizes.pop(None, 0)
    if unplaced and not tying.filter((F.col("mask") == 0) & (F.size("ties") > 1)).isEmpty():
        return None
    tied = (
        tying.select("mask", F.explode("ties").alias("tie"))
        .groupBy("tie")
        .agg(F.bit_or("mask").alias("mask"))
    )
    if unplaced:
        tied = materialised(tied)
    shared = tied.filter(F.bit_count("mask") > 1).select("mask").distinct().collect()
    groups = _groups_of_slots(sizes, [row["mask"] for row in shared])
    count = min(SLOTS, -(-(sum(sizes.values()) + unplaced) // most_rows))
    if not unplaced:
        count = min(count, len(groups))
    if count < 2:
        return None
    return Cut(count, _dealt(groups, sizes, count), ties, tied if unplaced else None)


def _groups_of_slots(slots: Iterable[int], masks: Iterable[int]) -> list[list[int]]:
    """Return the slots in groups, so that all slots of a mask are in one group.

    >>> _groups_of_slots([0, 1, 2, 5], [0b11, 0b100010])
    [[0, 1, 5], [2]]
    """
    groups = {slot: [slot] for slot in sorted(slots)}
    for mask in masks:
        together = sorted({slot for one in groups if mask >> one & 1 for slot in groups[one]})
        groups |= dict.fromkeys(together, together)
    return [group for slot, group in groups.items() if slot == group[0]]


def _dealt(groups: Sequence[Sequence[int]], sizes: Mapping[int, int], count: int) -> tuple[int, ...]:
    """Return the bucket of each slot: the largest group first, each into the bucket with the fewest rows.

    >>> _dealt([[0, 1], [2], [3]], {0: 5, 1: 5, 2: 9, 3: 2}, 2)[:4]
    (0, 0, 1, 1)
    """
    filled, bucket_of = [0] * count, [0] * SLOTS
    for group in sorted(groups, key=lambda one: -sum(sizes[slot] for slot in one)):
        least = filled.index(min(filled))
        filled[least] += sum(sizes[slot] for slot in group)
        for slot in group:
            bucket_of[slot] = least
    return tuple(bucket_of)


def _facts(evidence: Mapping[str, DataFrame]) -> list[Row]:
    """Return per slot its number of rows, and whether some have an offset without its partition, or no id.

    A row without id and contents belongs to no message.
    """
    row_facts = []
    for table, rows in evidence.items():
        names_offset = _column(rows, "offset").isNotNull()
        shows = table in _NAMELESS and {"message_id", "payload_hash"} <= {*rows.columns}
        is_nameless = (
            F.col("message_id").isNull() & F.col("payload_hash").isNotNull() if shows else F.lit(False)
        )
        row_facts.append(
            rows.select(
                _slot(rows).alias("slot"),
                (names_offset & _slot(rows).isNull()).alias("is_misplaced"),
                is_nameless.alias("is_nameless"),
            )
        )
    counted = [
        F.count("*").alias("rows"),
        *[F.bool_or(name).alias(name) for name in ("is_misplaced", "is_nameless")],
    ]
    return _union(row_facts).groupBy("slot").agg(*counted).collect()


def _slot(rows: DataFrame) -> Column:
    """Return the slot of a row's topic partition, null where it names none."""
    topic, partition = _column(rows, "topic"), _column(rows, "partition").cast("int")
    slot = F.pmod(F.xxhash64(topic, partition), F.lit(SLOTS)).cast("int")
    return F.when(topic.isNotNull() & partition.isNotNull(), slot)


def _mask(rows: DataFrame) -> Column:
    """Return the bit of a row's slot, 0 where it has none."""
    return F.coalesce(
        F.call_function("shiftleft", F.lit(1).cast("bigint"), _slot(rows)), F.lit(0).cast("bigint")
    )


def _ties(rows: DataFrame, ties: Sequence[Tie]) -> Column | None:
    """Return the hashes of a row's ties, None where its table has none."""
    hashes = []
    for tie in ties:
        if {*tie.columns} <= {*rows.columns}:
            has_it = F.col(tie.columns[-1]).isNotNull()
            if tie.of_nameless:
                has_it &= _column(rows, "message_id").isNull()
            hashes.append(F.when(has_it, F.xxhash64(F.lit(tie.kind), *tie.columns)))
    return F.array_compact(F.array(*hashes)) if hashes else None


def _column(rows: DataFrame, name: str) -> Column:
    return F.col(name) if name in rows.columns else F.lit(None)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
