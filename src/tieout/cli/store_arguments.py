"""The arguments of the commands that read the store and change the state of its breaks."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from tieout.cli.paths import path
from tieout.contracts.durations import parse_duration
from tieout.contracts.times import parse_time


def time_or_duration(text: str) -> datetime:
    """Return the time of a text: a time, or a duration from now.

    Raises:
        argparse.ArgumentTypeError: if it is neither.

    >>> time_or_duration("2026-11-20T10:00:00Z").hour
    10
    """
    try:
        return datetime.now(UTC) + parse_duration(text)
    except ValueError:
        pass
    try:
        return parse_time(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a time such as 2026-11-27T12:00:00Z, or a duration from now such as 7d or 12h, found {text!r}"
        ) from None


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 10000, found {text!r}")
    return int(text)


def _status(command: argparse.ArgumentParser) -> None:
    command.add_argument("pipeline", metavar="PIPELINE", nargs="?", help="one pipeline (default: all)")
    _json(command)


def _breaks(command: argparse.ArgumentParser) -> None:
    command.add_argument("pipeline", metavar="PIPELINE", help="the pipeline")
    command.add_argument("--incidents", action="store_true", help="list incidents instead of their breaks")
    command.add_argument("--history", metavar="BREAK_ID", help="print everything that happened to one break")
    command.add_argument(
        "--limit", metavar="N", type=_count, default=100, help="how many at most (default: 100)"
    )
    command.add_argument("--after", metavar="ID", help="go on after this one, the last of the page before")
    _json(command)


def _accept(command: argparse.ArgumentParser) -> None:
    _subject(command)
    _signature(command, "why it is acceptable")
    command.add_argument(
        "--until",
        metavar="TIME",
        type=time_or_duration,
        required=True,
        help="until when: a time, or a duration from now such as 7d; it is open again afterwards",
    )
    _json(command)


def _reopen(command: argparse.ArgumentParser) -> None:
    _subject(command)
    _signature(command, "why it is not acceptable any more")
    _json(command)


def _annotate(command: argparse.ArgumentParser) -> None:
    _subject(command)
    _signature(command, "the note")
    _json(command)


def _silence(command: argparse.ArgumentParser) -> None:
    command.add_argument("pipeline", metavar="PIPELINE", help="the pipeline")
    command.add_argument(
        "--incident", metavar="ID", help="only this incident (default: all alerts of the pipeline)"
    )
    _signature(command, "why nobody is to be told")
    end = command.add_mutually_exclusive_group(required=True)
    end.add_argument(
        "--until",
        metavar="TIME",
        type=time_or_duration,
        help="until when: a time, or a duration from now such as 2h",
    )
    end.add_argument("--end", action="store_true", help="end the silence now")
    _json(command)


def _check_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="RUN_ID", help="the run's id, as its page and its statement show it")
    command.add_argument(
        "--data-docs",
        metavar="DIR",
        type=path,
        help="add the run to the site of Data Docs in this folder, which Great Expectations builds",
    )
    _json(command)


def _subject(command: argparse.ArgumentParser) -> None:
    command.add_argument("pipeline", metavar="PIPELINE", help="the pipeline")
    subject = command.add_mutually_exclusive_group(required=True)
    subject.add_argument("--incident", metavar="ID", help="an incident with all of its breaks")
    subject.add_argument(
        "--break", dest="breaks", metavar="ID", action="append", help="a break; may be repeated"
    )


def _signature(command: argparse.ArgumentParser, reason_help: str) -> None:
    command.add_argument("--reason", metavar="TEXT", required=True, help=reason_help)
    command.add_argument("--who", metavar="NAME", help="who does it (default: your account's name)")


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON instead of text")


STORE_ARGUMENTS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "status": ("Say how the pipelines stand: latest verdict, what is open, what is silenced.", _status),
    "breaks": ("List what is open, the oldest first, or the history of one break.", _breaks),
    "accept": ("Accept an incident or breaks until a time. Alerts change, a verdict never.", _accept),
    "reopen": ("Take an acceptance back.", _reopen),
    "annotate": ("Write a note into the history of an incident or of breaks.", _annotate),
    "check-run": ("Hold a stored run against the suites of Great Expectations, without Airflow.", _check_run),
    "silence": ("Send no alerts of a pipeline or an incident until a time.", _silence),
}
"""The purpose of each command, and the function that adds its arguments; all need TIEOUT_DATABASE_URL."""
