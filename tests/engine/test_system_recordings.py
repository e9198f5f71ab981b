"""The recordings of engines in examples/systems: the command finds what the player of each fault knew."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.judging import differences, judged

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "systems"
CONTRACTS = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/contract*.yml"))


def test_every_recording_has_its_truth() -> None:
    """There is something to compare, and each contract of a recording is in its truth."""
    assert CONTRACTS
    for example in EXAMPLES.iterdir():
        contracts = {path.name for path in example.glob("contract*.yml")}
        assert set(json.loads((example / "truth.json").read_text())["contracts"]) == contracts


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_message_is_judged_as_the_player_knew(
    contract: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Verdict, classes, and each break with its place, flags, locus and cause, from a copy of the evidence."""
    example, _, file = contract.partition("/")
    copy = tmp_path / example
    shutil.copytree(EXAMPLES / example, copy)
    case = json.loads((copy / "truth.json").read_text())["contracts"][file]

    found = judged(case, copy / file, tmp_path / "statement")

    assert differences(case, found) == []
