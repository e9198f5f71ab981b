"""Clean messages: sent once, delivered once, unchanged and in time, with an id that occurs nowhere else.

No rule has to read them: each is DELIVERED, and a row of either side is the whole message. What rules about other
messages need to know of them goes to the judging task as small tables. Docs: docs/explanation/prematch.md.
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
    """Sums over clean messages: the tables `clean_counts` and `clean_latencies` of a bucket.

    The latency of about one message in `share` is known, and the longest of all only where a row has it.
    """

    counts: DataFrame
    latencies: DataFrame
    share: int


@dataclass(frozen=True)
class Clean:
    """The clean messages of a window, which are not among the rows that the rules read.

    `rows` are their rows in each ledger, not materialised. `placed` are their output rows with the positions and keys
    of their sends, where the output has no positions, else None. `facts` are tables of a bucket, by the names of
    `judging.canonical`. `scan_settings` are the session's settings for a scan of all rows.
    """

    sums: Sums
    rows: Mapping[Ledger, DataFrame]
    facts: Mapping[str, DataFrame]
    scan_settings: Mapping[str, str]
    placed: DataFrame | None = None

    def tables(self) -> dict[str, DataFrame]:
        """Return the tables of a bucket about these messages, by name."""
        sums = {"clean_counts": self.sums.counts, "clean_latencies": self.sums.latencies}
        return {**sums, **self.facts}

    def topics(self) -> frozenset[str | None]:
        """Return the topics that were sent to."""
        return frozenset(row["topic"] for row in self.sums.counts.select("topic").distinct().collect())

    def computed(self, rows: DataFrame) -> DataFrame:
        """Return the rows, computed now by a scan of all messages, and materialised."""
        with set_to(rows.sparkSession, self.scan_settings):
            return materialised(rows)

    def at(self, positions: DataFrame) -> dict[Ledger, DataFrame]:
        """Return the rows of each ledger at some positions, materialised."""
        return {ledger: self.computed(at_positions(rows, positions)) for ledger, rows in self.rows.items()}
