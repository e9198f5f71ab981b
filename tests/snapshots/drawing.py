"""The histories that have a snapshot: golden ones, random ones of fixed seeds, and the recordings in `examples/`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.engine.histories import GRACE_END, TOPIC, WINDOW, Case, History, load_cases
from tests.oracle.history import OracleCoverage
from tests.oracle.random_histories import RandomHistory, Setting, families, history_in

from tieout.model import Ledger, OffsetRange, Window

SEED: Final = 34
FAMILIES: Final = 24
"""Families of plausible histories, each of 60 that share terms, ledgers and coverage."""
WILD_FAMILIES: Final = 3
"""Families of 80 histories of arbitrary rows."""
KEPT: Final = 120
"""Histories of kept positions with a log, and as many without."""
IN_RANGES: Final = 80
"""Histories whose window is ranges of offsets."""
SEEDS: Final = (
    f"families({SEED}, {FAMILIES}, 60, wild_share=0), families({SEED}, {WILD_FAMILIES}, 80, wild_share=1), "
    f"{KEPT} kept positions with a log and {KEPT} without, {IN_RANGES} windows of offsets, all of the seed {SEED}"
)
EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
_BY_OFFSETS: Final = (Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED)
_KEPT: Final = (*_BY_OFFSETS, Ledger.MIRRORED, Ledger.READ, Ledger.STAGED, Ledger.DEAD_LETTERS)
_RANGES: Final = (OffsetRange(TOPIC, 0, 1, 5), OffsetRange(TOPIC, 1, 0, 3))


@dataclass(frozen=True)
class Recording:
    """One contract of an example, at one stage of its evidence: `overlays` are copied over it in their order."""

    name: str
    folder: Path
    contract: str
    window: Window
    overlays: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What names the contract and every byte of the evidence."""
        found = hashlib.sha256(repr((self.contract, self.window, self.overlays)).encode())
        for file in sorted(self.folder.rglob("*")):
            if file.is_file() and file.name != "truth.json":
                found.update(f"\n{file.relative_to(self.folder)}\n".encode() + file.read_bytes())
        return found.hexdigest()[:32]


def golden() -> dict[str, Case]:
    """Return the golden histories by file and name."""
    return {str(case): case for case in load_cases()}


def random_histories(count: int | None = None) -> dict[str, History]:
    """Return the random histories by name, or the first `count` of them, which are of all families in turn."""
    groups = [
        *families(SEED, FAMILIES, 60, wild_share=0),
        *(_renamed(family) for family in families(SEED, WILD_FAMILIES, 80, wild_share=1)),
        list(_kept(_KEPT, "positions")),
        list(_kept(tuple(one for one in _KEPT if one is not Ledger.LOG), "positions without a log")),
        list(_in_ranges()),
    ]
    longest = max(map(len, groups))
    in_turn = (group[place] for place in range(longest) for group in groups if place < len(group))
    return {history.name: history for history in islice(in_turn, count)}


def recordings() -> dict[str, Recording]:
    """Return the recordings by example, stage and contract."""
    found = [*_of_brokers(), *_of_systems()]
    return {one.name: one for one in found}


def digest_of(history: History) -> str:
    """Return what names a history's contract, window, rows and coverage: another digest, another history."""
    inputs = {
        "contract": history.contract.to_json(),
        "window": repr(history.window),
        "rows": {ledger.value: rows for ledger, rows in history.rows.items()},
        "coverage": {ledger.value: repr(one) for ledger, one in history.coverage.items()},
        "present": {ledger.value: sorted(columns) for ledger, columns in history.present.items()},
    }
    text = json.dumps(inputs, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _renamed(family: list[RandomHistory]) -> list[RandomHistory]:
    return [replace(history, name=f"wild/{history.name}") for history in family]


def _kept(ledgers: tuple[Ledger, ...], name: str) -> Iterator[RandomHistory]:
    covered = OracleCoverage(None, GRACE_END + timedelta(hours=1), True, True)
    setting = Setting(False, {"guarantee": "at_most_once"}, ledgers, dict.fromkeys(ledgers, covered), (), {})
    return _of_setting(setting, name, KEPT)


def _in_ranges() -> Iterator[RandomHistory]:
    covered = OracleCoverage(None, GRACE_END, True, True)
    terms = {"guarantee": "at_least_once", "windows": "offsets"}
    setting = Setting(False, terms, _BY_OFFSETS, dict.fromkeys(_BY_OFFSETS, covered), (), {})
    window = replace(WINDOW, offsets=_RANGES)
    return (replace(history, window=window) for history in _of_setting(setting, "offsets", IN_RANGES))


def _of_setting(setting: Setting, name: str, count: int) -> Iterator[RandomHistory]:
    for number in range(count):
        own = f"{SEED}/{name}/{number}"
        yield history_in(setting, Random(own), own)  # noqa: S311 - repeatable, not secret


def _of_brokers() -> Iterator[Recording]:
    for path in sorted(EXAMPLES.glob("*/truth.json")):
        truth = json.loads(path.read_text(encoding="utf-8"))
        window = _window(truth["window"]["start"], truth["window"]["end"])
        overlays: tuple[str, ...] = ()
        for number, stage in enumerate(truth["stages"]):
            overlays += (stage["overlay"],) if stage["overlay"] else ()
            for contract in stage["contracts"]:
                name = f"{path.parent.name}/{number}/{contract}"
                yield Recording(name, path.parent, contract, window, overlays)


def _of_systems() -> Iterator[Recording]:
    for path in sorted(EXAMPLES.glob("systems/*/truth.json")):
        truth: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for contract, case in truth["contracts"].items():
            name = f"systems/{path.parent.name}/{contract}"
            yield Recording(name, path.parent, contract, _window(*case["window"]))


def _window(start: str, end: str) -> Window:
    return Window(datetime.fromisoformat(start), datetime.fromisoformat(end))
