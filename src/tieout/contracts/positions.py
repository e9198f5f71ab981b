"""The text form of a log's positions, as its system shows them; they are compared as one number.

Sources: `MessageId` in Apache Pulsar's documentation of messages (ledger, entry, place in its batch); the places in the
journal of Apache ActiveMQ's KahaDB (number of the file, byte in it).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tieout.model import Ledger

if TYPE_CHECKING:
    from tieout.contracts.contract import Contract

PULSAR_BITS: Final = (31, 20, 12)
"""Bits of the ledger, the entry in it and the index in the entry's batch."""
KAHADB_BITS: Final = (31, 32)
"""Bits of the file's number and the byte in it."""
_BITS: Final[Mapping[str, tuple[int, ...]]] = {"ledger:entry:batch": PULSAR_BITS, "file:offset": KAHADB_BITS}
"""The bits of each part of the number for each form of positions, the most significant part first."""
_FORMS: Final[Mapping[str, str]] = {
    "pulsar": "ledger:entry:batch",
    "pulsar_cursor": "ledger:entry:batch",
    "kahadb": "file:offset",
}
_PARTS: Final = re.compile(r"[0-9]{1,10}(?::[0-9]{1,10}){1,2}")


def position_form(contract: Contract) -> str | None:
    """Return the form of the positions in the contract's log, None for plain numbers."""
    return _form_of({ledger.value: spec.source.kind for ledger, spec in contract.ledgers.items()})


def stored_position_form(contract: Mapping[str, Any]) -> str | None:
    """Return the form of positions for a contract as stored with a run."""
    kinds = {
        ledger: (spec.get("source") or {}).get("kind") for ledger, spec in contract.get("ledgers", {}).items()
    }
    return _form_of(kinds)


def shown_position(position: object, form: str | None) -> object:
    """Return a position as its system writes it; a value that is not a number of that form is returned unchanged.

    >>> shown_position(21474865156, "ledger:entry:batch"), shown_position(8589935637, "file:offset")
    ('5:7:4', '2:1045')
    >>> shown_position(17, None), shown_position("17", "file:offset"), shown_position(-1, "file:offset")
    (17, '17', -1)
    """
    if (
        form is None
        or form not in _BITS
        or not isinstance(position, int)
        or isinstance(position, bool)
        or position < 0
    ):
        return position
    parts: list[str] = []
    remaining: int = position
    for bits in reversed(_BITS[form][1:]):
        parts.append(str(remaining % (1 << bits)))
        remaining >>= bits
    return ":".join([str(remaining), *reversed(parts)])


def position_in(text: str) -> int | None:
    """Return the number of a position that one of the systems wrote, None for any other text.

    >>> position_in("5:7:4"), position_in("2:1045"), position_in("5:1048576:0"), position_in("17")
    (21474865156, 8589935637, None, None)
    """
    if _PARTS.fullmatch(text) is None:
        return None
    parts = [int(part) for part in text.split(":")]
    sizes = next(sizes for sizes in _BITS.values() if len(sizes) == len(parts))
    if any(part >> size for part, size in zip(parts, sizes, strict=True)):
        return None
    number = 0
    for part, size in zip(parts, sizes, strict=True):
        number = (number << size) + part
    return number


def _form_of(kinds: Mapping[str, Any]) -> str | None:
    """Return the form of the log's positions, or of the committed ones if there is no log."""
    for ledger in (Ledger.LOG, Ledger.COMMITTED):
        if ledger.value in kinds:
            return _FORMS.get(kinds[ledger.value])
    return None
