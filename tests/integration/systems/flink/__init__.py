"""Flink: jobs on a cluster of one process, whose checkpoints a play asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.integration.systems.engine import Engine, class_path_of
from tests.integration.systems.flink import files, restarts, topics

_OPENED: Final = ("java.base/java.lang", "java.base/java.util", "java.base/java.time", "java.base/java.net")
"""What Flink needs opened on Java 17, of what its own launcher passes."""
PLAYS: Final = {**topics.PLAYS, **restarts.PLAYS, **files.PLAYS}


def engine(folder: Path) -> Engine:
    """Return Flink with the job that copies a topic, compiled into the folder."""
    options = [f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED]
    return Engine(class_path_of("flink", folder), "448m", options)
