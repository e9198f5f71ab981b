"""The arguments of every command and their help texts."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from tieout import __version__
from tieout.cli.bundle_commands import BUNDLE_ARGUMENTS, add_bundle_options
from tieout.cli.examples import epilog_of
from tieout.cli.paths import path
from tieout.cli.setup_arguments import SETUP_ARGUMENTS
from tieout.cli.store_arguments import STORE_ARGUMENTS
from tieout.contracts.times import window_time
from tieout.model import Guarantee, Ledger, OffsetRange

Value = TypeVar("Value")
LEDGERS: Final = {
    Ledger.PRODUCED: "what the producers sent",
    Ledger.LOG: "the broker's log",
    Ledger.READ: "what consumers read",
    Ledger.DELIVERED: "what consumers wrote",
    Ledger.COMMITTED: "the group's positions",
    Ledger.MIRRORED: "positions that a restart does not go by",
    Ledger.FILTERED: "what was dropped rightly",
    Ledger.DEAD_LETTERS: "what was parked",
    Ledger.STAGED: "what waits in the consumer's staging",
}
"""The ledgers that `init` samples; not `assigned`, whose arrays cannot be guessed from a file."""
FORMATS: Final = ("text", "json", "markdown")
REPORT_FORMATS: Final = (*FORMATS, "html")
SHELLS: Final = ("bash",)
SCHEMAS: Final = ("contract", "statement", "trace")

_RANGE: Final = re.compile(
    r"(?P<topic>.+)/(?P<partition>\d{1,9})/(?P<start>\d{1,18})-(?P<end>\d{1,18})", re.ASCII
)
_EPILOG: Final = """\
exit codes: 0 kept, 1 broken, 2 usage or environment error, 3 unknown or pending"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command `tieout`; `command` in its result is the command's name."""
    debug = argparse.ArgumentParser(add_help=False)
    debug.add_argument("--debug", action="store_true", help="show where an error comes from")
    whole = argparse.ArgumentParser(
        prog="tieout",
        description="Delivery reconciliation for streaming pipelines: every message produced, accounted for.",
        epilog=_EPILOG,
    )
    whole.add_argument("--version", action="version", version=f"tieout {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (purpose, add_arguments) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            parents=[debug],
            help=purpose,
            description=purpose,
            epilog=epilog_of(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_arguments(command)
    return whole


def _reconcile(command: argparse.ArgumentParser) -> None:
    _contract_and_window(command)
    command.add_argument(
        "--output",
        metavar="DIR",
        type=path,
        required=True,
        help="folder for the statement; replaced as a whole",
    )
    command.add_argument(
        "--bundle", metavar="FILE.zip", type=path, help="write the audit bundle of this run to this file, too"
    )
    add_bundle_options(command)
    _printed(command, FORMATS, "the statement")


def _bundle(command: argparse.ArgumentParser) -> None:
    _contract_and_window(command)
    command.add_argument(
        "--output", metavar="FILE.zip", type=path, required=True, help="the bundle; replaced as a whole"
    )
    add_bundle_options(command)
    command.add_argument("--json", action="store_true", help="print the summary as JSON instead of text")


def _watch(command: argparse.ArgumentParser) -> None:
    command.add_argument("contract", metavar="CONTRACT", type=path, help="contract file with a schedule")
    command.add_argument(
        "--output",
        metavar="DIR",
        type=path,
        default=Path("statements"),
        help="takes a folder for each window (default: statements)",
    )
    command.add_argument(
        "--from",
        dest="start",
        metavar="TIME",
        type=_explained(window_time),
        help="begin with the first window from then on (default: the latest one that is over)",
    )
    command.add_argument(
        "--windows",
        metavar="N",
        type=_explained(_positive),
        help="end after so many windows (default: never)",
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"expected a whole number from 1 on, found {text!r}")
    return int(text)


def _init(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "pipeline", metavar="PIPELINE", help="the pipeline's name, such as orders_to_warehouse"
    )
    command.add_argument(
        "--guarantee",
        choices=[guarantee.value for guarantee in Guarantee],
        required=True,
        help="what is promised",
    )
    command.add_argument(
        "--group", metavar="NAME", help="consumer group or output (default: as the rows say)"
    )
    for ledger in LEDGERS:
        command.add_argument(
            f"--{ledger.value.replace('_', '-')}",
            metavar="SOURCE",
            help=f"{LEDGERS[ledger]}: file, folder, pattern, jdbc:CONNECTION:TABLE, kafka:CONNECTION:TOPIC or "
            "pulsar:CONNECTION:TOPIC",
        )
    command.add_argument(
        "--output", metavar="FILE", type=path, help="write to this new file (default: print the contract)"
    )
    command.add_argument(
        "--json", action="store_true", help="print the contract's text and what it leaves open as JSON"
    )


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "contracts", metavar="CONTRACT", type=path, nargs="+", help="contract file, or folder of contracts"
    )
    command.add_argument(
        "--json", action="store_true", help="print contracts and findings as JSON instead of text"
    )


def _trace(command: argparse.ArgumentParser) -> None:
    command.add_argument("contract", metavar="CONTRACT", type=path, help="contract file")
    command.add_argument(
        "message", metavar="MESSAGE", nargs="?", help="a message's id, or a position: TOPIC/PARTITION/OFFSET"
    )
    command.add_argument("--id", metavar="ID", help="a message's id that has the form of a position")
    command.add_argument("--key", metavar="KEY", help="a record's key, or its hash as the ledgers have it")
    _window(command, is_required=False)
    _offsets(command)
    command.add_argument(
        "--alone", action="store_true", help="ask this contract alone, and no other hop of its chain"
    )
    command.add_argument("--json", action="store_true", help="print the trace as JSON instead of text")


def _report(command: argparse.ArgumentParser) -> None:
    _window(command, "the period")
    command.add_argument("--pipeline", metavar="NAME", help="this pipeline alone (default: all)")
    command.add_argument(
        "--statements",
        metavar="DIR",
        type=path,
        help="read the statement.json files below this folder instead of the store of TIEOUT_DATABASE_URL",
    )
    _printed(command, REPORT_FORMATS, "the report")
    command.add_argument("--output", metavar="FILE", type=path, help="write to this file instead")


def _schema(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "of", choices=SCHEMAS, nargs="?", default="contract", help="whose schema (default: contract)"
    )


def _simulate(command: argparse.ArgumentParser) -> None:
    command.add_argument("description", metavar="DESCRIPTION", type=path, help="the pipeline and its faults")
    command.add_argument(
        "--output",
        metavar="DIR",
        type=path,
        required=True,
        help="folder for ledgers, contract and truth; replaced as a whole",
    )
    command.add_argument(
        "--seed",
        metavar="N",
        type=int,
        default=1,
        help="what chance begins with: the same seed gives the same ledgers (default: 1)",
    )
    command.add_argument(
        "--messages", metavar="N", type=int, help="how many messages, instead of the description's number"
    )
    command.add_argument("--json", action="store_true", help="print the summary as JSON instead of text")


def _score(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "statement", metavar="STATEMENT_DIR", type=path, help="folder that `tieout reconcile` wrote"
    )
    command.add_argument(
        "--truth", metavar="DIR", type=path, required=True, help="folder that `tieout simulate` wrote"
    )
    command.add_argument(
        "--report", metavar="FILE", type=path, help="write the score as a Markdown page, too"
    )
    command.add_argument("--json", action="store_true", help="print the score as JSON instead of text")


def _completion(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "shell", choices=SHELLS, nargs="?", default="bash", help="for which shell (default: bash)"
    )


def _printed(command: argparse.ArgumentParser, formats: Sequence[str], subject: str) -> None:
    printed = command.add_mutually_exclusive_group()
    printed.add_argument(
        "--format", choices=formats, default="text", help=f"how {subject} is printed (default: text)"
    )
    printed.add_argument("--json", action="store_true", help="the same as --format json")


def _contract_and_window(command: argparse.ArgumentParser) -> None:
    command.add_argument("contract", metavar="CONTRACT", type=path, help="contract file")
    _window(command)
    _offsets(command)


def _offsets(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--offsets",
        metavar="RANGE",
        type=_explained(_offset_range),
        action="append",
        help="where the contract has windows: offsets, a range to judge: TOPIC/PARTITION/FROM-TO, TO not part of it; "
        "once a range",
    )


def _offset_range(text: str) -> OffsetRange:
    """Return the range of `TOPIC/PARTITION/FROM-TO`.

    >>> str(_offset_range("orders/0/100-200"))
    'orders/0/100-200'
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"expected TOPIC/PARTITION/FROM-TO such as orders/0/100-200, found {text!r}")
    return OffsetRange(match["topic"], int(match["partition"]), int(match["start"]), int(match["end"]))


def _window(
    command: argparse.ArgumentParser, subject: str = "the window", *, is_required: bool = True
) -> None:
    time = _explained(window_time)
    command.add_argument(
        "--from",
        dest="start",
        metavar="TIME",
        type=time,
        required=is_required,
        help=f"{subject}'s start, such as 2026-11-20T10:00:00Z",
    )
    command.add_argument(
        "--to",
        dest="end",
        metavar="TIME",
        type=time,
        required=is_required,
        help=f"{subject}'s end, which is not part of it",
    )


def _explained(convert: Callable[[str], Value]) -> Callable[[str], Value]:
    """Return the conversion with its own error message instead of argparse's `invalid value`."""

    def converted(text: str) -> Value:
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return converted


_COMMANDS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "reconcile": ("Judge one window of a pipeline and write its statement.", _reconcile),
    "bundle": (
        "Judge one window into an audit bundle: evidence, SQL and statement in a zip that DuckDB alone can verify.",
        _bundle,
    ),
    **BUNDLE_ARGUMENTS,
    "watch": ("Judge window after window of a contract's schedule, without Airflow.", _watch),
    "init": ("Write a first contract from a look at files, tables and topics, its guesses explained.", _init),
    "check": ("Check contracts, and the settings they declare, without reading any evidence.", _check),
    "trace": ("Follow one message through the ledgers.", _trace),
    "report": ("Tell what the statements of a period say together, for auditors.", _report),
    "simulate": ("Write the ledgers of a simulated pipeline, and the truth about its faults.", _simulate),
    "score": ("Compare what a run found with the truth of a simulation.", _score),
    "schema": ("Print a JSON Schema: a contract's, for editors, or of what Tieout writes.", _schema),
    "completion": ("Print a script that completes commands, options and choices.", _completion),
    **STORE_ARGUMENTS,
    **SETUP_ARGUMENTS,
}
