"""The commands: each takes parsed arguments and returns an exit code."""

from __future__ import annotations

import argparse
import json
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, TextIO

from tieout.cli.bundle_commands import bundle_report, requested_bundle, verify
from tieout.cli.chain_tracing import chain_of_folder, follow_chain
from tieout.cli.checked import Checked, checked_json, checked_text, has_unreadable
from tieout.cli.completion import bash_completion
from tieout.cli.engine import Engine, Order, Progress
from tieout.cli.exit_codes import OF_VERDICT, ExitCode
from tieout.cli.output import checked_folder, checked_output
from tieout.cli.parser import LEDGERS, parser
from tieout.cli.period import stored_windows, written_windows
from tieout.cli.setup_commands import SETUP_COMMANDS
from tieout.cli.starting import drafted, write_new
from tieout.cli.store_commands import STORE_COMMANDS
from tieout.cli.watch_table import shown
from tieout.cli.watching import Judged, Watch, refuse_unscheduled, worst
from tieout.contracts import Contract, load_contract, load_contracts, unknown_predecessors
from tieout.contracts.schema import json_schema
from tieout.contracts.times import format_time
from tieout.engine.supported import refuse_other_windows
from tieout.errors import ContractError, UsageError
from tieout.linting import contradictions, findings
from tieout.model import Guarantee, Identity, Verdict, Window
from tieout.reporting.alerts import printable
from tieout.reporting.chain_trace import chain_document, render_chain
from tieout.reporting.markdown import render_markdown
from tieout.reporting.page import render_html
from tieout.reporting.period import period_document
from tieout.reporting.period_pages import period_html, period_markdown, period_text
from tieout.reporting.schema import statement_schema, trace_schema
from tieout.reporting.text import render_text
from tieout.reporting.trace import RequestedBy, TraceRequest, position_of, render_trace
from tieout.simulation.description import load_description
from tieout.simulation.folder import CONTRACT, FILES, WINDOW, write_simulation
from tieout.simulation.reading import read_run, read_truth
from tieout.simulation.score_report import score_json, score_page, score_text
from tieout.simulation.scoring import score as scored


@dataclass(frozen=True)
class Surroundings:
    """The environment of a command: the engine, the output streams and the progress."""

    engine: Callable[[], Engine]
    out: TextIO
    err: TextIO
    progress: Progress


Command = Callable[[argparse.Namespace, Surroundings], ExitCode]


