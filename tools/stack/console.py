"""Progress output: the current step, and the seconds of each step."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


def print_line(text: str) -> None:
    """Print `text` and flush, also into a pipe."""
    print(text, flush=True)


def print_error(text: str) -> None:
    """Print `text` to standard error."""
    print(text, file=sys.stderr, flush=True)


@dataclass
class Steps:
    """The steps of one command and their seconds."""

    began: float = field(default_factory=time.monotonic)
    taken: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print that `title` begins, and record how long it takes."""
        print_line(f"▸ {title} …")
        started = time.monotonic()
        try:
            yield
        finally:
            self.taken.append((title, time.monotonic() - started))

    def summary(self) -> str:
        """Return one line with the seconds of every step and in total."""
        parts = [f"{title} {seconds:.0f} s" for title, seconds in self.taken]
        return f"{', '.join(parts)}; together {time.monotonic() - self.began:.0f} s"
