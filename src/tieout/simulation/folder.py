"""A simulation's folder: the ledgers, their contract, and the truth, put in place together or not at all.

Docs: docs/reference/simulation.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TextIO

from tieout.contracts import Contract, load_contract
from tieout.contracts.times import format_time
from tieout.folders import replaced
from tieout.model import BreakClass, Guarantee, Ledger, Verdict
from tieout.simulation.contract_text import contract_of
from tieout.simulation.description import Description
from tieout.simulation.simulating import Progress, Simulated, simulate
from tieout.simulation.truth import Truth
from tieout.simulation.world import Row
from tieout.verdicts import Effect, effect_of

CONTRACT: Final = "contract.yml"
TRUTH: Final = "truth.jsonl"
SUMMARY: Final = "truth.json"
WINDOW: Final = "window.args"
SCHEMA_VERSION: Final = 1
FILES: Final = frozenset({CONTRACT, TRUTH, SUMMARY, WINDOW, *(f"{ledger.value}.jsonl" for ledger in Ledger)})

_encoded: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Files:
    """The files that rows go to, opened when their first row comes."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.folder = folder
        self.opened = opened
        self.streams: dict[str, TextIO] = {}

    def stream(self, name: str) -> TextIO:
        """Return the stream of a file, open."""
        if name not in self.streams:
            stream = (self.folder / name).open("w", encoding="utf-8", buffering=1 << 20)
            self.streams[name] = self.opened.enter_context(stream)
        return self.streams[name]

    def write(self, ledger: Ledger, row: Row) -> None:
        """Write a row of evidence."""
        self.stream(f"{ledger.value}.jsonl").write(_encoded(row) + "\n")

    def write_truth(self, row: dict[str, Any]) -> None:
        """Write a line of the truth."""
        self.stream(TRUTH).write(_encoded(row) + "\n")


def write_simulation(
    description: Description, seed: int, directory: Path, progress: Progress
) -> dict[str, Any]:
    """Simulate, put the folder in its place, and return the summary of the truth.

    Raises:
        UsageError: where there is no room for the faults.
        DiskFullError: where there is no space left; what was there before is untouched.
        OSError: where the folder cannot be written; what was there before is untouched.
    """
    with replaced(directory) as staged:
        return _write(description, seed, staged, progress)


def _write(description: Description, seed: int, folder: Path, progress: Progress) -> dict[str, Any]:
    with ExitStack() as opened:
        files = _Files(folder, opened)
        files.stream(TRUTH)
        truth = Truth(files.write_truth)
        simulated = simulate(description, seed, files.write, truth, progress)
        ledgers = [ledger for ledger in Ledger if f"{ledger.value}.jsonl" in files.streams]
    (folder / CONTRACT).write_text(contract_of(description, simulated, ledgers), encoding="utf-8")
    contract = load_contract(folder / CONTRACT)
    summary = summary_of(description, seed, simulated, truth, contract)
    (folder / SUMMARY).write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    window = summary["window"]
    (folder / WINDOW).write_text(f"--from {window['start']} --to {window['end']}\n", encoding="utf-8")
    return summary


def summary_of(
    description: Description, seed: int, simulated: Simulated, truth: Truth, contract: Contract
) -> dict[str, Any]:
    """Return what `truth.json` holds: every count that a right statement has, and what struck how often."""
    window = simulated.window
    return {
        "schema_version": SCHEMA_VERSION,
        "pipeline": description.pipeline,
        "seed": seed,
        "window": {"start": format_time(window.start), "end": format_time(window.end)},
        "messages": truth.messages,
        "verdict": expected_verdict(contract, truth.classes, truth.flags).value,
        "dispositions": _sorted(truth.dispositions),
        "classes": _sorted(truth.classes),
        "flags": _sorted(truth.flags),
        "breaks": truth.breaks,
        "faults": _sorted(truth.episodes),
    }


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts) if counts[name]}


def expected_verdict(contract: Contract, classes: Mapping[str, int], flags: Mapping[str, int]) -> Verdict:
    """Return the verdict that the taxonomy's section 6 gives what was done; simulated contracts have no budgets."""
    found = dict(classes) | dict(flags)
    regressions = classes.get(BreakClass.COMMIT_REGRESSION, 0) - flags.get("annotated", 0)
    found[BreakClass.COMMIT_REGRESSION] = regressions
    if any(count and effect_of(contract, name) is Effect.BROKEN for name, count in found.items()):
        return Verdict.BROKEN
    doubts = classes.get(BreakClass.UNVERIFIABLE, 0)
    if contract.guarantee is not Guarantee.AT_LEAST_ONCE:
        doubts += flags.get("POSSIBLE_DUPLICATE", 0)
    if doubts:
        return Verdict.UNKNOWN
    return Verdict.PENDING if classes.get(BreakClass.IN_FLIGHT) else Verdict.KEPT
