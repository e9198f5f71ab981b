"""A consumer that does what it is told: read, write its output, commit, each when the scenario says so.

The configuration: `settings` of librdkafka, `topic`, `topic_id`, `consumer_id`, `sink` ({"kind": "file" or "table",
"path", "key"}; the key are a table's columns), and `drains`: whether it writes and commits what it was handed before
it gives up a partition. Where librdkafka does not store offsets by itself, those of written rows are stored, to be
committed.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterator
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from tests.integration.kafka_faults.clients.protocol import configuration, obey
from tools.record.clients.protocol import LedgerFile
from tools.record.messages import fingerprint, id_in, now_text

_GENERATION = struct.Struct("=7si")
"""The head of librdkafka's group metadata: a mark of its format, and the generation."""


_POLL, _PATIENCE = 0.2, 90.0
"""Seconds."""


def _tries(what: str) -> Iterator[int]:
    """Count polls; a machine that stood still meanwhile does not use them up.

    Raises:
        SystemExit: where they are used up.
    """
    yield from range(int(_PATIENCE / _POLL))
    raise SystemExit(f"{what} within {_PATIENCE:.0f} s")


class Sink(Protocol):
    """Keeps the output's rows; they survive this process's death once `write` has returned."""

    def write(self, row: dict[str, Any]) -> None:
        """Keep the row."""


class TableSink:
    """A table with a key, such as the record's position: a row that is there already stays as it is."""

    def __init__(self, path: str, key: list[str]) -> None:
        self._key = key
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._connection.execute("create table if not exists output (key primary key, row)")

    def write(self, row: dict[str, Any]) -> None:
        """Insert the row unless its key is there."""
        key = json.dumps([row[name] for name in self._key])
        self._connection.execute("insert or ignore into output values (?, ?)", (key, json.dumps(row)))


class Reader:
    """Reads, writes and commits; keeps what it was handed until it is told to write it."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        sink = config["sink"]
        self._sink: Sink = (
            LedgerFile(sink["path"]) if sink["kind"] == "file" else TableSink(sink["path"], sink["key"])
        )
        self._stores = config["settings"].get("enable.auto.offset.store") is False
        self._consumer = Consumer({**config["settings"], "enable.partition.eof": True})
        self._handed: list[tuple[Message, int]] = []
        self._ends: set[int] = set()
        self._written = 0
        self._consumer.subscribe([config["topic"]], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def read(self, count: int) -> list[list[Any]]:
        """Wait until so many records were handed over, and return partition, offset and id of each."""
        before = len(self._handed)
        for _ in _tries(f"expected {count} records in {self._config['topic']}"):
            missing = before + count - len(self._handed)
            if not missing:
                break
            self._take(self._consumer.consume(missing, timeout=_POLL))
        return [
            [message.partition(), message.offset(), id_in(message.value())]
            for message, _ in self._handed[before:]
        ]

    def write(self, count: int | None = None) -> list[list[Any]]:
        """Write the first of what was handed over, all by default, and return partition, offset and id of each."""
        rows, self._handed = self._handed[:count], self._handed[len(self._handed[:count]) :]
        for message, generation in rows:
            self._sink.write(self._row(message, generation))
            if self._stores:
                self._consumer.store_offsets(message=message)
        return [[message.partition(), message.offset(), id_in(message.value())] for message, _ in rows]

    def commit(self) -> None:
        """Commit the position behind what was read last in each partition, and wait for the broker's word."""
        self._consumer.commit(asynchronous=False)

    def drain(self) -> int:
        """Read to the end of every partition, write and commit batch by batch, and return how many were written."""
        written = 0
        for _ in _tries(f"expected to come to the end of {self._config['topic']}"):
            self._take(self._consumer.consume(50, timeout=_POLL))
            if self._handed:
                written += len(self.write())
                self.commit()
            places = {place.partition for place in self._consumer.assignment()}
            if places and places <= self._ends:
                break
        return written

    def serve(self, partitions: int) -> None:
        """Poll without being handed records until so many partitions are assigned."""
        for _ in _tries(f"expected to keep {partitions} partitions of {self._config['topic']}"):
            mine = self._consumer.assignment()
            if len(mine) == partitions:
                break
            if mine:
                self._consumer.pause(mine)
            self._take(self._consumer.consume(1, timeout=_POLL))

    def resume(self) -> None:
        """Be handed records again."""
        self._consumer.resume(self._consumer.assignment())

    def join(self) -> list[int]:
        """Poll without being handed records until partitions are assigned, and return them."""
        for _ in _tries(f"expected partitions of {self._config['topic']}"):
            if self._consumer.assignment():
                break
            self._take(self._consumer.consume(1, timeout=_POLL))
        return sorted(place.partition for place in self._consumer.assignment())

    def close(self) -> None:
        """Leave the group without a commit."""
        self._consumer.close()

    def _take(self, messages: list[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is None:
                self._ends.discard(message.partition())
                self._handed.append((message, self._generation()))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ends.add(message.partition())
            elif error.code() == KafkaError._AUTO_OFFSET_RESET or not error.retriable():
                raise KafkaException(error)

    def _generation(self) -> int:
        generation: int = _GENERATION.unpack_from(self._consumer.consumer_group_metadata())[1]
        return generation

    def _on_assign(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._ends.difference_update(place.partition for place in places)

    def _on_revoke(self, _: Consumer, _places: list[TopicPartition]) -> None:
        if self._config["drains"] and self._handed:
            self.write()
            self.commit()

    def _row(self, message: Message, generation: int) -> dict[str, Any]:
        value: bytes = message.value()
        self._written += 1
        return {
            "message_id": id_in(value),
            "topic": message.topic(),
            "topic_id": self._config["topic_id"],
            "partition": message.partition(),
            "offset": message.offset(),
            "leader_epoch": message.leader_epoch(),
            "key_hash": fingerprint(message.key()),
            "payload_hash": fingerprint(value),
            "consumer_group": self._config["settings"]["group.id"],
            "consumer_id": self._config["consumer_id"],
            "generation": generation,
            "delivery_sequence": self._written,
            "processed_at": now_text(),
            "outcome": "ok",
        }


if __name__ == "__main__":
    reader = Reader(configuration())
    obey(
        {
            name: getattr(reader, name)
            for name in ("read", "write", "commit", "drain", "serve", "resume", "join", "close")
        }
    )
