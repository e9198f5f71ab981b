"""The words of the domain, as values: ledgers, classes, loci, guarantees, verdicts, windows.

Standard library only, so that every layer can speak them. The definitions are in docs/reference/taxonomy.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

SMALL_BYTES: Final = 32 * 1024 * 1024
"""Up to so much evidence, or so much of one ledger, planning and compiling cost more than the work itself."""


class Ledger(StrEnum):
    """A kind of evidence; one row of it is described in docs/reference/taxonomy.md, section 1."""

    PRODUCED = "produced"
    LOG = "log"
    DELIVERED = "delivered"
    READ = "read"
    ASSIGNED = "assigned"
    COMMITTED = "committed"
    MIRRORED = "mirrored"
    FILTERED = "filtered"
    DEAD_LETTERS = "dead_letters"
    STAGED = "staged"


POSITION_LEDGERS: Final = (Ledger.COMMITTED, Ledger.MIRRORED)
"""The ledgers of a group's positions: the one that the engine restarts from, and one that it does not."""


class Guarantee(StrEnum):
    """What the contract promises about every message."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Identity(StrEnum):
    """What makes two rows the same message."""

    MESSAGE_ID = "message_id"
    POSITION = "position"
    CONTENT = "content"


class Verdict(StrEnum):
    """What a statement says about its window's guarantee."""

    KEPT = "KEPT"
    BROKEN = "BROKEN"
    PENDING = "PENDING"
    UNKNOWN = "UNKNOWN"

    @property
    def fails_the_run(self) -> bool:
        """Whether a scheduled run that ends with this verdict is a failed run."""
        return self in (Verdict.BROKEN, Verdict.UNKNOWN)


class Severity(StrEnum):
    """How loudly a finding is told."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """The severity's place in the order info < warning < critical."""
        return list(Severity).index(self)


class BreakClass(StrEnum):
    """The classes of taxonomy section 3 that can stand in a statement's `classes` or `flags`."""

    LOST = "LOST"
    IN_FLIGHT = "IN_FLIGHT"
    RECOVERED = "RECOVERED"
    DELIVERED = "DELIVERED"
    NOT_SENT = "NOT_SENT"
    LATE = "LATE"
    LOG_DUPLICATE = "LOG_DUPLICATE"
    REDELIVERY = "REDELIVERY"
    OUTPUT_DUPLICATE = "OUTPUT_DUPLICATE"
    REORDER_PRODUCER = "REORDER_PRODUCER"
    REORDER_CONSUMER = "REORDER_CONSUMER"
    REORDER_OUTPUT = "REORDER_OUTPUT"
    SKIPPED = "SKIPPED"
    CORRUPTED_VALUE = "CORRUPTED_VALUE"
    CORRUPTED_KEY = "CORRUPTED_KEY"
    CORRUPTED_HEADER = "CORRUPTED_HEADER"
    CORRUPTED_TIMESTAMP = "CORRUPTED_TIMESTAMP"
    MISROUTED = "MISROUTED"
    PHANTOM_UNKNOWN = "PHANTOM_UNKNOWN"
    PHANTOM_ABORTED = "PHANTOM_ABORTED"
    PHANTOM_UNCOMMITTED = "PHANTOM_UNCOMMITTED"
    TORN_TRANSACTION = "TORN_TRANSACTION"
    LOG_IDENTITY_CONFLICT = "LOG_IDENTITY_CONFLICT"
    LOG_TRUNCATION = "LOG_TRUNCATION"
    COMPACTED = "COMPACTED"
    COMMIT_AHEAD = "COMMIT_AHEAD"
    COMMIT_REGRESSION = "COMMIT_REGRESSION"
    COMMIT_OUT_OF_RANGE = "COMMIT_OUT_OF_RANGE"
    COMMIT_STALE = "COMMIT_STALE"
    COMMIT_GAP = "COMMIT_GAP"
    POSITION_DISAGREEMENT = "POSITION_DISAGREEMENT"
    FILTERED = "FILTERED"
    DEAD_LETTERED = "DEAD_LETTERED"
    UNVERIFIABLE = "UNVERIFIABLE"


NON_MESSAGE_CLASSES: Final = frozenset(
    {
        BreakClass.REORDER_PRODUCER,
        BreakClass.REORDER_CONSUMER,
        BreakClass.REORDER_OUTPUT,
        BreakClass.SKIPPED,
        BreakClass.TORN_TRANSACTION,
        BreakClass.LOG_IDENTITY_CONFLICT,
        BreakClass.LOG_TRUNCATION,
        BreakClass.COMMIT_AHEAD,
        BreakClass.COMMIT_REGRESSION,
        BreakClass.COMMIT_OUT_OF_RANGE,
        BreakClass.COMMIT_STALE,
        BreakClass.COMMIT_GAP,
        BreakClass.POSITION_DISAGREEMENT,
    }
)
"""Classes of breaks of a position, a commit or a transaction, and not of a message (taxonomy section 3)."""


SET_ASIDE_AND_DELIVERED: Final = "set_aside_and_delivered"
"""The flag of a message that took effect and was set aside as well, or was set aside twice."""


