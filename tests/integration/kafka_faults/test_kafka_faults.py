"""Faults on a real Kafka cluster, struck with signals: every message is judged as who struck it knows.

The cases of one topic are played by the function that its name stands for in `playing.py`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.integration.kafka_faults.judging import differences, judged
from tests.integration.kafka_faults.report import Line, line_of

pytestmark = pytest.mark.timeout(900)

IN_EVERY_RUN = (
    *("commit-first", "write-first", "transactions", "compacted", "cooperative"),
    *("stopped-plain", "stopped-idempotent", "acks-one", "acks-all", "unclean", "torn"),
)
"""At least one fault of each kind, and what survives it; a judgement costs seconds."""
OTHERS = (
    *(
        "worker-queue",
        "open-transaction",
        "reset-to-earliest",
        "reset-to-latest",
        "group-deleted",
        "recreated",
    ),
    *("recreated-when-read", "overrun", "eager", "sent-again", "acks-none", "clean", "torn-unanswered"),
    "torn-replicated",
)
"""What `make faults` strikes and judges besides, and a run with TIEOUT_FAULTS=all."""
TOPICS = IN_EVERY_RUN + (OTHERS if os.environ.get("TIEOUT_FAULTS") == "all" else ())


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
        found = judged(case, played, tmp_path / f"{topic}-{number}")
        lines.append(line_of(case, found.statement, found.breaks))
        if unlike := differences(case, found):
            wrong[case["configuration"]] = unlike

    assert wrong == {}
