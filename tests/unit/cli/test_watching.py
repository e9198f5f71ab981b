"""`tieout watch`: window after window at its time, each once, whole whatever interrupts it, the worst as exit code."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tieout.cli.engine import Bundled, Order, Progress, RenderHtml
from tieout.cli.exit_codes import ExitCode
from tieout.cli.main import main
from tieout.cli.watch_table import shown
from tieout.cli.watching import Clock, Judged, Watch, worst
from tieout.contracts import Contract, load_contract
from tieout.engine.bundle.packing import BundleRequest
from tieout.errors import SourceUnreachableError
from tieout.model import Window
from tieout.reporting.trace import TraceRequest

CONTRACT = """\
version: 1
pipeline: orders
guarantee: at_least_once
group: loader
schedule: "0 * * * *"
grace: 30m
ledgers:
  produced: {source: {kind: files, format: jsonl, path: p.jsonl}, coverage: declared}
  delivered: {source: {kind: files, format: jsonl, path: d.jsonl}, coverage: declared}
"""
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def contract(tmp_path: Path) -> Contract:
    """An hourly pipeline whose evidence is there."""
    file = tmp_path / "orders.yml"
    file.write_text(CONTRACT)
    for name in ("p.jsonl", "d.jsonl"):
        (tmp_path / name).write_text("")
    return load_contract(file)


@dataclass
class Desk:
    """An engine that writes what it is told to find, and a clock that runs as fast as it is waited for."""

    verdicts: list[str | BaseException] = field(default_factory=list)
    now: datetime = TEN + timedelta(minutes=45)
    judged_at: list[tuple[datetime, datetime]] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        """The clock of the desk."""
        return Clock(lambda: self.now, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def reconcile(
        self, order: Order, output: Path, _render_html: RenderHtml, _progress: Progress
    ) -> Mapping[str, Any]:
        """Write a statement with the next verdict, or raise it."""
        self.judged_at.append((order.window.start, self.now))
        verdict = self.verdicts.pop(0) if self.verdicts else "KEPT"
        if isinstance(verdict, BaseException):
            raise verdict
        found = {
            "verdict": verdict,
            "contract_digest": order.contract.digest,
            "partitions": [{"messages": 5, "lost": 1, "further_effects": 2}],
            "breaks_total": 3,
        }
        output.mkdir(parents=True, exist_ok=True)
        (output / "statement.json").write_text(json.dumps(found))
        return found

    def bundle(self, order: Order, request: BundleRequest, progress: Progress) -> Bundled:
        """Nobody asks for one."""
        raise NotImplementedError

    def follow(
        self, contract: Contract, window: Window | None, request: TraceRequest, progress: Progress
    ) -> Mapping[str, Any]:
        """Return nothing: no window is judged by it."""
        raise NotImplementedError


def watch(contract: Contract, desk: Desk, since: datetime | None = None, windows: int = 3) -> list[Judged]:
    """Return the first windows that are judged."""
    watching = Watch(
        contract, contract.base_dir / "out", lambda: desk, lambda *_: "", lambda _: None, desk.clock
    )
    return list(islice(watching.judged(since), windows))


def test_it_begins_with_the_latest_window_that_is_over_and_waits_for_the_others(contract: Contract) -> None:
    """None is judged before its grace is over; at 10:45 the latest is that from 9 to 10."""
    desk = Desk()

    found = watch(contract, desk)

    assert [judged.window.start for judged in found] == [TEN - HOUR, TEN, TEN + HOUR]
    grace = timedelta(minutes=30)
    assert [at >= start + HOUR + grace for start, at in desk.judged_at] == [True, True, True]
    assert desk.now < TEN + 2 * HOUR + grace + timedelta(minutes=1)


def test_late_evidence_is_awaited_and_then_judged_all_the_same(contract: Contract) -> None:
    """For the contract's `evidence_timeout` and no longer."""
    (contract.base_dir / "d.jsonl").unlink()
    desk = Desk(now=TEN + HOUR + timedelta(minutes=30))

    watch(contract, desk, since=TEN, windows=1)

    ((_, at),) = desk.judged_at
    assert at == TEN + HOUR + timedelta(minutes=30) + contract.evidence_timeout


def test_a_decided_window_is_judged_once_and_an_open_one_again(contract: Contract) -> None:
    """A second start goes on where the first was, and asks anew what was pending."""
    first = Desk(verdicts=["BROKEN", "PENDING", "KEPT"])
    watch(contract, first, since=TEN - 3 * HOUR)
    second = Desk()

    found = watch(contract, second, since=TEN - 3 * HOUR)

    assert [start for start, _ in second.judged_at] == [TEN - 2 * HOUR]
    assert [judged.statement["verdict"] for judged in found if judged.statement] == ["BROKEN", "KEPT", "KEPT"]


