"""Being told to end: what then has to be stopped is stopped first, and stopping is not broken off."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130
"""The exit code of a command that was told to end."""


def end_as_by_ctrl_c() -> None:
    """Have a terminated or hung-up command raise KeyboardInterrupt, as one does on Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C and the like, also in the programs that are called meanwhile."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
