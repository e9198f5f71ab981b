"""The whole stack, as a person starts it: PostgreSQL, Airflow, spark-submit, a receiver; and its end.

These are the slow tests: on two quiet cores about two minutes for the demonstration, and one for each start. A hop of
a chain waits for the hop before, which is looked at every two minutes; windows are judged again meanwhile.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.end_to_end import backfilling, chaining
from tests.end_to_end.backfilling import STARTS, Backfills
from tests.end_to_end.chaining import AFTER, Chain, Hops
from tools.stack import examples, receiver, services, state
from tools.stack.api import Api
from tools.stack.layout import ROOT, Layout
from tools.stack.processes import MARK

from tieout.model import Verdict
from tieout.store import Store
from tieout.testing import postgres

pytestmark = pytest.mark.timeout(3000)
CHOSEN = ("commit_before_process", "in_flight")


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """A home for the stack, with nothing left running on it afterwards."""
    home = Layout(tmp_path_factory.mktemp("stack") / "home")
    yield home
    services.stop(home, timeout=1.0)


def command(layout: Layout, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the stack as `make` does."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("TIEOUT_", "AIRFLOW"))
    }
    arguments = [sys.executable, "-m", "tools.stack", *words, "--home", str(layout.home)]
    return subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def running(layout: Layout) -> list[int]:
    """Return the processes that carry the home's mark, or serve its database."""
    mark = f"{MARK}={layout.home}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            marked = mark in (path / "environ").read_bytes().split(b"\0")
            if marked or (path / "cwd").resolve() == layout.postgres:
                found.append(int(path.name))
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def demonstration(layout: Layout) -> subprocess.CompletedProcess[str]:
    """The demonstration of two examples, one of them in two stages."""
    return command(layout, "demo", *(word for name in CHOSEN for word in ("--only", name)))


def test_the_demonstration_comes_out_as_the_recorder_knew(
    demonstration: subprocess.CompletedProcess[str],
) -> None:
    """It prints the verdicts, ends with 0, and tells the seconds of its steps."""
    assert demonstration.returncode == 0, demonstration.stdout + demonstration.stderr
    for part in ("BROKEN", "PENDING", "KEPT", "statement.html", "Alerts received", "Seconds: "):
        assert part in demonstration.stdout, part


def test_nothing_keeps_running(demonstration: subprocess.CompletedProcess[str], layout: Layout) -> None:
    """Neither Airflow nor PostgreSQL nor the receiver."""
    assert "stopping" in demonstration.stdout
    assert running(layout) == []


def test_the_results_stay(demonstration: subprocess.CompletedProcess[str], layout: Layout) -> None:
    """In the store, with every stage's run; beside it statements; and the alert at the receiver."""
    assert demonstration.returncode == 0
    url = postgres.start(layout.postgres, postgres.free_port())
    try:
        store = Store(url.rsplit("/", 1)[0] + "/tieout")
        for example in examples.read(layout.examples):
            for contract in example.contracts:
                runs = store.runs_of(contract.pipeline)
                expected = [stage.expected[0].verdict for stage in example.stages]
                assert [run.final_verdict for run in reversed(runs)] == [
                    Verdict(verdict) for verdict in expected
                ]
                assert [run.is_current for run in runs] == [True] + [False] * (len(runs) - 1)
                assert all(store.checks(run.run_id) for run in runs)
                if expected[-1] == "BROKEN":
                    reported = [alert["body"] for alert in receiver.received(layout.alerts)]
                    assert any(contract.pipeline in str(body) and "BROKEN" in str(body) for body in reported)
                assert list((layout.statements / contract.pipeline).glob("*/statement.html"))
    finally:
        postgres.stop(layout.postgres)


@pytest.fixture(scope="module")
def chain(demonstration: subprocess.CompletedProcess[str], layout: Layout) -> Chain:
    """Contracts beside those of the demonstration, served by the next start: a chain, and one to judge again."""
    backfilling.prepare(layout.examples / CHOSEN[0])
    return chaining.prepare(layout.examples / CHOSEN[0], datetime.now(UTC))


