"""A worker of Kafka Connect, standalone or distributed, driven through its REST interface."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.systems.engine import Application
from tests.integration.systems.scene import Stage
from tools.record.processes import RecordingError, free_port

KILLED: Final = "worker killed before its offset.flush.interval.ms is over"
COLUMNS: Final = {
    "message_id": "get_json_object(value, '$.order_id')",
    "key_hash": "sha2(key, 256)",
    "payload_hash": "sha2(value, 256)",
}
"""What the sender put into its ledger, made of a row that has key and value as texts."""
FLUSH_MS: Final = 5000
"""How long a worker keeps positions to itself: what is output meanwhile has no position when it is killed."""
_TEXT: Final = "org.apache.kafka.connect.storage.StringConverter"
_COMMON: Final = {
    "key.converter": _TEXT,
    "value.converter": _TEXT,
    "offset.flush.interval.ms": FLUSH_MS,
    "plugin.discovery": "service_load",
    "connector.client.config.override.policy": "All",
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}
_GROUP: Final = {
    "session.timeout.ms": 3000,
    "heartbeat.interval.ms": 500,
    "rebalance.timeout.ms": 3000,
    "scheduled.rebalance.max.delay.ms": 0,
    "config.storage.replication.factor": 1,
    "offset.storage.replication.factor": 1,
    "offset.storage.partitions": 1,
    "status.storage.replication.factor": 1,
    "status.storage.partitions": 1,
}
_SINK: Final = {
    "tasks.max": 1,
    "consumer.override.auto.offset.reset": "earliest",
    "consumer.override.session.timeout.ms": 3000,
    "consumer.override.heartbeat.interval.ms": 500,
}
"""A sink's successor waits for the session of the one that was killed."""
_PATIENCE: Final = 30


@dataclass(frozen=True)
class Worker:
    """A running worker."""

    application: Application
    port: int

    def kill(self) -> None:
        """End the worker as a failing machine would."""
        self.application.kill()

    def stop(self) -> None:
        """End the worker in good order: it commits what it has."""
        self.application.stop()

    def run(self, connector: str, settings: Mapping[str, object]) -> None:
        """Create the connector, or set it anew, once the worker can take it."""
        config = {name: str(value) for name, value in settings.items()}
        _connector_file(self.application.log.parent).write_text(json.dumps(config, indent=1))
        body = json.dumps(config).encode()
        wait_until(lambda: self._put(f"/connectors/{connector}/config", body), f"{connector} to be taken")

    def _put(self, path: str, body: bytes) -> bool:
        """Return whether the worker took it; it does not while it starts, joins its group or rebalances.

        Raises:
            RecordingError: where the worker says that the settings are wrong, with what it says.
        """
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)
        try:
            connection.request("PUT", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError:
            if self.application.process.poll() is not None:
                raise RecordingError(self.application.log.read_text()[-2000:]) from None
            return False
        finally:
            connection.close()
        if answer.status == HTTPStatus.BAD_REQUEST:
            raise RecordingError(text)
        return answer.status in (HTTPStatus.OK, HTTPStatus.CREATED)


def standalone(stage: Stage, **more: object) -> Worker:
    """Start a life of a standalone worker, whose positions of sources are in `offsets_file(stage)`."""
    settings = {"offset.storage.file.filename": offsets_file(stage), **_named(more)}
    return _start(stage, "org.apache.kafka.connect.cli.ConnectStandalone", settings)


def distributed(stage: Stage, **more: object) -> Worker:
    """Start a life of a distributed worker, alone in its group, whose positions of sources are in a topic."""
    topics = {f"{name}.storage.topic": f"{stage.name}-{name}s" for name in ("config", "status")}
    settings = {
        **_GROUP,
        **topics,
        "group.id": stage.name,
        "offset.storage.topic": offsets_topic(stage),
        **_named(more),
    }
    return _start(stage, "org.apache.kafka.connect.cli.ConnectDistributed", settings)


def offsets_file(stage: Stage) -> Path:
    """Return where a standalone worker keeps the positions of sources."""
    return stage.folder / "offsets.dat"


def offsets_topic(stage: Stage) -> str:
    """Return the name of the topic in which a distributed worker keeps the positions of sources."""
    return f"{stage.name}-offsets"


def sink(connector_class: str, topic: str, **settings: object) -> dict[str, Any]:
    """Return the settings of a sink of the topic; underscores in the names of settings stand for dots."""
    return {**_SINK, "connector.class": connector_class, "topics": topic, **_named(settings)}


def settings_of(stage: Stage, **said: str) -> dict[str, Any]:
    """Return the contract's settings: the files of the first worker and of the connector, and what is said besides."""
    return {
        "connect": {"client": "connect-4.3", "file": str(stage.folder / "worker-1.properties")},
        "connector": {"file": str(_connector_file(stage.folder)), **said},
    }


def _connector_file(folder: Path) -> Path:
    return folder / "connector.json"


def group_of(stage: Stage) -> str:
    """Return the consumer group of the play's sink, as Connect names it."""
    return f"connect-{stage.name}"


def await_commit(stage: Stage, offset: int) -> None:
    """Wait until the play's sink has committed the offset, and no other."""
    wait_until(lambda: stage.cluster.committed(group_of(stage)) == {0: offset}, f"a commit of {offset}")


def hold_to(stage: Stage, offset: int) -> None:
    """Make sure that the worker died before its next commit.

    Raises:
        AssertionError: where it had committed more.
    """
    found = stage.cluster.committed(group_of(stage))
    if found != {0: offset}:
        raise AssertionError(f"expected {offset} committed, found {found}")


def _start(stage: Stage, main_class: str, settings: Mapping[str, object]) -> Worker:
    port = free_port()
    own = {"bootstrap.servers": stage.cluster.bootstrap, "listeners": f"http://127.0.0.1:{port}"}
    return Worker(stage.start(main_class, {**_COMMON, **own, **settings}, "worker"), port)


def _named(settings: Mapping[str, object]) -> dict[str, object]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def lines_of(file: Path) -> list[str]:
    """Return the whole lines of a file, none while it is not there."""
    with suppress(FileNotFoundError):
        return file.read_text().splitlines()
    return []
