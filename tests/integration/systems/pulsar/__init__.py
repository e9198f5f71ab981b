"""Pulsar: a broker of its own for each play, and clients that are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.integration.systems.engine import Engine, class_path_of
from tests.integration.systems.pulsar import receiving, sending, sharing

__all__ = ["PLAYS", "engine"]

PLAYS: Final = {**sending.PLAYS, **receiving.PLAYS, **sharing.PLAYS}
_OPENED: Final = (
    *("java.base/java.nio", "java.base/java.util.zip", "java.base/sun.net", "java.base/jdk.internal.misc"),
    *("java.base/jdk.internal.platform", "java.management/sun.management"),
    "jdk.management/com.sun.management.internal",
)
"""What Pulsar needs opened on Java 17, of what its own launcher passes."""


def engine(folder: Path) -> Engine:
    """Return Pulsar's broker and its client, with the project's own applications compiled into the folder."""
    options = [
        "-XX:MaxDirectMemorySize=256m",
        "-Dio.netty.tryReflectionSetAccessible=true",
        *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED),
    ]
    return Engine(class_path_of("pulsar", folder), "448m", options)
