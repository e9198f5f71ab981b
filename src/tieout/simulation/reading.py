"""Reading what is scored: a run's statement and breaks, a simulation's truth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tieout.errors import UsageError
from tieout.simulation.folder import SUMMARY, TRUTH

_COLUMNS: Final = (
    "class", "flags", "message_id", "topic", "partition", "offset", "locus", "cause", "admissible",
)  # fmt: skip


def read_truth(folder: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return the summary and the breaks of a simulation's folder.

    Raises:
        UsageError: where a file is missing or is none that `tieout simulate` wrote.
    """
    return _document(folder / SUMMARY, "tieout simulate"), _lines(folder / TRUTH, "tieout simulate")


def read_run(folder: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return the statement and all breaks of a run's output: `breaks.jsonl` where it holds all, else `breaks/`.

    Raises:
        UsageError: where a file is missing or is none that `tieout reconcile` wrote.
    """
    statement = _document(folder / "statement.json", "tieout reconcile")
    if statement["breaks_truncated"]:
        return statement, _parquet(folder / "breaks")
    return statement, _lines(folder / "breaks.jsonl", "tieout reconcile")


def _document(file: Path, writer: str) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{file}: no such file; expected one that {writer} wrote") from error
    except ValueError as error:
        raise UsageError(f"{file}: not JSON: {error}; expected a file that {writer} wrote") from error
    if not isinstance(found, dict):
        raise UsageError(f"{file}: expected an object that {writer} wrote, found something else")
    return found


def _lines(file: Path, writer: str) -> Iterator[dict[str, Any]]:
    try:
        stream = file.open(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"{file}: no such file; expected one that {writer} wrote") from error
    return _parsed(file, stream.read().splitlines(), writer)


def _parsed(file: Path, lines: list[str], writer: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            yield {name: row.get(name) for name in _COLUMNS}
        except (ValueError, AttributeError) as error:
            raise UsageError(f"{file}:{number}: not a break as {writer} writes it: {error}") from error


def _parquet(folder: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import dataset  # noqa: PLC0415 - only a run with very many breaks needs it
    except ImportError as error:
        raise UsageError(
            f"{folder}: breaks.jsonl holds only the first breaks, and reading all of them needs pyarrow: install it"
        ) from error
    for batch in dataset.dataset(folder, format="parquet").to_batches(columns=list(_COLUMNS)):
        yield from batch.to_pylist()
