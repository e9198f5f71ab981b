"""A Pulsar broker with its own bookie, in a process of its own: started, killed, asked, and its topics copied."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.systems.engine import Application, Engine
from tools.record.processes import RecordingError, free_port

SETTINGS: Final = {
    "clusterName": "standalone",
    "advertisedAddress": "127.0.0.1",
    "bindAddress": "127.0.0.1",
    "allowLoopback": "true",
    "numIOThreads": 2,
    "numHttpServerThreads": 8,
    "numOrderedExecutorThreads": 2,
    "numExecutorThreadPoolSize": 2,
    "numCacheExecutorThreadPoolSize": 1,
    "managedLedgerDefaultEnsembleSize": 1,
    "managedLedgerDefaultWriteQuorum": 1,
    "managedLedgerDefaultAckQuorum": 1,
    "managedLedgerCacheSizeMB": 32,
    "allowAutoTopicCreationType": "non-partitioned",
    "brokerDeduplicationEnabled": "false",
    "transactionCoordinatorEnabled": "true",
    "acknowledgmentAtBatchIndexLevelEnabled": "true",
    "loadBalancerEnabled": "false",
    "webSocketServiceEnabled": "false",
    "functionsWorkerEnabled": "false",
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "brokerDeleteInactiveTopicsEnabled": "false",
    "messageExpiryCheckIntervalInMinutes": 1,
    "journalMaxGroupWaitMSec": 1,
    "journalSyncData": "true",
    "dbStorage_writeCacheMaxSizeMb": 16,
    "dbStorage_readAheadCacheMaxSizeMb": 8,
    "dbStorage_rocksDB_blockCacheSize": 8_388_608,
    "diskUsageThreshold": 0.99,
    "diskUsageWarnThreshold": 0.98,
}
"""What the broker is told: one bookie, everything kept, small memory, and a look for expired messages every minute."""
_HEALTH: Final = "/admin/v2/brokers/health"
_TRANSACTIONS: Final = "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign/partitions"
_PORTS: Final = ("webServicePort", "brokerServicePort", "bookkeeper.port")
_PATIENCE: Final = 30


@dataclass
class Broker:
    """A broker whose lives share a folder; `settings` are those that a play has of its own."""

    engine: Engine
    folder: Path
    stack: ExitStack
    settings: dict[str, object] = field(default_factory=dict)
    web: int = field(default_factory=free_port)
    _binary: int = field(default_factory=free_port)
    _bookie: int = field(default_factory=free_port)
    _life: int = 0
    _application: Application | None = None

    @classmethod
    def again(cls, engine: Engine, folder: Path, stack: ExitStack) -> Broker:
        """Return the broker whose lives left that folder: its bookie is known by its address."""
        files = sorted(folder.glob("broker-*.properties"))
        lines = (line.partition("=") for line in files[0].read_text().splitlines())
        ports = {name: int(value) for name, _, value in lines if name in _PORTS}
        web, binary, bookie = (ports[name] for name in _PORTS)
        return cls(engine, folder, stack, web=web, _binary=binary, _bookie=bookie, _life=len(files))

    @property
    def service_url(self) -> str:
        """Return where clients connect to."""
        return f"pulsar://127.0.0.1:{self._binary}"

    def start(self) -> None:
        """Start a life of the broker and wait until it serves topics."""
        self._life += 1
        settings = {
            **SETTINGS,
            **dict(zip(_PORTS, (self.web, self._binary, self._bookie), strict=True)),
            "data": self.folder / "data",
            **self.settings,
        }
        self._application = self.engine.start(
            "Standalone", settings, self.folder, f"broker-{self._life}", self.stack
        )
        wait_until(self._is_healthy, "the broker to serve topics")

    def kill(self) -> None:
        """End the broker as a failing machine would, its bookie with it."""
        if self._application is not None:
            self._application.kill()

    def stop(self) -> None:
        """End the broker in good order."""
        if self._application is not None:
            self._application.stop()

    def asked(self, path: str) -> tuple[int, str, bytes]:
        """Return status, head and body of what the administration interface says."""
        connection = HTTPConnection("127.0.0.1", self.web, timeout=_PATIENCE)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}", *(f"{k}: {v}" for k, v in answer.getheaders())]
        return answer.status, "\r\n".join(lines), body

    def administer(self, method: str, path: str, body: object = None) -> None:
        """Have the administration interface do something.

        Raises:
            RecordingError: where it refuses.
        """
        connection = HTTPConnection("127.0.0.1", self.web, timeout=_PATIENCE)
        try:
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read().decode()
        finally:
            connection.close()
        if answer.status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
            raise RecordingError(f"{method} {path}: {answer.status} {said}")

    def stats(self, topic: str) -> dict[str, Any]:
        """Return the topic's ledgers and cursors as the broker tells them."""
        status, _, body = self.asked(f"/admin/v2/persistent/{topic}/internalStats")
        if status != HTTPStatus.OK:
            raise RecordingError(f"{topic}: {status} {body.decode()}")
        found: dict[str, Any] = json.loads(body)
        return found

    def acknowledged(self, topic: str, subscription: str) -> tuple[int, int]:
        """Return how many entries of the topic the subscription has acknowledged, and how many there are."""
        stats = self.stats(topic)
        last = _place(stats["lastConfirmedEntry"])
        entries = [
            (ledger["ledgerId"], entry)
            for ledger in stats["ledgers"]
            for entry in range(last[1] + 1 if ledger["ledgerId"] == last[0] else ledger["entries"])
        ]
        cursor = stats["cursors"][subscription]
        up_to = _place(cursor["markDeletePosition"])
        ranges = [
            (_place(low), _place(high))
            for low, high in re.findall(r"\(([-\d:]+)\.\.([-\d:]+)\]", cursor["individuallyDeletedMessages"])
        ]
        known = [place <= up_to or any(low < place <= high for low, high in ranges) for place in entries]
        return sum(known), len(entries)

    def copy(self, topic: str, folder: Path) -> None:
        """Write down what the broker says of the topic: an answer with its head a file, as `curl --include` has it."""
        for path in (f"persistent/{topic}/partitions", f"persistent/{topic}/internalStats"):
            self._keep(path, folder)
        stats = self.stats(topic)
        last_ledger, last_entry = map(int, stats["lastConfirmedEntry"].split(":"))
        for ledger in stats["ledgers"]:
            count = last_entry + 1 if ledger["ledgerId"] == last_ledger else ledger["entries"]
            for entry in range(count):
                self._keep(f"persistent/{topic}/ledger/{ledger['ledgerId']}/entry/{entry}", folder)

    def _keep(self, path: str, folder: Path) -> None:
        status, head, body = self.asked(f"/admin/v2/{path}")
        if status != HTTPStatus.OK:
            raise RecordingError(f"{path}: {status} {body.decode()}")
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(head.encode("latin-1") + b"\r\n\r\n" + body)

    def _is_healthy(self) -> bool:
        if self._application is not None and self._application.process.poll() is not None:
            raise RecordingError(self._application.log.read_text()[-2000:])
        with suppress(OSError):
            return self.asked(_HEALTH)[0] == HTTPStatus.OK and self.asked(_TRANSACTIONS)[0] == HTTPStatus.OK
        return False


def _place(text: str) -> tuple[int, int]:
    ledger, _, entry = text.partition(":")
    return int(ledger), int(entry)
