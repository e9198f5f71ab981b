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
from tools.stack.console import Steps, print_error, print_line
from tools.stack.layout import DEFAULT_HOME, ROOT, Layout


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 not as expected, 2 error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("up", "down", "demo"))
    parser.add_argument("--home", type=Path, default=DEFAULT_HOME, help="the stack's folder")
    parser.add_argument("--only", action="append", default=[], metavar="EXAMPLE", help="just this example")
    options = parser.parse_args(arguments)
    layout = Layout(options.home.absolute())
    interrupts.end_as_by_ctrl_c()
    try:
        with state.lock(layout):
            if options.command == "down":
                return down(layout)
            if options.command == "up":
                return up(layout, options.only)
            return demo.run(layout, options.only)
    except TieoutError as error:
        print_error(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        print_error("interrupted; what was started is stopped")
        return interrupts.INTERRUPTED


def up(layout: Layout, only: Sequence[str]) -> int:
    """Start the stack, or find it running, and print its addresses."""
    started = state.load_started(layout)
    if started is None or not services.is_running(started):
        try:
            plan = demo.plan_of(demo.examples_of(layout, only, keep=True)).with_contracts(user_contracts())
            started = services.start(layout, plan, Steps(), is_fresh=False)
        except BaseException:
            services.stop(layout)
            raise
    print_line(f"Airflow: {started.address} (no login; this machine only)")
    print_line(f"results: {Store(started.database_url)!r}, the password is in {layout.processes}")
    print_line(f"logs and statements: {layout.home}")
    print_line(f"Airflow's command line: . {layout.environment}")
    print_line("stop it with: make down")
    return 0


def user_contracts() -> tuple[Path, ...]:
    """Return the folders of the user's contracts; relative ones start at the checkout, as in the DAG file."""
    return settings.contract_folders(ROOT / "dags")


def down(layout: Layout) -> int:
    """Stop the stack and print the number of its processes."""
    print_line(f"stopped {services.stop(layout)} processes and PostgreSQL")
    return 0


if __name__ == "__main__":
    sys.exit(main())
