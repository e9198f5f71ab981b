"""The demonstration: judges the recorded examples with Airflow, Spark and PostgreSQL, and reports the results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tieout.store import Store
from tools.stack import examples, report, services
from tools.stack.console import Steps, print_error, print_line
from tools.stack.driving import Driver
from tools.stack.examples import Example
from tools.stack.layout import ROOT, Layout
from tools.stack.services import Plan
from tools.stack.state import Started


def run(layout: Layout, only: Sequence[str]) -> int:
    """Run the demonstration on empty databases and return 0 if everything was as expected, else 1.

    All processes are stopped in any case; the databases and statements stay for `make up`.
    """
    steps = Steps()
    try:
        judged = _judge(layout, only, steps)
    except BaseException:
        _stop(layout, steps)
        raise
    _stop(layout, steps)
    for line in report.lines(judged, layout, steps):
        print_line(line)
    problems = report.problems(judged)
    for problem in problems:
        print_error(f"not as expected: {problem}")
    return 1 if problems else 0


def examples_of(layout: Layout, only: Iterable[str], *, keep: bool) -> tuple[Example, ...]:
    """Return the examples' working copies; with `keep`, the last demonstration's if there are any."""
    if keep and layout.examples.is_dir():
        return examples.read(layout.examples, only)
    return examples.copied(ROOT / "examples", layout.examples, only)


def plan_of(chosen: Sequence[Example]) -> Plan:
    """Return the plan of what to start for the examples."""
    contracts = [contract for example in chosen for contract in example.contracts]
    connections = {route.connection for contract in contracts for route in contract.alerts}
    return Plan(
        contracts=tuple(example.folder for example in chosen),
        webhooks=tuple(
            sorted(name for name in connections if f"AIRFLOW_CONN_{name.upper()}" not in os.environ)
        ),
        dags=frozenset(contract.pipeline for contract in contracts),
    )


def _judge(layout: Layout, only: Sequence[str], steps: Steps) -> report.Judged:
    services.stop(layout)
    services.clear(layout)
    chosen = examples_of(layout, only, keep=False)
    started = services.start(layout, plan_of(chosen), steps)
    with steps.step(f"judging {sum(len(example.contracts) for example in chosen)} pipelines"):
        driver = Driver.of(started)
        driver.judge(chosen)
    return _gather(layout, started, chosen, driver)


def _gather(layout: Layout, started: Started, chosen: Sequence[Example], driver: Driver) -> report.Judged:
    store = Store(started.database_url)
    rows = [
        report.row_of(expected, stage, driver.result(expected.contract.pipeline, stage.name))
        for example in chosen
        for stage in example.stages
        for expected in stage.expected
    ]
    return report.Judged(tuple(rows), layout.alerts, store.pending_alerts(), started.address)


def _stop(layout: Layout, steps: Steps) -> None:
    with steps.step("stopping"):
        # All runs are over: there is nothing to wait for.
        services.stop(layout, timeout=2.0)
