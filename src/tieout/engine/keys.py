"""Keys: the one value that all rows of a message share, by what makes them one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

PLACE: Final = ("topic", "partition")
POSITION: Final = ("topic", "partition", "offset")
SESSION: Final = ("producer_id", "producer_session")
"""What names a session of a producer, within which it numbers what it sends."""
TRANSACTION: Final = (*SESSION, "transaction_id")
"""What names a transaction of a producer."""
NEVER: Final = "9999-12-31 00:00:00"
"""Stands for a time that is not known where the earliest is looked for."""


def placed_offset(offset: Column) -> Column:
    """Return the offset, or null where the client reported none (Kafka's -1 with acks=0)."""
    return F.when(offset >= 0, offset)


def position_key() -> Column:
    """Return the key of a message that is known by its position."""
    return F.concat(F.lit("p:"), F.to_json(F.struct(*POSITION)))


def id_key() -> Column:
    """Return the key of a message whose id is used for nothing else."""
    return F.concat(F.lit("m:"), F.col("message_id"))


def row_digest(columns: Iterable[str]) -> Column:
    """Return the SHA-256 of a row's columns, times to the microsecond: what tells rows apart if nothing else does."""
    shown = F.struct(*sorted(columns))
    return F.sha2(F.to_json(shown, {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}), 256)