def test_another_contract_judges_its_windows_anew(contract: Contract) -> None:
    """What was decided under other promises says nothing of these."""
    watch(contract, Desk(), since=TEN - HOUR, windows=1)
    file = contract.base_dir / "orders.yml"
    file.write_text(CONTRACT.replace("at_least_once", "exactly_once"))
    desk = Desk()

    watch(load_contract(file), desk, since=TEN - HOUR, windows=1)

    assert len(desk.judged_at) == 1


def test_a_source_that_is_away_costs_its_window_only(contract: Contract) -> None:
    """The next window is judged, and the error shows in the exit code."""
    desk = Desk(verdicts=[SourceUnreachableError("the warehouse does not answer"), "KEPT"])

    found = watch(contract, desk, windows=2)

    assert [judged.error for judged in found] == ["the warehouse does not answer", ""]
    assert worst(found) is ExitCode.ERROR


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["KEPT", "KEPT"], ExitCode.KEPT),
        (["KEPT", "PENDING"], ExitCode.UNDECIDED),
        (["BROKEN", "UNKNOWN"], ExitCode.BROKEN),
    ],
)
def test_the_worst_window_decides_the_exit_code(
    contract: Contract, verdicts: list[str | BaseException], code: ExitCode
) -> None:
    """Whatever comes after it."""
    assert worst(watch(contract, Desk(verdicts=verdicts), windows=2)) is code


def test_ctrl_c_ends_it_with_what_was_found(contract: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    """The windows that were judged are told, and the exit code is theirs."""
    desk = Desk(verdicts=["BROKEN", KeyboardInterrupt()])
    monkeypatch.setattr(Watch, "clock", desk.clock)
    out = io.StringIO()
    words = ["watch", str(contract.base_dir / "orders.yml"), "--output", str(contract.base_dir / "out")]

    code = main([*words, "--from", "2026-11-20T08:00:00Z"], engine=desk, out=out, err=io.StringIO())

    assert code == ExitCode.BROKEN
    assert out.getvalue().splitlines() == [
        "2026-11-20T08:00:00Z to 2026-11-20T09:00:00Z  BROKEN  5 messages, 1 lost, 2 repeated, 3 breaks; "
        f"{contract.base_dir / 'out' / '2026-11-20T080000Z' / 'statement.html'}"
    ]


def test_a_contract_without_a_schedule_is_refused(contract: Contract) -> None:
    """Nobody can know its windows."""
    file = contract.base_dir / "orders.yml"
    file.write_text(CONTRACT.replace('schedule: "0 * * * *"\n', ""))
    err = io.StringIO()

    assert main(["watch", str(file)], out=io.StringIO(), err=err) == ExitCode.ERROR
    assert "expected a schedule" in err.getvalue()


@pytest.mark.parametrize("given", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_judged(
    given: str, contract: Contract, tmp_path: Path
) -> None:
    """A window may take an hour."""
    (tmp_path / "file").touch()
    err, desk = io.StringIO(), Desk()
    words = [
        "watch",
        str(contract.base_dir / "orders.yml"),
        "--output",
        str(tmp_path / given),
        "--windows",
        "1",
    ]

    assert main(words, engine=desk, out=io.StringIO(), err=err) == ExitCode.ERROR

    assert (
        err.getvalue()
        == f"tieout: --output {tmp_path / given}: {tmp_path / 'file'} is not a folder that can be written to\n"
    )
    assert desk.judged_at == []


def test_a_watch_that_has_nothing_to_judge_says_so(contract: Contract, tmp_path: Path) -> None:
    """Its active time is over before the first window that was asked for."""
    file = contract.base_dir / "orders.yml"
    file.write_text(f"{CONTRACT}active: {{until: 2026-11-20T14:00:00Z}}\n")
    err = io.StringIO()
    words = ["watch", str(file), "--output", str(tmp_path / "out"), "--from", "2026-11-20T14:00:00Z"]

    assert main(words, engine=Desk(), out=io.StringIO(), err=err) == ExitCode.UNDECIDED

    assert err.getvalue() == (
        "tieout: orders: no window to judge: none lies in the contract's active time, which ends 2026-11-20T14:00:00Z; "
        "give an earlier --from, or extend active.until\n"
    )


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_a_terminal_gets_a_table(contract: Contract) -> None:
    """With a row for each window, also for one that could not be judged."""
    out = Terminal()
    found = watch(contract, Desk(verdicts=["BROKEN", SourceUnreachableError("no answer")]), windows=2)

    with shown(out, "orders") as table:
        for judged in found:
            table.add(judged)

    last = out.getvalue().rsplit("window from", 1)[1]
    assert "BROKEN" in last
    assert "ERROR" in last
    assert f"{TEN:%Y-%m-%dT%H}:00:00Z" in last
