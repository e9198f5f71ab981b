"""Rows of positions that a reader works out itself, and the ledgers that they are evidence for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from tieout.engine.materialising import no_rows
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, TEXT, Request
from tieout.errors import SourceError
from tieout.model import POSITION_LEDGERS

POSITIONS: Final = (
    "consumer_group STRING, topic STRING, partition INT, first_offset BIGINT, committed_offset BIGINT, "
    "committed_at TIMESTAMP, metadata STRING, "
    f"{FILE} STRING, {TEXT} STRING, {BLOCK} BIGINT, {ROW} BIGINT, {FAULT} STRING"
)
"""The columns of positions that a reader works out itself."""
_MOST_NAMED: Final = 20


class Position(NamedTuple):
    """What one row of positions says, `[first, end)` of a partition; `first` is None where it is the beginning.

    `end` is None where the position was deleted.
    """

    topic: str
    partition: int
    first: int | None
    end: int | None
    at: datetime | None
    metadata: str | None = None


def require_position_ledger(kind: str, request: Request) -> None:
    """Refuse another ledger than one of positions.

    Raises:
        SourceError: naming those that the kind is evidence for.
    """
    if request.ledger not in POSITION_LEDGERS:
        raise SourceError(f"{request.place}: {kind} is evidence for {' and '.join(POSITION_LEDGERS)} only")


def position_row(request: Request, position: Position, uri: str, number: int) -> tuple[object, ...]:
    """Return the position as a row of `POSITIONS`: of the contract's group, with its number in the file from 0 on."""
    return (request.group, *position, uri, None, 0, number, None)


def position_rows(spark: SparkSession, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    """Return rows of `POSITIONS` as a frame."""
    return spark.createDataFrame(rows, POSITIONS) if rows else no_rows(spark, POSITIONS)


def shortened(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first lines, and a last one with the count of the others."""
    more = len(lines) - _MOST_NAMED
    return lines if more <= 0 else (*lines[:_MOST_NAMED], f"and {more} more")
