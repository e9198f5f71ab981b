"""What was found, one file for each line of the page, so that a page can be made of parts that were run one by one.

A line that is tried again replaces what was kept of it; a whole run begins with nothing kept.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tools.faults.matrix import MOMENTS, Cell, Moment
from tools.faults.replays import ANSWERS, Replayed


@dataclass(frozen=True)
class Kept:
    """The folder of what was found."""

    folder: Path

    def clear(self) -> None:
        """Forget everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self, found: Cell | Replayed) -> None:
        """Write what was found of a line, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        told = asdict(found)
        if isinstance(found, Cell):
            file, told["moment"] = self._cell(found.moment, found.victim), found.moment.name
        else:
            file = self._replay(found.answer)
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(told, indent=1))
        draft.replace(file)

    def cells(self) -> list[Cell]:
        """Return the cells that were tried, in the order of the matrix."""
        files = [(moment, self._cell(moment, victim)) for moment in MOMENTS for victim in moment.victims]
        return [Cell(**{**_read(file, Cell), "moment": moment}) for moment, file in files if file.exists()]

    def replays(self) -> list[Replayed]:
        """Return the replays that were tried, in their order."""
        told = [_read(file, Replayed) for file in map(self._replay, ANSWERS) if file.exists()]
        return [Replayed(**{**one, "rows": tuple(one["rows"])}) for one in told]

    def _cell(self, moment: Moment, victim: str) -> Path:
        return self.folder / f"{moment.name}-{victim}.json"

    def _replay(self, answer: str) -> Path:
        return self.folder / f"replay-{answer.lower()}.json"


def _read(file: Path, kind: type[Cell | Replayed]) -> dict[str, Any]:
    """Return what is kept in a file, less what a page of another version had."""
    told = json.loads(file.read_text())
    return {field.name: told[field.name] for field in fields(kind)}
