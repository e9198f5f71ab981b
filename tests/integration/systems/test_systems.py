"""Faults of real engines, judged on what the engines keep themselves: every message as who struck it knows.

A play is a function of the module of its system beside this one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.integration.judging import differences, judged
from tests.integration.report import Line, line_of
from tests.integration.systems.selection import ALL, SELECTED, TITLES, judgements_of, system_of

pytestmark = pytest.mark.timeout(1_800)


def test_every_play_is_of_a_system() -> None:
    """The page has a section for each play, and each system has one that every run plays."""
    assert {system_of(name) for name in ALL} == set(TITLES)
    assert {system_of(name) for name in SELECTED} == set(TITLES)


@pytest.mark.parametrize("play", SELECTED)
def test_every_message_is_judged_as_its_fault_left_it(
    play: str,
    played: Path,
    truth: dict[str, Any],
    lines: list[Line],
    spark: SparkSession,
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Verdict, classes, and each break with its place, flags, locus and cause; no offset is left unexplained."""
    assert play not in truth["failures"], truth["failures"].get(play)
    cases = truth["cases"][play][: judgements_of(play)]
    assert cases
    monkeypatch.setenv("AIRFLOW_CONN_SYSTEMS", postgres_url)

    wrong = {}
    for number, case in enumerate(cases):
        contract = tmp_path / f"{number}.yml"
        contract.write_text(json.dumps(case["contract"], indent=1))
        found = judged(case, contract, tmp_path / f"{number}")
        lines.append(line_of(play, case, found.statement, found.breaks, found.seconds))
        if unlike := differences(case, found):
            wrong[case["configuration"]] = unlike

    assert wrong == {}
