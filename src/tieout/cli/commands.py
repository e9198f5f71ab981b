"""The commands: each takes parsed arguments and says, as its exit code, how it ended."""

from __future__ import annotations

import argparse
import json
import os
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from tieout.cli.engine import Engine, Message, Order, Sighting
from tieout.cli.exit_codes import OF_VERDICT, ExitCode
from tieout.cli.output import checked_output
from tieout.cli.store_commands import STORE_COMMANDS
from tieout.contracts import Contract, load_contract, load_contracts
from tieout.contracts.schema import json_schema
from tieout.contracts.times import format_time
from tieout.engine.supported import refuse_unsupported
from tieout.errors import ContractError, UsageError
from tieout.model import Identity, Ledger, Verdict, Window
from tieout.reporting.alerts import plain
from tieout.reporting.page import render_html
from tieout.reporting.schema import statement_schema
from tieout.reporting.text import render_text
from tieout.simulation.description import load_description
from tieout.simulation.folder import CONTRACT, FILES, WINDOW, write_simulation
from tieout.simulation.reading import read_run, read_truth
from tieout.simulation.score_report import score_page, score_text
from tieout.simulation.scoring import score as scored

_POSITION: Final = re.compile(r"(?P<topic>.+)/(?P<partition>\d{1,9})/(?P<offset>\d{1,18})")


@dataclass(frozen=True)
class Surroundings:
    """What a command works with besides its arguments."""

    engine: Callable[[], Engine]
    out: TextIO
    err: TextIO

    def progress(self, step: str) -> None:
        """Tell what is being done, on the side, so that standard output holds the result alone."""
        print(f"tieout: {step}", file=self.err, flush=True)


Command = Callable[[argparse.Namespace, Surroundings], ExitCode]


