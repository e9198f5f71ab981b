"""Progress on standard error: each step as it begins, and a reminder every ten seconds while it continues."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self, TextIO

REMINDER_SECONDS: Final = 10.0
"""Seconds without output after which the current step is printed again."""


class Steps:
    """Prints steps, one per line, and a long one again with its seconds; standard output has the result only.

    Args:
        err: The stream to print to.
        reminder_seconds: Seconds without output before the current step is printed again.
    """

    def __init__(self, err: TextIO, reminder_seconds: float = REMINDER_SECONDS) -> None:
        self._err = err
        self._reminder_seconds = reminder_seconds
        self._step: str | None = None
        self._since = 0.0
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._remind, name="tieout-progress", daemon=True)

    def __call__(self, step: str) -> None:
        """Print that a step begins."""
        with self._lock:
            self._step, self._since = step, time.monotonic()
            print(f"tieout: {step}", file=self._err, flush=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _remind(self) -> None:
        """Print the current step again after each interval without output, until the command is over."""
        while not self._is_over.wait(self._reminder_seconds):
            with self._lock:
                seconds = time.monotonic() - self._since
                if self._step is not None and seconds >= self._reminder_seconds:
                    print(f"tieout: still {self._step} ({seconds:.0f} s)", file=self._err, flush=True)
