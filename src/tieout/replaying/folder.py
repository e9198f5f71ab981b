"""A plan's files: `plan.md` for people; `records.jsonl`, `removals.jsonl`, `refused.jsonl`, `remove.sql` for programs.

The folder's name is the plan's id, a digest of its actions: equal plans have the same folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from tieout.contracts import ORIGINAL_TOPIC, Contract
from tieout.errors import UsageError
from tieout.folders import replaced
from tieout.model import Window
from tieout.replaying import console_producer
from tieout.replaying.choosing import Removal
from tieout.replaying.describing import Subject, destinations
from tieout.replaying.planning import Plan, Record, digest_of
from tieout.replaying.removing import reason_without_sql, removal_sql

RECORDS: Final = "records.jsonl"
REMOVALS: Final = "removals.jsonl"
REFUSED: Final = "refused.jsonl"
SQL: Final = "remove.sql"
TEXT: Final = "plan.md"
PLAN: Final = "plan.json"
FILES: Final = "files"
"""The target where the contract names no table."""


class RunLike(Protocol):
    """The fields of a stored run that are used here."""

    @property
    def run_id(self) -> str:
        """Its id."""

    @property
    def window(self) -> Window:
        """Its window."""

    @property
    def is_current(self) -> bool:
        """Whether it is the one that counts for its window."""


_Run = TypeVar("_Run", bound=RunLike)


def target_of(contract: Contract) -> str:
    """Return the target of the contract's replays, in words."""
    to = contract.replay.to if contract.replay else None
    if to is None:
        return FILES
    if to.table is not None:
        return f"table {to.table} of connection {to.connection}"
    topic = "their own topics" if to.topic == ORIGINAL_TOPIC else f"topic {to.topic}"
    return f"{topic} of connection {to.connection}"


def read_breaks(run: _Run | None, folder: Path) -> tuple[_Run, dict[str, Any], Iterator[dict[str, Any]]]:
    """Return a run, its statement and its breaks, which are read lazily.

    Raises:
        UsageError: where the run is not stored or not current, or the folder holds another run's statement.
    """
    if run is None:
        raise UsageError(
            "expected the id of a stored run, found none of that id; a statement's page shows it"
        )
    if not run.is_current:
        raise UsageError(
            f"run {run.run_id}: another run counts for its window by now; plan from that one, whose breaks are today's"
        )
    try:
        statement = json.loads((folder / "statement.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder}: expected the statement of run {run.run_id}, found none ({type(error).__name__}); is "
            "TIEOUT_HOME the one that the run had? Judging the window again writes it anew"
        ) from error
    if statement["run_id"] != run.run_id:
        raise UsageError(
            f"{folder}: expected the statement of run {run.run_id}, found that of {statement['run_id']}; "
            "judge the window again, and plan from the run that gives"
        )
    return run, statement, _lines(folder / "breaks.jsonl")


def write_plan(plan: Plan, subject: Subject, text: str, folder: Path) -> dict[str, Any]:
    """Write a plan's files into a folder of its own below `folder`, whole or not at all, and describe it.

    Returns:
        `plan_id`, `folder`, `digest`, the counts `records`, `removals`, `refused` and `done` (replayed before), the
        `markdown`, and its subject: `pipeline`, `group`, `run_id`, `incident_id`, `target`, `start`, `end`.
    """
    plan_id = f"{subject.run_id[:8]}-{plan.digest[:16]}"
    described = {
        "plan_id": plan_id,
        "folder": str(folder / plan_id),
        "digest": plan.digest,
        "records": len(plan.records),
        "removals": len(plan.removals),
        "refused": len(plan.refusals),
        "done": sum(refusal.is_done for refusal in plan.refusals),
        "pipeline": subject.contract.pipeline,
        "group": subject.contract.group,
        "run_id": subject.run_id,
        "incident_id": subject.incident_id,
        "target": subject.target,
        "start": subject.window.start.isoformat(),
        "end": subject.window.end.isoformat(),
    }
    with replaced(folder / plan_id, mode=0o700) as staged:
        _write_lines(staged / RECORDS, (record.to_json() for record in plan.records))
        _write_lines(staged / REMOVALS, (removal.to_json() for removal in plan.removals))
        _write_lines(staged / REFUSED, (_json(asdict(refusal)) for refusal in plan.refusals))
        places = [
            {"act": act, "place": place, "messages": count}
            for act, place, count in destinations(plan, subject.contract)
        ]
        _write_lines(staged / PLAN, [_json({**described, "destinations": places})])
        (staged / SQL).write_text(_sql(plan.removals, subject.contract), encoding="utf-8")
        (staged / TEXT).write_text(text, encoding="utf-8")
    return {**described, "markdown": text}


def read_plan(folder: Path, digest: str) -> tuple[list[Record], list[Removal]]:
    """Return a plan's records and removals, if they are still those that were approved.

    Raises:
        UsageError: where the files are missing, or have another digest.
    """
    try:
        records = [Record.from_json(line) for line in _text_lines(folder / RECORDS)]
        removals = [Removal.from_json(line) for line in _text_lines(folder / REMOVALS)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{folder}: expected the approved plan, found it missing or damaged ({type(error).__name__}); plan again"
        ) from error
    found = digest_of(records, removals)
    if found != digest:
        raise UsageError(
            f"{folder}: expected the plan that was approved, with digest {digest}, found {found}: its files were "
            "changed since; plan again, and have that approved"
        )
    return records, removals


def require_removal_sql(folder: Path, removals: Sequence[Removal], contract: Contract) -> None:
    """Refuse a plan whose `remove.sql` differs from the SQL for these removals and contract.

    Raises:
        UsageError: where it differs, or is missing.
    """
    try:
        found = (folder / SQL).read_text(encoding="utf-8")
    except (OSError, ValueError):
        found = ""
    if found != _sql(removals, contract):
        raise UsageError(
            f"{folder / SQL}: expected the SQL of the plan that was approved, found another text: the file, or "
            "replay.output of the contract, was changed since; plan again, and have that approved"
        )


def write_console_lines(records: Iterable[Record], folder: Path) -> dict[str, str]:
    """Write one file of lines for `kafka-console-producer` per topic; return each with its publishing command.

    Records that no line can hold stay in `records.jsonl` alone and are counted under the key "".
    """
    lines, without_line = console_producer.lines_by_topic(records)
    commands = {}
    for number, (topic, text) in enumerate(sorted(lines.items()), start=1):
        name = f"produce-{number}.txt"
        draft = folder / f".{name}"
        _write_lines(draft, text)
        draft.rename(folder / name)
        commands[name] = console_producer.command(topic, str(folder / name))
    if without_line:
        commands[""] = (
            f"{len(without_line)} records do not fit into lines: publish them from {folder / RECORDS}"
        )
    return commands


def _sql(removals: Sequence[Removal], contract: Contract) -> str:
    if not removals:
        return "-- Nothing is to be removed.\n"
    reason = reason_without_sql(contract)
    output = contract.replay.output if contract.replay else None
    if reason is not None or output is None:
        return f"-- No SQL: {reason}. The rows are in {REMOVALS}.\n"
    return removal_sql(output, removals)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in _text_lines(path):
        yield json.loads(line)


def _text_lines(path: Path) -> Iterator[str]:
    # Not by str.splitlines: an id may hold characters that it takes for line ends.
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


def _json(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, default=str)
