"""One queue of a play: its broker, what was sent to it, the processes that consume it, and the case of all that."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import UNTIL_READ
from tests.integration.kafka_faults.scene import breaks_of
from tests.integration.systems.activemq.stomp import Connection
from tests.integration.systems.engine import ROOT, Application
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.messages import iso
from tools.record.processes import RecordingError, free_port

NO_LIMIT: Final = 1 << 20
_HEAD: Final = struct.Struct(">iB")
_RECORD, _CONTROL, _ADDED = 1, 2, 1
_ID: Final = b"\0\x08order_id\x09"
"""How a message's property is written, before its length."""
_COLUMNS: Final = {"message_id": "properties['order_id']"}


class Queue:
    """A queue with the play's name, on a broker that is started when it is made."""

    def __init__(self, stage: Stage, **settings: object) -> None:
        self.stage, self.name = stage, stage.name
        self.port = free_port()
        self._settings = {
            "data": stage.folder / "data",
            "stomp": self.port,
            "openwire": free_port(),
            **settings,
        }
        self.url = f"tcp://127.0.0.1:{self._settings['openwire']}"
        self.output = stage.folder / "output" / "delivered.jsonl"
        self.output.parent.mkdir(parents=True, exist_ok=True)
        self.output.touch()
        self._sent = stage.folder / "produced" / "sender.jsonl"
        self._sent.parent.mkdir()
        self._sent.touch()
        self._count = 0
        self.broker = self.start()
        self.started_at = datetime.now(UTC)

    def start(self) -> Application:
        """Start the broker, with what its journal holds."""
        self.broker = self.stage.start("Broker", self._settings, "broker")
        wait_until(lambda: "READY" in self.broker.log.read_text(), "the broker to be ready")
        return self.broker

    def connection(self) -> Connection:
        """Return a new connection to the broker."""
        return Connection(self.port)

    def send(
        self,
        connection: Connection,
        count: int,
        *,
        is_answered: bool = True,
        outcome: str | None = None,
        **headers: object,
    ) -> list[str]:
        """Send so many new messages and write them down; `outcome` is what the sender believes, else the truth."""
        ids = []
        for _ in range(count):
            id_, body = f"{self.name}-{self._count}", f"message {self._count}".encode()
            attempted_at = datetime.now(UTC)
            reported = {
                "destination": f"/queue/{self.name}",
                "persistent": "true",
                "order_id": id_,
                **headers,
            }
            if is_answered:
                connection.ask("SEND", reported, body)
            else:
                connection.send("SEND", reported, body)
            self._write(id_, body, attempted_at, outcome or ("acked" if is_answered else "unknown"))
            ids.append(id_)
        return ids

    def sent_elsewhere(self, count: int) -> list[str]:
        """Write down so many new messages as sent, which another client is about to send; return their ids."""
        ids = [f"{self.name}-{self._count + number}" for number in range(count)]
        for id_ in ids:
            self._write(id_, f"message {self._count}".encode(), datetime.now(UTC), "acked")
        return ids

    def consume(self, ack: str, name: str, limit: int = NO_LIMIT) -> subprocess.Popen[bytes]:
        """Start a process that consumes the queue."""
        arguments = [str(self.port), self.name, ack, str(self.output), name, str(limit)]
        command = [sys.executable, "-m", "tests.integration.systems.activemq.consumer", *arguments]
        process = subprocess.Popen(command, cwd=ROOT)
        self.stage.stack.callback(_end, process)
        return process

    def await_output(self, count: int) -> None:
        """Wait until so many messages were processed."""
        wait_until(lambda: len(self.processed()) >= count, f"{count} messages processed")

    def await_held(self, count: int) -> None:
        """Wait until a consumer stands still with so many messages."""
        held = self.output.parent / "held"
        wait_until(lambda: held.exists() and held.read_text() == str(count), f"{count} messages held")

    def await_idle(self) -> None:
        """Wait until neither the broker nor a consumer has written anything for a while."""
        sizes: list[int] = []

        def is_idle() -> bool:
            found = [path.read_bytes().rstrip(b"\0") for path in (self.data / "kahadb").glob("db-*.log")]
            sizes.append(sum(map(len, found)) + self.output.stat().st_size)
            return len(sizes) > 8 and len(set(sizes[-8:])) == 1

        wait_until(is_idle, "the journal to be quiet")

    def processed(self) -> list[str]:
        """Return the ids of the messages that were processed, in order."""
        return [json.loads(line)["message_id"] for line in self.output.read_text().splitlines()]

    @property
    def data(self) -> Path:
        """Return the folder of the broker's data."""
        return self.stage.folder / "data"

    def case(self, fault: str, configuration: str, expected: Expected, **more: Any) -> Case:
        """Return the case of what was sent, what was processed, and what the journal says, once the broker is gone."""
        ended_at = datetime.now(UTC)
        seconds = math.ceil((ended_at - self.started_at).total_seconds())
        ledgers: dict[str, Any] = {
            "produced": {
                "source": {"kind": "files", "format": "jsonl", "path": str(self._sent)},
                "coverage": {**UNTIL_READ, "producers": ["sender"], "sequences": "gapless"},
            },
            "log": self.journal({**_COLUMNS, "payload_hash": "sha2(value, 256)"}),
            "delivered": {
                "source": {"kind": "files", "format": "jsonl", "path": str(self.output)},
                "coverage": UNTIL_READ,
            },
            "committed": self.journal({}),
            **more.pop("ledgers", {}),
        }
        contract = {
            "version": 1,
            "pipeline": self.name.replace("-", "_"),
            "guarantee": "at_least_once",
            "group": "loader",
            "consumption": "queue",
            "redelivery": "1s",
            "max_latency": f"{seconds}s",
            "margin": "1m",
            "grace": f"{seconds}s",
            "look_back": "1h",
            "ledgers": ledgers,
            **more,
        }
        window = (iso(self.started_at), iso(ended_at))
        guarantee = contract["guarantee"]
        return Case(
            fault, configuration, guarantee, window, iso(ended_at), seconds, contract, **vars(expected)
        )

    def journal(self, columns: Mapping[str, str] = _COLUMNS, **options: object) -> dict[str, Any]:
        """Return a ledger that the journal is evidence for."""
        source = {
            "kind": "kahadb",
            "path": [str(self.data / "kahadb"), str(self.data / "archive")],
            "destination": self.name,
            "concurrent_store_and_dispatch": False,
            "taken_at": "now",
            **options,
        }
        return {"source": source, "columns": dict(columns)} if columns else {"source": source}

    def lost(self, ids: Sequence[str], locus: str) -> list[dict[str, Any]]:
        """Return one expected break for each of the messages, where the journal has it, in files that are all there."""
        return breaks_of(self.places(ids), "LOST", locus)

    def places(self, ids: Sequence[str]) -> list[list[Any]]:
        """Return partition, position and id of each of the messages, where the journal has it."""
        positions = self._positions()
        return [[0, positions.get(id_), id_] for id_ in ids]

    def _positions(self) -> dict[str, int]:
        """Return where each message's record begins: the number of the file times 2^32 and the byte."""
        found: dict[str, int] = {}
        for path in self.data.glob("*/db-*.log"):
            number, content, at = int(path.stem.removeprefix("db-")), path.read_bytes(), 0
            while at + _HEAD.size <= len(content):
                size, kind = _HEAD.unpack_from(content, at)
                if size < _HEAD.size or kind not in (_RECORD, _CONTROL):
                    break
                record = content[at + _HEAD.size : at + size]
                if kind == _RECORD and record[0] == _ADDED and self.name.encode() in record:
                    id_ = record.partition(_ID)[2]
                    length = int.from_bytes(id_[:2], "big")
                    place = number << 32 | at
                    name = id_[2 : 2 + length].decode()
                    found[name] = min(place, found.get(name, place))
                at += size
        return found

    def _write(self, id_: str, body: bytes, attempted_at: datetime, outcome: str) -> None:
        row = {
            "producer_id": "sender",
            "producer_session": "1",
            "sequence": self._count,
            "message_id": id_,
            "topic": self.name,
            "payload_hash": hashlib.sha256(body).hexdigest(),
            "attempted_at": iso(attempted_at),
            "completed_at": iso(datetime.now(UTC)),
            "outcome": outcome,
        }
        self._count += 1
        with self._sent.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait(20)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a consumer as a failing machine would.

    Raises:
        RecordingError: where it had ended by itself.
    """
    if process.poll() is not None:
        raise RecordingError(f"the consumer had ended before it was killed: exit {process.returncode}")
    process.kill()
    process.wait(20)
