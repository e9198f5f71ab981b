"""Kafka Connect: sinks and sources, and the positions that workers, groups and file names keep."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.integration.systems.connect import rows, sinks, sources
from tests.integration.systems.engine import Engine, class_path_of

__all__ = ["PLAYS", "engine"]

PLAYS: Final = {**sinks.PLAYS, **rows.PLAYS, **sources.PLAYS}
_SERVICE: Final = "META-INF/services/org.apache.kafka.connect.sink.SinkConnector"
"""How a worker with `plugin.discovery=service_load` finds connectors."""


def engine(folder: Path) -> Engine:
    """Return Kafka Connect with the project's own sinks, compiled into the folder."""
    class_path = class_path_of("connect", folder)
    service = folder / _SERVICE
    service.parent.mkdir(parents=True)
    service.write_text("RangeFileSink\nTableSink\n")
    return Engine(class_path)
