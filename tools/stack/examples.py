"""The recorded examples: their working copies, and the recorder's knowledge of each.

The demonstration works on copies, because the evidence of an example may come in stages: what had arrived
when its window was first judged, and what arrived later.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tieout.contracts import Contract, load_contract
from tieout.model import Window
from tools.stack.errors import StackError

RECEIVER = "tieout_receiver"
"""The connection for the alerts of the working copies."""

_TRUTH = "truth.json"


@dataclass(frozen=True)
class Expected:
    """The expected result of one contract at one stage of its example's evidence."""

    contract: Contract
    verdict: str
    counts: dict[str, int]


@dataclass(frozen=True)
class Stage:
    """A state of an example's evidence: its overlay, and the expected results."""

    name: str
    overlay: Path | None
    expected: tuple[Expected, ...]


@dataclass(frozen=True)
class Example:
    """One example: its working copy, its window and its stages in order."""

    name: str
    folder: Path
    window: Window
    stages: tuple[Stage, ...]

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """The contracts of the example."""
        return tuple(expected.contract for expected in self.stages[0].expected)


def copied(source: Path, target: Path, names: Iterable[str] = ()) -> tuple[Example, ...]:
    """Copy the examples (all, or those in `names`) into `target` and return the copies, ordered by name.

    The copies' alerts go to the demonstration's receiver.

    Raises:
        StackError: if there is none, or one of `names` is not among them.
    """
    selected = _selected(source, names)
    shutil.rmtree(target, ignore_errors=True)
    for name in selected:
        shutil.copytree(source / name, target / name)
        for file in (target / name).glob("contract*.yml"):
            _route_alerts(file)
    return read(target)


def _route_alerts(file: Path) -> None:
    """Route a contract's alerts to the demonstration's receiver, unless it has routes of its own."""
    text = file.read_text()
    if "\nalerts:" not in text:
        route = f"{{to: webhook, connection: {RECEIVER}, at: warning}}"
        file.write_text(f"{text.rstrip()}\nalerts:\n  - {route}\n")


def read(folder: Path, names: Iterable[str] = ()) -> tuple[Example, ...]:
    """Return the examples (all, or those in `names`) in `folder`, ordered by name.

    Raises:
        StackError: if there is none, or one of `names` is not among them.
    """
    return tuple(_example(folder / name) for name in _selected(folder, names))


def _selected(folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    available = tuple(path.parent.name for path in sorted(folder.glob(f"*/{_TRUTH}")))
    selected = tuple(names) or available
    unknown = sorted(set(selected) - set(available))
    if unknown or not selected:
        named_text = f" named {', '.join(unknown)}" if unknown else ""
        raise StackError(
            f"{folder}: expected examples with a {_TRUTH}{named_text}, found {', '.join(available) or 'none'}"
        )
    return selected


def apply_stage(stage: Stage, folder: Path) -> None:
    """Copy the evidence of a stage over the working copy in `folder`."""
    if stage.overlay is not None:
        shutil.copytree(stage.overlay, folder / "evidence", dirs_exist_ok=True)


def _example(folder: Path) -> Example:
    truth: dict[str, Any] = json.loads((folder / _TRUTH).read_text())
    contracts = {
        file: load_contract(folder / file) for stage in truth["stages"] for file in stage["contracts"]
    }
    start, end = (datetime.fromisoformat(truth["window"][name]) for name in ("start", "end"))
    return Example(
        name=folder.name,
        folder=folder,
        window=Window(start, end),
        stages=tuple(_stage(stage, folder, contracts) for stage in truth["stages"]),
    )


def _stage(stage: dict[str, Any], folder: Path, contracts: dict[str, Contract]) -> Stage:
    expected = tuple(
        Expected(contracts[file], truth["verdict"], truth["counts"])
        for file, truth in stage["contracts"].items()
    )
    overlay = stage["overlay"]
    return Stage(stage["stage"], None if overlay is None else folder / overlay, expected)
