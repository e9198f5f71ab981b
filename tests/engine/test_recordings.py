"""The engine on the recordings of examples/: verdict, sums and every break are those that the recorder knew.

Some are judged in several buckets as well: windows that do not fit one task are cut by Spark.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tieout.contracts import load_contract
from tieout.engine.judging import task
from tieout.engine.judging.cutting import Cut, cut
from tieout.engine.reconciling import Reconciliation, reconcile
from tieout.engine.scope import Scope
from tieout.engine.staging import break_lines
from tieout.model import Window
from tieout.verdicts import judge

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOW = datetime(2027, 1, 1, tzinfo=UTC)
FEW_ROWS = 20_000_000
"""So many bytes are said to be a row's that a few hundred rows fill a bucket."""
CUT = {"commit_before_process": True, "retry_without_idempotence": True, "clean_transactional": False}
"""Whether a recording is cut into buckets; transactions over all partitions hold one together."""
ABSTAINING: frozenset[str] = frozenset()
"""Classes for whose cause the evidence leaves more than one open: `unknown` is right, another cause is not."""


def _expectations() -> list[tuple[str, int, str]]:
    """Return example, number of the stage and contract of everything that a truth says."""
    return [
        (path.parent.name, number, contract)
        for path in sorted(EXAMPLES.glob("*/truth.json"))
        for number, stage in enumerate(json.loads(path.read_text())["stages"])
        for contract in stage["contracts"]
    ]


EXPECTATIONS = _expectations()


def _at_stage(example: str, number: int, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return a copy of the example with the evidence that there was at the stage, and its truth."""
    copy = folder / example
    shutil.copytree(EXAMPLES / example, copy)
    truth: dict[str, Any] = json.loads((copy / "truth.json").read_text())
    for stage in truth["stages"][: number + 1]:
        if stage["overlay"]:
            shutil.copytree(copy / stage["overlay"], copy / "evidence", dirs_exist_ok=True)
    return copy, truth


def _sums(statement: Mapping[str, Any]) -> Counter[str]:
    """Return the statement's counts, added up over its partitions."""
    totals: Counter[str] = Counter()
    for partition in statement["partitions"]:
        totals.update({name: count for name, count in partition.items() if isinstance(count, int)})
    return totals


def _known(finding: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what the truth says of a break, in the form of `_compared_columns`."""
    place = (finding["topic"], finding["partition"], finding["offset"])
    return (
        finding["class"],
        None if finding["class"].startswith("REORDER") else finding["message_id"],
        *place,
        tuple(sorted(finding["flags"])),
        finding["locus"],
        finding["cause"],
    )


def _compared_columns(row: Mapping[str, Any], expected: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what the engine says of a break; where the truth has no locus or cause, neither has this."""
    abstains = row["cause"] == "unknown" and row["class"] in ABSTAINING
    locus = row["locus"] if expected["locus"] else None
    cause = expected["cause"] if abstains or not expected["cause"] else row["cause"]
    place = (row["topic"], row["partition"], row["offset"])
    named = None if row["class"].startswith("REORDER") else row["message_id"]
    return row["class"], named, *place, tuple(sorted(row["flags"])), locus, cause


def _place(row: Mapping[str, Any]) -> tuple[object, ...]:
    # A pair in the wrong order is known by its place; the truth does not say which of its messages to name.
    named = None if row["class"].startswith("REORDER") else row["message_id"]
    return row["class"], named, row["topic"], row["partition"], row["offset"]


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[Cut | None]:
    """How windows were cut, as they are judged."""
    found: list[Cut | None] = []

    def noted(scope: Scope, given: Mapping[str, DataFrame], most_rows: int) -> Cut | None:
        found.append(cut(scope, given, most_rows))
        return found[-1]

    monkeypatch.setattr(task, "cut", noted)
    return found


def test_the_recordings_are_there() -> None:
    """There is something to compare: seven judgements of five recordings."""
    assert len({example for example, _, _ in EXPECTATIONS}) == 5
    assert len(EXPECTATIONS) == 7


@pytest.mark.parametrize(("example", "stage", "contract"), EXPECTATIONS)
def test_every_message_is_judged_as_the_recorder_knew(
    example: str,
    stage: int,
    contract: str,
    spark: SparkSession,
    tmp_path: Path,
    cuts: list[Cut | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Verdict, sums, classes, flags and each break with its place, locus and cause agree; nothing is left over.

    Several buckets give the bytes of one: statement and breaks, with their ids and rows.
    """
    copy, truth = _at_stage(example, stage, tmp_path)
    expected = truth["stages"][stage]["contracts"][contract]
    start, end = (datetime.fromisoformat(truth["window"][bound]) for bound in ("start", "end"))
    window = Window(start, end)
    judged = load_contract(copy / contract)

    found = reconcile(spark, judged, window, run_id="recording", now=NOW)

    assert judge(judged, found.statement).verdict == expected["verdict"]
    assert found.statement["classes"] == expected["classes"]
    assert {name: found.statement["flags"].get(name) for name in expected["flags"]} == expected["flags"]
    sums = _sums(found.statement)
    assert {name: sums[name] for name in expected["counts"]} == expected["counts"]
    assert sums["unexplained"] == 0
    _assert_same_breaks(found, expected["breaks"])
    assert cuts == []
    if example not in CUT or contract != "contract.yml":
        return

    monkeypatch.setattr(task, "BYTES_OF_ROW", FEW_ROWS)
    several = reconcile(spark, judged, window, run_id="recording", now=NOW)

    assert any(one is not None for one in cuts) == CUT[example]
    assert several.statement == found.statement
    assert [*break_lines(several.breaks)] == [*break_lines(found.breaks)]


def _assert_same_breaks(found: Reconciliation, expected: list[dict[str, Any]]) -> None:
    """Hold the engine's breaks against the truth's, one by one."""
    rows = {_place(row): row for row in (row.asDict(recursive=True) for row in found.breaks.rows().collect())}
    known = {_place(finding): finding for finding in expected}

    assert set(rows) == set(known)
    assert len(known) == len(expected)
    different = {
        place: _compared_columns(rows[place], finding)
        for place, finding in known.items()
        if _compared_columns(rows[place], finding) != _known(finding)
    }
    assert different == {}
