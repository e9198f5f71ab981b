"""`python -m tools.stack up|down|demo`: the local stack of one checkout."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tieout import settings
from tieout.errors import TieoutError
from tieout.store import Store
from tools.stack import demo, interrupts, services, state
from tools.stack.console import Steps, complain, say
from tools.stack.layout import DEFAULT_HOME, ROOT, Layout


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 not as expected, 2 it could not be done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("up", "down", "demo"))
    parser.add_argument("--home", type=Path, default=DEFAULT_HOME, help="the stack's folder")
    parser.add_argument("--only", action="append", default=[], metavar="EXAMPLE", help="just this example")
    given = parser.parse_args(arguments)
    layout = Layout(given.home.absolute())
    interrupts.end_as_by_ctrl_c()
    try:
        with state.lock(layout):
            if given.command == "down":
                return down(layout)
            if given.command == "up":
                return up(layout, given.only)
            return demo.run(layout, given.only)
    except TieoutError as error:
        complain(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        complain("interrupted; what was started is stopped")
        return interrupts.INTERRUPTED


def up(layout: Layout, only: Sequence[str]) -> int:
    """Start the stack, or find it running, and say where it is."""
    started = state.recall(layout)
    if started is None or not services.is_running(started):
        try:
            plan = demo.plan_of(demo.examples_of(layout, only, keep=True)).with_contracts(own_contracts())
            started = services.start(layout, plan, Steps(), is_fresh=False)
        except BaseException:
            services.stop(layout)
            raise
    say(f"Airflow: {started.address} (no login; this machine only)")
    say(f"results: {Store(started.database_url)!r}, the password is in {layout.processes}")
    say(f"logs and statements: {layout.home}")
    say(f"Airflow's command line: . {layout.environment}")
    say("stop it with: make down")
    return 0


def own_contracts() -> tuple[Path, ...]:
    """Return the folders of the user's contracts; relative ones start at the checkout, as the DAGs' file reads them."""
    return settings.contract_folders(ROOT / "dags")


def down(layout: Layout) -> int:
    """Stop the stack and say how many processes that were."""
    say(f"stopped {services.stop(layout)} processes and PostgreSQL")
    return 0


if __name__ == "__main__":
    sys.exit(main())
