"""Keyset pagination of the lists that pages show: the orders of each list, and the keys behind which its pieces begin.

A list is cut by the key of its last row and not by a number of rows, so that its hundredth page costs what its
first does, and a run published meanwhile shifts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeAlias, TypeVar

from tieout.contracts.times import parse_time
from tieout.errors import StoreError, UsageError
from tieout.store import results, views
from tieout.store.run_rows import checked_run_id
from tieout.store.storable import storable_text

_Row = Mapping[str, Any]
_T = TypeVar("_T")

Key: TypeAlias = Sequence[Any]
"""The place of a row in a list's order; the next piece begins after it."""


@dataclass(frozen=True)
class Page(Generic[_T]):
    """A piece of a list, and the key of its last row where more follow."""

    rows: tuple[_T, ...]
    next_key: tuple[Any, ...] | None


@dataclass(frozen=True)
class Order:
    """An order of rows: the columns, all ascending or all descending, and the fields of a row that hold them."""

    compared: tuple[str, ...]
    fields: tuple[str, ...]
    falls: bool = False

    def clauses(self, after: Sequence[Any] | None) -> dict[str, str]:
        """Return the texts for {order} and {after}; the key's values are parameters.

        Raises:
            UsageError: where the key is not one of this order.
        """
        direction = " DESC" if self.falls else ""
        order = ", ".join(part + direction for part in self.compared)
        if after is None:
            return {"order": order, "after": "TRUE"}
        if len(after) != len(self.fields) or not all(map(_is_part_of_key, self.fields, after)):
            raise UsageError(f"after: expected a key of {', '.join(self.fields)}, found something else")
        values = ", ".join(f"%(after_{place})s" for place in range(len(after)))
        return {
            "order": order,
            "after": f"({', '.join(self.compared)}) {'<' if self.falls else '>'} ({values})",
        }

    def key(self, row: _Row) -> tuple[Any, ...]:
        """Return the row's place in this order, with the value that the order substitutes for null."""
        return tuple(_key_part(row[name], name) for name in self.fields)


def _by(*columns: str, falls: bool = False) -> Order:
    return Order(columns, columns, falls)


@dataclass(frozen=True)
class Listing(Generic[_T]):
    """A list that is read piece by piece: its statement, its rows' values, and its orders, the usual one first."""

    query: str
    convert: Callable[[_Row], _T]
    orders: Mapping[str, Order]

    def order(self, sort: str) -> Order:
        """Return the order of that name.

        Raises:
            UsageError: where there is none.
        """
        if sort not in self.orders:
            raise UsageError(f"sort: expected one of {', '.join(self.orders)}, found {sort!r}")
        return self.orders[sort]


WINDOWS: Final = Listing(
    "windows",
    results.summary_of,
    {
        "newest": _by("window_start", "published_at", "run_id", falls=True),
        "oldest": _by("window_start", "published_at", "run_id"),
    },
)
_PLACE: Final = ("run.window_start", "run.run_id", "incident.incident_id")
INCIDENTS: Final = Listing(
    "pipeline_incidents",
    views.window_incident_of,
    {
        "oldest": Order(_PLACE, ("window_start", "run_id", "incident_id")),
        "newest": Order(_PLACE, ("window_start", "run_id", "incident_id"), falls=True),
        "largest": Order(
            ("incident.breaks", *_PLACE), ("breaks", "window_start", "run_id", "incident_id"), falls=True
        ),
    },
)
BREAKS: Final = Listing(
    "breaks",
    results.break_of,
    {
        "position": Order(
            ("coalesce(topic, '')", "coalesce(partition, -1)", "coalesce(msg_offset, -1)", "break_id"),
            ("topic", "partition", "msg_offset", "break_id"),
        ),
        "class": Order(("class", "break_id"), ("class_name", "break_id")),
    },
)
WINDOW_SORTS: Final = tuple(WINDOWS.orders)
INCIDENT_SORTS: Final = tuple(INCIDENTS.orders)
BREAK_SORTS: Final = tuple(BREAKS.orders)


def _key_part(value: object, name: str) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None:
        return "" if name == "topic" else -1
    return value


def _is_part_of_key(field: str, value: object) -> bool:
    """Return whether a value from an address can be compared with a field: whether `_key_part` can have written it."""
    if field in ("breaks", "partition", "msg_offset"):
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    if not isinstance(value, str) or storable_text(value) != value:
        return False
    written = {"window_start": _as_time, "published_at": _as_time, "run_id": checked_run_id}.get(field, str)
    try:
        return written(value) == value
    except (ValueError, StoreError):
        return False


def _as_time(text: str) -> str:
    """Return a time with its zone as `_key_part` writes it: PostgreSQL does not read all that Python does."""
    parse_time(text)
    return datetime.fromisoformat(text).isoformat()
