"""Storm: topologies on a cluster of one process, with a ZooKeeper that outlives it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.integration.systems.engine import Engine, class_path_of
from tests.integration.systems.storm import spout, trident

__all__ = ["PLAYS", "engine"]

PLAYS: Final = {**spout.PLAYS, **trident.PLAYS}
_OPENED: Final = ("java.base/java.lang", "java.base/java.util", "java.base/java.nio")
"""What Storm needs opened on Java 17, of what its own launcher passes."""


def engine(folder: Path) -> Engine:
    """Return Storm and its ZooKeeper, with the project's own topologies compiled into the folder."""
    options = [
        "-Dorg.apache.storm.shade.zookeeper.admin.enableServer=false",
        *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED),
    ]
    return Engine(class_path_of("storm", folder, common=["Tables"]), "448m", options)
