"""The content of messages, and the hash that every side of a recording computes."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

NULL_KEY_INTERVAL = 5
"""Every fifth message has no key."""


def message_ids(prefix: str, first: int, count: int) -> list[str]:
    """Return `count` consecutive ids.

    >>> message_ids("web", 7, 2)
    ['web-000007', 'web-000008']
    """
    return [f"{prefix}-{number:06d}" for number in range(first, first + count)]


def payload_of(message_id: str) -> bytes:
    """Return the message's value: the same id always has the same content, so a resend is equal."""
    number = int(message_id.rsplit("-", 1)[1])
    order = {"order_id": message_id, "amount_cents": 100 + number * 7 % 9000, "items": 1 + number % 4}
    return json.dumps(order, separators=(",", ":")).encode()


def key_of(message_id: str) -> bytes | None:
    """Return the message's key, a customer, or None for every fifth message."""
    number = int(message_id.rsplit("-", 1)[1])
    return None if number % NULL_KEY_INTERVAL == 0 else f"customer-{number % 37}".encode()


def id_in(payload: bytes) -> str:
    """Return the id in a payload: `order_id` in JSON, or the whole text of a verifiable producer's value."""
    text = payload.decode()
    return str(json.loads(text)["order_id"]) if text.startswith("{") else text


def fingerprint(content: bytes | None) -> str | None:
    """Return the SHA-256 of the bytes in lower-case hex, or None for none."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def now_text() -> str:
    """Return the present time as ISO 8601 in UTC with microseconds."""
    return iso(datetime.now(UTC))


def iso(moment: datetime) -> str:
    """Return the time as ISO 8601 in UTC with microseconds and a `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def iso_of_ms(epoch_ms: int) -> str:
    """Return epoch milliseconds as ISO 8601 in UTC with milliseconds.

    >>> iso_of_ms(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
