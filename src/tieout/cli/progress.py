"""What is being done, told on the side: each step as it begins, and every ten seconds that it is still the same one."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self, TextIO

EVERY: Final = 10.0
"""Seconds of silence after which a step is told again."""


class Steps:
    """Tells steps, one a line, and a long one again with its seconds; standard output holds the result alone.

    Args:
        err: Where it is told.
        every: Seconds of silence before a step is told again.
    """

    def __init__(self, err: TextIO, every: float = EVERY) -> None:
        self._err = err
        self._every = every
        self._step: str | None = None
        self._since = 0.0
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._remind, name="tieout-progress", daemon=True)

    def __call__(self, step: str) -> None:
        """Tell that a step begins."""
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
        """Tell the current step again after each stretch of silence, until the command is over."""
        while not self._is_over.wait(self._every):
            with self._lock:
                seconds = time.monotonic() - self._since
                if self._step is not None and seconds >= self._every:
                    print(f"tieout: still {self._step} ({seconds:.0f} s)", file=self._err, flush=True)
