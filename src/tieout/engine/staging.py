"""Writing: a run's output directory, replaced as a whole or not at all.

Docs: docs/reference/contract.md, "The command line, and what it prints".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine.materialising import materialised
from tieout.engine.reconciling import BREAKS_KEPT, Reconciliation
from tieout.folders import replaced
from tieout.reporting.markdown import render_markdown

SAMPLE: Final = 200
"""How many breaks the page for people shows."""

HtmlRenderer = Callable[[dict[str, Any], list[dict[str, Any]]], str]


_ORDER: Final = ("class", "topic", "partition", "offset", "break_id")
"""The order in which people read breaks."""
_TASKS_IN_ORDER: Final = 8


def ordered_breaks(breaks: DataFrame) -> DataFrame:
    """Return breaks as JSON lines, one column `line`, in the order in which people read them."""
    columns = [name for name in breaks.columns if name != "kind"]
    in_order = breaks.orderBy(*_ORDER)
    return in_order.select(F.to_json(F.struct(*columns), {"ignoreNullFields": "true"}).alias("line"))


def break_lines(
    breaks: DataFrame, limit: int = BREAKS_KEPT, *, is_truncated: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the first breaks as they stand in `breaks.jsonl`, at most `limit`, a partition at a time on the driver.

    `is_truncated` says that there are more: then only the first are sorted with all that they hold.
    """
    first = materialised(_up_to(breaks, limit)) if is_truncated else breaks
    for row in islice(ordered_breaks(first).toLocalIterator(), limit):
        yield _with_nulls(json.loads(row["line"]))


def _up_to(breaks: DataFrame, place: int) -> DataFrame:
    """Return the breaks that stand no later in order than the one at this place, the first being at 1.

    Each task finds the first of its own, and so they are told to few tasks beforehand; the driver is told of one.
    """
    places = breaks.select(*_ORDER).repartition(_TASKS_IN_ORDER, "break_id").orderBy(*_ORDER).limit(place)
    last = places.agg(F.max(F.struct(*_ORDER)).alias("last")).collect()[0]["last"]
    if last is None:
        return breaks
    told = F.struct(*[F.lit(last[name]).cast(places.schema[name].dataType) for name in _ORDER])
    return breaks.filter(F.struct(*_ORDER) <= told)


_KEYS: Final = (
    "break_id", "class", "flags", "message_id", "producer_id", "topic", "partition", "offset", "positions", "locus",
    "cause", "admissible", "rule", "severity", "incident_id", "evidence",
)  # fmt: skip


def _with_nulls(found: dict[str, Any]) -> dict[str, Any]:
    """Return the break with every key; only inside evidence rows are nulls left out."""
    return {key: found.get(key) for key in _KEYS}


def write_output(reconciliation: Reconciliation, directory: Path, render_html: HtmlRenderer) -> None:
    """Write `statement.json`, `.html` and `.md`, `breaks/` and `breaks.jsonl`, then put them in place at once.

    Raises:
        DiskFullError: where there is no space left; what was there before is untouched.
        OSError: where the directory's parent cannot be written; the same.
    """
    with replaced(directory) as staged:
        _write(reconciliation, staged, render_html)


def _write(reconciliation: Reconciliation, staged: Path, render_html: HtmlRenderer) -> None:
    reconciliation.breaks.drop("kind").write.mode("overwrite").parquet(str(staged / "breaks"))
    sample: list[dict[str, Any]] = []
    with (staged / "breaks.jsonl").open("w", encoding="utf-8") as lines:
        is_truncated = reconciliation.statement["breaks_truncated"]
        for found in break_lines(reconciliation.breaks, is_truncated=is_truncated):
            lines.write(json.dumps(found, ensure_ascii=False) + "\n")
            if len(sample) < SAMPLE:
                sample.append(found)
    text = json.dumps(reconciliation.statement, ensure_ascii=False, indent=2)
    (staged / "statement.json").write_text(text + "\n", encoding="utf-8")
    (staged / "statement.html").write_text(render_html(reconciliation.statement, sample), encoding="utf-8")
    (staged / "statement.md").write_text(render_markdown(reconciliation.statement), encoding="utf-8")
