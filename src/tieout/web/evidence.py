"""A break's evidence side by side: one column per ledger row, one line per field, so that differences are visible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tieout.model import Ledger

_LEDGERS: Final = [ledger.value for ledger in Ledger]
_FIRST: Final = ("message_id", "topic", "partition", "offset", "outcome")


@dataclass(frozen=True)
class Field:
    """One field over all rows, None where a row has none; `differs` where two rows contradict each other."""

    name: str
    values: tuple[str | None, ...]

    @property
    def differs(self) -> bool:
        """Whether the rows that have the field say different things."""
        return len({value for value in self.values if value is not None}) > 1


@dataclass(frozen=True)
class Sides:
    """The rows of a break's evidence, by the ledgers they are from, and their fields."""

    ledgers: tuple[str, ...]
    fields: tuple[Field, ...]


def sides_of(evidence: Mapping[str, Any]) -> Sides:
    """Return the evidence with the ledgers in the order of a message's path, and the identity's fields first.

    >>> sides_of({"log": [{"offset": 7}], "produced": [{"offset": 7, "outcome": "acked"}]}).ledgers
    ('produced', 'log')
    """
    found = [
        (ledger, row if isinstance(row, dict) else {"value": row})
        for ledger in sorted(evidence, key=_place_of_ledger)
        for row in (evidence[ledger] if isinstance(evidence[ledger], list) else [evidence[ledger]])
    ]
    names = {name for _, row in found for name, value in row.items() if value is not None}
    return Sides(
        tuple(ledger for ledger, _ in found),
        tuple(
            Field(name, tuple(_shown(row.get(name)) for _, row in found))
            for name in sorted(names, key=_place_of_field)
        ),
    )


def _place_of_ledger(name: str) -> tuple[int, str]:
    return (_LEDGERS.index(name) if name in _LEDGERS else len(_LEDGERS), name)


def _place_of_field(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _shown(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, default=str)
