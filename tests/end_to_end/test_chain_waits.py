"""A hop of a chain under a real scheduler: it waits for the hop before, and goes on with a note where that is in vain.

About four minutes: a wait is looked at every two minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.end_to_end import chaining
from tests.end_to_end.chaining import AFTER, BEFORE, Hops
from tools.stack import receiver, services, state
from tools.stack.api import Api
from tools.stack.console import Steps
from tools.stack.examples import RECEIVER
from tools.stack.layout import Layout
from tools.stack.services import Plan

from tieout.model import Verdict
from tieout.store import Store

pytestmark = pytest.mark.timeout(1500)
HASTE = timedelta(minutes=3)
"""How long after the contracts are written the hops whose predecessor never comes wait; the stack starts meanwhile."""


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """A home for the stack, with nothing left running on it afterwards."""
    home = Layout(tmp_path_factory.mktemp("chain") / "home")
    yield home
    services.stop(home, timeout=1.0)


@pytest.fixture(scope="module")
def hasty(layout: Layout) -> datetime:
    """Until when the hops whose predecessor never comes wait."""
    layout.home.mkdir(parents=True)
    return datetime.now(UTC) + HASTE


@pytest.fixture(scope="module")
def hops(layout: Layout, hasty: datetime) -> Hops:
    """The pipelines on a running stack, each hop after another asked for its window, one of those before failed.

    It is failed while the hop after it waits still, which else would go on before there is a failure to wait through.
    """
    now = datetime.now(UTC)
    window = chaining.window_before(now)
    folder = layout.home / "contracts"
    chaining.prepare(folder, window, patient=now + timedelta(hours=2), hasty=hasty)
    with state.lock(layout):
        plan = Plan((folder,), (RECEIVER,), frozenset((*BEFORE, *AFTER)))
        started = services.start(layout, plan, Steps())
    found = Hops(Api(started.address), Store(started.database_url), window)
    for pipeline in ("failing_hop", *AFTER):
        found.ask(pipeline)
    found.eventually(lambda: found.is_waiting("failing_hop"))
    found.fail("failing_hop")
    return found


def test_a_hop_waits_for_the_verdict_of_the_hop_before(hops: Hops) -> None:
    """Without a worker; its own verdict comes after that one, and its loss is told there."""
    hops.eventually(lambda: hops.is_waiting("waits"))
    assert hops.judged("waits") is None

    hops.ask("late_hop")
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
def test_a_hop_goes_on_where_it_waited_in_vain(hops: Hops, hasty: datetime, pipeline: str) -> None:
    """Whether the hop before failed or nobody ever ran it: once it is too late, with a note, and not earlier."""
    assert pipeline != "after_failing" or hops.has_ended("failing_hop")
    hops.eventually(lambda: hops.has_ended(pipeline))

    after = hops.judged(pipeline)
    unjudged = f"{AFTER[pipeline]} has not judged all of"
    assert after is not None
    assert after.final_verdict == Verdict.BROKEN
    assert after.generated_at > hasty - timedelta(seconds=2)
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
