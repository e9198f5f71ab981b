"""A producer that keeps a ledger of its attempts: `python -m tools.record.clients.producer CONFIG.json`.

The configuration: `bootstrap`, `topic`, `producer_id`, `session`, `ledger` (a file), `rate` (messages a
second), `transactional_id` or null, and `plan`: a list of {"ids": […], "end": E}, where E is one of flush,
commit, abort and die.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tools.record.clients.protocol import LedgerFile, announce, configuration, wait_to_be_killed
from tools.record.messages import fingerprint, key_of, now_text, payload_of


@dataclass
class Attempt:
    """One send attempt, filled in when the broker has answered."""

    sequence: int
    message_id: str
    attempted_at: str
    completed_at: str | None = None
    partition: int | None = None
    offset: int | None = None
    errors: list[str] = field(default_factory=list)

    def answered(self, error: KafkaError | None, message: Message) -> None:
        """Record the broker's answer."""
        self.completed_at = now_text()
        if error is not None:
            self.errors.append(str(error))
        self.partition, self.offset = message.partition(), message.offset()


class LedgerProducer:
    """Sends the messages of its plan and writes one ledger row per attempt, once the outcome is known."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._ledger = LedgerFile(config["ledger"])
        self._sequence = 0
        self._pause = 1 / float(config["rate"])
        settings = {
            "bootstrap.servers": config["bootstrap"],
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 20,
        }
        if config["transactional_id"]:
            settings |= {"transactional.id": config["transactional_id"], "transaction.timeout.ms": 60_000}
        self._producer = Producer(settings)

    def run(self) -> None:
        """Execute the plan."""
        if self._config["transactional_id"]:
            self._producer.init_transactions(30)
        for number, part in enumerate(self._config["plan"]):
            if self._config["transactional_id"]:
                self._transaction(number, part)
            else:
                self._write(self._send(part["ids"]), "acked")
        announce("done", attempts=self._sequence)

    def _transaction(self, number: int, part: dict[str, Any]) -> None:
        transaction_id = f"{self._config['transactional_id']}/{self._config['session']}/{number}"
        self._producer.begin_transaction()
        attempts = self._send(part["ids"])
        if part["end"] == "commit":
            self._producer.commit_transaction(30)
            self._write(attempts, "acked", transaction_id, "committed", now_text())
        elif part["end"] == "abort":
            self._producer.abort_transaction(30)
            self._write(attempts, "failed", transaction_id, "aborted", now_text())
        else:
            self._write(attempts, "unknown", transaction_id, "open")
            announce("fault_point", ids=part["ids"])
            wait_to_be_killed()

    def _send(self, message_ids: list[str]) -> list[Attempt]:
        """Send the messages and return their attempts once the broker has answered all of them."""
        attempts = []
        for message_id in message_ids:
            attempt = Attempt(self._sequence, message_id, now_text())
            self._sequence += 1
            self._producer.produce(
                self._config["topic"],
                payload_of(message_id),
                key_of(message_id),
                on_delivery=attempt.answered,
            )
            attempts.append(attempt)
            self._producer.poll(0)
            time.sleep(self._pause)
        unanswered = self._producer.flush(60)
        errors = [error for attempt in attempts for error in attempt.errors]
        if unanswered or errors:
            raise SystemExit(f"the broker did not take every message: {unanswered} open, {errors[:3]}")
        return attempts

    def _write(
        self,
        attempts: list[Attempt],
        outcome: str,
        transaction_id: str | None = None,
        transaction_state: str = "none",
        completed_at: str | None = None,
    ) -> None:
        transaction = {"transaction_id": transaction_id, "transaction_state": transaction_state}
        for attempt in attempts:
            self._ledger.write(
                {
                    "producer_id": self._config["producer_id"],
                    "producer_session": self._config["session"],
                    "sequence": attempt.sequence,
                    **(transaction if transaction_id else {}),
                    "message_id": attempt.message_id,
                    "topic": self._config["topic"],
                    "partition": attempt.partition,
                    "offset": attempt.offset,
                    "key_hash": fingerprint(key_of(attempt.message_id)),
                    "payload_hash": fingerprint(payload_of(attempt.message_id)),
                    "attempted_at": attempt.attempted_at,
                    "completed_at": None if outcome == "unknown" else completed_at or attempt.completed_at,
                    "outcome": outcome,
                }
            )


if __name__ == "__main__":
    LedgerProducer(configuration()).run()
