"""Keys: the columns that identify a partition, a position, a session and a transaction."""

from __future__ import annotations

from typing import Final

PLACE: Final = ("topic", "partition")
POSITION: Final = ("topic", "partition", "offset")
SESSION: Final = ("producer_id", "producer_session")
"""What names a session of a producer, within which it numbers what it sends."""
TRANSACTION: Final = (*SESSION, "transaction_id")
"""What names a transaction of a producer."""
