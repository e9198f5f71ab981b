"""Judges the windows of a contract's schedule in order, without Airflow.

Each window has a folder of its own, which is replaced as a whole or not at all, so the command may be interrupted at
any time. Started again it continues where it stopped: a window with a final verdict is not judged again.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tieout.cli.engine import Engine, Order, Progress, RenderHtml
from tieout.cli.exit_codes import OF_VERDICT, ExitCode
from tieout.contracts import Contract
from tieout.contracts.ticks import latest_window, windows_from
from tieout.errors import TieoutError, UsageError
from tieout.model import Verdict, Window

NAME_FORMAT: Final = "%Y-%m-%dT%H%M%SZ"
RECHECK_INTERVAL: Final = timedelta(seconds=30)
"""Time between two checks for late evidence."""
_FROM_BEST_TO_WORST: Final = (ExitCode.KEPT, ExitCode.UNDECIDED, ExitCode.ERROR, ExitCode.BROKEN)


@dataclass(frozen=True)
class Judged:
    """A window with its statement, or with the error why it could not be judged."""

    window: Window
    output: Path
    statement: Mapping[str, Any] | None
    error: str = ""

    @property
    def code(self) -> ExitCode:
        """The exit code of this window alone."""
        if self.statement is None:
            return ExitCode.ERROR
        return OF_VERDICT[Verdict(self.statement["verdict"])]


@dataclass(frozen=True)
class Clock:
    """Returns the current time and waits; tests replace it."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep

    def wait_until(self, moment: datetime) -> None:
        """Sleep until that time."""
        while (remaining := (moment - self.now()).total_seconds()) > 0:
            self.sleep(min(remaining, 60.0))


@dataclass(frozen=True)
class Watch:
    """Judges the windows of one contract, each into its own folder below `folder`."""

    contract: Contract
    folder: Path
    engine: Callable[[], Engine]
    render_html: RenderHtml
    progress: Progress
    clock: Clock = Clock()

    def judged(self, since: datetime | None) -> Iterator[Judged]:
        """Yield each window once it is judged; ends with the contract's active time.

        Args:
            since: Start of the first window; by default that of the latest completed window, else of the next one.
        """
        for window in windows_from(self.contract, since or self._latest_start()):
            output = self.folder / window.start.strftime(NAME_FORMAT)
            decided = _decided(output, self.contract)
            if decided is not None:
                yield Judged(window, output, decided)
                continue
            self._await(window)
            yield self._judge(window, output)

    def _latest_start(self) -> datetime:
        now = self.clock.now()
        latest = latest_window(self.contract, now)
        return now if latest is None else latest.start

    def _await(self, window: Window) -> None:
        """Wait until the grace period ends, then up to `evidence_timeout` for late evidence."""
        from tieout.readiness import incomplete_ledgers  # noqa: PLC0415 - brings PostgreSQL's driver

        due = window.end + self.contract.grace
        if self.clock.now() < due:
            self.progress(
                f"waiting until {due.isoformat()} for the window that ends {window.end.isoformat()}"
            )
        self.clock.wait_until(due)
        until = due + self.contract.evidence_timeout
        while (now := self.clock.now()) < until and (reasons := incomplete_ledgers(self.contract, window)):
            self.progress(f"evidence is awaited until {until.isoformat()}: {'; '.join(reasons)}")
            self.clock.wait_until(min(now + RECHECK_INTERVAL, until))

    def _judge(self, window: Window, output: Path) -> Judged:
        order = Order(self.contract, window, str(uuid.uuid4()), self.clock.now())
        try:
            statement = self.engine().reconcile(order, output, self.render_html, self.progress)
        except TieoutError as error:
            self.progress(f"not judged: {error}")
            return Judged(window, output, None, str(error))
        return Judged(window, output, statement)


def refuse_unscheduled(contract: Contract) -> None:
    """Refuse a contract whose windows are not known in advance.

    Raises:
        UsageError: if it has no schedule, or its windows are ranges of offsets.
    """
    if contract.schedule is None:
        raise UsageError(
            f"{contract.pipeline}: expected a schedule, whose intervals are the windows, found none; add one, or judge "
            "one window with tieout reconcile"
        )
    if contract.windows == "offsets":
        raise UsageError(
            f"{contract.pipeline}: expected windows: time, found offsets, which somebody must name"
        )


def worst(judged: list[Judged]) -> ExitCode:
    """Return the exit code of the worst window: broken, then an error, then unknown or pending, then kept.

    >>> worst([])
    <ExitCode.UNDECIDED: 3>
    """
    if not judged:
        return ExitCode.UNDECIDED
    return max((window.code for window in judged), key=_FROM_BEST_TO_WORST.index)


def _decided(output: Path, contract: Contract) -> Mapping[str, Any] | None:
    """Return the statement if this contract already judged the window KEPT or BROKEN, else None."""
    try:
        statement: Mapping[str, Any] = json.loads((output / "statement.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_decided = statement.get("verdict") in (Verdict.KEPT, Verdict.BROKEN)
    return statement if is_decided and statement.get("contract_digest") == contract.digest else None