def reconcile(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Judge one window, write its output directory and print its statement."""
    contract = _supported(load_contract(arguments.contract))
    order = _order(contract, arguments)
    output = checked_output(arguments.output)
    statement = around.engine().reconcile(order, output, render_html, around.progress)
    _print(_json(statement) if arguments.json else render_text(statement), around.out)
    around.progress(f"written: {output / 'statement.html'}")
    return OF_VERDICT[Verdict(statement["verdict"])]


def check(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Say of each contract that it is valid, or everything that is wrong with it."""
    errors: list[ContractError] = []
    for path in arguments.contracts:
        contracts, wrong = _loaded(path)
        errors += wrong
        for contract in contracts:
            try:
                _supported(contract)
            except UsageError as refused:
                errors.append(ContractError(str(path), None, str(refused)))
            else:
                _print(_summary(contract), around.out)
    for error in errors:
        print(error, file=around.err)
    return ExitCode.ERROR if errors else ExitCode.KEPT


def trace(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print every row about one message, ledger by ledger."""
    contract = load_contract(arguments.contract)
    message = _message(contract, arguments.message)
    seen = around.engine().follow(_order(contract, arguments), message, around.progress)
    if arguments.json:
        rows = {
            ledger.value: {"total": sighting.total, "rows": sighting.rows}
            for ledger, sighting in seen.items()
        }
        _print(_json(rows), around.out)
    else:
        _print(_traced(seen), around.out)
    return ExitCode.KEPT if any(sighting.total for sighting in seen.values()) else ExitCode.UNDECIDED


def schema(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print a JSON Schema."""
    _print(_json(json_schema() if arguments.of == "contract" else statement_schema()), around.out)
    return ExitCode.KEPT


def simulate(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Write a simulated pipeline's ledgers, contract and truth, and say how to judge them."""
    description = load_description(arguments.description)
    if arguments.messages is not None:
        description = description.with_messages(arguments.messages)
    output = checked_output(arguments.output, FILES, "simulation")
    summary = write_simulation(description, arguments.seed, output, around.progress)
    _print(_simulated(summary, output), around.out)
    return ExitCode.KEPT


def score(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Print how well a run found what a simulation did; a break missed, invented or misplaced is not passed."""
    summary, truth = read_truth(arguments.truth)
    statement, breaks = read_run(arguments.statement)
    result = scored(truth, breaks, summary, statement)
    if arguments.report is not None:
        page = score_page(result, summary, {"judged": statement["generated_at"], "machine": _machine()})
        arguments.report.write_text(page, encoding="utf-8")
        around.progress(f"written: {arguments.report}")
    _print(score_text(result), around.out)
    return ExitCode.KEPT if result.is_passed else ExitCode.BROKEN


COMMANDS: Final[Mapping[str, Command]] = {
    "reconcile": reconcile,
    "check": check,
    "trace": trace,
    "simulate": simulate,
    "score": score,
    "schema": schema,
    **STORE_COMMANDS,
}


def _supported(contract: Contract) -> Contract:
    refuse_unsupported(contract)
    return contract


def _order(contract: Contract, arguments: argparse.Namespace) -> Order:
    start, end = arguments.start, arguments.end
    if end <= start:
        raise UsageError(f"--to must be after --from, found {format_time(start)} to {format_time(end)}")
    return Order(contract, Window(start, end), str(uuid.uuid4()), datetime.now(UTC))


def _loaded(path: Path) -> tuple[tuple[Contract, ...], tuple[ContractError, ...]]:
    """Return the contracts of a file or folder, and what is wrong with others; an empty folder is wrong."""
    if not path.is_dir():
        try:
            return (load_contract(path),), ()
        except ContractError as error:
            return (), (error,)
    contracts, errors = load_contracts(path)
    if not contracts and not errors:
        return (), (ContractError(str(path), None, "no contract (*.yml, *.yaml) in this folder"),)
    return contracts, errors


def _summary(contract: Contract) -> str:
    ledgers = ", ".join(ledger.value for ledger in contract.ledgers)
    settings = contract.settings
    unchecked = settings.producer or settings.consumer or settings.broker
    note = "\n  settings are recorded; they are not compared with the guarantee yet" if unchecked else ""
    return (
        f"{contract.pipeline}: valid; {contract.guarantee} for group {plain(contract.group)}\n"
        f"  ledgers: {ledgers}\n  digest: {contract.digest}{note}\n"
    )


def _message(contract: Contract, text: str) -> Message:
    if contract.identity is not Identity.POSITION:
        return text
    found = _POSITION.fullmatch(text)
    if found is None:
        raise UsageError(
            f"{contract.pipeline} identifies messages by position: expected TOPIC/PARTITION/OFFSET such as "
            f"orders/0/17, found {plain(text)!r}"
        )
    return found["topic"], int(found["partition"]), int(found["offset"])


def _traced(seen: Mapping[Ledger, Sighting]) -> str:
    lines = []
    for ledger, sighting in seen.items():
        until = sighting.complete_until
        reach = "not known to be complete" if until is None else f"complete until {format_time(until)}"
        lines.append(f"{ledger}: {sighting.total} {'row' if sighting.total == 1 else 'rows'}; {reach}")
        lines += [
            "  " + plain(" ".join(f"{name}={value}" for name, value in row.items()), 1_000)
            for row in sighting.rows
        ]
        if sighting.total > len(sighting.rows):
            lines.append(f"  and {sighting.total - len(sighting.rows)} more")
    return "\n".join(lines) + "\n"


def _simulated(summary: Mapping[str, Any], output: Path) -> str:
    struck = sum(summary["faults"].values())
    return (
        f"{summary['pipeline']}: {summary['messages']} messages, {len(summary['faults'])} faults that struck "
        f"{struck} times, {summary['breaks']} breaks; expected verdict: {summary['verdict']}\n"
        f"  judge: tieout reconcile {output / CONTRACT} $(cat {output / WINDOW}) --output STATEMENT_DIR\n"
        f"  score: tieout score STATEMENT_DIR --truth {output}\n"
    )


def _machine() -> str:
    """Return this machine in words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB of memory"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _print(text: str, out: TextIO) -> None:
    """Write a result; a reader that has seen enough, such as `head`, is no failure."""
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        out.close()
