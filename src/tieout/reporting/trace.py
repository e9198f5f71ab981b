"""The path of a message through the ledgers: attempted, acknowledged, stored, read, written, committed.

Pure: from canonical rows, of the engine or a break's `evidence`, to stages with one line per row. Missing rows are
listed with what their absence proves, and the engine's own finding comes at the end. The document is described in
docs/reference/trace.md and `trace.schema.json`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tieout.contracts import Contract, position_form, position_in, shown_position
from tieout.contracts.times import format_time
from tieout.model import POSITION_LEDGERS, Ledger, Window
from tieout.reporting.alerts import printable
from tieout.reporting.sheet import place_of
from tieout.reporting.stages import STAGES, Row, Stage, is_own, shown_row, step_words

TRACE_VERSION: Final = 1
LINE_LIMIT: Final = 1_000
_WIDTH: Final = 14
_TIME_WIDTH: Final = 26

_POSITION: Final = re.compile(r"(?P<topic>.+)/(?P<partition>\d{1,9})/(?P<offset>\d{1,18})")

Position = tuple[str, int, int]


class RequestedBy(StrEnum):
    """How a message is identified in a request."""

    MESSAGE_ID = "message_id"
    POSITION = "position"
    KEY = "key"


@dataclass(frozen=True)
class TraceRequest:
    """The requested message: by an id, a position, or a record's key."""

    by: RequestedBy
    value: str
    position: Position | None = None

    def digests(self) -> tuple[str, ...]:
        """Return what `key_hash` may hold for the key: itself, or its SHA-256, SHA-1 or MD5 in hex."""
        key = self.value.encode()
        return (
            self.value,
            hashlib.sha256(key).hexdigest(),
            hashlib.sha1(key, usedforsecurity=False).hexdigest(),
            hashlib.md5(key, usedforsecurity=False).hexdigest(),
        )


def position_of(text: str) -> Position | None:
    """Return the position of a text TOPIC/PARTITION/OFFSET, or None if it has another form.

    The offset may be in the form of Pulsar or KahaDB.

    >>> position_of("orders/0/17"), position_of("orders/0/5:7:4"), position_of("order-17")
    (('orders', 0, 17), ('orders', 0, 21474865156), None)
    """
    match = _POSITION.fullmatch(text)
    if match is not None:
        return match["topic"], int(match["partition"]), int(match["offset"])
    place, _, written = text.rpartition("/")
    offset, whole = position_in(written), _POSITION.fullmatch(f"{place}/0")
    return None if offset is None or whole is None else (whole["topic"], int(whole["partition"]), offset)


@dataclass(frozen=True)
class LedgerRows:
    """One ledger's rows about a message: the first ones in time, without nulls, and the number of all."""

    rows: tuple[Row, ...]
    total: int


@dataclass(frozen=True)
class Subject:
    """One message as the engine found it; `judged` is None if nothing was judged or the rows belong to no message."""

    message_id: str | None
    positions: tuple[Position, ...]
    judged: Row | None
    breaks: tuple[Row, ...]
    ledger_rows: Mapping[Ledger, LedgerRows]


def trace_document(
    contract: Contract,
    window: Window | None,
    request: TraceRequest,
    subjects: Sequence[Subject],
    *,
    total: int,
    coverage: Mapping[str, Row] | None,
) -> dict[str, Any]:
    """Return the trace as `tieout trace --json` prints it; `coverage` is a statement's, or None without a window."""
    form = position_form(contract)
    return {
        "schema_version": TRACE_VERSION,
        "pipeline": contract.pipeline,
        "group": contract.group,
        "guarantee": contract.guarantee.value,
        "identity": contract.identity.value,
        "contract_digest": contract.digest,
        "window": None
        if window is None
        else {"start": format_time(window.start), "end": format_time(window.end)},
        **({} if form is None else {"position_form": form}),
        "asked": {"by": request.by.value, "value": request.value},
        "coverage": coverage,
        "messages_total": total,
        "messages": [
            {
                "message_id": subject.message_id,
                "positions": [
                    dict(zip(("topic", "partition", "offset"), place, strict=True))
                    for place in subject.positions
                ],
                "journey": journey(
                    {ledger.value: shown.rows for ledger, shown in subject.ledger_rows.items()},
                    totals={ledger.value: shown.total for ledger, shown in subject.ledger_rows.items()},
                    declared=[ledger.value for ledger in contract.ledgers],
                    coverage=coverage,
                    message_id=subject.message_id,
                    group=contract.group,
                    has_position=bool(subject.positions),
                    form=form,
                ),
                "judgement": _judgement(subject),
            }
            for subject in subjects
        ],
    }


