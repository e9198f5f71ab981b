"""Faults on a real Kafka cluster, struck with signals: every message is judged as who struck it knows.

The cases of one topic are played by the function that its name stands for in `playing.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.integration.judging import differences, judged
from tests.integration.kafka_faults.contract import contract_of
from tests.integration.kafka_faults.selection import TOPICS
from tests.integration.report import Line, line_of

pytestmark = pytest.mark.timeout(1_800)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_message_is_judged_as_its_fault_left_it(
    topic: str,
    played: Path,
    truth: dict[str, Any],
    lines: list[Line],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Verdict, classes, and each break with its place, flags, locus and cause; no offset is left unexplained."""
    assert topic not in truth["failures"], truth["failures"].get(topic)
    cases = [case for case in truth["cases"] if case["topic"] == topic]
    assert cases

    wrong = {}
    for number, case in enumerate(cases):
        contract = played / "evidence" / case["folder"] / f"{topic}-{number}.yml"
        contract.write_text(json.dumps(contract_of(case, played), indent=1))
        found = judged(case, contract, tmp_path / f"{topic}-{number}")
        lines.append(line_of(topic, case, found.statement, found.breaks, found.seconds))
        if unlike := differences(case, found):
            wrong[case["configuration"]] = unlike

    assert wrong == {}
