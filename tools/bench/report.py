"""The results as a table and as docs/reference/performance.md, and whether all contenders found the same breaks."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tools.bench.data import Dataset
from tools.bench.measuring import Measured

FLOOR: Final = "floor"
TIEOUT: Final = "tieout"
JOIN: Final = "join"


@dataclass(frozen=True)
class Target:
    """A target: the highest ratio of Tieout's seconds to another contender's, for a share of broken messages.

    Up to `SMALL_ROWS` messages per side it is `most_if_small`: there the fixed cost of a run weighs more.
    """

    words: str
    rate: float
    other: str
    most: float
    most_if_small: float | None = None

    def most_of(self, rows: int) -> float:
        """Return the target ratio for a number of messages per side."""
        return self.most if self.most_if_small is None or rows > SMALL_ROWS else self.most_if_small

    @property
    def limit(self) -> str:
        """The ratio as text."""
        small = (
            ""
            if self.most_if_small is None
            else f"; {self.most_if_small:g} up to {SMALL_ROWS / 1e6:g} million"
        )
        return f"{self.most:g}{small}"


SMALL_ROWS: Final = 1_000_000
TARGETS: Final = (
    Target("clean window, to the scan", 0.0, FLOOR, 2.0),
    Target("clean window, to the full outer join", 0.0, JOIN, 0.4),
    Target("0.01 % broken, to the full outer join", 0.0001, JOIN, 0.6, 1.5),
    Target("1 % broken, to the full outer join", 0.01, JOIN, 1.0, 2.0),
    Target("all broken, to the full outer join", 1.0, JOIN, 5.0),
)


@dataclass
class Results:
    """The measurements by size, share and contender; a later measurement replaces an earlier one."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Results:
        """Return the results of an earlier run, or empty ones."""
        return cls(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else cls()

    def save(self, path: Path) -> None:
        """Write the results where `load` finds them."""
        path.write_text(json.dumps(self.rows, indent=1), encoding="utf-8")

    def add(self, dataset: Dataset, name: str, measured: Measured) -> None:
        """Remember one measurement with its date."""
        entry = {
            "rows": dataset.rows,
            "rate": dataset.rate,
            "name": name,
            "at": datetime.now(UTC).date().isoformat(),
        }
        self.rows[f"{dataset.rows}/{dataset.rate:g}/{name}"] = entry | asdict(measured)

    def of(self, rows: int, rate: float, name: str) -> dict[str, Any]:
        """Return one measurement, empty if there is none."""
        return self.rows.get(f"{rows}/{rate:g}/{name}", {})

    def datasets(self) -> list[tuple[int, float]]:
        """Return every size and share that was measured, in order."""
        return sorted({(row["rows"], row["rate"]) for row in self.rows.values()})

    def measured_on(self, rows: int, rate: float) -> list[dict[str, Any]]:
        """Return the measurements of one dataset, the fastest first, unfinished ones last."""
        measurements = [row for row in self.rows.values() if (row["rows"], row["rate"]) == (rows, rate)]
        return sorted(measurements, key=lambda row: row["seconds"] or float("inf"))


def agreement_of(results: Results) -> list[str]:
    """Return a line for each contender whose counts differ from Tieout's; the scan counts nothing."""
    wrong = []
    for rows, rate in results.datasets():
        tieout_counts = results.of(rows, rate, TIEOUT).get("answer", {})
        for row in results.measured_on(rows, rate) if tieout_counts else ():
            for kind, count in row["answer"].items():
                expected = sum(tieout_counts[part] for part in kind.split("_or_"))
                if count != expected:
                    wrong.append(
                        f"{rows} rows, {rate:.2%} broken: {row['name']} finds {count} {kind}, Tieout {expected}"
                    )
    return wrong


def table(results: Results) -> str:
    """Return the results as Markdown tables, one per size and share."""
    return "\n".join(_lines(results))


def _lines(results: Results) -> Iterator[str]:
    for rows, rate in results.datasets():
        floor = results.of(rows, rate, FLOOR).get("seconds")
        yield f"\n### {rows / 1e6:g} million messages a side, {rate * 100:g} % broken\n"
        yield "| contender | seconds | processor seconds | peak memory, GiB | of the scan | measured |"
        yield "|---|---|---|---|---|---|"
        for row in results.measured_on(rows, rate):
            if row["seconds"] is None:
                yield f"| {row['name']} | {row['failure']} | | | | {row['at']} |"
                continue
            ratio = f"{row['seconds'] / floor:.1f}" if floor else ""
            memory = row["memory"] / 2**30
            yield (
                f"| {row['name']} | {row['seconds']:.1f} | {row['cpu']:.1f} | {memory:.1f} | {ratio} | {row['at']} |"
            )


def _reached(results: Results) -> Iterator[str]:
    yield (
        "| asked for | at most | " + " | ".join(f"{rows / 1e6:g} million" for rows in _sizes(results)) + " |"
    )
    yield "|---" * (2 + len(_sizes(results))) + "|"
    for target in TARGETS:
        cells = [_cell(results, rows, target) for rows in _sizes(results)]
        yield f"| {target.words} | {target.limit} | " + " | ".join(cells) + " |"


def _heading(first: str, datasets: Collection[tuple[int, float]]) -> Iterator[str]:
    """Yield the head of a table with a column for each size and share."""
    columns = (f"{rows / 1e6:g} million, {rate * 100:g} %" for rows, rate in datasets)
    yield f"| {first} | " + " | ".join(columns) + " |"
    yield "|---" * (1 + len(datasets)) + "|"


def _steps(results: Results) -> Iterator[str]:
    """Yield the table of Tieout's steps, a column for each size and share."""
    by_dataset = {at: steps for at in results.datasets() if (steps := results.of(*at, TIEOUT).get("steps"))}
    yield from _heading("step", by_dataset)
    for name in dict.fromkeys(name for steps in by_dataset.values() for name in steps if name != "start"):
        cells = [f"{steps[name]:.1f}" if name in steps else "" for steps in by_dataset.values()]
        yield f"| {name} | " + " | ".join(cells) + " |"


_MOVED: Final = {
    "shuffled": "Spark's tasks exchanged",
    "spilled": "Spark spilled",
    "kernel_spilled": "the task that judges spilled",
    "worker": "the largest Python worker held",
}


def _moved(results: Results) -> Iterator[str]:
    """Yield the table of the bytes that Tieout's runs moved and held, a column for each size and share."""
    by_dataset = {at: moved for at in results.datasets() if (moved := results.of(*at, TIEOUT).get("moved"))}
    yield from _heading("MiB", by_dataset)
    for name, title in _MOVED.items():
        yield (
            f"| {title} | " + " | ".join(f"{moved[name] / 2**20:.0f}" for moved in by_dataset.values()) + " |"
        )


def _cell(results: Results, rows: int, target: Target) -> str:
    tieout, other = (results.of(rows, target.rate, name) for name in (TIEOUT, target.other))
    if not tieout.get("seconds") or not other.get("seconds"):
        return "not measured"
    ratio = tieout["seconds"] / other["seconds"]
    days = "" if tieout["at"] == other["at"] else ", of two days"
    return f"{ratio:.2f} {'reached' if ratio <= target.most_of(rows) else '**missed**'}{days}"


def _sizes(results: Results) -> list[int]:
    return sorted({rows for rows, _ in results.datasets()})


def page(results: Results, memory: str, note: str = "") -> str:
    """Return docs/reference/performance.md; `note` describes the circumstances of the measurement."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return "\n".join(
        [
            "# Performance",
            "",
            f"Written by `make bench` on {os.cpu_count()} cores with {total:.0f} GiB of memory, {platform.system()} on "
            f"{platform.machine()}, Spark with `local[*]` and a heap of {memory}. How it measures, and what the "
            "contenders do: [measure performance](../how-to/measure-performance.md). What the ratios rest on, and what "
            "costs what: [prematch](../explanation/prematch.md).",
            "",
            *([note, ""] if note else []),
            "## What was asked for",
            "",
            "Ratios of Tieout's seconds to another contender's, of one day but where it says otherwise.",
            "",
            *_reached(results),
            "",
            "## Where Tieout's seconds go",
            "",
            "Seconds from one step to the next, by million messages a side and share of broken ones.",
            "",
            *_steps(results),
            "",
            "## What Tieout moves and holds",
            "",
            "Mebibytes, of the last run of each size and share.",
            "",
            *_moved(results),
            "",
            "## Results",
            table(results),
            "",
        ]
    )
