"""The plan in words, for the person who approves it: bounded, escaped, and without any body."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tieout.contracts import ORIGINAL_TOPIC, Contract
from tieout.model import Window
from tieout.replaying.planning import Plan, grouped

SHOWN: Final = 20
"""How many messages, and how many reasons, are listed."""

_ID_LENGTH: Final = 80
_REASON_LENGTH: Final = 300
_PLACE_LENGTH: Final = 160
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$^=:@>&])")


@dataclass(frozen=True)
class Subject:
    """The run whose breaks a plan repairs, optionally one incident of it, and the target of the replays."""

    contract: Contract
    window: Window
    run_id: str
    incident_id: str | None
    target: str


def markdown(plan: Plan, subject: Subject, notes: Iterable[str] = ()) -> str:
    """Return the plan in Markdown, at most some 15,000 characters, whatever the ids contain."""
    window = subject.window
    facts = [
        ("pipeline", escaped(subject.contract.pipeline)),
        ("window", f"{window.start.isoformat()} to {window.end.isoformat()}"),
        ("run", escaped(subject.run_id)),
        ("incident", escaped(subject.incident_id or "all of the run")),
        ("produce again", f"**{len(plan.records)}** messages → {escaped(subject.target)}"),
        ("remove", f"**{len(plan.removals)}** messages have surplus rows"),
        ("not repaired", f"{len(plan.refusals)}, reasons below; {plan.others} breaks of other classes"),
        ("may approve", escaped(", ".join(approvers_of(subject.contract)) or "nobody", _REASON_LENGTH)),
        ("digest", f"`{plan.digest}`"),
    ]
    parts = [
        table(("", ""), facts),
        _destinations(plan, subject.contract),
        _listed(
            "To be produced again",
            [
                (
                    escaped(record.message.message_id),
                    escaped(_position(record.message.topic, record.message.partition, record.message.offset)),
                )
                for record in plan.records[:SHOWN]
            ],
            len(plan.records),
        ),
        _listed(
            "To be removed, all rows but the first",
            [
                (escaped(removal.message_id), f"{len(removal.rows)} rows shown")
                for removal in plan.removals[:SHOWN]
            ],
            len(plan.removals),
        ),
        _reasons(plan),
        "\n".join(f"* {escaped(note, _REASON_LENGTH)}" for note in notes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def notes_on(contract: Contract, plan: Plan, repeated: int = 0) -> tuple[str, ...]:
    """Return what an approver should know about this plan; `repeated` of its breaks were repaired before."""
    notes = []
    if repeated:
        notes.append(
            f"{repeated} of these {len(plan.break_ids)} were replayed before, by an earlier attempt: they are produced "
            "or removed once more, and may have a second effect"
        )
    if plan.records and contract.ordering != "none":
        notes.append(
            f"order within each {contract.ordering} is promised: a message produced again comes after those that "
            "followed it, and the consumer must bear that"
        )
    unverified = sum(not record.body.is_verified for record in plan.records)
    if unverified:
        notes.append(
            f"{unverified} of the {len(plan.records)} bodies are not verified: no payload hash of the evidence is "
            "computed from them, so they are what the source's writer says they are; the contract accepts that"
        )
    if plan.removals:
        notes.append("rows are never removed by this DAG: it writes remove.sql, which their owner runs")
    return tuple(notes)


def approvers_of(contract: Contract) -> tuple[str, ...]:
    """Return who may approve the pipeline's replays, as its contract names them."""
    return contract.replay.approvers if contract.replay else ()


def destinations(plan: Plan, contract: Contract) -> list[tuple[str, str, int]]:
    """Return the number of messages produced to or removed from each place, the largest first.

    Every message of the plan is in one of the counts: `(act, place, messages)`.
    """
    to = contract.replay.to if contract.replay else None
    output = contract.replay.output if contract.replay else None
    found: Counter[tuple[str, str]] = Counter()
    for record in plan.records:
        own = f"topic {record.message.topic}"
        if to is not None and to.table is not None:
            place = f"table {to.table}, of {own}"
        elif to is not None and to.topic != ORIGINAL_TOPIC:
            place = f"topic {to.topic}, of {own}"
        else:
            place = own
        found["produce again", place] += 1
    if plan.removals:
        place = f"table {output.table}" if output is not None else "the output"
        found["remove surplus rows", place] += len(plan.removals)
    return sorted(((*what, count) for what, count in found.items()), key=lambda one: (-one[2], one[:2]))


def escaped(text: str | None, limit: int = _ID_LENGTH) -> str:
    r"""Return text that Markdown and HTML show as it is, cut to `limit` characters, on one line.

    >>> print(escaped("<b>*x*"))
    &lt;b\>\*x\*
    """
    if text is None:
        return "-"
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    printable = "".join(letter if letter.isprintable() else f"<{ord(letter):x}>" for letter in cut)
    return _SPECIAL.sub(r"\\\1", printable).replace("<", "&lt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _listed(title: str, rows: Sequence[tuple[str, str]], total: int) -> str:
    if not rows:
        return ""
    more = f"\n\n… and {total - len(rows)} more" if total > len(rows) else ""
    return f"**{title}**\n\n{table(('message', 'where'), rows)}{more}"


def _destinations(plan: Plan, contract: Contract) -> str:
    """Return a table of all messages by place, the smallest places as one sum."""
    found = destinations(plan, contract)
    if not found:
        return ""
    rows = [(act, escaped(place, _PLACE_LENGTH), f"**{count}**") for act, place, count in found[:SHOWN]]
    if others := found[SHOWN:]:
        rows.append(
            ("either", f"{len(others)} more places, all in plan.json", f"**{sum(one[2] for one in others)}**")
        )
    return f"**Where to**\n\n{table(('', 'where', 'messages'), rows)}"


def _reasons(plan: Plan) -> str:
    groups = grouped(plan.refusals)
    if not groups:
        return ""
    rows = [
        (
            str(len(group)),
            escaped(reason, _REASON_LENGTH),
            ", ".join(escaped(refusal.message_id) for refusal in group[:3]),
        )
        for reason, group in groups[:SHOWN]
    ]
    more = f"\n\n… and {len(groups) - SHOWN} more reasons" if len(groups) > SHOWN else ""
    return f"**Not repaired**\n\n{table(('messages', 'why', 'such as'), rows)}{more}"


def _position(topic: str | None, partition: int | None, offset: int | None) -> str:
    return " ".join(str(part) for part in (topic, partition, offset) if part is not None) or "no position"
