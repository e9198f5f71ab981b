"""A consumer that keeps the rows it outputs: `python -m tools.record.clients.consumer CONFIG.json`.

The configuration: `bootstrap`, `topic`, `group`, `consumer_id`, `isolation`, `batch` (most records per poll),
`order` (process_then_commit or commit_then_process), `sink` and `fault`: null or {"after": n, "at_least": m}.
With a fault, half of the first batch of at least m records after n processed ones is written, after its commit
or without it, depending on `order`; then the process notifies the recorder and waits to be killed.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tools.record.clients.protocol import announce, configuration, stop_on_sigterm, wait_to_be_killed
from tools.record.clients.sinks import sink_of
from tools.record.messages import fingerprint, id_in, now_text


class LedgerConsumer:
    """Reads in batches, writes an output row per record, and commits before or after, as configured."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._sink = sink_of(config["sink"])
        self._processed = 0
        self._stopped = stop_on_sigterm()
        self._consumer = Consumer(
            {
                "bootstrap.servers": config["bootstrap"],
                "group.id": config["group"],
                "group.instance.id": f"{config['group']}-1",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "isolation.level": config["isolation"],
                "fetch.wait.max.ms": 200,
            }
        )

    def run(self) -> None:
        """Consume until SIGTERM, or until the fault."""
        self._consumer.subscribe([self._config["topic"]])
        announce("started")
        while not self._stopped.is_set():
            batch = self._consumer.consume(self._config["batch"], timeout=0.9)
            for message in batch:
                if message.error():
                    raise KafkaException(message.error())
            if batch:
                self._handle(batch)
        self._consumer.close()
        announce("done", processed=self._processed)

    def _handle(self, batch: list[Message]) -> None:
        commits_first = self._config["order"] == "commit_then_process"
        if commits_first:
            self._commit(batch)
        if self._is_faulty(batch):
            half = len(batch) // 2
            self._process(batch[:half])
            announce(
                "fault_point",
                committed=commits_first,
                written=[_position(message) for message in batch[:half]],
                unwritten=[_position(message) for message in batch[half:]],
            )
            wait_to_be_killed()
        self._process(batch)
        if not commits_first:
            self._commit(batch)

    def _is_faulty(self, batch: list[Message]) -> bool:
        fault = self._config["fault"]
        return bool(fault) and self._processed >= fault["after"] and len(batch) >= fault["at_least"]

    def _process(self, batch: list[Message]) -> None:
        rows = []
        for message in batch:
            rows.append(self._row(message))
            self._processed += 1
        self._sink.write(rows)

    def _row(self, message: Message) -> dict[str, object]:
        value: bytes = message.value()
        return {
            "message_id": id_in(value),
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "key_hash": fingerprint(message.key()),
            "payload_hash": fingerprint(value),
            "consumer_group": self._config["group"],
            "consumer_id": self._config["consumer_id"],
            "delivery_sequence": self._processed,
            "processed_at": now_text(),
            "outcome": "ok",
        }

    def _commit(self, batch: list[Message]) -> None:
        """Commit, per partition, the offset after the batch's last record, and wait for the broker's answer."""
        following = {(message.topic(), message.partition()): message.offset() + 1 for message in batch}
        self._consumer.commit(
            offsets=[
                TopicPartition(topic, partition, offset) for (topic, partition), offset in following.items()
            ],
            asynchronous=False,
        )


def _position(message: Message) -> list[object]:
    return [message.partition(), message.offset()]


if __name__ == "__main__":
    LedgerConsumer(configuration()).run()
