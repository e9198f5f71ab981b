"""Meeting a moment, and waiting: neither for what is past, nor too short for a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tools.faults import matrix
from tools.faults.matrix import Disturbed
from tools.faults.receiver import Receiver
from tools.stack.errors import StackError


def disturbed(**stack: Callable[..., Any]) -> Disturbed:
    """Return a matrix on a stack that is only played."""
    started = SimpleNamespace(
        address="http://127.0.0.1:1", database_url="postgresql://nobody@127.0.0.1:1/none"
    )
    played: Any = SimpleNamespace(started=started, layout=SimpleNamespace(logs=Path("logs")), **stack)
    return Disturbed(cast(Any, played), Receiver())


def after(seconds: float) -> Callable[[], bool]:
    """Return what becomes true after some time."""
    begins = time.monotonic()
    return lambda: time.monotonic() - begins > seconds


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "TIMEOUT_SECONDS", 0.1)


@pytest.mark.usefixtures("_impatient")
def test_a_run_whose_tasks_get_on_is_waited_for() -> None:
    """However long it takes all together."""
    steps: Iterator[int] = count()

    disturbed(progress=lambda: [next(steps)]).wait(after(0.5), every=0.02)


@pytest.mark.usefixtures("_impatient")
def test_a_run_that_stands_still_is_given_up() -> None:
    """With the place of the logs."""
    with pytest.raises(StackError, match="nothing more happens; see logs"):
        disturbed(progress=lambda: [("reconcile", 1, "running")]).wait(after(0.5), every=0.02)


@pytest.mark.usefixtures("_impatient")
def test_a_moment_that_a_run_ended_without_was_not_met() -> None:
    """And is not waited for."""
    ended = disturbed(progress=list, is_at_work=lambda _: False)

    assert not ended._is_reached_in_time(lambda: False)


def test_a_moment_is_met_while_the_run_is_at_work() -> None:
    """Also where it comes later."""
    at_work = disturbed(progress=list, is_at_work=lambda _: True)

    assert at_work._is_reached_in_time(after(0.2))
