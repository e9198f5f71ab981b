"""One partition from its producers to its output: what a pipeline does, in the steps in which it does it.

The steps write evidence and know no faults; a fault is a sequence of steps that should not be (`faults/`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tieout.model import BreakClass, Ledger
from tieout.simulation.log import PartitionLog, content_columns
from tieout.simulation.records import Message, Reader, Record, Session, Transaction
from tieout.simulation.truth import Finding, Place
from tieout.simulation.world import ProducerKind, Row, digest


@dataclass(kw_only=True)
class Line(PartitionLog):
    """One partition with its reader, and the fault that it is going through.

    `allotted` is how many messages this round has still to send; `seat` decides which member of the group reads.
    """

    seat: int
    reader: Reader
    allotted: int = 0
    fault: str = ""
    position: int = 0
    committed: int = 0
    polls: int = 0
    wants_rebalance: bool = False
    turn: int = 0
    round_began_at: int = 0

    def some(self, count: int) -> int:
        """Return how many of `count` in a row a fault strikes: from one to a quarter of them."""
        return self.world.rng.randint(1, max(1, count // 4))

    # -- producers --------------------------------------------------------------------------------------------------

    def draw(self, *, has_key: bool = False) -> list[Message]:
        """Return new messages to send: all that are allotted to this round."""
        count, self.allotted = self.allotted, 0
        needs_key = has_key or self.cleanup_policy == "compact"
        return [self.world.message(self.topic, self.partition, has_key=needs_key) for _ in range(count)]

    def session(self, *kinds: ProducerKind) -> Session:
        """Return the session that sends next, of one of the kinds; the producers take turns."""
        names = self.world.producers.of_kind(*kinds)
        self.turn += 1
        return self.world.producers.session(names[(self.partition + self.turn) % len(names)])

    def send(
        self, messages: Iterable[Message], session: Session, transaction: Transaction | None = None
    ) -> list[Record]:
        """Send messages that are written and acknowledged; return their records."""
        return [self.attempt(message, session, transaction=transaction) for message in messages]

    def attempt(
        self,
        message: Message,
        session: Session,
        *,
        outcome: str = "acked",
        transaction: Transaction | None = None,
        intended: int | None = None,
        answered_at: int | None = None,
        at: int | None = None,
        record: Record | None = None,
    ) -> Record:
        """Send one message, which is written; return its record.

        `record` is the one that the acknowledgement names, and `at` the time, where it was written before.
        """
        at = self.tick() if at is None else at
        record = record or self.append(message, session, transaction, at=at)
        row = self._attempt_row(message, session, outcome, at)
        row["intended_partition"] = self.partition if intended is None else intended
        if outcome == "acked":
            row |= {"offset": record.offset, "leader_epoch": record.epoch}
            row["completed_at"] = at + 3 if answered_at is None else answered_at
        if transaction is not None:
            row |= {"transaction_id": transaction.id, "transaction_state": transaction.fate}
        self.world.write(Ledger.PRODUCED, row)
        return record

    def attempt_in_vain(self, message: Message, session: Session, outcome: str) -> None:
        """Send one message that never reaches the log; the producer gets an error, or no answer."""
        row = self._attempt_row(message, session, outcome, self.tick())
        row["intended_partition"] = self.partition
        self.world.write(Ledger.PRODUCED, row)

    def _attempt_row(self, message: Message, session: Session, outcome: str, at: int) -> Row:
        row = {
            "producer_id": session.producer,
            "producer_session": session.name,
            "sequence": session.next_sequence,
            "message_id": message.id,
            "topic": self.topic,
            "partition": self.partition,
            "key_hash": message.key,
            "payload_hash": message.value,
            "header_hash": message.header,
            "record_timestamp": at,
            "attempted_at": at,
            "outcome": outcome,
        }
        session.next_sequence += 1
        return row

    # -- the consumer -----------------------------------------------------------------------------------------------

    def fetch(self, *, is_committed_only: bool = True) -> list[Record]:
        """Return the records that a poll is given, and move the position behind them."""
        end = self.stable_end if is_committed_only else self.log_end
        given = [
            record
            for record in self.tail
            if self.position <= record.offset < end
            and record.message is not None
            and not (is_committed_only and record.state == "aborted")
        ]
        self.position = max(self.position, end)
        return given

    def hand_over(
        self, records: Iterable[Record], reader: Reader | None = None, *, is_committed_only: bool = True
    ) -> None:
        """Hand fetched records to the application: the rows of `read`."""
        self.polls += 1
        isolation = "read_committed" if is_committed_only else "read_uncommitted"
        poll = f"{self.topic}-{self.partition}/{self.polls}"
        for record in records:
            row = self._consumer_row(record, reader or self.reader)
            self.world.write(Ledger.READ, {**row, "poll_id": poll, "isolation": isolation})

    def poll(self, *, is_committed_only: bool = True) -> list[Record]:
        """Return what a poll hands over."""
        records = self.fetch(is_committed_only=is_committed_only)
        self.hand_over(records, is_committed_only=is_committed_only)
        return records

    def output(self, records: Iterable[Record], reader: Reader | None = None) -> None:
        """Process records: the rows of `delivered`."""
        for record in records:
            self.emit(record, reader)

    def emit(
        self,
        record: Record,
        reader: Reader | None = None,
        *,
        at: int | None = None,
        outcome: str = "ok",
        transaction: tuple[str, str] | None = None,
        group: str | None = None,
    ) -> None:
        """Write one row of the output; `transaction` is the sink's, by name and state."""
        row = self._consumer_row(record, reader or self.reader, at=at, outcome=outcome)
        if group is not None:
            row["consumer_group"] = group
        if transaction is not None:
            row |= {"transaction_id": transaction[0], "transaction_state": transaction[1]}
        self.world.write(Ledger.DELIVERED, row)

    def invent(self, message_id: str) -> None:
        """Write a row of the output that no record stands behind."""
        self.world.write(
            Ledger.DELIVERED,
            {
                "message_id": message_id,
                "topic": self.topic,
                "consumer_group": self.world.group.name,
                "consumer_id": self.reader.member,
                "generation": self.reader.generation,
                "processed_at": self.tick(),
                "payload_hash": digest(message_id),
                "outcome": "ok",
            },
        )

    def set_aside(self, ledger: Ledger, record: Record, reason: str) -> None:
        """Account for a record in `filtered`, `dead_letters` or `staged`."""
        self.world.write(ledger, {**self._place_columns(record), "at": self.tick(), "reason": reason})

    def commit(self, offset: int | None = None) -> None:
        """Commit an offset, the next to be read: by default the position."""
        self.committed = self.position if offset is None else offset
        self.world.write(
            Ledger.COMMITTED,
            {
                "consumer_group": self.world.group.name,
                "topic": self.topic,
                "partition": self.partition,
                "committed_offset": self.committed,
                "leader_epoch": self.epoch,
                "generation": self.reader.generation,
                "committed_at": self.tick(),
            },
        )

    def assigned(self, kind: str, *, at: int | None = None) -> None:
        """Note a change of the reader's assignment or position in `assigned`."""
        self.world.write(
            Ledger.ASSIGNED,
            {
                "consumer_group": self.world.group.name,
                "consumer_id": self.reader.member,
                "generation": self.reader.generation,
                "kind": kind,
                "assigned_at": self.tick() if at is None else at,
                "partitions": [{"topic": self.topic, "partition": self.partition}],
            },
        )

    def consume(self) -> list[Record]:
        """Poll, process and commit as a well-behaved consumer does; return what was processed."""
        records = self.poll()
        self.output(records)
        self.commit()
        return records

    def _consumer_row(
        self, record: Record, reader: Reader, *, at: int | None = None, outcome: str = "ok"
    ) -> Row:
        return {
            **self._place_columns(record),
            **content_columns(record.content),
            "consumer_group": self.world.group.name,
            "consumer_id": reader.member,
            "generation": reader.generation,
            "processed_at": self.tick() if at is None else at,
            "outcome": outcome,
        }

    def _place_columns(self, record: Record) -> Row:
        return {
            "message_id": record.id,
            "topic": self.topic,
            "partition": self.partition,
            "offset": record.offset,
        }

    # -- the truth --------------------------------------------------------------------------------------------------

    def place(self, offset: int) -> Place:
        """Return the place of an offset in this partition."""
        return self.topic, self.partition, offset

    def unbroken(self, name: BreakClass, count: int, *flags: str, disposition: str | None = None) -> None:
        """Record messages that ended in a class that is no break."""
        self.world.truth.unbroken(name, count, flags, disposition)

    def delivered(self, messages: Sequence[Message | Record]) -> None:
        """Record messages that each arrived once."""
        self.unbroken(BreakClass.DELIVERED, len(messages))

    def phantom(self, message_id: str, finding: Finding) -> None:
        """Record an output that nobody sent."""
        self.world.truth.broken(self.fault, message_id, finding, None, is_sent=False)

    def broken(self, records: Iterable[Record], finding: Finding) -> None:
        """Record what is wrong with the messages of records."""
        for record in records:
            self.world.truth.broken(self.fault, record.id, finding, self.place(record.offset))

    def broken_at(self, kind: str, finding: Finding, offset: int) -> None:
        """Record a broken commit, position, transaction or order at an offset."""
        self.world.truth.broken_at(self.fault, kind, finding, self.place(offset))


def own_key(*messages: Message) -> None:
    """Give messages one key that no other message has."""
    for message in messages:
        message.key = digest(f"{messages[0].id}/key")


def send_batch(line: Line, messages: Sequence[Message]) -> list[Record]:
    """Send messages as the producer whose turn it is does, in a transaction where it has them; return their records."""
    session = line.session()
    if session.kind != "transactional":
        return line.send(messages, session)
    transaction = session.begin()
    records = line.send(messages, session, transaction)
    line.end(transaction, session)
    return records


def ordinary(line: Line) -> None:
    """Run one round without a fault: some producer sends, the consumer processes and commits."""
    sent = send_batch(line, line.draw())
    line.consume()
    line.delivered(sent)
