"""A topology on a cluster in a process of its own, with a ZooKeeper in another one: started, watched and killed."""

from __future__ import annotations

import socket
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import psycopg2
from psycopg2 import sql
from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import Scene
from tests.integration.systems.engine import Application
from tests.integration.systems.scene import Stage
from tests.integration.systems.tables import table_settings
from tools.record.processes import RecordingError, free_port

_ZOOKEEPER: Final = "org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServerMain"
_PATIENCE: Final = 1.0


class Topology:
    """The lives of a topology that reads the topic and writes tables of the play's own schema."""

    def __init__(self, stage: Stage, source: Scene, main_class: str, **settings: object) -> None:
        self.stage, self.source = stage, source
        self._main_class = main_class
        self._zookeeper_port = free_port()
        self._settings = {
            **table_settings(stage),
            "bootstrap.servers": stage.cluster.bootstrap,
            "zookeeper.port": self._zookeeper_port,
            "folder": stage.folder,
            "input": source.name,
            "group": stage.name,
            "topology.acker.executors": 1,
            "topology.message.timeout.secs": 30,
            "together": 1,
            **_named(settings),
        }
        self._start_zookeeper()

    @property
    def zookeeper_data(self) -> Path:
        """Return where ZooKeeper writes its log and its snapshots."""
        return self.stage.folder / "zookeeper" / "version-2"

    def start(self, **settings: object) -> Application:
        """Start a life of the topology, with settings of this life; underscores in their names stand for dots."""
        return self.stage.start(self._main_class, {**self._settings, **_named(settings)}, "topology")

    def offsets(self, table: str = "plain") -> list[int]:
        """Return the offset of each row of a table, none while it is not there."""
        place = sql.Identifier(str(self._settings["schema"]), table)
        query = sql.SQL('select "offset" from {} order by 1').format(place)
        with closing(psycopg2.connect(self.stage.database)) as connection, connection.cursor() as cursor:
            with suppress(psycopg2.errors.UndefinedTable):
                cursor.execute(query)
                return [offset for (offset,) in cursor.fetchall()]
            return []

    def await_offsets(self, life: Application, *counts: int, table: str = "plain") -> None:
        """Wait until the table has the offsets 0, 1, … as often as they are counted here, and no others.

        Raises:
            RecordingError: where the topology ends instead, with what it said; where there are others in the end.
        """
        expected = Counter({offset: count for offset, count in enumerate(counts) if count})

        def are_there() -> bool:
            if life.process.poll() is not None:
                raise RecordingError(f"{life.name} ended:\n{life.log.read_text()[-2000:]}")
            return Counter(self.offsets(table)) == expected

        try:
            wait_until(are_there, f"rows in {table}")
        except RecordingError as error:
            raise RecordingError(
                f"{error}: found {self.offsets(table)}\n{life.log.read_text()[-2000:]}"
            ) from None

    def await_commit(self, offset: int) -> None:
        """Wait until the group stands at the offset."""
        group = self.stage.name
        wait_until(lambda: self.stage.cluster.committed(group) == {0: offset}, f"{group} to commit {offset}")

    def await_next_batch(self) -> None:
        """Wait until Trident has ended a batch that began from now on: what was counted so far is of an earlier one."""
        needed = self._batches() + 2
        wait_until(lambda: self._batches() >= needed, "a batch to end")

    def _batches(self) -> int:
        """Return how often ZooKeeper's log says which batch is next."""
        place = f"/transactional/{self.stage.name}/coordinator/currtx".encode()
        return sum(file.read_bytes().count(place) for file in self.zookeeper_data.glob("log.*"))

    def _start_zookeeper(self) -> None:
        settings = {
            "clientPort": self._zookeeper_port,
            "clientPortAddress": "127.0.0.1",
            "dataDir": self.stage.folder / "zookeeper",
            "tickTime": 500,
        }
        self.stage.start(_ZOOKEEPER, settings, "zookeeper")
        wait_until(self._is_up, "ZooKeeper to answer")

    def _is_up(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._zookeeper_port), _PATIENCE):
            return True
        return False


def _named(settings: dict[str, object]) -> dict[str, object]:
    return {name.replace("_", "."): value for name, value in settings.items()}
