"""The command `tieout`: runs one command, and turns every error into one clear line and exit code 2."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from tieout.cli.commands import COMMANDS, Surroundings
from tieout.cli.engine import Engine
from tieout.cli.exit_codes import ExitCode
from tieout.cli.parser import parser
from tieout.cli.progress import Steps
from tieout.errors import ContractError, TieoutError
from tieout.reporting.alerts import printable


def main(
    argv: Sequence[str] | None = None,
    *,
    engine: Engine | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> int:
    """Run one command and return its exit code: 0 kept, 1 broken, 2 error, 3 unknown or pending.

    Raises:
        SystemExit: with 2 for arguments that cannot be parsed, with 0 for --help and --version.
    """
    out, err = out or _printable(sys.stdout), _LossyStream(err or _printable(sys.stderr))
    arguments = parser().parse_args(argv)
    try:
        with Steps(err) as steps:
            around = Surroundings((lambda: engine) if engine else _spark_engine, out, err, steps)
            return COMMANDS[arguments.command](arguments, around)
    except (Exception, KeyboardInterrupt) as error:
        print(_error_text(error), file=err)
        if arguments.debug:
            traceback.print_exception(error, file=err)
        return ExitCode.ERROR


class _LossyStream(io.StringIO):
    """Standard error. What cannot be written to it is dropped, so a log on a full disk changes no exit code."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str) -> int:
        """Write at once, or drop the text."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._drop()
        return len(text)

    def _drop(self) -> None:
        """Discard the buffer: Python would write it again at exit, and turn a failure into an exit code."""
        if self._stream is sys.stderr:
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())


def _spark_engine() -> Engine:
    from tieout.cli.spark import SparkEngine  # noqa: PLC0415 - Spark takes seconds to load, and few commands need it

    return SparkEngine()


def _error_text(error: BaseException) -> str:
    """Return one line for an error: a TieoutError's message, or another error's type and first line."""
    if isinstance(error, ContractError):
        return str(error)
    if isinstance(error, TieoutError):
        return f"tieout: {error}"
    if isinstance(error, KeyboardInterrupt):
        return "tieout: interrupted"
    if isinstance(error, OSError):
        return f"tieout: {printable(str(error))}"
    first = (str(error).strip() or "no further words").splitlines()[0]
    return f"tieout: unexpected failure: {type(error).__name__}: {printable(first)}; --debug shows where"


def _printable(stream: TextIO | None) -> TextIO:
    """Return the stream, set to write characters that its encoding lacks as escapes instead of failing.

    Python has None for a stream that was closed at the start (`>&-`); its output is dropped.
    """
    if stream is None:
        return io.StringIO()
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream
