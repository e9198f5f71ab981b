"""The history of one queue in a KahaDB journal: the messages that were added, and how each was removed.

A message's position is that of its record, the number of the file times 2^32 plus the byte: it increases in the order
of writing, also across restarts of the broker. The broker's own `brokerSequenceId` starts again after a restart. An
acknowledgement has no time; it was written before the journal's next message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tieout.contracts.positions import KAHADB_BITS
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.kahadb_journal import (
    LOCAL,
    Added,
    Deleted,
    Ended,
    Entry,
    Published,
    Removed,
    Rewritten,
    Started,
)
from tieout.engine.systems.openwire import StoredMessage

BYTE_BITS: Final = KAHADB_BITS[1]
"""The number of bits for the byte in a position; the bits above are the file's number."""
EXPIRED: Final = "EXPIRED"
POISON: Final = "POISON"
REMOVED: Final = "REMOVED"
"""The reason of a message that the broker removed by itself, or for an operator."""
QUEUE_DELETED: Final = "QUEUE DELETED"
"""The reason of a message that was in the queue when somebody deleted it."""
MAYBE_EXPIRED: Final = "EXPIRED or REMOVED"
_MOST_OTHERS: Final = 20


@dataclass(frozen=True)
class Arrival:
    """A message that was added to the queue; `fault` is the error of an unreadable one."""

    file: str
    position: int
    message_id: str
    transaction: str | None
    message: StoredMessage | None
    fault: str | None = None


@dataclass(frozen=True)
class Departure:
    """A removed message: the reason, and the latest possible time of removal in milliseconds, None if unknown.

    `arrival` is None if the journal does not have it, because its file was deleted. A message that `has_returned` was
    put back into the queue afterwards, as an operator does with a dead letter; a later departure has its final state.
    """

    file: str
    arrival: Arrival | None
    message_id: str
    transaction: str | None
    reason: str
    before_millis: int | None = None
    has_dead_letter: bool = False
    has_returned: bool = False


class QueueHistory:
    """The history of one queue, built from a journal's files in the order of their numbers.

    `others` are some of the other queues to which messages were added, `receivers` those of them that were given what
    was sent to a queue or topic of this name. `is_topic`: messages were stored for subscribers of a topic of this name.
    """

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self.arrivals: list[Arrival] = []
        self.departures: list[Departure] = []
        self.others: set[str] = set()
        self.receivers: set[str] = set()
        self.is_topic = False
        self._latest: dict[str, Arrival] = {}
        self._states: dict[str, str] = {}
        self._open: set[str] = set()
        self._undated: list[int] = []
        self._dead: set[str] = set()
        self._expired: set[str] = set()
        self._known_millis = 0
        self._deletion = (0, 0)

    def add_file(self, file: str, number: int, entries: Iterable[Entry], written_millis: int | None) -> None:
        """Add one file. `written_millis` is the time of its last write, None if unknown.

        A rewritten file is skipped: its entries are copies of older ones, which would count again for a message that
        came back into the queue in between.
        """
        for entry in entries:
            if isinstance(entry, Rewritten):
                break
            self._apply(file, number, entry)
        if written_millis is not None:
            self._date(written_millis)

    def state_of(self, transaction: str | None) -> str:
        """Return the state of a transaction: `none`, `committed`, `aborted` or `open`."""
        return "none" if transaction is None else self._states.get(transaction, "open")

    @property
    def departed(self) -> list[Departure]:
        """The removals, each with whether a dead letter queue got the message, and whether it returned."""
        valid = (
            arrival
            for arrival in self.arrivals
            if self.state_of(arrival.transaction) in ("none", "committed")
        )
        last = {arrival.message_id: arrival.position for arrival in valid}
        return [
            replace(
                departure,
                has_dead_letter=departure.message_id in self._dead,
                has_returned=departure.arrival is not None
                and last.get(departure.message_id, -1) > departure.arrival.position,
            )
            for departure in self.departures
        ]

    def _apply(self, file: str, number: int, entry: Entry) -> None:
        if isinstance(entry, Started):
            # What a broker finds in a transaction of a connection when it starts it rolls back.
            self._states |= {
                transaction: "aborted" for transaction in self._open if transaction.startswith(LOCAL)
            }
            self._open = {transaction for transaction in self._open if not transaction.startswith(LOCAL)}
        elif isinstance(entry, Ended):
            self._states.setdefault(entry.transaction, "committed" if entry.is_committed else "aborted")
            self._open.discard(entry.transaction)
        elif isinstance(entry, Deleted):
            if entry.queue == self._queue:
                self._delete(file)
        elif isinstance(entry, Published):
            self.is_topic = self.is_topic or entry.topic == self._queue
        elif not isinstance(entry, Rewritten):
            if entry.transaction is not None and entry.transaction not in self._states:
                self._open.add(entry.transaction)
            if isinstance(entry, Added):
                self._add(file, number, entry)
            elif entry.queue == self._queue:
                self._remove(file, entry)

    def _add(self, file: str, number: int, entry: Added) -> None:
        try:
            message, fault = entry.message(), None
        except FormatError as error:
            message, fault = None, str(error)
        if message is not None and message.arrived_at is not None:
            self._date(message.arrived_at)
        if entry.queue == self._queue:
            position = number << BYTE_BITS | entry.at
            arrival = Arrival(file, position, entry.message_id, entry.transaction, message, fault)
            self.arrivals.append(arrival)
            self._latest[entry.message_id] = arrival
            return
        if len(self.others) < _MOST_OTHERS:
            self.others.add(entry.queue)
        if message is None or message.original is None:
            return
        kind, _, original = message.original.partition("://")
        if original != self._queue:
            return
        if len(self.receivers) < _MOST_OTHERS:
            self.receivers.add(entry.queue)
        if kind == "queue":
            self._add_elsewhere(entry.message_id, message)

    def _add_elsewhere(self, message_id: str, copy: StoredMessage) -> None:
        """Record that the message was added to another queue: as a dead letter, or because it was moved there.

        A composite queue also forwards copies, before it stores the message itself. A dead letter has no time to live
        any more; a moved message keeps it.
        """
        if message_id not in self._latest:
            return
        self._dead.add(message_id)
        if copy.expires_at is None:
            self._expired.add(message_id)

    def _date(self, millis: int) -> None:
        for place in self._undated:
            self.departures[place] = replace(self.departures[place], before_millis=millis)
        self._undated.clear()
        self._known_millis = max(self._known_millis, millis)

    def _remove(self, file: str, entry: Removed) -> None:
        arrival = self._latest.get(entry.message_id)
        reason = entry.by.kind if entry.by.consumer is not None else self._reason(arrival, entry)
        self._undated.append(len(self.departures))
        self.departures.append(Departure(file, arrival, entry.message_id, entry.transaction, reason))

    def _delete(self, file: str) -> None:
        """Remove all messages that are in the queue: they arrived since its last deletion, and did not leave it."""
        arrivals, departures = self._deletion
        gone = {
            departure.arrival.position
            for departure in self.departures[departures:]
            if departure.arrival is not None and self.state_of(departure.transaction) in ("none", "committed")
        }
        for arrival in self.arrivals[arrivals:]:
            if self.state_of(arrival.transaction) in ("none", "committed") and arrival.position not in gone:
                self._undated.append(len(self.departures))
                self.departures.append(Departure(file, arrival, arrival.message_id, None, QUEUE_DELETED))
        self._deletion = len(self.arrivals), len(self.departures)

    def _reason(self, arrival: Arrival | None, entry: Removed) -> str:
        """Return why the broker itself removed a message: it expired, it may have expired, or it was deleted."""
        if entry.by.kind in (EXPIRED, POISON):
            return entry.by.kind
        expires_at = None if arrival is None or arrival.message is None else arrival.message.expires_at
        if expires_at is None:
            return REMOVED
        is_expired = self._known_millis >= expires_at or entry.message_id in self._expired
        return EXPIRED if is_expired else MAYBE_EXPIRED


def reasons_of(departures: Iterable[Departure]) -> Mapping[str, int]:
    """Return the number of removed messages per reason, ordered by name."""
    counts: dict[str, int] = {}
    for departure in departures:
        counts[departure.reason] = counts.get(departure.reason, 0) + 1
    return dict(sorted(counts.items()))
