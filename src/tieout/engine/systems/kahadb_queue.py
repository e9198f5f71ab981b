"""What a KahaDB journal shows of one queue: the messages that it was given, and how each of them left it.

A message's position is where its record lies, the number of the file times 2^32 and the byte: it rises in the order in
which the broker wrote, also when that is started again. Its own number for a message, `brokerSequenceId`, begins anew
then. An acknowledgement has no time; it was written before the next message that the journal has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tieout.contracts.positions import KAHADB_BITS
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.kahadb_journal import LOCAL, Added, Ended, Entry, Removed, Started
from tieout.engine.systems.openwire import StoredMessage

BYTE_BITS: Final = KAHADB_BITS[1]
"""A position is the number of its file, and so many bits for the byte in it."""
EXPIRED: Final = "EXPIRED"
POISON: Final = "POISON"
REMOVED: Final = "REMOVED"
"""What is said of a message that the broker took away by itself, or for an operator."""
_MOST_OTHERS: Final = 20
MAYBE_EXPIRED: Final = "EXPIRED or REMOVED"


@dataclass(frozen=True)
class Arrival:
    """A message that the queue was given; `fault` says what is wrong with one that cannot be read."""

    file: str
    position: int
    message_id: str
    transaction: str | None
    message: StoredMessage | None
    fault: str | None = None


@dataclass(frozen=True)
class Departure:
    """A message that left the queue: why, and the latest time in milliseconds at which it can have, None if unknown.

    `arrival` is None where the journal does not have it, in files that are gone. One that `has_returned` was put back
    into the queue afterwards, as an operator does with a dead letter: what became of it then says another departure.
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
    """One queue as the files of a journal show it, read in the order of their numbers.

    `others` are some of the other queues that were given messages.
    """

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self.arrivals: list[Arrival] = []
        self.departures: list[Departure] = []
        self.others: set[str] = set()
        self._latest: dict[str, Arrival] = {}
        self._states: dict[str, str] = {}
        self._open: set[str] = set()
        self._undated: list[int] = []
        self._dead: set[str] = set()
        self._expired: set[str] = set()
        self._known_millis = 0

    def tell(self, file: str, number: int, entries: Iterable[Entry], written_millis: int | None) -> None:
        """Take in one file. `written_millis` is when it was written last, None where nobody knows."""
        for entry in entries:
            self._take(file, number, entry)
        if written_millis is not None:
            self._date(written_millis)

    def state_of(self, transaction: str | None) -> str:
        """Return what became of a transaction: `none`, `committed`, `aborted` or `open`."""
        return "none" if transaction is None else self._states.get(transaction, "open")

    @property
    def departed(self) -> list[Departure]:
        """How messages left, each with whether a dead letter queue was given it, and whether it came back."""
        known = (one for one in self.arrivals if self.state_of(one.transaction) in ("none", "committed"))
        last = {one.message_id: one.position for one in known}
        return [
            replace(
                one,
                has_dead_letter=one.message_id in self._dead,
                has_returned=one.arrival is not None and last.get(one.message_id, -1) > one.arrival.position,
            )
            for one in self.departures
        ]

    def _take(self, file: str, number: int, entry: Entry) -> None:
        if isinstance(entry, Started):
            # What a broker finds in a transaction of a connection when it starts it rolls back.
            self._states |= {one: "aborted" for one in self._open if one.startswith(LOCAL)}
            self._open = {one for one in self._open if not one.startswith(LOCAL)}
        elif isinstance(entry, Ended):
            self._states.setdefault(entry.transaction, "committed" if entry.is_committed else "aborted")
            self._open.discard(entry.transaction)
        else:
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
        if message is not None and message.original == f"queue://{self._queue}":
            self._add_elsewhere(entry.message_id, message)

    def _add_elsewhere(self, message_id: str, copy: StoredMessage) -> None:
        """Take in that another queue was given the message: as a dead letter, or because somebody moved it there.

        A composite queue hands on copies as well, and does so before it keeps the message itself. A dead letter has no
        time to live any more; what was moved keeps it.
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

    def _reason(self, arrival: Arrival | None, entry: Removed) -> str:
        """Return why the broker itself removed a message: it had expired, it may have, or somebody took it away."""
        if entry.by.kind in (EXPIRED, POISON):
            return entry.by.kind
        expires_at = None if arrival is None or arrival.message is None else arrival.message.expires_at
        if expires_at is None:
            return REMOVED
        is_expired = self._known_millis >= expires_at or entry.message_id in self._expired
        return EXPIRED if is_expired else MAYBE_EXPIRED


def reasons_of(departures: Iterable[Departure]) -> Mapping[str, int]:
    """Return how many messages left for each reason, in the order of its name."""
    found: dict[str, int] = {}
    for one in departures:
        found[one.reason] = found.get(one.reason, 0) + 1
    return dict(sorted(found.items()))
