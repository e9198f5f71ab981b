"""Window after window of a contract's schedule, judged at a desk without Airflow.

Each window has a folder of its own, which is replaced as a whole or not at all, so that it may be interrupted at any
moment. Started again it goes on where it was: a window that is decided is not judged again.
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
LOOK_AGAIN: Final = timedelta(seconds=30)
"""How long evidence that is late is left alone before it is looked at again."""
_GRAVITY: Final = (ExitCode.KEPT, ExitCode.UNDECIDED, ExitCode.ERROR, ExitCode.BROKEN)


@dataclass(frozen=True)
class Judged:
    """A window and what it came to: its statement, or why it could not be judged."""

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
    """The time, and waiting for it."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep

    def wait_until(self, moment: datetime) -> None:
        """Return once that time has come."""
        while (left := (moment - self.now()).total_seconds()) > 0:
            self.sleep(min(left, 60.0))


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
        """Yield each window once it is judged; ends where the contract's active time does.

        Args:
            since: Where the first window begins; by default the latest one that is over, else the next.
        """
        for window in windows_from(self.contract, since or self._latest_start()):
            output = self.folder / window.start.strftime(NAME_FORMAT)
            known = _decided(output, self.contract)
            if known is not None:
                yield Judged(window, output, known)
                continue
            self._await(window)
            yield self._judge(window, output)

    def _latest_start(self) -> datetime:
        now = self.clock.now()
        latest = latest_window(self.contract, now)
        return now if latest is None else latest.start

    def _await(self, window: Window) -> None:
        """Wait for the end of the grace, and then for evidence that is late, for the contract's `evidence_timeout`."""
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
            self.clock.wait_until(min(now + LOOK_AGAIN, until))

    def _judge(self, window: Window, output: Path) -> Judged:
        order = Order(self.contract, window, str(uuid.uuid4()), self.clock.now())
        try:
            statement = self.engine().reconcile(order, output, self.render_html, self.progress)
        except TieoutError as error:
            self.progress(f"not judged: {error}")
            return Judged(window, output, None, str(error))
        return Judged(window, output, statement)


def refuse_unscheduled(contract: Contract) -> None:
    """Refuse a contract whose windows nobody can know in advance.

    Raises:
        UsageError: where it has no schedule, or its windows are cut by offsets.
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
    return max((one.code for one in judged), key=_GRAVITY.index)


def _decided(output: Path, contract: Contract) -> Mapping[str, Any] | None:
    """Return the statement of a window that this contract has decided before, or None."""
    try:
        found: Mapping[str, Any] = json.loads((output / "statement.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_decided = found.get("verdict") in (Verdict.KEPT, Verdict.BROKEN)
    return found if is_decided and found.get("contract_digest") == contract.digest else None
