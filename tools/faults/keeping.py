"""The saved results, one file per line of the page, so that a page can be built from several partial runs.

A line that is run again replaces its saved result; a full run starts with none.
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
    """The folder of the saved results."""

    folder: Path

    def clear(self) -> None:
        """Delete all saved results."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def save(self, result: Cell | Replayed) -> None:
        """Write a line's result atomically."""
        self.folder.mkdir(parents=True, exist_ok=True)
        record = asdict(result)
        if isinstance(result, Cell):
            file, record["moment"] = self._cell(result.moment, result.victim), result.moment.name
        else:
            file = self._replay(result.answer)
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(record, indent=1))
        draft.replace(file)

    def cells(self) -> list[Cell]:
        """Return the saved cells, in the order of the matrix."""
        files = [(moment, self._cell(moment, victim)) for moment in MOMENTS for victim in moment.victims]
        return [Cell(**{**_read(file, Cell), "moment": moment}) for moment, file in files if file.exists()]

    def replays(self) -> list[Replayed]:
        """Return the saved replays, in order."""
        records = [_read(file, Replayed) for file in map(self._replay, ANSWERS) if file.exists()]
        return [Replayed(**{**record, "rows": tuple(record["rows"])}) for record in records]

    def _cell(self, moment: Moment, victim: str) -> Path:
        return self.folder / f"{moment.name}-{victim}.json"

    def _replay(self, answer: str) -> Path:
        return self.folder / f"replay-{answer.lower()}.json"


def _read(file: Path, kind: type[Cell | Replayed]) -> dict[str, Any]:
    """Return the fields of a saved result, without those of other versions."""
    record = json.loads(file.read_text())
    return {field.name: record[field.name] for field in fields(kind)}
