"""The exit codes, which scripts rely on."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from tieout.model import Verdict


class ExitCode(IntEnum):
    """How a command ended; anything unexpected is an ERROR, never a verdict."""

    KEPT = 0
    BROKEN = 1
    ERROR = 2
    UNDECIDED = 3


OF_VERDICT: Final = {
    Verdict.KEPT: ExitCode.KEPT,
    Verdict.BROKEN: ExitCode.BROKEN,
    Verdict.PENDING: ExitCode.UNDECIDED,
    Verdict.UNKNOWN: ExitCode.UNDECIDED,
}
