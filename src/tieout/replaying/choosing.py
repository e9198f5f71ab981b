"""Choosing among a run's breaks: what may be produced again, what may be removed, and why others may not.

A message may be produced again only if it certainly had no effect; a row may be removed only if another row with the
same content stays. Everything else is refused with its reason: a person who knows more can still do it.
Docs: docs/how-to/replay-lost-messages.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from tieout.contracts import Contract
from tieout.model import BreakClass, Guarantee, Identity, Ledger

MOST_MESSAGES: Final = 10_000
"""The most messages of a plan. Nobody can approve a longer list: reset the group's offset instead."""

EVIDENCE_ROWS: Final = 20
"""The most rows per ledger in a break's evidence."""

Kind = Literal["produce", "remove"]
FindDone = Callable[[list[str]], Mapping[str, str]]
"""Returns those of the idempotence keys that were replayed, each with time and plan in words."""


@dataclass(frozen=True)
class LostMessage:
    """A lost message that may be produced again if its body is found; `key` is the idempotence key."""

    key: str
    break_id: str
    message_id: str | None
    session: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    payload_hash: str | None


@dataclass(frozen=True)
class Removal:
    """A message with more than one row in the output: `rows` are those beyond the first, as far as shown."""

    key: str
    break_id: str
    message_id: str | None
    rows: tuple[Mapping[str, Any], ...]

    def to_json(self) -> str:
        """Return the message as one line of `removals.jsonl`."""
        return json.dumps(asdict(self), ensure_ascii=False, default=str)

    @classmethod
    def from_json(cls, line: str) -> Removal:
        """Return the message that `to_json` wrote."""
        fields = json.loads(line)
        return cls(fields["key"], fields["break_id"], fields["message_id"], tuple(fields["rows"]))


@dataclass(frozen=True)
class Refusal:
    """A break that is not repaired, and why."""

    break_id: str
    message_id: str | None
    reason: str
    is_done: bool = False


@dataclass(frozen=True)
class Chosen:
    """The choice among a run's breaks; `others` counts the breaks of classes that no replay repairs."""

    lost: tuple[LostMessage, ...]
    removals: tuple[Removal, ...]
    refusals: tuple[Refusal, ...]
    others: int


def choose(
    breaks: Iterable[Mapping[str, Any]],
    statement: Mapping[str, Any],
    contract: Contract,
    *,
    incident_id: str | None = None,
    attempt: int = 1,
    find_done: FindDone = lambda _keys: {},
) -> Chosen:
    """Return which of a run's breaks may be repaired, in the order of their positions.

    Args:
        breaks: The rows of the run's `breaks.jsonl`.
        statement: The run's statement.
        contract: The pipeline's contract, with its `replay`.
        incident_id: Only the breaks of this incident, where one is named.
        attempt: 1, or higher to replay once more what was replayed before.
        find_done: Finds the idempotence keys that were replayed already.
    """
    lost: list[LostMessage] = []
    removals: list[Removal] = []
    refusals: list[Refusal] = []
    others = 0
    for found in breaks:
        if incident_id is not None and found["incident_id"] != incident_id:
            continue
        if found["class"] not in _CHOICES:
            others += 1
            continue
        chosen = _CHOICES[found["class"]](found, statement, contract, attempt)
        if not isinstance(chosen, Refusal) and len(lost) + len(removals) >= MOST_MESSAGES:
            chosen = _refused(
                found,
                f"the plan is full: it holds {MOST_MESSAGES} messages; plan one incident at a time, or set the "
                "group's offsets back instead",
            )
        {LostMessage: lost, Removal: removals, Refusal: refusals}[type(chosen)].append(chosen)  # type: ignore[attr-defined]
    return _without_done(Chosen(tuple(lost), tuple(removals), tuple(refusals), others), find_done)


def idempotence_key(contract: Contract, break_id: str, kind: Kind, attempt: int) -> str:
    """Return the key that makes repairing a break idempotent: 32 hex digits, as stable as the break's id."""
    named = json.dumps([contract.pipeline, contract.group, break_id, kind, attempt])
    return hashlib.sha256(named.encode()).hexdigest()[:32]


