"""Clean messages: sent once, delivered once, unchanged and in time, with an id that stands nowhere else.

No rule has to look at them: each is DELIVERED, and a row of either side is the whole message. What rules about other
messages may ask of them is handed to the bucket as tables of few rows. Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from tieout.engine.joining import at_positions
from tieout.engine.materialising import materialised
from tieout.engine.session import set_to
from tieout.model import Ledger


@dataclass(frozen=True)
class Sums:
    """What clean messages add up to: the tables `clean_counts` and `clean_latencies` of a bucket.

    Of about one message in `share` the latency is known, and the longest of all only where a row says it.
    """

    counts: DataFrame
    latencies: DataFrame
    share: int


@dataclass(frozen=True)
class Clean:
    """The clean messages of a window, which are not among the rows that the rules are put to.

    `rows` are theirs in each ledger, not kept; `placed` those of the output with the positions and keys that they were
    sent with, where the output shows no positions, else None. `told` are tables of a bucket, by name, as
    `judging.canonical` has them. `roomy` are the settings for a pass over all rows.
    """

    sums: Sums
    rows: Mapping[Ledger, DataFrame]
    told: Mapping[str, DataFrame]
    roomy: Mapping[str, str]
    placed: DataFrame | None = None

    def tables(self) -> dict[str, DataFrame]:
        """Return what a bucket is told of these messages, by the name of its table."""
        sums = {"clean_counts": self.sums.counts, "clean_latencies": self.sums.latencies}
        return {**sums, **self.told}

    def topics(self) -> frozenset[str | None]:
        """Return the topics that were sent to."""
        return frozenset(row["topic"] for row in self.sums.counts.select("topic").distinct().collect())

    def computed(self, rows: DataFrame) -> DataFrame:
        """Return rows that it takes a pass over all messages to get, computed now and kept."""
        with set_to(rows.sparkSession, self.roomy):
            return materialised(rows)

    def at(self, positions: DataFrame) -> dict[Ledger, DataFrame]:
        """Return the rows of each ledger at some positions, computed."""
        return {ledger: self.computed(at_positions(rows, positions)) for ledger, rows in self.rows.items()}
