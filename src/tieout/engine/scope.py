"""What one run judges: a contract, a window and the evidence, with the properties that rules need of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.clean import Clean
from tieout.engine.evidence import NOTHING_SUSPECTED, Evidence, Suspicions
from tieout.engine.session import SMALL_ROWS
from tieout.model import Identity, Ledger, Window


def is_of_group(group: str) -> Column:
    """Return whether a row of the consumer's side belongs to this group; one without a group does."""
    return F.col("consumer_group").isNull() | (F.col("consumer_group") == group)


@dataclass(frozen=True)
class Scope:
    """The inputs of a run: rules take nothing from anywhere else.

    `deleted` has one row per topic known to be gone, or is None; see `topic_generations.py`. `clean` are the messages
    that prematch removed from the rows, because no rule has to read them; `size` is then the number of rows left.
    `suspicions` are the doubts that the judged messages raise about the evidence.
    """

    contract: Contract
    window: Window
    evidence: Mapping[Ledger, Evidence]
    deleted: DataFrame | None = None
    clean: Clean | None = None
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

    def with_lacking(self, ledger: Ledger, lacking: Sequence[str]) -> Scope:
        """Return the scope with what a declared ledger lacks added to its coverage; if nothing, the same scope."""
        if not lacking:
            return self
        found = self.evidence[ledger]
        coverage = replace(found.coverage, lacking=(*found.coverage.lacking, *lacking))
        return replace(self, evidence={**self.evidence, ledger: replace(found, coverage=coverage)})

    def with_remainder(self, rows: Mapping[Ledger, DataFrame], clean: Clean) -> Scope:
        """Return the scope with the remaining rows of some ledgers, materialised, and its clean messages."""
        evidence = {
            ledger: replace(found, rows=rows[ledger]) if ledger in rows else found
            for ledger, found in self.evidence.items()
        }
        size = sum(found.rows.count() for found in evidence.values())
        return replace(self, evidence=evidence, clean=clean, size=size)

    @property
    def row_count(self) -> int:
        """How many rows of all ledgers the rules read."""
        if self.size is not None:
            return self.size
        return sum(found.coverage.rows for found in self.evidence.values())

    @property
    def is_large(self) -> bool:
        """Whether rows are so many that steps which save work per row are worth planning."""
        return self.row_count > SMALL_ROWS

    @property
    def effect_ledger(self) -> Ledger:
        """The ledger whose rows are effects: `delivered` wherever it is declared, else `read`."""
        return self.contract.effect_ledger

    @property
    def fans_out(self) -> bool:
        """Whether one message has several effects."""
        return self.contract.multiplicity.kind == "one_to_many"

    @property
    def accounting_ledgers(self) -> tuple[Ledger, ...]:
        """A lost message is in none of these ledgers: that of effects, and the declared ones of `sets_aside`."""
        return (self.effect_ledger, *self.sets_aside)

    @property
    def sets_aside(self) -> tuple[Ledger, ...]:
        """The declared ledgers of what was legally set aside."""
        return tuple(ledger for ledger in (Ledger.FILTERED, Ledger.DEAD_LETTERS) if ledger in self.evidence)

    @property
    def reader_ledger(self) -> Ledger:
        """The ledger that best shows the order in which a consumer got its records: `read` wherever it is declared."""
        return Ledger.READ if Ledger.READ in self.evidence else Ledger.DELIVERED

    @property
    def identity_column(self) -> str:
        """The column in which two rows of one position contradict each other: their ids, or their payloads."""
        by_content = self.contract.identity == Identity.CONTENT
        return "payload_hash" if by_content else "message_id"

    @property
    def allowed_latency(self) -> timedelta:
        """How long after its acknowledgement a message may be without an effect."""
        return self.contract.max_latency + self.contract.clock_skew

    @property
    def is_misread_queue(self) -> bool:
        """Whether the evidence shows a share group, which locks records one by one, and the contract says a log."""
        shown = any(found.coverage.is_share_group for found in self.evidence.values())
        return shown and not self.contract.is_queue

    def is_ours(self, ledger: Ledger | None = None) -> Column:
        """Return whether a row of the consumer's side belongs to the judged group; one without a group does.

        In `mirrored` the group may have another name, as `Contract.group_of` says.
        """
        group = self.contract.group if ledger is None else self.contract.group_of(ledger)
        return is_of_group(group)

    def in_window(self, time: Column) -> Column:
        """Return whether the time is in `[start, end)`; false, never null, without a time."""
        inside = (time >= F.lit(self.window.start)) & (time < F.lit(self.window.end))
        return F.coalesce(inside, F.lit(False))
