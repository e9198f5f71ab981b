"""Following one message through the ledgers: every row that names it, or one of its positions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.evidence import Evidence
from tieout.engine.ledger import TIME_COLUMN
from tieout.model import Ledger

ROWS_SHOWN: Final = 50
_MOST_POSITIONS: Final = 1_000

Position = tuple[str, int, int]
"""A topic, a partition in it, an offset in that."""


@dataclass(frozen=True)
class Trace:
    """What one ledger knows of a message: its first rows in time, each without nulls, and their number."""

    rows: tuple[dict[str, Any], ...]
    total: int


def trace(evidence: Mapping[Ledger, Evidence], message: str | Position) -> dict[Ledger, Trace]:
    """Return per ledger the rows about a message, given by its id or by one of its positions.

    A row is about the message where it names the id, or a position that a row with the id names. Of
    `committed`, these are the commits that had passed such a position. Assignments are about no message and
    are left out.
    """
    positions = _positions(evidence, message) if isinstance(message, str) else {message}
    return {
        ledger: _traced(found.rows.filter(_is_about(ledger, message, positions)), ledger)
        for ledger, found in evidence.items()
        if ledger is not Ledger.ASSIGNED
    }


def _positions(evidence: Mapping[Ledger, Evidence], message_id: str) -> set[Position]:
    """Return the positions, at most a thousand a ledger, that rows with the id name."""
    named: set[Position] = set()
    for found in evidence.values():
        if {"message_id", "topic", "partition", "offset"} <= found.present:
            with_id = found.rows.filter(F.col("message_id") == message_id)
            rows = with_id.select("topic", "partition", "offset").dropna().distinct().limit(_MOST_POSITIONS)
            named |= {(row["topic"], row["partition"], row["offset"]) for row in rows.collect()}
    return named


def _is_about(ledger: Ledger, message: str | Position, positions: set[Position]) -> Column:
    is_about = F.lit(False)
    if isinstance(message, str) and ledger is not Ledger.COMMITTED:
        is_about = F.col("message_id") == message
    for topic, partition, offset in sorted(positions):
        is_there = F.col("offset") == offset
        if ledger is Ledger.COMMITTED:
            is_there = F.col("committed_offset") > offset
        is_about |= (F.col("topic") == topic) & (F.col("partition") == partition) & is_there
    return is_about


def _traced(rows: DataFrame, ledger: Ledger) -> Trace:
    """Return the first rows in time; JSON leaves nulls out and writes times in UTC, whatever zone this is."""
    offset = "committed_offset" if ledger is Ledger.COMMITTED else "offset"
    in_time = rows.orderBy(F.col(TIME_COLUMN[ledger]).asc_nulls_last(), "topic", "partition", offset)
    lines = in_time.limit(ROWS_SHOWN).select(F.to_json(F.struct(*rows.columns)).alias("line")).collect()
    return Trace(tuple(json.loads(line["line"]) for line in lines), rows.count())