def journey(
    rows: Mapping[str, Sequence[Row]],
    *,
    totals: Mapping[str, int] | None = None,
    declared: Sequence[str] | None = None,
    coverage: Mapping[str, Row] | None = None,
    message_id: str | None = None,
    group: str | None = None,
    has_position: bool = True,
    form: str | None = None,
) -> list[dict[str, Any]]:
    """Return a message's stages in order, each with its state, one line per row, and the meaning of missing rows.

    A break's `evidence` alone suffices; the stages then lack undeclared ledgers and coverage.

    Args:
        rows: Per ledger its canonical rows, oldest first, nulls left out.
        totals: Per ledger how many rows there are, where not all are given.
        declared: The ledgers of the contract.
        coverage: A statement's `coverage`.
        message_id: The message; rows that name another one say so.
        group: The judged group; rows of other groups say so.
        has_position: Whether a position of the message is known, without which commits cannot be matched.
        form: How the log's system writes its positions, for the lines; the rows keep their numbers.
    """
    stages = []
    for stage in STAGES:
        ledger_rows = rows.get(stage.ledger, ())
        if not ledger_rows and stage.is_optional:
            continue
        # Where a mirrored position is kept, the group may have a name of its own.
        expected_group = None if stage.ledger == Ledger.MIRRORED else group
        steps = [
            {
                "at": row.get(stage.time),
                "words": step_words(stage, shown_row(row, form), message_id, expected_group),
                "row": dict(row),
            }
            for row in ledger_rows
        ]
        total = len(ledger_rows) if totals is None else totals.get(stage.ledger, len(ledger_rows))
        of_message = [row for row in ledger_rows if is_own(row, message_id, expected_group)]
        state, note = _state(stage, of_message, declared, coverage, has_position=has_position)
        stages.append(
            {
                "stage": stage.name,
                "ledger": stage.ledger,
                "state": state,
                "note": note,
                "total": total,
                "steps": steps,
            }
        )
    return stages


def _state(
    stage: Stage,
    of_message: Sequence[Row],
    declared: Sequence[str] | None,
    coverage: Mapping[str, Row] | None,
    *,
    has_position: bool,
) -> tuple[str, str | None]:
    """Return a stage's state, and the meaning of missing rows in words."""
    if any(stage.is_reached(row) for row in of_message):
        return "seen", None
    if of_message:
        return "missing", f"no row of {stage.ledger} shows that it was"
    return _absence(stage, declared, coverage, has_position=has_position)


def _absence(
    stage: Stage,
    declared: Sequence[str] | None,
    coverage: Mapping[str, Row] | None,
    *,
    has_position: bool,
) -> tuple[str, str]:
    """Return the meaning of a ledger without rows of the message: a state, and the same in words."""
    if declared is not None and stage.ledger not in declared:
        return "not_declared", f"the contract declares no ledger {stage.ledger}"
    if stage.ledger in POSITION_LEDGERS and not has_position:
        return "not_told", "no position of the message is known"
    ledger_coverage = None if coverage is None else coverage.get(stage.ledger)
    if ledger_coverage is None:
        return "absent", "no row, which proves nothing without a window"
    until = ledger_coverage["complete_until"] or "no known time"
    if ledger_coverage["covers"]:
        return "missing", f"none, and {stage.ledger} covers the window: complete until {until}"
    return "not_covered", f"none, but {stage.ledger} does not cover the window: {ledger_coverage['gap']}"


def _judgement(subject: Subject) -> dict[str, Any] | None:
    """Return the engine's finding about a message in fixed keys, with a sentence for people."""
    judged = subject.judged
    if judged is None:
        return None
    first = judged.get("first_attempt", {})
    is_judged_here = bool(judged.get("is_judged_here"))
    breaks = [
        {
            "break_id": stored_break["break_id"],
            "incident_id": stored_break.get("incident_id"),
            "class": stored_break["class"],
            "flags": stored_break.get("flags", []),
            "locus": stored_break.get("locus"),
            "cause": stored_break.get("cause"),
            "admissible": stored_break.get("admissible", []),
            "rule": stored_break.get("rule"),
            "severity": stored_break.get("severity"),
        }
        for stored_break in subject.breaks
    ]
    return {
        "is_judged_here": is_judged_here,
        "class": judged.get("class") if is_judged_here else None,
        "flags": judged.get("flags", []) if is_judged_here else [],
        "disposition": judged.get("disposition") if is_judged_here else None,
        "acceptance": judged.get("acceptance"),
        "locus": judged.get("locus") if is_judged_here else None,
        "is_due": judged.get("is_due") if is_judged_here else None,
        "deadline": judged.get("deadline"),
        "first_attempt_at": first.get("at"),
        "breaks": breaks,
        "words": _judged_words(judged, is_judged_here=is_judged_here),
    }


