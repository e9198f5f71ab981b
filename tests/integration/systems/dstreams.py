"""Spark Streaming's direct streams, whose application keeps its offsets in a table, halted in a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.scene import Place, Scene, breaks_of
from tests.integration.systems.engine import Engine
from tests.integration.systems.scene import Case, Expected, Stage
from tests.integration.systems.spark import engine_of_spark
from tests.integration.systems.tables import ranges_of, rows_of, table_settings

_MESSAGES, _PER_BATCH, _HALTED = 30, 10, 137
_FAULT: Final = "application halted between its output and its offsets"


def engine(folder: Path) -> Engine:
    """Return Spark with the project's own applications, compiled into the folder."""
    return engine_of_spark(folder)


def results_first(stage: Stage) -> list[Case]:
    """The output of the second batch is written, its range is not: it is output again."""
    source, batch = _halted(stage, "results-first")
    twice = breaks_of(batch, "OUTPUT_DUPLICATE", "consumer or sink", "process before commit")
    classes = {"DELIVERED": _MESSAGES - len(twice), "OUTPUT_DUPLICATE": len(twice)}
    how = "writes its output, then its offsets"
    return [
        _case(stage, how, source, Expected("BROKEN", classes, twice)),
        _case(stage, how, source, Expected("KEPT", classes, twice), "at_least_once"),
    ]


def offsets_first(stage: Stage) -> list[Case]:
    """The range of the second batch is written, its output is not: it is lost."""
    source, batch = _halted(stage, "offsets-first")
    lost = breaks_of(batch, "LOST", "consumer", "commit before process", ["COMMIT_AHEAD"])
    expected = Expected("BROKEN", {"DELIVERED": _MESSAGES - len(lost), "LOST": len(lost)}, lost)
    return [_case(stage, "writes its offsets, then its output", source, expected, "at_least_once")]


def one_transaction(stage: Stage) -> list[Case]:
    """Output and range are written in one transaction, only where the range before ends: nothing is lost or twice."""
    source, _ = _halted(stage, "transaction")
    how = "writes both in one transaction, where until_offset = from_offset"
    return [_case(stage, how, source, Expected("KEPT", {"DELIVERED": _MESSAGES}))]


PLAYS: Final = {
    "dstreams-results-first": results_first,
    "dstreams-offsets-first": offsets_first,
    "dstreams-transaction": one_transaction,
}


def _halted(stage: Stage, order: str) -> tuple[Scene, list[Place]]:
    """Halt the application in its second batch, start it again, and return the topic and that batch's messages."""
    source = stage.topic("in")
    sent = source.send(_MESSAGES)
    source.end()
    settings: dict[str, Any] = {
        **table_settings(stage),
        "brokers": stage.cluster.bootstrap,
        "topic": source.name,
        "per.batch": _PER_BATCH,
        "until": _MESSAGES,
        "order": order,
    }
    stage.start("Direct", {**settings, "life": "direct-1", "halt.in.batch": 1}, "direct").wait(_HALTED)
    stage.start("Direct", {**settings, "life": "direct-2"}, "direct").wait()
    return source, sent[_PER_BATCH : 2 * _PER_BATCH]


def _case(stage: Stage, how: str, source: Scene, expected: Expected, guarantee: str = "exactly_once") -> Case:
    ledgers = {"delivered": rows_of(stage, "plain"), "committed": ranges_of(stage)}
    return stage.case(_FAULT, how, source, ledgers, expected, group="direct", guarantee=guarantee)
