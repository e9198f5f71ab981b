"""Digests of broken messages, by which a break at one hop of a chain is matched with a break at the next hop.

The digest of a lost message covers its id only. For a doubled, corrupted or invented message, a later hop has only
*carried on* the break if its output equals the earlier hop's: as many effects of the same id, with the same broken
contents, of as many records of the topic between. The digest covers all of that, so equal digests prove it. Where the
evidence of a break does not show all of it, there is no digest, and nothing is joined.
Docs: docs/how-to/follow-a-chain.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from tieout.contracts import After
from tieout.model import BreakClass
from tieout.store.storable import storable_text

CORRUPTED: Final = {
    BreakClass.CORRUPTED_VALUE: "payload_hash",
    BreakClass.CORRUPTED_KEY: "key_hash",
    BreakClass.CORRUPTED_HEADER: "header_hash",
    BreakClass.CORRUPTED_TIMESTAMP: "record_timestamp",
}
"""By class, the column that differs."""

PHANTOMS: Final = (
    BreakClass.PHANTOM_UNKNOWN,
    BreakClass.PHANTOM_ABORTED,
    BreakClass.PHANTOM_UNCOMMITTED,
)
CARRIED: Final = (*CORRUPTED, *PHANTOMS, BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE)
"""The classes, other than LOST, that a hop may carry on from the hop before."""

JOINED: Final = (BreakClass.LOST, *CARRIED)

_INHERITED: Final = "inherited"
_HARMLESS: Final = {*CARRIED, BreakClass.LATE, _INHERITED, "FAILED_BUT_WRITTEN"}
"""Flags of a break that may have been carried on. Any other flag shows a fault of this hop as well."""

_EVIDENCE_KEPT: Final = 20
"""The most rows per ledger in a break's evidence. With that many, there may be more rows than are shown."""


@dataclass(frozen=True)
class Mark:
    """The digest of a message in a hop's output, and the digest that the hop before must have for it.

    None where the evidence does not show it.
    """

    output: str | None
    earlier_output: str | None


@dataclass(frozen=True)
class Carrying:
    """What a contract says about comparing its broken messages with those of the hop before.

    `is_compared` is False where an id does not identify one message; then no marks are stored.
    """

    after: After | None
    is_compared: bool

    @classmethod
    def of(cls, contract: Mapping[str, Any]) -> Carrying:
        """Return what a stored contract says."""
        predecessor = contract.get("after")
        after = (
            None if predecessor is None else After(pipeline=predecessor["pipeline"], id=predecessor.get("id"))
        )
        return cls(after, why_not(contract) is None)

    def mark_of(self, found: Mapping[str, Any]) -> Mark | None:
        """Return the mark of a break, or None where its class is not joined or its message has no id."""
        if not self.is_compared or found.get("class") not in JOINED or found.get("message_id") is None:
            return None
        message_id = str(found["message_id"])
        before = message_id if self.after is None else self.after.id_at_predecessor(message_id)
        if found["class"] == BreakClass.LOST:
            return Mark(_digest(message_id), None if before is None else _digest(before))
        return _mark_of_effects(found, message_id, before)

    def kept(self, class_name: str, marks: Collection[Mark]) -> tuple[str | None, str | None]:
        """Return the two columns that the store has of an incident's marks: own digests, and those of the hop before.

        Null where a digest of some message is not known, and for lost messages where both columns are the same. Empty
        where nothing is proved. LOG_DUPLICATE has no own digests: the output has each message once.
        """
        output, earlier_output = {mark.output for mark in marks}, {mark.earlier_output for mark in marks}
        if class_name == BreakClass.LOG_DUPLICATE:
            output = set()
        if None in output:
            return None, None
        if class_name == BreakClass.LOST and (self.after is None or self.after.id is None):
            return _array(output), None
        return _array(output), "{}" if None in earlier_output else _array(earlier_output)