def test_a_killed_stack_is_started_again_with_its_runs(
    demonstration: subprocess.CompletedProcess[str], chain: Chain, layout: Layout
) -> None:
    """Kill -9 of everything: the next start clears away what is left, and the runs are still there."""
    assert demonstration.returncode == 0
    first = command(layout, "up")
    assert first.returncode == 0, first.stderr
    started = state.load_started(layout)
    assert started is not None
    for process in started.processes:
        os.kill(process.pid, signal.SIGKILL)
    os.kill(int((layout.postgres / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)
    time.sleep(1.0)

    second = command(layout, "up")

    assert second.returncode == 0, second.stderr
    again = state.load_started(layout)
    assert again is not None
    assert services.is_running(again)
    (contract,) = examples.read(layout.examples, CHOSEN[:1])[0].contracts
    (run,) = Api(again.address).runs(contract.pipeline)
    assert run["state"] == "failed"


@pytest.fixture(scope="module")
def hops(chain: Chain, layout: Layout) -> Hops:
    """The chain on the running stack, each hop after another asked for its window, one of those before failed.

    It is failed while the hop after it waits still, which else would go on before there is a failure to wait through.
    """
    started = state.running(layout)
    found = Hops(Api(started.address), Store(started.database_url), chain.window)
    for pipeline in ("failing_hop", *AFTER):
        found.ask(pipeline)
    found.eventually(lambda: found.is_waiting("failing_hop"))
    found.fail("failing_hop")
    return found


def test_a_hop_of_a_chain_waits_without_a_worker(hops: Hops) -> None:
    """Its own window could be judged; the hop before is asked for its own now, and is judged while others are."""
    hops.eventually(lambda: hops.is_waiting("waits"))
    assert hops.judged("waits") is None

    hops.ask("late_hop")


def test_windows_judged_again_leave_the_same_rows(layout: Layout) -> None:
    """Backwards over REST, by command line, cancelled, cleared and repeated, with each reprocess behaviour."""
    started = state.running(layout)
    backfills = Backfills(Api(started.address), Store(started.database_url))
    backfills.api.patch(f"/dags/{backfilling.PIPELINE}", {"is_paused": False})
    first = backfills.over_rest("none", run_backwards=True, max_active_runs=1)
    backfills.wait(results=2)
    backfills.cancel(first)
    rows = backfills.rows()
    assert [one["final"] for one in rows] == ["KEPT", "BROKEN"]
    assert backfills.published() == [STARTS[1], STARTS[0]]

    idle = backfills.over_rest("none")
    assert backfills.active() == []
    backfills.cancel(idle)
    backfilling.by_command_line(state.running_environment(layout), "completed", STARTS[0])
    backfills.wait(results=3)
    backfills.cancel(backfills.latest())
    assert backfills.rows() == rows

    backfills.cancel(backfills.over_rest("completed"))
    assert backfills.rows() == rows
    backfills.clear_cancelled()
    known = len(backfills.published())
    backfills.over_rest("failed", STARTS[1:])
    backfills.wait(results=known + 1)

    assert backfills.published()[-1] == STARTS[1]
    assert backfills.rows() == rows


def test_a_hop_is_judged_after_the_hop_before(hops: Hops) -> None:
    """Its own verdict comes after that one, and its loss is told there."""
    hops.eventually(lambda: hops.judged("late_hop") is not None and hops.has_ended("late_hop"))
    hops.eventually(lambda: hops.has_ended("waits"))

    before, after = hops.judged("late_hop"), hops.judged("waits")
    assert before is not None
    assert after is not None
    assert before.checked_at is not None
    assert after.generated_at > before.checked_at
    assert [before.final_verdict, after.final_verdict] == [Verdict.BROKEN] * 2
    assert "note" not in hops.given("waits")
    assert hops.origin("waits") == "lost before, at late_hop"


@pytest.mark.parametrize("pipeline", ["after_failing", "after_idle"])
def test_a_hop_goes_on_where_it_waited_in_vain(hops: Hops, chain: Chain, pipeline: str) -> None:
    """Whether the hop before failed or nobody ever ran it: once it is too late, with a note, and not earlier."""
    assert pipeline != "after_failing" or hops.has_ended("failing_hop")
    hops.eventually(lambda: hops.has_ended(pipeline))

    after = hops.judged(pipeline)
    unjudged = f"{AFTER[pipeline]} has not judged all of"
    assert after is not None
    assert after.final_verdict == Verdict.BROKEN
    assert after.generated_at > chain.hasty - timedelta(seconds=2)
    assert hops.judged(AFTER[pipeline]) is None
    assert hops.given(pipeline)["note"] == f"after: {unjudged} the window"
    assert hops.origin(pipeline).startswith(f"could not tell whether {AFTER[pipeline]} lost them: {unjudged}")


def test_each_loss_is_reported_once(hops: Hops, layout: Layout) -> None:
    """By the hop that lost it; by a later one where nobody knows of the hop before, which the alert says."""
    bodies = [str(alert["body"]) for alert in receiver.received(layout.alerts)]
    lost = [body for body in bodies if "LOST" in body]
    assert [one for one in lost if "pipeline': 'waits'" in one] == []
    for pipeline in ("late_hop", "after_failing", "after_idle"):
        (reported,) = [one for one in lost if f"pipeline': '{pipeline}'" in one]
        assert (pipeline in AFTER) == ("could not tell whether" in reported)


def test_down_leaves_nothing(layout: Layout) -> None:
    """Neither Airflow nor PostgreSQL nor the receiver."""
    third = command(layout, "down")

    assert third.returncode == 0
    assert running(layout) == []
