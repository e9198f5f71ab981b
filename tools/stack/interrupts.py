"""Termination signals: everything is stopped first, and stopping cannot be interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130
"""The exit code of an interrupted command."""


def end_as_by_ctrl_c() -> None:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP, as on Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C and similar signals, also in programs that are started meanwhile."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
