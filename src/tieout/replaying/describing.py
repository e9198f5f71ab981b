"""The plan in words, for the person who approves it: bounded, escaped, and without any body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tieout.contracts import Contract
from tieout.model import Window
from tieout.replaying.planning import Plan, grouped

SHOWN: Final = 20
"""How many messages, and how many reasons, are listed."""

_ID_LENGTH: Final = 80
_REASON_LENGTH: Final = 300
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$^=:@>&])")


@dataclass(frozen=True)
class Subject:
    """What a plan is about: the run whose breaks are repaired, perhaps one incident of it, and where replays go."""

    contract: Contract
    window: Window
    run_id: str
    incident_id: str | None
    target: str


def markdown(plan: Plan, subject: Subject, notes: Iterable[str] = ()) -> str:
    """Return the plan in Markdown, at most some 15,000 characters, whatever the messages' ids hold."""
    window = subject.window
    facts = [
        ("pipeline", escaped(subject.contract.pipeline)),
        ("window", f"{window.start.isoformat()} to {window.end.isoformat()}"),
        ("run", escaped(subject.run_id)),
        ("incident", escaped(subject.incident_id or "all of the run")),
        ("produce again", f"**{len(plan.records)}** messages → {escaped(subject.target)}"),
        ("remove", f"**{len(plan.removals)}** messages have surplus rows"),
        ("not repaired", f"{len(plan.refusals)}, reasons below; {plan.others} breaks of other classes"),
        ("digest", f"`{plan.digest}`"),
    ]
    parts = [
        table(("", ""), facts),
        _listed(
            "To be produced again",
            [
                (
                    escaped(record.wanted.message_id),
                    escaped(_position(record.wanted.topic, record.wanted.partition, record.wanted.offset)),
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


def notes_on(contract: Contract, plan: Plan) -> tuple[str, ...]:
    """Return what an approver should know about this contract's replays."""
    notes = []
    if plan.records and contract.ordering != "none":
        notes.append(
            f"order within each {contract.ordering} is promised: a message produced again comes after those that "
            "followed it, and the consumer must bear that"
        )
    if plan.records and any(record.wanted.payload_hash is None for record in plan.records):
        notes.append("the evidence has no payload hash: bodies were found by identity alone")
    if plan.removals:
        notes.append("rows are never removed by this DAG: it writes remove.sql, which their owner runs")
    return tuple(notes)


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
