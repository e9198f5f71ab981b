"""What a command that is told to end does first, it does to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tools.stack.interrupts import ENDING, end_as_by_ctrl_c, uninterrupted


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_command_ends_as_by_ctrl_c(number: signal.Signals) -> None:
    """So what was started is stopped by the same lines."""
    before = {one: signal.getsignal(one) for one in ENDING}
    try:
        end_as_by_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@pytest.mark.parametrize("number", ENDING)
def test_stopping_is_not_broken_off(number: signal.Signals) -> None:
    """Neither here nor in a program that is called meanwhile; afterwards everything is as before."""
    before = {one: signal.getsignal(one) for one in ENDING}
    expected = f"import os; os.kill(os.getpid(), {int(number)})"

    with uninterrupted():
        os.kill(os.getpid(), number)
        called = subprocess.run([sys.executable, "-c", expected], check=False)

    assert called.returncode == 0
    assert {one: signal.getsignal(one) for one in ENDING} == before
