"""One partition's log, as its brokers keep it: offsets, markers, leader epochs, and what may take records away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tieout.model import Ledger
from tieout.simulation.records import Content, Message, Record, Session, Transaction
from tieout.simulation.world import Row, World


@dataclass(kw_only=True)
class PartitionLog:
    """The log of one partition and its clock; `tail` are the records not yet written to the ledger `log`."""

    world: World
    topic: str
    partition: int
    cleanup_policy: str
    clock: int
    epoch: int = 0
    log_start: int = 0
    log_end: int = 0
    tail: list[Record] = field(default_factory=list)

    def tick(self, milliseconds: int = 1) -> int:
        """Return the clock, moved on."""
        self.clock += milliseconds
        return self.clock

    def append(
        self, message: Message | None, session: Session, transaction: Transaction | None = None, *, at: int
    ) -> Record:
        """Return a record written at the log's end; a control record where there is no message."""
        record = Record(self.log_end, self.epoch, message, session, transaction, at)
        self.log_end += 1
        self.tail.append(record)
        return record

    def end(self, transaction: Transaction, session: Session) -> None:
        """End a transaction as it was fated to: its marker makes its records committed or aborted."""
        transaction.state = transaction.fate
        self.append(None, session, transaction, at=self.tick())

    def elect_leader(self, *, keep_below: int) -> list[Record]:
        """Elect an out-of-sync leader, whose log ends at `keep_below`; return the records that are gone."""
        gone = [record for record in self.tail if record.offset >= keep_below]
        self.tail = [record for record in self.tail if record.offset < keep_below]
        self.log_end = keep_below
        self.epoch += 1
        return gone

    def remove(self, records: Sequence[Record]) -> None:
        """Take records out of the log and leave holes: what a cleaner does, or a broken disk."""
        offsets = {record.offset for record in records}
        self.tail = [record for record in self.tail if record.offset not in offsets]

    def expire(self) -> None:
        """Let retention take everything that is in the log, and observe that it did."""
        self.tail.clear()
        self.log_start = self.log_end
        self.observe()

    @property
    def stable_end(self) -> int:
        """The last stable offset: that of the first record whose transaction is open, else the log's end."""
        return next((record.offset for record in self.tail if record.state == "open"), self.log_end)

    def observe(self) -> None:
        """Write the log's bounds as they are now."""
        self.world.write(
            Ledger.LOG,
            {
                "topic": self.topic,
                "partition": self.partition,
                "log_start_offset": self.log_start,
                "last_stable_offset": self.stable_end,
                "end_offset": self.log_end,
                "observed_at": self.clock,
                "cleanup_policy": self.cleanup_policy,
            },
        )

    def write_records(self, below: int | None = None) -> None:
        """Write the final records, those below an offset, to the ledger; all of them without one."""
        kept = []
        for record in self.tail:
            if below is not None and record.offset >= below:
                kept.append(record)
            else:
                self.world.write(Ledger.LOG, self._log_row(record))
        self.tail = kept

    def _log_row(self, record: Record) -> Row:
        row: Row = {
            "topic": self.topic,
            "partition": self.partition,
            "offset": record.offset,
            "leader_epoch": record.epoch,
            "broker_producer_id": record.session.broker_id,
            "producer_epoch": -1 if record.session.broker_id < 0 else record.session.number - 1,
            "timestamp_type": "CreateTime",
            "record_timestamp": record.content.timestamp,
            "transaction_state": record.state,
            "is_control": record.message is None,
        }
        if record.message is not None:
            row |= {"message_id": record.id, **content_columns(record.content)}
        return row


def content_columns(content: Content) -> Row:
    """Return the content in the ledgers' columns."""
    return {
        "key_hash": content.key,
        "payload_hash": content.value,
        "header_hash": content.header,
        "record_timestamp": content.timestamp,
    }
