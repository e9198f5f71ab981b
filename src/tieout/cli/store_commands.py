"""The commands that ask the store, and act upon what it holds; where it lies, TIEOUT_DATABASE_URL says.

Docs: docs/how-to/work-with-open-breaks.md.
"""

from __future__ import annotations

import argparse
import getpass
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tieout import settings
from tieout.cli.exit_codes import OF_VERDICT, ExitCode
from tieout.contracts import Contract
from tieout.contracts.times import format_time
from tieout.errors import UsageError
from tieout.model import CheckResult, Verdict, Window
from tieout.reporting.alerts import plain
from tieout.verdicts import final_verdict

if TYPE_CHECKING:
    from tieout.cli.commands import Surroundings
    from tieout.store import Life, Origin, PipelineSummary, Store

StoreCommand = Callable[[argparse.Namespace, "Surroundings"], ExitCode]


def status(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print how each pipeline stands; an unknown name is an error, an empty store is not."""
    store = _store()
    found = store.pipeline_summaries(arguments.pipeline)
    if arguments.pipeline is not None and not found:
        raise UsageError(
            f"pipeline {plain(arguments.pipeline)}: no run of it is in the store; is the name right?"
        )
    silences = store.silences(arguments.pipeline)
    if arguments.json:
        _print_json(
            {"pipelines": [asdict(each) for each in found], "silences": [asdict(each) for each in silences]},
            around,
        )
        return ExitCode.KEPT
    lines = [_standing_line(each) for each in found] or ["no pipeline has a run in the store yet"]
    lines += [
        f"silenced: {plain(each.pipeline)}{f', incident {plain(each.incident_id)}' if each.incident_id else ''} until "
        f"{format_time(each.expires_at)} by {plain(each.who)}: {plain(each.reason)}"
        for each in silences
    ]
    _print(lines, around)
    return ExitCode.KEPT


def breaks(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print what is open of a pipeline, or the history of one break."""
    store = _store()
    if arguments.history is not None:
        return _history(store, arguments, around)
    if not store.pipeline_summaries(arguments.pipeline):
        raise UsageError(
            f"pipeline {plain(arguments.pipeline)}: no run of it is in the store; is the name right?"
        )
    page = store.open_incidents if arguments.incidents else store.open_breaks
    _require_followed(store, arguments)
    found = page(arguments.pipeline, limit=arguments.limit, after=arguments.after)
    last = found[-1].id if len(found) == arguments.limit else None
    origins = (
        store.origins(arguments.pipeline, {each.run_id for each in found}) if arguments.incidents else {}
    )
    if arguments.json:
        told = [asdict(each) | _origin_json(origins.get((each.run_id, each.id))) for each in found]
        _print_json({"open": told, "after": last}, around)
        return ExitCode.KEPT
    lines = [_life_line(each) + _origin_words(origins.get((each.run_id, each.id))) for each in found]
    lines = lines or ["nothing is open" if arguments.after is None else "nothing more is open"]
    _print([*lines, *([f"there may be more: --after {last}"] if last else [])], around)
    return ExitCode.KEPT


def _require_followed(store: Store, arguments: argparse.Namespace) -> None:
    """Refuse an `--after` that is nobody's id: the page behind it would be empty, as if nothing were open."""
    if arguments.after is None:
        return
    known = store.incident_life if arguments.incidents else store.break_life
    life = known(arguments.after)
    if life is None or life.pipeline != arguments.pipeline:
        kind = "an incident" if arguments.incidents else "a break"
        raise UsageError(
            f"--after {plain(arguments.after)}: expected the id of {kind} of {plain(arguments.pipeline)}, the last "
            "of the page before, found another; leave it out to begin with the oldest"
        )


def accept(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Accept an incident or breaks until a time."""
    store = _store()
    subject = _subject(store, arguments)
    moved = store.accept(
        arguments.pipeline,
        who=_who(arguments),
        reason=arguments.reason,
        expires_at=arguments.until,
        **subject,
    )
    told = f"accepted until {format_time(arguments.until)}: {moved} breaks and incidents"
    return _done(arguments, around, told, accepted=moved, until=arguments.until)


def reopen(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Take an acceptance back."""
    store = _store()
    subject = _subject(store, arguments)
    moved = store.reopen(arguments.pipeline, who=_who(arguments), reason=arguments.reason, **subject)
    return _done(arguments, around, f"reopened: {moved} breaks and incidents", reopened=moved)


def annotate(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Write a note into the history of an incident or of breaks."""
    store = _store()
    subject = _subject(store, arguments)
    named = store.annotate(arguments.pipeline, who=_who(arguments), reason=arguments.reason, **subject)
    return _done(arguments, around, f"noted for {named} of them", annotated=named)


def silence(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Send no alerts of a pipeline or an incident until a time, or end that."""
    until: datetime | None = arguments.until
    _store().silence(
        arguments.pipeline,
        who=_who(arguments),
        reason=arguments.reason,
        until=until,
        incident_id=arguments.incident,
    )
    told = "the silence has ended" if until is None else f"silenced until {format_time(until)}"
    return _done(arguments, around, told, until=until)


def check_run(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print what the suites find in a stored run; nothing is stored."""
    from tieout.checks import check_statement, data_docs  # noqa: PLC0415 - few commands need it

    run = _store().run(arguments.run)
    if run is None:
        raise UsageError(f"run {plain(arguments.run)}: no run of that id is in the store")
    contract = Contract.from_json(json.dumps(run.contract), Path())
    url = settings.required_database_url()
    report = check_statement(url, run.run_id, contract)
    if arguments.json:
        _print_json(
            {"run_id": run.run_id, "suite": report.suite, "checks": [asdict(one) for one in report.results]},
            around,
        )
    else:
        _print((_check_line(one) for one in report.results), around)
    if arguments.data_docs is not None:
        around.progress("building Data Docs")
        site = data_docs(url, run.run_id, contract, run.window, arguments.data_docs.absolute())
        around.progress(f"written: {site}")
    return OF_VERDICT[final_verdict(Verdict.KEPT, report.results)]


def _check_line(found: CheckResult) -> str:
    limit = f", expected {found.limit}" if found.limit else ""
    return plain(f"{found.status:<5} {found.severity:<8} {found.rule}: {found.observed}{limit}")


STORE_COMMANDS: Final[Mapping[str, StoreCommand]] = {
    "status": status,
    "breaks": breaks,
    "accept": accept,
    "reopen": reopen,
    "annotate": annotate,
    "check-run": check_run,
    "silence": silence,
}


def _store() -> Store:
    from tieout.store import Store  # noqa: PLC0415 - brings PostgreSQL's driver, which few commands need

    return Store(settings.required_database_url(), application_name="tieout command line")


def _subject(store: Store, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the subject of an act with the group that it belongs to.

    Raises:
        UsageError: where nothing of that id is known of the pipeline.
    """
    ids: Sequence[str] = arguments.breaks or (arguments.incident,)
    kind = "break" if arguments.breaks else "incident"
    found = store.break_life(ids[0]) if arguments.breaks else store.incident_life(ids[0])
    if found is None or found.pipeline != arguments.pipeline:
        raise UsageError(
            f"pipeline {plain(arguments.pipeline)}: no {kind} {plain(ids[0])} is in the store; "
            f"`tieout breaks {plain(arguments.pipeline)}` lists what is open"
        )
    named = {"break_ids": ids} if arguments.breaks else {"incident_id": arguments.incident}
    return {"group": found.group, **named}


def _who(arguments: argparse.Namespace) -> str:
    """Return who acts: as told, else the account's name.

    Raises:
        UsageError: where the account has none.
    """
    if arguments.who is not None:
        return str(arguments.who)
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise UsageError("--who: this account has no name, so say who you are") from None


def _history(store: Store, arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    life, entries = store.break_life(arguments.history), store.break_history(arguments.history)
    if life is None or life.pipeline != arguments.pipeline:
        raise UsageError(
            f"pipeline {plain(arguments.pipeline)}: the break {plain(arguments.history)} is not followed; of a large "
            "incident only the first breaks are"
        )
    if arguments.json:
        _print_json({"break": asdict(life), "history": [asdict(entry) for entry in entries]}, around)
        return ExitCode.KEPT
    lines = [_life_line(life)]
    for entry in entries:
        if entry.what == "statement":
            what = (
                f"{entry.state}{f' ({entry.resolution})' if entry.resolution else ''} as {entry.class_name}"
            )
            lines.append(
                f"  {format_time(entry.at)}  {what}" + (f", run {entry.run_id}" if entry.run_id else "")
            )
            continue
        until = f" until {format_time(entry.expires_at)}" if entry.expires_at else ""
        lines.append(
            f"  {format_time(entry.at)}  {entry.what}{until} by {plain(entry.who or '')}: {plain(entry.reason or '')}"
        )
    _print(lines, around)
    return ExitCode.KEPT


def _standing_line(found: PipelineSummary) -> str:
    counts = [f"{found.open_breaks} open breaks in {found.open_incidents} incidents"]
    if found.happened_before:
        counts.append(f"{found.happened_before} of them happened before, at an earlier hop")
    if found.oldest_open is not None:
        counts.append(f"the oldest of {format_time(found.oldest_open)}")
    if found.accepted_breaks:
        counts.append(f"{found.accepted_breaks} accepted")
    if found.pending_windows:
        counts.append(f"{found.pending_windows} windows pending")
    verdict = found.final_verdict or f"{found.verdict}, not checked yet"
    return f"{plain(found.pipeline)}: {verdict} for {_window(found.window)}; {', '.join(counts)}"


def _life_line(found: Life) -> str:
    state = found.state if found.resolution is None else f"{found.state} ({found.resolution})"
    place = "" if found.topic is None else f" {found.topic}-{found.partition}"
    offset = "" if found.offset is None else f" offset {found.offset}"
    size = f" {found.breaks} breaks" if found.kind == "incident" else ""
    message = "" if found.message_id is None else f" message {found.message_id}"
    why = ", ".join(each for each in (found.locus, found.cause) if each and each != "unknown")
    age = "" if found.age_in_windows is None else f", {found.age_in_windows} windows old"
    text = f"{found.id}  {found.class_name}{size}{message}{place}{offset}" + (f" ({why})" if why else "")
    return f"{plain(text)}; {found.severity}, {state}{age}, window {_window(found.window)}"


def _origin_words(origin: Origin | None) -> str:
    return "" if origin is None else plain(f"; {origin.words}")


def _origin_json(origin: Origin | None) -> dict[str, Any]:
    """Return where an incident happened, nothing where its contract comes after no other."""
    if origin is None:
        return {}
    return {"origin": asdict(origin) | {"is_consequence": origin.is_consequence, "words": origin.words}}


def _window(window: Window) -> str:
    return f"{format_time(window.start)} to {format_time(window.end)}"


def _done(arguments: argparse.Namespace, around: Surroundings, told: str, **facts: Any) -> ExitCode:
    if arguments.json:
        _print_json({"pipeline": arguments.pipeline, **facts}, around)
    else:
        _print([f"{plain(arguments.pipeline)}: {told}"], around)
    return ExitCode.KEPT


def _print(lines: Iterable[str], around: Surroundings) -> None:
    around.out.write("".join(line + "\n" for line in lines))


def _print_json(value: Any, around: Surroundings) -> None:
    around.out.write(json.dumps(value, indent=2, ensure_ascii=False, default=_plain_value) + "\n")


def _plain_value(value: object) -> object:
    return format_time(value) if isinstance(value, datetime) else str(value)
