"""A producer that does what it is told and keeps a ledger of its attempts: one row each, once the outcome is known.

The configuration: `settings` of librdkafka, `topic`, `producer_id`, `session`, `ledger` (a file).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from tests.integration.kafka_faults.clients.protocol import configuration, obey
from tools.record.clients.protocol import LedgerFile
from tools.record.messages import fingerprint, key_of, now_text, payload_of

_UNDECIDED = (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)


@dataclass
class Attempt:
    """One send attempt, filled in when it was answered."""

    sequence: int
    message_id: str
    key: str | None
    attempted_at: str
    completed_at: str | None = None
    partition: int | None = None
    offset: int | None = None
    outcome: str = field(default="unknown")

    def answered(self, error: KafkaError | None, message: Message) -> None:
        """Take the client's answer; a time-out says nothing of what the broker did."""
        if error is None:
            self.outcome, self.completed_at = "acked", now_text()
            self.partition = message.partition()
            offset = message.offset()
            self.offset = offset if offset is not None and offset >= 0 else None
        elif error.code() not in _UNDECIDED:
            self.outcome, self.completed_at = "failed", now_text()


class Sender:
    """Sends in the background; `settle` waits for the answers and writes the ledger."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._ledger = LedgerFile(config["ledger"])
        self._producer = Producer(config["settings"])
        self._sequence = 0
        self._transaction = 0
        self._open: list[Attempt] = []

    def init(self) -> None:
        """Take over the transactional id; what an earlier session left open is aborted."""
        self._producer.init_transactions(30)

    def begin(self) -> None:
        """Begin a transaction."""
        self._transaction += 1
        self._producer.begin_transaction()

    def send(self, ids: list[str], partition: int = -1, key: str | None = None) -> None:
        """Hand the messages to the client; every fifth has no key, unless all are to have this one."""
        for message_id in ids:
            own_key = key if key is not None else (key_of(message_id) or b"").decode() or None
            attempt = Attempt(self._sequence, message_id, own_key, now_text())
            self._sequence += 1
            self._open.append(attempt)
            self._producer.produce(
                self._config["topic"],
                payload_of(message_id),
                own_key,
                partition=partition,
                on_delivery=attempt.answered,
            )
            self._producer.poll(0)

    def flush(self, patience: float = 60) -> int:
        """Wait for answers; return how many are still missing."""
        return int(self._producer.flush(patience))

    def settle(self, patience: float = 60) -> list[list[Any]]:
        """Wait for the answers, write a row per attempt, and return id, partition, offset and outcome of each."""
        self.flush(patience)
        return self._write()

    def commit(self) -> list[list[Any]]:
        """Commit the transaction and write its rows."""
        self._producer.commit_transaction(30)
        return self._write("acked")

    def try_commit(self) -> str:
        """Try to commit; return the broker's refusal by name, and write the rows as failed."""
        try:
            self._producer.commit_transaction(30)
        except Exception as error:
            name: str = error.args[0].name()
            self._write("failed")
            return name
        self._write("acked")
        return "committed"

    def abort(self) -> list[list[Any]]:
        """Abort the transaction and write its rows; flush before, or what was not sent yet never is."""
        self._producer.abort_transaction(30)
        return self._write("failed")

    def leave(self) -> list[list[Any]]:
        """Write the rows of a transaction whose end this session will never know."""
        return self._write("unknown")

    def _write(self, outcome: str | None = None) -> list[list[Any]]:
        attempts, self._open = self._open, []
        for attempt in attempts:
            row = {
                "producer_id": self._config["producer_id"],
                "producer_session": self._config["session"],
                "sequence": attempt.sequence,
                "message_id": attempt.message_id,
                "topic": self._config["topic"],
                "topic_id": self._config["topic_id"],
                "partition": attempt.partition,
                "offset": attempt.offset,
                "key_hash": fingerprint(attempt.key.encode() if attempt.key else None),
                "payload_hash": fingerprint(payload_of(attempt.message_id)),
                "attempted_at": attempt.attempted_at,
                "completed_at": None if outcome == "unknown" else attempt.completed_at,
                "outcome": outcome or attempt.outcome,
            }
            if self._transaction:
                row["transaction_id"] = f"{self._config['session']}/{self._transaction}"
            self._ledger.write(row)
        return [[one.message_id, one.partition, one.offset, outcome or one.outcome] for one in attempts]


if __name__ == "__main__":
    sender = Sender(configuration())
    obey(
        {
            name: getattr(sender, name)
            for name in ("init", "begin", "send", "flush", "settle", "commit", "try_commit", "abort", "leave")
        }
    )
