"""Progress for people: what is being done, and how many seconds each step took."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


def say(text: str) -> None:
    """Print `text` at once, also into a pipe."""
    print(text, flush=True)


def complain(text: str) -> None:
    """Print `text` to standard error."""
    print(text, file=sys.stderr, flush=True)


@dataclass
class Steps:
    """The steps of one command and their seconds."""

    began: float = field(default_factory=time.monotonic)
    taken: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Say that `title` begins, and note how long it takes."""
        say(f"▸ {title} …")
        started = time.monotonic()
        try:
            yield
        finally:
            self.taken.append((title, time.monotonic() - started))

    def summary(self) -> str:
        """Return one line with the seconds of every step and of all together."""
        parts = [f"{title} {seconds:.0f} s" for title, seconds in self.taken]
        return f"{', '.join(parts)}; together {time.monotonic() - self.began:.0f} s"
