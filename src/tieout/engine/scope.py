"""What one run judges: a contract, a window and the evidence, with the questions every rule asks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.evidence import NOTHING_SUSPECTED, Evidence, Suspicions
from tieout.engine.known_contents import known_contents
from tieout.engine.quiet import Quiet
from tieout.engine.session import SMALL_ROWS
from tieout.model import Identity, Ledger, Window


@dataclass(frozen=True)
class Scope:
    """The inputs of a run; rules take it and ask it, they never look anywhere else.

    `deleted` are topics that are known to be gone, one a row; None where none is. See `incarnations.py`. `beside` are
    messages that the rows lack because no rule has to look at them, and `size` says how many rows there are then; see
    `levels.py`. `suspicions` are what the matched messages tell against the evidence.
    """

    contract: Contract
    window: Window
    evidence: Mapping[Ledger, Evidence]
    deleted: DataFrame | None = None
    beside: Quiet | None = None
    suspicions: Suspicions = NOTHING_SUSPECTED
    size: int | None = None

    def has(self, ledger: Ledger, *columns: str) -> bool:
        """Return whether the ledger is declared and its source has every one of the columns."""
        found = self.evidence.get(ledger)
        return found is not None and set(columns) <= found.present

    def rows(self, ledger: Ledger) -> DataFrame:
        """Return the ledger's canonical rows.

        Raises:
            KeyError: where the contract does not declare the ledger.
        """
        return self.evidence[ledger].rows

    def with_known_contents(self, ledger: Ledger, rows: DataFrame) -> DataFrame:
        """Return canonical rows of a ledger with what `known_contents` says of them."""
        unknown = self.contract.ledgers[ledger].unknown or ()
        return rows.withColumns(known_contents(ledger, self.evidence[ledger].present, unknown))

    def with_lacking(self, ledger: Ledger, lacking: Sequence[str]) -> Scope:
        """Return the scope with what a declared ledger lacks in its coverage; without anything the scope itself."""
        if not lacking:
            return self
        found = self.evidence[ledger]
        coverage = replace(found.coverage, lacking=(*found.coverage.lacking, *lacking))
        return replace(self, evidence={**self.evidence, ledger: replace(found, coverage=coverage)})

    @property
    def row_count(self) -> int:
        """How many rows of all ledgers the rules are put to."""
        if self.size is not None:
            return self.size
        return sum(found.coverage.rows for found in self.evidence.values())

    @property
    def is_large(self) -> bool:
        """Whether rows are many, so that steps which spare work per row are worth planning."""
        return self.row_count > SMALL_ROWS

    @property
    def effect_ledger(self) -> Ledger:
        """The ledger whose rows are effects: `delivered` wherever it is declared, else `read`."""
        return self.contract.effect_ledger

    @property
    def accounting_ledgers(self) -> tuple[Ledger, ...]:
        """The ledgers whose silence makes a loss: the effects', and the declared ones of what was legally set aside."""
        return (self.effect_ledger, *self.sets_aside)

    @property
    def sets_aside(self) -> tuple[Ledger, ...]:
        """The declared ledgers of what was legally set aside."""
        return tuple(ledger for ledger in (Ledger.FILTERED, Ledger.DEAD_LETTERS) if ledger in self.evidence)

    @property
    def reader_ledger(self) -> Ledger:
        """The ledger that shows best in which order a consumer got its records: `read` wherever it is declared."""
        return Ledger.READ if Ledger.READ in self.evidence else Ledger.DELIVERED

    @property
    def identity_column(self) -> str:
        """The column by which two rows of one position contradict each other: their ids, or what they hold."""
        by_content = self.contract.identity == Identity.CONTENT
        return "payload_hash" if by_content else "message_id"

    @property
    def patience(self) -> timedelta:
        """How long after its acknowledgement a message may stay without effect."""
        return self.contract.max_latency + self.contract.clock_skew

    @property
    def is_misread_queue(self) -> bool:
        """Whether the evidence shows a share group, which locks records one by one, and the contract says a log."""
        shown = any(found.coverage.is_share_group for found in self.evidence.values())
        return shown and not self.contract.is_queue

    def is_ours(self, ledger: Ledger | None = None) -> Column:
        """Return whether a row of the consumer's side is the judged group's; one that names no group is.

        In `mirrored` the group may have another name, as `Contract.group_of` says.
        """
        group = self.contract.group if ledger is None else self.contract.group_of(ledger)
        return F.col("consumer_group").isNull() | (F.col("consumer_group") == group)

    def in_window(self, time: Column) -> Column:
        """Return whether the time lies in `[start, end)`; false, never null, without a time."""
        inside = (time >= F.lit(self.window.start)) & (time < F.lit(self.window.end))
        return F.coalesce(inside, F.lit(False))

    def holds(self, time: Column, offset: Column) -> Column:
        """Return whether the window has what lies at `offset` of the row's `topic` and `partition`, and at `time`.

        The position decides where the window is ranges of offsets and there is one, else the time; never null.
        """
        if not self.window.offsets:
            return self.in_window(time)
        return F.when(
            offset.isNotNull(), self.in_ranges(F.col("topic"), F.col("partition"), offset)
        ).otherwise(self.in_window(time))

    def in_ranges(self, topic: Column, partition: Column, offset: Column) -> Column:
        """Return whether the position lies in one of the window's ranges of offsets; false, never null, without one."""
        found = F.exists(
            self.ranges(),
            lambda one: (
                (one["topic"] == topic)
                & (one["partition"] == partition)
                & (one["from"] <= offset)
                & (offset < one["to"])
            ),
        )
        return F.coalesce(found, F.lit(False))

    def ranges(self) -> Column:
        """Return the window's ranges of offsets, an array of `topic`, `partition`, `from` and `to`."""
        return F.array(
            *[
                F.struct(
                    F.lit(one.topic).alias("topic"),
                    F.lit(one.partition).alias("partition"),
                    F.lit(one.start).cast("bigint").alias("from"),
                    F.lit(one.end).cast("bigint").alias("to"),
                )
                for one in self.window.offsets
            ]
        )

    def holds_message(self, time: Column) -> Column:
        """Return whether the window has a message's event at `time`: where it is known by position, the message's."""
        if not self.window.offsets:
            return self.in_window(time)
        return F.coalesce(F.col("is_in_ranges"), self.in_window(time))

    def covered_from(self, ledger: Ledger, time: Column) -> Column:
        """Return whether the ledger's evidence reaches back to the time."""
        coverage = self.evidence[ledger].coverage
        if not coverage.is_sound or coverage.complete_until is None:
            return F.lit(False)
        if coverage.covers_from is None:
            return time.isNotNull()
        return F.coalesce(time >= F.lit(coverage.covers_from), F.lit(False))

    def covered_until(self, ledger: Ledger, time: Column) -> Column:
        """Return whether the ledger's evidence is complete up to the time."""
        coverage = self.evidence[ledger].coverage
        if not coverage.is_sound or coverage.complete_until is None:
            return F.lit(False)
        return F.coalesce(time <= F.lit(coverage.complete_until), F.lit(False))

    def covered_between(self, ledger: Ledger, first: Column, last: Column) -> Column:
        """Return whether the ledger's evidence reaches back to the first time, and is complete up to the last."""
        return self.covered_from(ledger, first) & self.covered_until(ledger, last)

    def is_accounted(self, until: Column, since: Column | None = None) -> Column:
        """Return whether every accounting ledger is complete up to `until`, and reaches back to `since`."""
        covered = [self.covered_until(ledger, until) for ledger in self.accounting_ledgers]
        if since is not None:
            covered += [self.covered_from(ledger, since) for ledger in self.accounting_ledgers]
        return reduce(and_, covered)
