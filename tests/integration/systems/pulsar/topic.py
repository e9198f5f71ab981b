"""One topic of Pulsar and what happens to it: clients to start and kill, and the evidence that they leave."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import HASHED, UNTIL_READ
from tests.integration.kafka_faults.scene import Place, breaks_of
from tests.integration.systems.engine import Application
from tests.integration.systems.pulsar.broker import Broker
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.messages import now_text

SUBSCRIPTION: Final = "loader"
_NAMESPACE: Final = "public/default"
_POSITION: Final = "shiftleft(cast(ledger as bigint), 32) + shiftleft(cast(entry as bigint), 12) + batch"
_INDEXED: Final = {"acknowledgmentAtBatchIndexLevelEnabled": "true"}
_QUEUE: Final = {"consumption": "queue", "redelivery": "1s"}


@dataclass
class Topic:
    """A topic on a broker of its own; `name` begins its messages' ids."""

    stage: Stage
    broker: Broker
    name: str
    folder: Path
    started_at: str = field(default_factory=now_text)
    ended_at: str = ""
    _producers: set[str] = field(default_factory=set)
    _sessions: int = 0
    _lives: int = 0
    _copies: int = 0

    @classmethod
    def on_new_broker(cls, stage: Stage, **settings: object) -> Topic:
        """Start a broker with these settings, and return a topic that is on it with the first message."""
        broker = Broker(stage.engine, stage.folder / "broker", stage.stack, settings)
        broker.start()
        folder = stage.folder / "evidence"
        for name in ("produced", "delivered"):
            (folder / name).mkdir(parents=True)
        return cls(stage, broker, stage.name, folder)

    @property
    def path(self) -> str:
        """The topic as the administration interface names it."""
        return f"{_NAMESPACE}/{self.name}"

    def send(self, first: int, last: int, producer: str = "web", **settings: object) -> list[Place]:
        """Have a life of the producer send these messages; return the place of each that the broker names one of."""
        self._producers.add(producer)
        self._sessions += 1
        session = f"{producer}-{self._sessions}"
        ledger = self.folder / "produced" / f"{session}.jsonl"
        own = {"producer.name": producer, "session": session, "ledger": ledger, "prefix": self.name}
        application = self._started(
            "Sender", session, {**own, "first": first, "last": last, **_named(settings)}
        )
        application.wait()
        rows = [json.loads(line) for line in ledger.read_text().splitlines()]
        return [[0, _packed(row), row["message_id"]] for row in rows if "ledger" in row]

    def receiver(
        self, output: str = "rows", subscription: str = SUBSCRIPTION, **settings: object
    ) -> Application:
        """Start a life of the subscription's consumer, and return it once it is connected."""
        self._lives += 1
        life = f"{subscription}-{self._lives}"
        ready, folder = self.folder / f"{life}.ready", self.folder / "delivered" / subscription
        folder.mkdir(exist_ok=True)
        own = {
            "subscription": subscription,
            "life": life,
            "ready": ready,
            "sink": output,
            "output": folder / f"{life}.jsonl" if output == "rows" else folder,
            "idle": self.folder / f"{life}.idle",
            "release": self.release_file,
        }
        application = self._started("Receiver", life, {**own, **_named(settings)})
        wait_until(ready.exists, f"{life} to connect")
        return application

    @property
    def release_file(self) -> Path:
        """What lets a consumer go on that holds up a message."""
        return self.folder / "release"

    def await_rows(self, count: int, subscription: str = SUBSCRIPTION) -> None:
        """Wait until the subscription's output has so many rows."""
        folder = self.folder / "delivered" / subscription
        wait_until(
            lambda: sum(len(file.read_text().splitlines()) for file in folder.glob("*.jsonl")) >= count,
            f"{count} rows of {subscription}",
        )

    def await_acknowledged(self, count: int | None = None, subscription: str = SUBSCRIPTION) -> None:
        """Wait until so many entries are acknowledged, markers among them; by default all."""
        wait_until(lambda: self._is_acknowledged(count, subscription), f"{subscription} to acknowledge")

    def await_idle(self, subscription: str = SUBSCRIPTION) -> None:
        """Wait until the subscription's latest life has acknowledged all that it was to."""
        file = self.folder / f"{subscription}-{self._lives}.idle"
        wait_until(file.exists, f"{subscription} to be idle")

    def end(self) -> None:
        """Note that the window is over."""
        self.ended_at = datetime.now(UTC).isoformat().replace("+00:00", "Z")

    def case(
        self,
        fault: str,
        how: str,
        expected: Expected,
        guarantee: str = "exactly_once",
        *,
        subscription: str = SUBSCRIPTION,
        is_queue: bool = False,
        **more: Any,
    ) -> Case:
        """Return the case of what a subscription has put out by now; what comes later is no evidence of it."""
        self._copies += 1
        copy = self.folder / f"copy-{self._copies}"
        self.broker.copy(self.path, copy / "answers")
        shutil.copytree(self.folder / "delivered" / subscription, copy / "delivered")
        answers = {"path": str(copy / "answers"), "topic": self.path, "taken_at": "now"}
        place = {"topic": f"'{self.path}'", "partition": "0", "offset": _POSITION}
        hashes = {"key_hash": "sha2(key, 256)", "payload_hash": "sha2(value, 256)"}
        rows = {"kind": "files", "format": "jsonl"}
        ledgers = {
            "produced": {
                "source": {**rows, "path": str(self.folder / "produced" / "*.jsonl")},
                "columns": {**place, **hashes},
                "coverage": {**UNTIL_READ, "producers": sorted(self._producers), "sequences": "gapless"},
            },
            "log": {"source": {"kind": "pulsar", **answers}, "columns": dict(HASHED)},
            "delivered": {
                "source": {**rows, "path": str(copy / "delivered" / "*.jsonl")},
                "columns": {**place, **hashes},
                "coverage": UNTIL_READ,
            },
            "committed": {"source": {"kind": "pulsar_cursor", **answers, "subscription": subscription}},
        }
        reported = {**(_QUEUE if is_queue else {}), **more}
        return self.stage.case(
            fault, how, self, ledgers, expected, group=subscription, guarantee=guarantee, **reported
        )

    def settings(self, **said: object) -> dict[str, Any]:
        """Return the contract's settings: what the play's broker was told, and what clients are said to do."""
        return {"pulsar": {"client": "pulsar-3.0", **_INDEXED, **self.broker.settings, **said}}

    def _started(self, main_class: str, name: str, settings: dict[str, object]) -> Application:
        own = {"service.url": self.broker.service_url, "topic": f"persistent://{self.path}"}
        return self.stage.start(main_class, {**own, **settings}, name)

    def _is_acknowledged(self, count: int | None, subscription: str) -> bool:
        acknowledged, entries = self.broker.acknowledged(self.path, subscription)
        return acknowledged >= (entries if count is None else count)


def overdue(places: Sequence[Place]) -> list[dict[str, Any]]:
    """Return the breaks of messages that nobody has put out, and that nothing has passed: they are in flight."""
    return breaks_of(places, "IN_FLIGHT", "unknown", "unknown", ["OVERDUE"])


def _named(settings: dict[str, object]) -> dict[str, object]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def _packed(row: dict[str, Any]) -> int:
    return int((row["ledger"] << 32) + (row["entry"] << 12) + row["batch"])
