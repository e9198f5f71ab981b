"""Whether one statement's evidence reaches as far as another's (taxonomy section 6, lifecycle)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tieout.errors import StoreError


def lacking(coverage: Mapping[str, Any], predecessor: Mapping[str, Any]) -> str | None:
    """Return what `coverage` lacks of its predecessor's, or None where it contains it.

    Each ledger that was present is present, covers the window if it did, and is complete until the same time or later.
    Fewer rows are not less coverage: a corrected source may have fewer.

    >>> lacking({"log": {"covers": False}}, {"log": {"covers": True}})
    'log: covered the window, does not any more'
    """
    for ledger, before in sorted(predecessor.items()):
        now = coverage.get(ledger)
        if now is None:
            return f"{ledger}: was declared, is not any more"
        if before.get("covers") and not now.get("covers"):
            return f"{ledger}: covered the window, does not any more"
        reached, reaches = time_of(before.get("complete_until")), time_of(now.get("complete_until"))
        if reached is not None and (reaches is None or reaches < reached):
            return f"{ledger}: was complete until {reached}, is until {reaches}"
    return None


def time_of(value: object) -> datetime | None:
    """Return the UTC time written in a statement, or None for null.

    Raises:
        StoreError: where it is not an ISO 8601 time with a time zone.
    """
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise StoreError(f"statement: expected an ISO 8601 time, found {value!r}") from error
    if found.tzinfo is None:
        raise StoreError(f"statement: expected a time with a time zone, found {value!r}")
    return found.astimezone(UTC)
