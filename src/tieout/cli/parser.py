"""The arguments of every command, and what each is for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from tieout import __version__
from tieout.cli.store_arguments import STORE_ARGUMENTS
from tieout.contracts.times import parse_time

Value = TypeVar("Value")
SCHEMAS: Final = ("contract", "statement")

_EPILOG: Final = """\
exit codes: 0 kept, 1 broken, 2 usage or environment error, 3 unknown or pending"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command `tieout`; `command` in what it parses is the command's name."""
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
            name, parents=[debug], help=purpose, description=purpose, epilog=_EPILOG
        )
        add_arguments(command)
    return whole


def _reconcile(command: argparse.ArgumentParser) -> None:
    _contract_and_window(command)
    command.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        required=True,
        help="folder for the statement; replaced as a whole",
    )
    command.add_argument("--json", action="store_true", help="print the statement as JSON instead of text")


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "contracts", metavar="CONTRACT", type=Path, nargs="+", help="contract file, or folder of contracts"
    )


def _trace(command: argparse.ArgumentParser) -> None:
    command.add_argument("contract", metavar="CONTRACT", type=Path, help="contract file")
    command.add_argument(
        "message",
        metavar="MESSAGE_ID",
        help="the message's id; TOPIC/PARTITION/OFFSET where identity is position",
    )
    _window(command)
    command.add_argument("--json", action="store_true", help="print the rows as JSON instead of text")


def _schema(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "of", choices=SCHEMAS, nargs="?", default="contract", help="whose schema (default: contract)"
    )


def _simulate(command: argparse.ArgumentParser) -> None:
    command.add_argument("description", metavar="DESCRIPTION", type=Path, help="the pipeline and its faults")
    command.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
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


def _score(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "statement", metavar="STATEMENT_DIR", type=Path, help="folder that `tieout reconcile` wrote"
    )
    command.add_argument(
        "--truth", metavar="DIR", type=Path, required=True, help="folder that `tieout simulate` wrote"
    )
    command.add_argument(
        "--report", metavar="FILE", type=Path, help="write the score as a Markdown page, too"
    )


def _contract_and_window(command: argparse.ArgumentParser) -> None:
    command.add_argument("contract", metavar="CONTRACT", type=Path, help="contract file")
    _window(command)


def _window(command: argparse.ArgumentParser) -> None:
    time = _explained(parse_time)
    command.add_argument(
        "--from",
        dest="start",
        metavar="TIME",
        type=time,
        required=True,
        help="the window's start, such as 2026-11-20T10:00:00Z",
    )
    command.add_argument(
        "--to",
        dest="end",
        metavar="TIME",
        type=time,
        required=True,
        help="the window's end, which is not part of it",
    )


def _explained(convert: Callable[[str], Value]) -> Callable[[str], Value]:
    """Return the conversion with its own words for what is wrong; argparse would say `invalid value`."""

    def converted(text: str) -> Value:
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return converted


_COMMANDS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "reconcile": ("Judge one window of a pipeline and write its statement.", _reconcile),
    "check": ("Check contracts without reading any evidence.", _check),
    "trace": ("Follow one message through the ledgers.", _trace),
    "simulate": ("Write the ledgers of a simulated pipeline, and the truth about its faults.", _simulate),
    "score": ("Compare what a run found with the truth of a simulation.", _score),
    "schema": ("Print a JSON Schema: a contract's, for editors, or a statement's.", _schema),
    **STORE_ARGUMENTS,
}
