"""What flows: messages, the log records that carry them, transactions, and who sends and reads."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Literal

State = Literal["none", "open", "committed", "aborted"]


@dataclass(slots=True)
class Content:
    """What must not change on the way: three hashes (hexadecimal, the key's null without a key) and a time in ms."""

    key: str | None
    value: str
    header: str
    timestamp: int


@dataclass(slots=True)
class Message:
    """One message as its application knows it."""

    id: str
    key: str | None
    value: str
    header: str

    def sent_at(self, time: int) -> Content:
        """Return the content of a send at the time, which becomes the record's."""
        return Content(self.key, self.value, self.header, time)


@dataclass(slots=True)
class Transaction:
    """One transaction of one session: how it will end (`open` is never), and how it stands in the log."""

    id: str
    fate: State = "committed"
    state: State = "open"


@dataclass(slots=True)
class Session:
    """One life of a producer, from its start to its crash; `broker_id` is -1 where the broker gave it none."""

    producer: str
    number: int
    kind: Literal["plain", "idempotent", "transactional"]
    broker_id: int
    next_sequence: int = 0
    transactions: int = 0

    @property
    def name(self) -> str:
        """The session's name, unique within its producer."""
        return f"{self.producer}-{self.number}"

    def begin(self, fate: State = "committed") -> Transaction:
        """Return a new transaction, open, that will end in the fate."""
        self.transactions += 1
        return Transaction(f"{self.name}/{self.transactions}", fate)


@dataclass(slots=True)
class Record:
    """One position of a partition's log: a message's record, or a control record where `message` is None.

    `content` begins as what was sent at the time; a fault may change it.
    """

    offset: int
    epoch: int
    message: Message | None
    session: Session
    transaction: Transaction | None
    at: InitVar[int]
    content: Content = field(init=False)

    def __post_init__(self, at: int) -> None:
        """Take over the message's content."""
        self.content = self.message.sent_at(at) if self.message else Content(None, "", "", at)

    @property
    def id(self) -> str:
        """The message's id; empty for a control record."""
        return self.message.id if self.message else ""

    @property
    def state(self) -> State:
        """How the record's transaction stands, `none` without one."""
        return self.transaction.state if self.transaction else "none"


@dataclass(frozen=True, slots=True)
class Reader:
    """One member of the consumer group in one generation."""

    member: str
    generation: int
