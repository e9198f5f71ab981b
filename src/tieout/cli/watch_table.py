"""The output of `tieout watch`: a live table in a terminal, else one line per window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TextIO

from tieout.cli.watching import Judged
from tieout.contracts.times import format_time
from tieout.reporting.alerts import printable

SHOWN: Final = 20
"""The number of windows in the table; it shows the latest."""
_COUNTS: Final = {"messages": "messages", "lost": "lost", "repeated": "further_effects"}
_COLOURS: Final = {
    "KEPT": "green", "BROKEN": "bold red", "PENDING": "yellow", "UNKNOWN": "magenta", "ERROR": "red"
}  # fmt: skip


class Shown(Protocol):
    """Displays windows as they are judged."""

    def add(self, judged: Judged) -> None:
        """Show one more window."""


@contextmanager
def shown(out: TextIO, title: str) -> Iterator[Shown]:
    """Yield a display on `out`: a live table if it is a terminal, else lines."""
    if not out.isatty():
        yield _Lines(out)
        return
    from rich.console import Console  # noqa: PLC0415 - in a terminal only
    from rich.live import Live  # noqa: PLC0415 - as above

    with Live(console=Console(file=out), auto_refresh=False) as live:
        yield _Table(live, title)


class _Lines:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def add(self, judged: Judged) -> None:
        """Print a line."""
        counts = ", ".join(f"{count} {name}" for name, count in _counts(judged).items())
        details = judged.error or f"{counts}; {judged.output / 'statement.html'}"
        start, end = (format_time(moment) for moment in (judged.window.start, judged.window.end))
        print(f"{start} to {end}  {_verdict(judged)}  {printable(details)}", file=self._out, flush=True)


class _Table:
    def __init__(self, live: Any, title: str) -> None:
        self._live = live
        self._title = title
        self._rows: deque[Judged] = deque(maxlen=SHOWN)

    def add(self, judged: Judged) -> None:
        """Redraw the table."""
        from rich.table import Table  # noqa: PLC0415 - in a terminal only
        from rich.text import Text  # noqa: PLC0415 - as above

        self._rows.append(judged)
        table = Table(title=self._title, caption=f"statements: {judged.output.parent}")
        for name in ("window from", "verdict", *_COUNTS, "breaks"):
            table.add_column(name, justify="right" if name in (*_COUNTS, "breaks") else "left")
        for row in self._rows:
            verdict = _verdict(row)
            cells = (format_time(row.window.start), Text(verdict, _COLOURS[verdict]))
            table.add_row(*cells, *map(str, _counts(row).values()))
        self._live.update(table, refresh=True)


def _verdict(judged: Judged) -> str:
    return "ERROR" if judged.statement is None else str(judged.statement["verdict"])


def _counts(judged: Judged) -> dict[str, int]:
    """Return the window's sums by column name; empty if it could not be judged."""
    statement = judged.statement
    if statement is None:
        return {}
    sums = {name: sum(row[key] for row in statement["partitions"]) for name, key in _COUNTS.items()}
    return {**sums, "breaks": statement["breaks_total"]}