def _lost(
    found: Mapping[str, Any], statement: Mapping[str, Any], contract: Contract, attempt: int
) -> LostMessage | Refusal:
    """Return the lost message, or why it is not produced again."""
    rows = [*_rows(found, Ledger.PRODUCED), *_rows(found, Ledger.LOG)]
    hashes = sorted({row["payload_hash"] for row in rows if row.get("payload_hash")})
    sessions = sorted(
        {row["producer_session"] for row in _rows(found, Ledger.PRODUCED) if row.get("producer_session")}
    )
    reason = _reason_against(found, statement, contract, BreakClass.LOST)
    if contract.guarantee is Guarantee.AT_MOST_ONCE:
        reason = "at most once is promised: a message produced again might have a second effect"
    elif "partial" in found["flags"]:
        reason = "some of its effects are there: produced again it would double them"
    elif len(hashes) > 1:
        reason = f"its rows have {len(hashes)} different payload hashes: which body is meant is not known"
    elif contract.id_scope == "session" and len(sessions) != 1:
        reason = "ids are unique within a session only, and the evidence names not exactly one session"
    elif contract.replay is None or contract.replay.value is None:
        reason = "the evidence holds hashes, not bodies, and the contract's replay.value does not say where bodies are"
    if reason is not None:
        return _refused(found, reason)
    return LostMessage(
        key=idempotence_key(contract, found["break_id"], "produce", attempt),
        break_id=found["break_id"],
        message_id=found["message_id"],
        session=sessions[0] if contract.id_scope == "session" else None,
        topic=found["topic"] or next((row["topic"] for row in rows if row.get("topic")), None),
        partition=found["partition"],
        offset=found["offset"],
        payload_hash=hashes[0] if hashes else None,
    )


def _doubled(
    found: Mapping[str, Any], statement: Mapping[str, Any], contract: Contract, attempt: int
) -> Removal | Refusal:
    """Return the message's surplus rows, or why none is removed."""
    rows = [row for row in _rows(found, Ledger.DELIVERED) if row.get("outcome", "ok") == "ok"]
    reason = _reason_against(found, statement, contract, BreakClass.OUTPUT_DUPLICATE)
    if Ledger.DELIVERED not in contract.ledgers:
        reason = "only reads are known: there is no output to remove a row from"
    elif len(rows) < 2:
        reason = f"expected two output rows or more in the evidence, found {len(rows)}"
    elif len({row.get("payload_hash") for row in rows}) > 1:
        reason = "its output rows differ in content: which of them stays is for a person to say"
    if reason is not None:
        return _refused(found, reason)
    key = idempotence_key(contract, found["break_id"], "remove", attempt)
    return Removal(key, found["break_id"], found["message_id"], tuple(rows[1:]))


_CHOICES: Final[dict[str, Callable[..., LostMessage | Removal | Refusal]]] = {
    BreakClass.LOST.value: _lost,
    BreakClass.OUTPUT_DUPLICATE.value: _doubled,
}


def _reason_against(
    found: Mapping[str, Any], statement: Mapping[str, Any], contract: Contract, name: BreakClass
) -> str | None:
    """Return a reason not to repair any break of the class, or this one's message, or None."""
    unconfirmed = (statement.get("unconfirmed") or {}).get(name.value, 0)
    if unconfirmed:
        return f"the run could not confirm {unconfirmed} of its {name} breaks, and this may be one of them"
    if contract.multiplicity.kind != "one_to_one":
        return f"a message has {contract.multiplicity.kind} effects here: repairing a part of them is for a person"
    if contract.identity is Identity.MESSAGE_ID and found["message_id"] is None:
        return "it has no id to find its body or its rows by"
    if contract.identity is Identity.POSITION and found["offset"] is None:
        return "it has no position to find its body or its rows by"
    return None


def _without_done(chosen: Chosen, find_done: FindDone) -> Chosen:
    """Return the choice without messages that were replayed already; a refusal says when."""
    parts: tuple[LostMessage | Removal, ...] = (*chosen.lost, *chosen.removals)
    done = find_done([part.key for part in parts]) if parts else {}
    refusals = [
        Refusal(part.break_id, part.message_id, f"already replayed: {done[part.key]}", is_done=True)
        for part in parts
        if part.key in done
    ]
    return Chosen(
        tuple(sorted((part for part in chosen.lost if part.key not in done), key=_place)),
        tuple(part for part in chosen.removals if part.key not in done),
        (*chosen.refusals, *refusals),
        chosen.others,
    )


def _place(message: LostMessage) -> tuple[str, int, int, str]:
    partition = -1 if message.partition is None else message.partition
    return (
        message.topic or "",
        partition,
        -1 if message.offset is None else message.offset,
        message.break_id,
    )


def _rows(found: Mapping[str, Any], ledger: Ledger) -> list[Mapping[str, Any]]:
    return (found["evidence"] or {}).get(ledger.value) or []


def _refused(found: Mapping[str, Any], reason: str) -> Refusal:
    return Refusal(found["break_id"], found["message_id"], reason)