def why_not(contract: Mapping[str, Any]) -> str | None:
    """Return why an id of a contract does not identify one message, or None where it does."""
    identity = contract.get("identity", "message_id")
    if identity != "message_id":
        return f"identifies messages by {identity}"
    if contract.get("id_scope", "global") != "global":
        return "has ids that are a session's own"
    kind = (contract.get("multiplicity") or {}).get("kind", "one_to_one")
    return None if kind == "one_to_one" else f"is {kind}: of a message, a part may be lost"


def _array(digests: Collection[str | None]) -> str:
    return "{" + ",".join(sorted(filter(None, digests))) + "}"


def _mark_of_effects(found: Mapping[str, Any], message_id: str, before: str | None) -> Mark:
    """Return the mark of a message that has effects in the output; `before` is its id at the hop before."""
    effects = _effects(found)
    if effects is None:
        return Mark(None, None)
    kinds = sorted({found["class"], *_flags(found)} & {*CORRUPTED, *PHANTOMS})
    contents = [sorted(str(row.get(column)) for row in effects) for column in _columns(kinds)]
    copies = _copies_before(found, effects)
    earlier_output = None if before is None or copies is None else _digest(before, kinds, copies, contents)
    return Mark(_digest(message_id, kinds, len(effects), contents), earlier_output)


def _columns(kinds: Sequence[str]) -> list[str]:
    """Return the columns whose values must be equal: corrupted ones, and the payload of an invented message."""
    named = {column for name, column in CORRUPTED.items() if name in kinds}
    return sorted(named | ({"payload_hash"} if {*kinds} & {*PHANTOMS} else set()))


def _effects(found: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the effects in the output, or None where not all of them are shown, or one is in doubt."""
    rows = (found.get("evidence") or {}).get("delivered") or []
    if not 0 < len(rows) < _EVIDENCE_KEPT:
        return None
    is_certain = all(
        row.get("outcome", "ok") == "ok" and row.get("transaction_state", "none") in ("none", "committed")
        for row in rows
    )
    return list(rows) if is_certain else None


def _copies_before(found: Mapping[str, Any], effects: Sequence[Mapping[str, Any]]) -> int | None:
    """Return how often the hop before must have output the message, if this hop only carried it on.

    None where this hop did more, or the evidence does not exclude that.
    """
    flags = _flags(found)
    if not flags <= _HARMLESS or not _are_changed(found, effects):
        return None
    if found["class"] == BreakClass.LOG_DUPLICATE:
        return _records(found)
    if len(effects) > 1 and _INHERITED not in flags and not _come_from_several(effects):
        return None
    return len(effects)


def _are_changed(found: Mapping[str, Any], effects: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether each effect has every broken content, and none of them equals what was sent."""
    sent = (found.get("evidence") or {}).get("produced") or []
    for name, column in CORRUPTED.items():
        if name in {found["class"], *_flags(found)}:
            values = {row.get(column) for row in effects}
            if None in values or values & {row.get(column) for row in sent}:
                return False
    return True


def _come_from_several(effects: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether each effect names its record, and no two name the same one."""
    places = [(row.get("topic"), row.get("partition"), row.get("offset")) for row in effects]
    return all(None not in place for place in places) and len(set(places)) == len(places)


def _records(found: Mapping[str, Any]) -> int | None:
    """Return how many records of the log hold a message, or None where there is no log or it shows too many."""
    rows = (found.get("evidence") or {}).get("log") or []
    states = {row.get("transaction_state", "none") for row in rows}
    places = {(row.get("topic"), row.get("partition"), row.get("offset")) for row in rows}
    if not 0 < len(rows) < _EVIDENCE_KEPT or not states <= {"none", "committed"}:
        return None
    return len(places)


def _flags(found: Mapping[str, Any]) -> set[str]:
    return set(found.get("flags") or ())


def _digest(message_id: str, *more: Any) -> str:
    """Return the digest of an id, or of an id with what the output shows of its message."""
    text = storable_text(json.dumps([message_id, *more]) if more else message_id)
    return str(UUID(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()))
