"""The commands that read the store of TIEOUT_DATABASE_URL and change the state of its breaks.

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
from tieout.reporting.alerts import printable
from tieout.verdicts import final_verdict

if TYPE_CHECKING:
    from tieout.cli.commands import Surroundings
    from tieout.store import Life, Origin, PipelineSummary, Store

StoreCommand = Callable[[argparse.Namespace, "Surroundings"], ExitCode]


def status(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print each pipeline's latest verdict and open breaks; an unknown name is an error, an empty store is not."""
    store = _store()
    summaries = store.pipeline_summaries(arguments.pipeline)
    if arguments.pipeline is not None and not summaries:
        raise UsageError(
            f"pipeline {printable(arguments.pipeline)}: no run of it is in the store; is the name right?"
        )
    silences = store.silences(arguments.pipeline)
    if arguments.json:
        _print_json(
            {
                "pipelines": [asdict(each) for each in summaries],
                "silences": [asdict(each) for each in silences],
            },
            around,
        )
        return ExitCode.KEPT
    lines = [_summary_line(each) for each in summaries] or ["no pipeline has a run in the store yet"]
    lines += [
        f"silenced: {printable(each.pipeline)}"
        f"{f', incident {printable(each.incident_id)}' if each.incident_id else ''} until "
        f"{format_time(each.expires_at)} by {printable(each.who)}: {printable(each.reason)}"
        for each in silences
    ]
    _print(lines, around)
    return ExitCode.KEPT


