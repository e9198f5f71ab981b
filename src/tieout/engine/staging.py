"""Writes a run's output directory: it is replaced as a whole or not at all.

Docs: docs/reference/contract.md, "The command line, and what it prints".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pyspark.sql import functions as F

from tieout.engine.judging.breaks import BREAK_COLUMNS, BREAKS_KEPT, ORDER, Breaks
from tieout.engine.reconciling import Reconciliation
from tieout.folders import replaced
from tieout.reporting.markdown import render_markdown

SAMPLE: Final = 200
"""How many breaks the HTML page shows."""

HtmlRenderer = Callable[[dict[str, Any], list[dict[str, Any]]], str]


def break_lines(breaks: Breaks) -> Iterator[dict[str, Any]]:
    """Yield the first breaks as lines of `breaks.jsonl`, in the order in which people read them.

    They are at most `BREAKS_KEPT`, and come to the driver a partition at a time.
    """
    lines = (
        breaks.first()
        .orderBy(*ORDER)
        .select(F.to_json(F.struct("*"), {"ignoreNullFields": "true"}).alias("line"))
    )
    for row in islice(lines.toLocalIterator(), BREAKS_KEPT):
        yield _with_nulls(json.loads(row["line"]))


def _with_nulls(found: dict[str, Any]) -> dict[str, Any]:
    """Return the break with all its keys; nulls are left out only inside evidence rows."""
    return {key: found.get(key) for key in BREAK_COLUMNS}


def write_output(reconciliation: Reconciliation, directory: Path, render_html: HtmlRenderer) -> None:
    """Write `statement.json`, `.html` and `.md`, `breaks/` and `breaks.jsonl`, then put all in place at once.

    Raises:
        DiskFullError: where there is no space left; what was there before is untouched.
        OSError: where the directory's parent cannot be written; the same.
    """
    with replaced(directory) as staged:
        _write(reconciliation, staged, render_html)


def _write(reconciliation: Reconciliation, staged: Path, render_html: HtmlRenderer) -> None:
    reconciliation.breaks.write(staged / "breaks")
    sample: list[dict[str, Any]] = []
    with (staged / "breaks.jsonl").open("w", encoding="utf-8") as lines:
        for found in break_lines(reconciliation.breaks):
            lines.write(json.dumps(found, ensure_ascii=False) + "\n")
            if len(sample) < SAMPLE:
                sample.append(found)
    text = json.dumps(reconciliation.statement, ensure_ascii=False, indent=2)
    (staged / "statement.json").write_text(text + "\n", encoding="utf-8")
    (staged / "statement.html").write_text(render_html(reconciliation.statement, sample), encoding="utf-8")
    (staged / "statement.md").write_text(render_markdown(reconciliation.statement), encoding="utf-8")
