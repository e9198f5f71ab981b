"""What the bench says of its measurements: ratios, what was reached, and who disagrees."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tools.bench.data import Dataset
from tools.bench.measuring import Measured, cpu_seconds, measured, peak_memory
from tools.bench.report import Results, agreement_of, page, table

ANSWER = {"lost": 2, "phantom": 1, "duplicated": 3, "corrupted": 0}


def result(seconds: float | None, answer: dict[str, int] | None = None) -> Measured:
    """Return a measurement of so many seconds."""
    if seconds is None:
        return Measured(None, None, None, {}, 0, "not finished after 9 s")
    return Measured(seconds, seconds, 2**30, answer or {}, 1)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """One size, clean and with breaks; the clean window is fast enough, the other is not."""
    found = Results()
    for rate, ours in ((0.0, 1.25), (0.0001, 30.0)):
        dataset = Dataset(1_000_000, rate, ("lost",), tmp_path)
        found.add(dataset, "floor", result(1.0))
        found.add(dataset, "tieout", result(ours, ANSWER))
        found.add(dataset, "join", result(12.0, ANSWER))
        found.add(dataset, "datacompy", result(None))
    return found


def test_a_ratio_is_reached_missed_or_not_measured(results: Results) -> None:
    """Each ratio asked for is answered in words, with its number."""
    reported = page(results, "6g")

    assert "| clean window, to the scan | 2 | 1.25 reached |" in reported
    assert (
        "| 0.01 % broken, to the full outer join | 0.6; 1.5 up to 1 million | 2.50 **missed** |" in reported
    )
    assert "| all broken, to the full outer join | 5 | not measured |" in reported


def test_a_ratio_of_two_days_says_so(results: Results) -> None:
    """A machine is not every day as fast, so seconds of two days are no clean comparison."""
    results.rows["1000000/0/floor"]["at"] = "2026-01-31"
    reported = page(results, "6g")

    assert "| clean window, to the scan | 2 | 1.25 reached, of two days |" in reported
    assert (
        "| 0.01 % broken, to the full outer join | 0.6; 1.5 up to 1 million | 2.50 **missed** |" in reported
    )


def test_few_messages_may_cost_more_than_many(tmp_path: Path) -> None:
    """What a run costs whatever it judges weighs more in them."""
    found = Results()
    for millions in (1, 10):
        dataset = Dataset(millions * 1_000_000, 0.01, ("lost",), tmp_path)
        found.add(dataset, "tieout", result(18.0, ANSWER))
        found.add(dataset, "join", result(12.0, ANSWER))

    assert "| 1; 2 up to 1 million | 1.50 reached | 1.50 **missed** |" in page(found, "6g")


def test_the_page_says_where_the_seconds_go(results: Results, tmp_path: Path) -> None:
    """A column a dataset; a step that one of them has not is empty there."""
    for rate, steps in ((0.0, {"start": 0.0, "matching": 2.25}), (0.0001, {"matching": 7.0, "looking": 1.0})):
        results.add(
            Dataset(1_000_000, rate, ("lost",), tmp_path),
            "tieout",
            replace(result(9.0, ANSWER), steps=steps),
        )
    reported = page(results, "6g").splitlines()

    head = reported.index("| step | 1 million, 0 % | 1 million, 0.01 % |")
    assert reported[head + 2 : head + 4] == ["| matching | 2.2 | 7.0 |", "| looking |  | 1.0 |"]


def test_the_page_says_what_is_moved(results: Results, tmp_path: Path) -> None:
    """In mebibytes; a run that told nothing of it has no column."""
    moved = {"shuffled": 3 << 20, "spilled": 0, "kernel_spilled": 5 << 20, "worker": 700 << 20}
    dataset = Dataset(1_000_000, 0.0, ("lost",), tmp_path)
    results.add(dataset, "tieout", replace(result(9.0, ANSWER), moved=moved))
    reported = page(results, "6g").splitlines()

    head = reported.index("| MiB | 1 million, 0 % |")
    assert [line.rpartition(" | ")[2] for line in reported[head + 2 : head + 6]] == [
        "3 |",
        "0 |",
        "5 |",
        "700 |",
    ]


def test_the_table_has_ratios_to_the_scan_and_who_did_not_finish(results: Results) -> None:
    """The fastest comes first; what did not finish says so."""
    rows = [line for line in table(results).splitlines() if line.startswith("| ")]

    assert rows[1].startswith("| floor | 1.0 | 1.0 | 1.0 | 1.0 |")
    assert rows[3].startswith("| join | 12.0 | 12.0 | 1.0 | 12.0 |")
    assert rows[4].startswith("| datacompy | not finished after 9 s |")


def test_a_contender_that_counts_otherwise_is_named(results: Results, tmp_path: Path) -> None:
    """Counts are compared kind by kind; what a contender cannot tell apart is compared with the sum."""
    assert agreement_of(results) == []
    dataset = Dataset(1_000_000, 0.0001, ("lost",), tmp_path)
    results.add(dataset, "datacompy", result(5.0, {"lost": 2, "phantom_or_duplicated": 4}))
    assert agreement_of(results) == []

    results.add(dataset, "join", result(12.0, ANSWER | {"lost": 1}))

    assert agreement_of(results) == ["1000000 rows, 0.01% broken: join finds 1 lost, Tieout 2"]


def test_results_are_kept(results: Results, tmp_path: Path) -> None:
    """What one run measured is there in the next one."""
    results.save(tmp_path / "results.json")

    assert Results.load(tmp_path / "results.json").rows == results.rows
    assert Results.load(tmp_path / "none.json").rows == {}


def test_the_first_of_several_runs_is_not_counted(tmp_path: Path) -> None:
    """The median is that of the runs after it."""
    lines = "\\n".join(json.dumps({"seconds": n, "cpu": 1, "memory": 5, "answer": {}}) for n in (90, 1, 3))

    found = measured([sys.executable, "-c", f"print('{lines}')"], dict(os.environ), 60, tmp_path / "log")

    assert (found.seconds, found.memory, found.repeats) == (2, 5, 2)


def test_what_is_moved_is_that_of_the_last_run(tmp_path: Path) -> None:
    """Runs before it may have warmed something up."""
    run = {"seconds": 4, "cpu": 1, "memory": 5, "answer": {}}
    lines = "\\n".join(map(json.dumps, ({"moved": {"shuffled": 9}}, run, {"moved": {"shuffled": 7}}, run)))

    found = measured([sys.executable, "-c", f"print('{lines}')"], dict(os.environ), 60, tmp_path / "log")

    assert found.moved == {"shuffled": 7}


def test_steps_are_those_of_whole_runs_after_the_first(tmp_path: Path) -> None:
    """A step has the median of its seconds, whatever number stands in its name; a run that was cut off has none."""
    names = ("start", "leaving out 5", "end", "start", "leaving out 7", "end", "start", "leaving out 9")
    reported = [
        {"step": name, "at": at} for name, at in zip(names, (0, 1, 50, 100, 101, 104, 105, 900), strict=True)
    ]
    for place in (6, 3):
        reported.insert(place, {"seconds": 4, "cpu": 1, "memory": 5, "answer": {}})
    lines = "\\n".join(map(json.dumps, reported))

    found = measured([sys.executable, "-c", f"print('{lines}')"], dict(os.environ), 60, tmp_path / "log")

    assert found.steps == {"start": 1, "leaving out …": 3}


def test_a_contender_that_hangs_is_stopped(tmp_path: Path) -> None:
    """After the limit it is killed, and the result says that it did not finish."""
    code = "import time; time.sleep(600)"

    found = measured([sys.executable, "-c", code], dict(os.environ), 0.5, tmp_path / "log")

    assert (found.seconds, found.failure) == (None, "not finished after 0 s")


def test_a_contender_that_fails_says_how(tmp_path: Path) -> None:
    """Its exit code is told; the log has the rest."""
    found = measured([sys.executable, "-c", "raise SystemExit(3)"], dict(os.environ), 60, tmp_path / "log")

    assert found.failure == "failed, exit code 3"


def test_a_process_knows_what_it_used() -> None:
    """Processor time only grows, and memory is more than nothing."""
    before = cpu_seconds()
    sum(range(2_000_000))

    assert cpu_seconds() >= before
    assert peak_memory() > 2**20
