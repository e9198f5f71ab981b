"""ActiveMQ Classic: a broker of each play's own, whose journal is the log and the acknowledgements of its queue."""

from __future__ import annotations

from pathlib import Path

from tests.integration.systems.activemq import consumers, jms, senders
from tests.integration.systems.engine import Engine, class_path_of

PLAYS = {**consumers.PLAYS, **senders.PLAYS, **jms.PLAYS}


def engine(folder: Path) -> Engine:
    """Return the broker, compiled into the folder."""
    return Engine(class_path_of("activemq", folder), "192m")