def _judged_words(judged: Row, *, is_judged_here: bool) -> str:
    if not is_judged_here:
        at = judged.get("first_attempt", {}).get("at")
        if at is not None:
            return f"not judged: it belongs to the window of its first attempt, {at}; give that window"
        if judged.get("class") is not None:
            return "not judged: it belongs to the window of its first effect; give that window"
        return "not judged: nobody is known to have sent or received it; it counts as a position of the log alone"
    parts = [str(judged["class"])]
    parts += [str(judged["acceptance"])] if judged.get("acceptance") else []
    parts += [f"disposition {judged['disposition']}"] if judged.get("disposition") else []
    flags = judged.get("flags")
    parts += [f"also {', '.join(flags)}"] if flags else []
    parts += [f"at: {judged['locus']}"] if judged.get("locus") else []
    return "; ".join(parts)


def render_trace(document: Mapping[str, Any]) -> str:
    """Return a trace as lines of text, one per row, ending in a newline; line breaks in values are escaped."""
    requested = document["asked"]
    if not document["messages"]:
        return (
            printable(
                f"no ledger of {document['pipeline']} has {requested['by']} {requested['value']}", LINE_LIMIT
            )
            + "\n"
        )
    sections = [_message_lines(document, message) for message in document["messages"]]
    more = document["messages_total"] - len(sections)
    if more > 0:
        sections.append([f"and {more} more messages with this {requested['by']}"])
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _message_lines(document: Mapping[str, Any], message: Mapping[str, Any]) -> list[str]:
    window = document["window"]
    name = message["message_id"]
    places = [
        f"{place_of(p['topic'], p['partition'])} offset {shown_position(p['offset'], document.get('position_form'))}"
        for p in message["positions"][:3]
    ]
    head = name if name is not None else ", ".join(places) or document["asked"]["value"]
    during = "no window given" if window is None else f"{window['start']} to {window['end']}"
    lines = [printable(f"{head}  in {document['pipeline']}, group {document['group']}, {during}", LINE_LIMIT)]
    for stage in message["journey"]:
        lines += _stage_lines(stage)
    return lines + _judgement_lines(message["judgement"], has_window=window is not None)


def _stage_lines(stage: Mapping[str, Any]) -> list[str]:
    """Return a stage's lines: one per row (only the first commit), then one on missing rows."""
    shown = stage["steps"][:1] if stage["ledger"] in POSITION_LEDGERS else stage["steps"]
    lines = [_line(stage["stage"], step["at"], step["words"]) for step in shown]
    more = stage["total"] - len(shown)
    if more > 0:
        lines.append(_line("", "", f"and {more} more"))
    if stage["note"] is not None:
        lines.append(_line(stage["stage"], stage["state"].replace("_", " "), stage["note"]))
    return lines


def _judgement_lines(judgement: Mapping[str, Any] | None, *, has_window: bool) -> list[str]:
    if judgement is None:
        reason = (
            "nothing ties these rows to a message" if has_window else "give --from and --to to have it judged"
        )
        return [_line("judged", "-", reason)]
    lines = [_line("judged", "-", judgement["words"])]
    for entry in judgement["breaks"]:
        is_open = entry["cause"] == "unknown" and entry["admissible"]
        causes = f"unknown, of {' or '.join(entry['admissible'])}" if is_open else entry["cause"]
        lines.append(
            _line(
                "break",
                entry["severity"] or "-",
                f"{entry['class']}, at: {entry['locus']}; cause: {causes}; break {entry['break_id']}, "
                f"incident {entry['incident_id']}",
            )
        )
    if not judgement["breaks"] and judgement["is_judged_here"]:
        lines.append(_line("break", "-", "none"))
    return lines


def _line(name: str, at: str | None, words: str) -> str:
    time = printable("-" if at is None else at, 60)
    return printable(f"  {name:<{_WIDTH}}{time:<{_TIME_WIDTH}}{words}".rstrip(), LINE_LIMIT)
