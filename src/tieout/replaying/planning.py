"""The plan: the records to produce again, with the bodies found for them, and the rows to remove."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tieout.replaying.choosing import Chosen, LostMessage, Refusal, Removal

UNREADABLE: Final = 0
"""The `versions` of a body that was found, but that a plan cannot hold."""

MOST_BYTES: Final = 256 * 1024 * 1024
"""The most bytes of bodies in one plan."""


@dataclass(frozen=True)
class Body:
    """The body found for a lost message; `versions` counts the different bodies that match it.

    A `value` of None is a tombstone. `is_verified` means that a payload hash in the evidence is computed from the
    value, by the contract or by a usual digest. Its `repr` hides the content: it is other people's data.
    """

    versions: int
    key: bytes | None = field(default=None, repr=False)
    value: bytes | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str | None], ...] = field(default=(), repr=False)
    is_verified: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Record:
    """One message to produce again, with its body."""

    message: LostMessage
    body: Body

    def to_json(self) -> str:
        """Return the record as one line of `records.jsonl`; bytes that are no UTF-8 are base64 and marked so."""
        message = self.message
        fields = {
            "idempotence_key": message.key,
            "break_id": message.break_id,
            "message_id": message.message_id,
            "topic": message.topic,
            "partition": message.partition,
            "offset": message.offset,
            **_encoded("key", self.body.key),
            **_encoded("value", self.body.value),
            "headers": [list(header) for header in self.body.headers],
        }
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Return the record that `to_json` wrote."""
        fields = json.loads(line)
        message = LostMessage(
            fields["idempotence_key"],
            fields["break_id"],
            fields["message_id"],
            None,
            fields["topic"],
            fields["partition"],
            fields["offset"],
            None,
        )
        headers = tuple((name, value) for name, value in fields["headers"])
        return cls(message, Body(1, _decoded("key", fields), _decoded("value", fields), headers))


@dataclass(frozen=True)
class Plan:
    """The actions that one approval covers."""

    records: tuple[Record, ...]
    removals: tuple[Removal, ...]
    refusals: tuple[Refusal, ...]
    others: int

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.records and not self.removals

    @property
    def digest(self) -> str:
        """The SHA-256 of all actions, so that only the approved plan is executed."""
        return digest_of(self.records, self.removals)

    @property
    def break_ids(self) -> list[str]:
        """The breaks that would be repaired."""
        return [
            *(record.message.break_id for record in self.records),
            *(one.break_id for one in self.removals),
        ]


def digest_of(records: Iterable[Record], removals: Iterable[Removal]) -> str:
    """Return the SHA-256 of what a plan would do, in hexadecimal."""
    lines = [*(record.to_json() for record in records), *(removal.to_json() for removal in removals)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def plan_of(chosen: Chosen, bodies: Mapping[str, Body], *, accepts_unverified: bool = False) -> Plan:
    """Return the plan for the chosen breaks, given the bodies found by idempotence key.

    A message without a body, with differing bodies, or beyond `MOST_BYTES` is refused. So is an unverified body, unless
    the contract accepts that.
    """
    records: list[Record] = []
    refusals = list(chosen.refusals)
    body_bytes = 0
    for message in chosen.lost:
        body = bodies.get(message.key)
        body_bytes += 0 if body is None else len(body.key or b"") + len(body.value or b"")
        reason = _reason_against(message, body, body_bytes)
        if reason is None and not accepts_unverified:
            reason = _reason_to_doubt(message, body)
        if body is not None and reason is None:
            records.append(Record(message, body))
        else:
            refusals.append(Refusal(message.break_id, message.message_id, str(reason)))
    return Plan(tuple(records), chosen.removals, tuple(refusals), chosen.others)


def grouped(refusals: Iterable[Refusal]) -> list[tuple[str, list[Refusal]]]:
    """Return refusals by reason, the most frequent first; messages replayed before are one group."""
    found: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        reason = "already replayed; raise the parameter attempt to replay it once more"
        found.setdefault(reason if refusal.is_done else refusal.reason, []).append(refusal)
    return sorted(found.items(), key=lambda group: (-len(group[1]), group[0]))


def _reason_against(message: LostMessage, body: Body | None, body_bytes: int) -> str | None:
    if message.topic is None:
        return "the evidence names no topic to produce it to"
    if body is None:
        hashed = " with the payload hash of the evidence" if message.payload_hash else ""
        return f"no row{hashed} was found where the contract's replay.from looks for bodies"
    if body.versions == UNREADABLE:
        return "its headers hold bytes that are no text, which a plan does not carry"
    if body.versions > 1:
        return f"{body.versions} different bodies were found for it: which one is meant is not known"
    if body_bytes > MOST_BYTES:
        return f"the plan is full: it holds {MOST_BYTES >> 20} MiB of bodies; replay it, then plan again"
    return None


def _reason_to_doubt(message: LostMessage, body: Body | None) -> str | None:
    """Return why the body may differ from the produced one, or None where it is certain."""
    if body is None or body.is_verified:
        return None
    found = (
        "its payload hash is not computed from its body: a row can claim any hash beside any body"
        if message.payload_hash
        else "the evidence has no payload hash, so a body is found by identity alone"
    )
    return (
        f"{found}; have the contract's columns.payload_hash compute it from replay.value, such as sha2(body, 256), or "
        "say replay.unverified_bodies: accept"
    )


def _encoded(name: str, content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def _decoded(name: str, fields: Mapping[str, Any]) -> bytes | None:
    if f"{name}_base64" in fields:
        return base64.b64decode(fields[f"{name}_base64"])
    text = fields[name]
    return None if text is None else str(text).encode()