def reconcile(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Judge one window, write its output directory and print its statement."""
    contract = load_contract(arguments.contract)
    order = _order(contract, arguments)
    output = checked_output(arguments.output)
    if arguments.bundle is not None:
        order = replace(order, bundle=requested_bundle(arguments, arguments.bundle))
    statement = around.engine().reconcile(order, output, render_html, around.progress)
    _print(STATEMENTS["json" if arguments.json else arguments.format](statement), around.out)
    around.progress(f"written: {output / 'statement.html'}")
    for finding in contradictions(contract, statement):
        around.progress(f"{printable(finding.subject)}: {printable(finding.failure)}")
    return OF_VERDICT[Verdict(statement["verdict"])]


def bundle(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Judge one window and write its audit bundle; the exit code does not depend on the verdict."""
    order = _order(load_contract(arguments.contract), arguments)
    request = requested_bundle(arguments, arguments.output)
    bundled = around.engine().bundle(order, request, around.progress)
    _print(bundle_report(bundled, request, is_json=arguments.json), around.out)
    return ExitCode.KEPT


def watch(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Judge the windows of the schedule in order until Ctrl-C; no output folder is ever partly written."""
    contract = load_contract(arguments.contract)
    refuse_unscheduled(contract)
    folder = checked_folder(arguments.output)
    watching = Watch(contract, folder, around.engine, render_html, around.progress)
    judged_windows: list[Judged] = []
    with (
        suppress(KeyboardInterrupt),
        shown(around.out, f"{contract.pipeline}: {contract.guarantee}") as table,
    ):
        for judged in islice(watching.judged(arguments.start), arguments.windows):
            judged_windows.append(judged)
            table.add(judged)
        if not judged_windows:
            around.progress(_no_window(contract))
    return worst(judged_windows)


def _no_window(contract: Contract) -> str:
    """Return the message for a watch that found no window to judge."""
    until = contract.active.until
    ends = "" if until is None else f", which ends {format_time(until)}"
    return (
        f"{contract.pipeline}: no window to judge: none lies in the contract's active time{ends}; "
        "give an earlier --from, or extend active.until"
    )


def init(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Write a first contract and print its open questions."""
    texts = {ledger: getattr(arguments, ledger.value) for ledger in LEDGERS}
    sources = {ledger: source for ledger, source in texts.items() if source is not None}
    folder = Path() if arguments.output is None else arguments.output.parent
    made = drafted(arguments.pipeline, Guarantee(arguments.guarantee), arguments.group, sources, folder)
    if arguments.output is not None:
        write_new(made.text, arguments.output)
        around.progress(f"written: {arguments.output}")
    if arguments.json:
        _print(_json({"contract": made.text, "open_questions": list(made.open_questions)}), around.out)
        return ExitCode.KEPT
    if arguments.output is None:
        _print(made.text, around.out)
    for question in made.open_questions:
        around.progress(f"left open: {printable(question)}")
    return ExitCode.KEPT


def check(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print for each contract that it is valid and the findings about its settings, or all of its errors."""
    errors: list[ContractError] = []
    checked: list[Checked] = []
    for path in arguments.contracts:
        contracts, wrong = _loaded(path)
        errors += wrong
        checked += [(contract, findings(contract)) for contract in contracts]
    errors += unknown_predecessors(arguments.contracts)
    if arguments.json:
        _print(_json(checked_json(checked, errors)), around.out)
    else:
        _print("".join(checked_text(*pair) for pair in checked), around.out)
    for error in errors:
        print(error, file=around.err)
    return ExitCode.ERROR if errors or has_unreadable(checked) else ExitCode.KEPT


def trace(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print a message's records in every ledger and their judgement; for a chain, at every hop."""
    contract = load_contract(arguments.contract)
    window, request = _window_or_none(arguments), _trace_request(contract, arguments)
    if window is not None:
        refuse_other_windows(contract, window)
    chain = None if arguments.alone else chain_of_folder(contract, arguments.contract)
    if chain is not None:
        hops = follow_chain(chain, window, request, around.engine(), around.progress)
        document = chain_document(request, hops)
        _print(_json(document) if arguments.json else render_chain(document), around.out)
        is_found = any(hop.trace is not None and hop.trace["messages"] for hop in hops)
        return ExitCode.KEPT if is_found else ExitCode.UNDECIDED
    traced = around.engine().follow(contract, window, request, around.progress)
    _print(_json(traced) if arguments.json else render_trace(traced), around.out)
    return ExitCode.KEPT if traced["messages"] else ExitCode.UNDECIDED


def schema(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print a JSON Schema."""
    _print(_json(SCHEMAS[arguments.of]()), around.out)
    return ExitCode.KEPT


def completion(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print the script that completes commands in a shell."""
    _print(COMPLETIONS[arguments.shell](parser()), around.out)
    return ExitCode.KEPT


def report(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print one report on all statements of a period."""
    period, now = _window(arguments), datetime.now(UTC)
    if arguments.statements is None:
        judged, source = stored_windows(period, arguments.pipeline), "store"
    else:
        judged, source = written_windows(arguments.statements), "statements"
    document = period_document(judged, period, pipeline=arguments.pipeline, source=source, now=now)
    text = REPORTS["json" if arguments.json else arguments.format](document)
    if arguments.output is None:
        _print(text, around.out)
    else:
        arguments.output.write_text(text, encoding="utf-8")
        around.progress(f"written: {arguments.output}")
    return OF_VERDICT[Verdict(document["verdict"])]


def simulate(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Write a simulated pipeline's ledgers, contract and truth, and print the commands that judge them."""
    description = load_description(arguments.description)
    if arguments.messages is not None:
        description = description.with_messages(arguments.messages)
    output = checked_output(arguments.output, FILES, "simulation")
    summary = write_simulation(description, arguments.seed, output, around.progress)
    _print(_json(summary) if arguments.json else _simulated(summary, output), around.out)
    return ExitCode.KEPT


def score(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Compare a run's breaks with a simulation's truth; a missed, invented or misplaced break is a failure."""
    summary, truth = read_truth(arguments.truth)
    statement, breaks = read_run(arguments.statement)
    result = scored(truth, breaks, summary, statement)
    if arguments.report is not None:
        page = score_page(result, summary, {"judged": statement["generated_at"], "machine": _machine()})
        arguments.report.write_text(page, encoding="utf-8")
        around.progress(f"written: {arguments.report}")
    _print(_json(score_json(result)) if arguments.json else score_text(result), around.out)
    return ExitCode.KEPT if result.is_passed else ExitCode.BROKEN


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


STATEMENTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "text": render_text,
    "json": _json,
    "markdown": render_markdown,
}
REPORTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "text": period_text,
    "json": _json,
    "markdown": period_markdown,
    "html": period_html,
}
COMPLETIONS: Final = {"bash": bash_completion}
SCHEMAS: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    "contract": json_schema,
    "statement": statement_schema,
    "trace": trace_schema,
}
COMMANDS: Final[Mapping[str, Command]] = {
    "reconcile": reconcile,
    "bundle": bundle,
    "verify": verify,
    "watch": watch,
    "init": init,
    "check": check,
    "trace": trace,
    "report": report,
    "simulate": simulate,
    "score": score,
    "schema": schema,
    **STORE_COMMANDS,
    **SETUP_COMMANDS,
    "completion": completion,
}


def _order(contract: Contract, arguments: argparse.Namespace) -> Order:
    window = _window(arguments)
    refuse_other_windows(contract, window)
    return Order(contract, window, str(uuid.uuid4()), datetime.now(UTC))


def _window(arguments: argparse.Namespace) -> Window:
    start, end = arguments.start, arguments.end
    if end <= start:
        raise UsageError(f"--to must be after --from, found {format_time(start)} to {format_time(end)}")
    try:
        return Window(start, end, tuple(sorted(getattr(arguments, "offsets", None) or ())))
    except ValueError as error:
        raise UsageError(f"--offsets: {error}") from None


def _loaded(path: Path) -> tuple[tuple[Contract, ...], tuple[ContractError, ...]]:
    """Return the contracts of a file or folder, and the errors of others; an empty folder is an error."""
    if not path.is_dir():
        try:
            return (load_contract(path),), ()
        except ContractError as error:
            return (), (error,)
    contracts, errors = load_contracts(path)
    if not contracts and not errors:
        return (), (ContractError(str(path), None, "no contract (*.yml, *.yaml) in this folder"),)
    return contracts, errors


def _window_or_none(arguments: argparse.Namespace) -> Window | None:
    """Return the window of --from and --to, or None where neither is given."""
    bounds = {"--from": arguments.start, "--to": arguments.end}
    missing = [name for name, time in bounds.items() if time is None]
    if len(missing) == 2 and arguments.offsets:
        raise UsageError(
            "--offsets: expected --from and --to beside it: when the evidence is needed, found neither"
        )
    if len(missing) == 1:
        raise UsageError(f"expected both --from and --to, or neither; {missing[0]} is missing")
    return None if missing else _window(arguments)


def _trace_request(contract: Contract, arguments: argparse.Namespace) -> TraceRequest:
    """Return the trace request: by key, by position if the text has that form, else by message id."""
    identifiers = [text for text in (arguments.message, arguments.id, arguments.key) if text is not None]
    if len(identifiers) != 1:
        found = "none" if not identifiers else f"{len(identifiers)} of them"
        raise UsageError(f"expected one of MESSAGE, --id and --key, found {found}")
    if arguments.key is not None:
        return TraceRequest(RequestedBy.KEY, arguments.key)
    position = None if arguments.message is None else position_of(arguments.message)
    if position is not None:
        return TraceRequest(RequestedBy.POSITION, arguments.message, position)
    if contract.identity is Identity.POSITION:
        raise UsageError(
            f"{contract.pipeline} identifies messages by position: expected TOPIC/PARTITION/OFFSET such as "
            f"orders/0/17, found {printable(identifiers[0])!r}"
        )
    return TraceRequest(RequestedBy.MESSAGE_ID, identifiers[0])


def _simulated(summary: Mapping[str, Any], output: Path) -> str:
    injected_count = sum(summary["faults"].values())
    return (
        f"{summary['pipeline']}: {summary['messages']} messages, {len(summary['faults'])} faults that struck "
        f"{injected_count} times, {summary['breaks']} breaks; expected verdict: {summary['verdict']}\n"
        f"  judge: tieout reconcile {output / CONTRACT} $(cat {output / WINDOW}) --output STATEMENT_DIR\n"
        f"  score: tieout score STATEMENT_DIR --truth {output}\n"
    )


def _machine() -> str:
    """Return the machine's cores and memory as text."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB of memory"


def _print(text: str, out: TextIO) -> None:
    """Write a result; a closed pipe, as with `head`, is not an error."""
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        out.close()