def breaks(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print a pipeline's open breaks or incidents, or the history of one break."""
    store = _store()
    if arguments.history is not None:
        return _history(store, arguments, around)
    if not store.pipeline_summaries(arguments.pipeline):
        raise UsageError(
            f"pipeline {printable(arguments.pipeline)}: no run of it is in the store; is the name right?"
        )
    page = store.open_incidents if arguments.incidents else store.open_breaks
    _require_known_after(store, arguments)
    lives = page(arguments.pipeline, limit=arguments.limit, after=arguments.after)
    last = lives[-1].id if len(lives) == arguments.limit else None
    origins = (
        store.origins(arguments.pipeline, {each.run_id for each in lives}) if arguments.incidents else {}
    )
    if arguments.json:
        entries = [asdict(each) | _origin_json(origins.get((each.run_id, each.id))) for each in lives]
        _print_json({"open": entries, "after": last}, around)
        return ExitCode.KEPT
    lines = [_life_line(each) + _origin_text(origins.get((each.run_id, each.id))) for each in lives]
    lines = lines or ["nothing is open" if arguments.after is None else "nothing more is open"]
    _print([*lines, *([f"there may be more: --after {last}"] if last else [])], around)
    return ExitCode.KEPT


def _require_known_after(store: Store, arguments: argparse.Namespace) -> None:
    """Refuse an `--after` that is not an id of the pipeline: its page would be empty, as if nothing were open."""
    if arguments.after is None:
        return
    life_of = store.incident_life if arguments.incidents else store.break_life
    life = life_of(arguments.after)
    if life is None or life.pipeline != arguments.pipeline:
        kind = "an incident" if arguments.incidents else "a break"
        raise UsageError(
            f"--after {printable(arguments.after)}: expected the id of {kind} of {printable(arguments.pipeline)}, the "
            "last of the page before, found another; leave it out to begin with the oldest"
        )


def accept(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Accept an incident or breaks until a time."""
    store = _store()
    subject = _subject(store, arguments)
    changed_count = store.accept(
        arguments.pipeline,
        who=_acting_user(arguments),
        reason=arguments.reason,
        expires_at=arguments.until,
        **subject,
    )
    message = f"accepted until {format_time(arguments.until)}: {changed_count} breaks and incidents"
    return _done(arguments, around, message, accepted=changed_count, until=arguments.until)


def reopen(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Take an acceptance back."""
    store = _store()
    subject = _subject(store, arguments)
    changed_count = store.reopen(
        arguments.pipeline, who=_acting_user(arguments), reason=arguments.reason, **subject
    )
    return _done(arguments, around, f"reopened: {changed_count} breaks and incidents", reopened=changed_count)


def annotate(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Write a note into the history of an incident or of breaks."""
    store = _store()
    subject = _subject(store, arguments)
    annotated = store.annotate(
        arguments.pipeline, who=_acting_user(arguments), reason=arguments.reason, **subject
    )
    return _done(arguments, around, f"noted for {annotated} of them", annotated=annotated)


def silence(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Send no alerts of a pipeline or an incident until a time, or end that."""
    until: datetime | None = arguments.until
    _store().silence(
        arguments.pipeline,
        who=_acting_user(arguments),
        reason=arguments.reason,
        until=until,
        incident_id=arguments.incident,
    )
    message = "the silence has ended" if until is None else f"silenced until {format_time(until)}"
    return _done(arguments, around, message, until=until)


def check_run(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Check a stored run with the suites and print the results; nothing is stored."""
    from tieout.checks import check_statement, data_docs  # noqa: PLC0415 - few commands need it

    run = _store().run(arguments.run)
    if run is None:
        raise UsageError(f"run {printable(arguments.run)}: no run of that id is in the store")
    contract = Contract.from_json(json.dumps(run.contract), Path())
    url = settings.required_database_url()
    report = check_statement(url, run.run_id, contract)
    if arguments.json:
        _print_json(
            {
                "run_id": run.run_id,
                "suite": report.suite,
                "checks": [asdict(result) for result in report.results],
            },
            around,
        )
    else:
        _print((_check_line(result) for result in report.results), around)
    if arguments.data_docs is not None:
        around.progress("building Data Docs")
        site = data_docs(url, run.run_id, contract, run.window, arguments.data_docs.absolute())
        around.progress(f"written: {site}")
    return OF_VERDICT[final_verdict(Verdict.KEPT, report.results)]


def _check_line(result: CheckResult) -> str:
    limit = f", expected {result.limit}" if result.limit else ""
    return printable(f"{result.status:<5} {result.severity:<8} {result.rule}: {result.observed}{limit}")


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
    """Return the ids to act on, with their group, as keyword arguments of the store's functions.

    Raises:
        UsageError: if the pipeline has no break or incident of that id.
    """
    ids: Sequence[str] = arguments.breaks or (arguments.incident,)
    kind = "break" if arguments.breaks else "incident"
    life = store.break_life(ids[0]) if arguments.breaks else store.incident_life(ids[0])
    if life is None or life.pipeline != arguments.pipeline:
        raise UsageError(
            f"pipeline {printable(arguments.pipeline)}: no {kind} {printable(ids[0])} is in the store; "
            f"`tieout breaks {printable(arguments.pipeline)}` lists what is open"
        )
    ids_argument = {"break_ids": ids} if arguments.breaks else {"incident_id": arguments.incident}
    return {"group": life.group, **ids_argument}


def _acting_user(arguments: argparse.Namespace) -> str:
    """Return the name of `--who`, by default that of the account.

    Raises:
        UsageError: if the account has none.
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
            f"pipeline {printable(arguments.pipeline)}: the break {printable(arguments.history)} is not followed; of a "
            "large incident only the first breaks are"
        )
    if arguments.json:
        _print_json({"break": asdict(life), "history": [asdict(entry) for entry in entries]}, around)
        return ExitCode.KEPT
    lines = [_life_line(life)]
    for entry in entries:
        if entry.what == "statement":
            change = (
                f"{entry.state}{f' ({entry.resolution})' if entry.resolution else ''} as {entry.class_name}"
            )
            lines.append(
                f"  {format_time(entry.at)}  {change}" + (f", run {entry.run_id}" if entry.run_id else "")
            )
            continue
        until = f" until {format_time(entry.expires_at)}" if entry.expires_at else ""
        lines.append(
            f"  {format_time(entry.at)}  {entry.what}{until} by {printable(entry.who or '')}: "
            f"{printable(entry.reason or '')}"
        )
    _print(lines, around)
    return ExitCode.KEPT


def _summary_line(summary: PipelineSummary) -> str:
    counts = [f"{summary.open_breaks} open breaks in {summary.open_incidents} incidents"]
    if summary.happened_before:
        counts.append(f"{summary.happened_before} of them happened before, at an earlier hop")
    if summary.oldest_open is not None:
        counts.append(f"the oldest of {format_time(summary.oldest_open)}")
    if summary.accepted_breaks:
        counts.append(f"{summary.accepted_breaks} accepted")
    if summary.pending_windows:
        counts.append(f"{summary.pending_windows} windows pending")
    verdict = summary.final_verdict or f"{summary.verdict}, not checked yet"
    return f"{printable(summary.pipeline)}: {verdict} for {_window(summary.window)}; {', '.join(counts)}"


def _life_line(life: Life) -> str:
    state = life.state if life.resolution is None else f"{life.state} ({life.resolution})"
    place = "" if life.topic is None else f" {life.topic}-{life.partition}"
    offset = "" if life.offset is None else f" offset {life.offset}"
    size = f" {life.breaks} breaks" if life.kind == "incident" else ""
    message = "" if life.message_id is None else f" message {life.message_id}"
    origin = ", ".join(each for each in (life.locus, life.cause) if each and each != "unknown")
    age = "" if life.age_in_windows is None else f", {life.age_in_windows} windows old"
    text = f"{life.id}  {life.class_name}{size}{message}{place}{offset}" + (f" ({origin})" if origin else "")
    return f"{printable(text)}; {life.severity}, {state}{age}, window {_window(life.window)}"


def _origin_text(origin: Origin | None) -> str:
    return "" if origin is None else printable(f"; {origin.words}")


def _origin_json(origin: Origin | None) -> dict[str, Any]:
    """Return an incident's origin as JSON, empty if its contract has no predecessor."""
    if origin is None:
        return {}
    return {"origin": asdict(origin) | {"is_consequence": origin.is_consequence, "words": origin.words}}


def _window(window: Window) -> str:
    return f"{format_time(window.start)} to {format_time(window.end)}"


def _done(arguments: argparse.Namespace, around: Surroundings, message: str, **facts: Any) -> ExitCode:
    if arguments.json:
        _print_json({"pipeline": arguments.pipeline, **facts}, around)
    else:
        _print([f"{printable(arguments.pipeline)}: {message}"], around)
    return ExitCode.KEPT


def _print(lines: Iterable[str], around: Surroundings) -> None:
    around.out.write("".join(line + "\n" for line in lines))


def _print_json(value: Any, around: Surroundings) -> None:
    around.out.write(json.dumps(value, indent=2, ensure_ascii=False, default=_json_value) + "\n")


def _json_value(value: object) -> object:
    return format_time(value) if isinstance(value, datetime) else str(value)