class Locus(StrEnum):
    """Where on the way from producer to sink a break happened; the value is printed."""

    PRODUCER = "producer"
    PRODUCER_TO_BROKER = "producer → broker"
    BROKER = "broker"
    BROKER_TO_CONSUMER = "broker → consumer"
    CONSUMER = "consumer"
    CONSUMER_ISOLATION = "consumer isolation"
    CONSUMER_OR_SINK = "consumer or sink"
    SINK = "sink"
    OFFSET_STORE = "offset store"
    AFTER_ACKNOWLEDGEMENT = "after the acknowledgement"
    BEFORE_ACKNOWLEDGEMENT = "before the acknowledgement"
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """Why a break happened, as far as the engine tells it or leaves it open; the value is printed."""

    UNKNOWN = "unknown"
    RETRY_WITHOUT_IDEMPOTENCE = "retry without idempotence"
    RESEND = "producer restart or application resend"
    SEVERAL_IN_FLIGHT = "several requests in flight without idempotence"
    COMMIT_BEFORE_PROCESS = "commit before process"
    PROCESS_BEFORE_COMMIT = "process before commit"
    ZOMBIE = "zombie after rebalance"
    ABORTED_READ = "aborted transaction read"
    RETENTION_OVERRUN = "retention overrun"
    OFFSET_RESET = "offset reset to earliest or latest"
    OFFSETS_EXPIRED = "group offsets expired"
    TOPIC_RECREATED = "topic recreated"
    UNCLEAN_ELECTION = "leader failover or unclean election"
    COMMIT_AFTER_TRUNCATION = "commit after truncation"
    PARALLEL_COMMITS = "parallel commits out of order"
    POISON = "swallowed poison record"
    PARTITIONS_ADDED = "partition count changed"
    COMPACTION = "compaction"
    NOT_COMMITTED = "prepared transaction not committed"


@dataclass(frozen=True, order=True)
class OffsetRange:
    """The offsets `[start, end)` of one topic partition."""

    topic: str
    partition: int
    start: int
    end: int

    def __post_init__(self) -> None:
        """Refuse negative offsets and empty or reversed ranges.

        Raises:
            ValueError: where the range holds no offset.
        """
        if self.start < 0 or self.end <= self.start:
            raise ValueError(f"a range of offsets must end after it starts: {self}")

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.start}-{self.end}"


@dataclass(frozen=True)
class Window:
    """A half-open interval `[start, end)` of aware UTC times, and where windows are cut by offsets the ranges of it.

    With `offsets` the interval says when the evidence is needed, and holds only what has no position.
    """

    start: datetime
    end: datetime
    offsets: tuple[OffsetRange, ...] = ()

    def __post_init__(self) -> None:
        """Refuse naive times, empty or reversed intervals, and two ranges of one partition.

        Raises:
            ValueError: where a bound has no time zone, the end is not after the start, or a partition has two ranges.
        """
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("a window's bounds need a time zone")
        if self.end <= self.start:
            raise ValueError(f"a window must end after it starts: {self.start} .. {self.end}")
        for one, other in pairwise(sorted(self.offsets)):
            if (one.topic, one.partition) == (other.topic, other.partition):
                raise ValueError(f"expected one range of a partition, found {one} and {other}")

    def widened(self, before: timedelta, after: timedelta) -> Window:
        """Return the window with its start moved back by `before` and its end moved on by `after`."""
        return Window(self.start - before, self.end + after, self.offsets)


class CheckStatus(StrEnum):
    """How an independent check of a stored statement ended; `error` means that it could not be carried out."""

    PASS = "pass"  # noqa: S105 - a status, not a password
    FAIL = "fail"
    ERROR = "error"


@dataclass(frozen=True)
class CheckResult:
    """One rule held against one statement: what was observed, beside what the contract allows."""

    rule: str
    severity: Severity
    status: CheckStatus
    observed: str
    limit: str


@dataclass(frozen=True)
class Alert:
    """One message for one receiver; `dedup_key` makes sending it twice the same as sending it once.

    Alerts with one `thread` tell of one thing: a later one takes the place of one that waits, and one that `is_closing`
    is sent only where an earlier one was.
    """

    dedup_key: str
    pipeline: str
    window: Window | None
    run_id: str | None
    kind: str
    severity: Severity
    to: str
    connection: str
    payload: dict[str, object]
    thread: str | None = None
    is_closing: bool = False


OFFSET_STATES: Final[tuple[str, ...]] = (
    "control", "aborted", "open", "unattempted", "unverifiable", "duplicate", "delivered", "dead_lettered", "filtered",
    "compacted", "lost", "in_flight", "expired",
)  # fmt: skip
"""What a position of the log can be in the offset balance, docs/reference/taxonomy.md, section 5, last item."""


def missing_ranges(there: Collection[int], count: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each stretch of numbers from 0 to below `count` that are not there.

    How many they are has no part in how long that takes.

    >>> list(missing_ranges({1, 2, 5}, 10**12))
    [(0, 0), (3, 4), (6, 999999999999)]
    """
    known = sorted(number for number in set(there) if number < count)
    for before, following in pairwise([-1, *known, count]):
        if following > before + 1:
            yield before + 1, following - 1
