"""The keys by which a break is found: the texts whose digests `tieout.break_handles` puts into the index."""

from __future__ import annotations

from collections.abc import Iterable

from tieout.store.storable import EVIDENCE_LIMIT, TEXT_LIMIT, storable_text


def message_id_handles(message_id: str) -> tuple[str, ...]:
    """Return the handles of an id, as a break's column and as its evidence keep it; they cut long ids differently.

    >>> message_id_handles("m-1")
    ('message_id m-1',)
    """
    kept = (storable_text(message_id, limit) for limit in (TEXT_LIMIT, EVIDENCE_LIMIT))
    return tuple(dict.fromkeys(f"message_id {text}" for text in kept))


def key_handles(hashes: Iterable[str]) -> tuple[str, ...]:
    """Return the handles of a key, given as what `key_hash` may hold for it."""
    return tuple(f"key {storable_text(text, EVIDENCE_LIMIT)}" for text in hashes)


def position_handles(topic: str, partition: int, offset: int) -> tuple[str, ...]:
    """Return the handle of a position.

    >>> position_handles("orders", 0, 17)
    ('position orders/0/17',)
    """
    return (f"position {storable_text(topic, EVIDENCE_LIMIT)}/{partition}/{offset}",)
