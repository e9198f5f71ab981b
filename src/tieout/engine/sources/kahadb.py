"""The reader of the kind `kahadb`: a queue of ActiveMQ Classic, as its broker's journal has it.

The journal holds the broker's log and the queue's acknowledgements. What left without a consumer's acknowledgement is
in `filtered` (it had expired) or `dead_letters` (it was moved away as poison); `committed` has every departure.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

from tieout.contracts import KahaDbSource
from tieout.engine.limits import is_time, shown
from tieout.engine.materialising import no_rows
from tieout.engine.sources.kahadb_folders import ARTEMIS, Journal, elsewhere, read_journal
from tieout.engine.sources.paths import name_of
from tieout.engine.sources.positions import shortened
from tieout.engine.sources.small_files import SmallFile, local_folder
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, TEXT, Reading, Request
from tieout.engine.systems.kahadb_journal import Entry
from tieout.engine.systems.kahadb_queue import (
    BYTE_BITS,
    EXPIRED,
    MAYBE_EXPIRED,
    POISON,
    Arrival,
    Departure,
    QueueHistory,
    reasons_of,
)
from tieout.errors import SourceError
from tieout.model import Ledger

_HIDDEN: Final = f"{FILE} STRING, {TEXT} STRING, {BLOCK} BIGINT, {ROW} BIGINT, {FAULT} STRING"
_PLACE: Final = "topic STRING, partition INT"
_CONTENT: Final = "jms_message_id STRING, properties MAP<STRING, STRING>, value BINARY"
_LOG: Final = (
    f"{_PLACE}, offset BIGINT, {_CONTENT}, record_timestamp TIMESTAMP, arrived_at TIMESTAMP, "
    "transaction_state STRING, is_sparse BOOLEAN, log_start_offset BIGINT, last_stable_offset BIGINT, "
    f"end_offset BIGINT, observed_at TIMESTAMP, {_HIDDEN}"
)
_COMMITTED: Final = (
    f"consumer_group STRING, {_PLACE}, first_offset BIGINT, committed_offset BIGINT, is_individual BOOLEAN, "
    f"taken_at TIMESTAMP, metadata STRING, {_HIDDEN}"
)
_ASIDE: Final = (
    f"{_PLACE}, offset BIGINT, {_CONTENT}, at TIMESTAMP, reason STRING, transaction_state STRING, {_HIDDEN}"
)
_LEDGERS: Final = (Ledger.LOG, Ledger.COMMITTED, Ledger.DEAD_LETTERS, Ledger.FILTERED)
_NOT_STORED: Final = (
    "a broker does not write down what is acknowledged fast enough: set concurrentStoreAndDispatchQueues=false, and "
    "say concurrent_store_and_dispatch: false here"
)
_ONE_BY_ONE: Final = "{} is a queue: its messages are acknowledged one by one (consumption: queue)"
_TOPIC: Final = (
    "{} is a topic in the journal, which tells nothing of a topic's subscribers by message: expected a queue; leave "
    "the journal out, or name the queue of a virtual topic's consumer"
)
_HANDED_ON: Final = (
    "no message of the queue {} in the journal: what is sent to it is handed on to {}; name that queue in "
    "destination"
)
_OTHER_LETTERS: Final = (
    "no message of the queue {} in the journal, found {}: capital letters count in destination"
)
_OWN_STORE: Final = "queue#3a#2f#2f"
"""The beginning of a folder's name where the broker has a store for each of several destinations: `queue://`."""
_PARKED_ELSEWHERE: Final = (
    "{}: {} messages were taken away as poison, and not into this store: the broker has several (mKahaDB), and its "
    "dead letter queues are in others; export them as rows of a file, and declare that"
)
_ARTEMIS: Final = (
    "{} is of ActiveMQ Artemis, whose journal is not read: export messages and acknowledgements as rows of "
    "files"
)
_BELOW: Final = "found journals in {}: name the one that has the queue"
_Row = tuple[object, ...]


def read(spec: KahaDbSource, request: Request) -> Reading:
    """Return the queue's messages, or those that left it.

    Raises:
        SourceError: for another ledger than `log`, `committed`, `dead_letters` and `filtered`, and for a path that is
            not on a file system of this machine.
    """
    if request.ledger not in _LEDGERS:
        raise SourceError(f"{request.place}: {spec.kind} is evidence for {', '.join(_LEDGERS)} only")
    history = QueueHistory(spec.destination)

    def add_entries(file: SmallFile, number: int, entries: list[Entry]) -> None:
        written = file.modified_at if spec.has_own_times else None
        millis = None if written is None else int(written.timestamp() * 1000)
        history.add_file(file.uri, number, entries, millis)

    folders = [local_folder(request, path) for path in spec.path]
    journal = read_journal(folders, request.base_dir, add_entries)
    if not journal.files:
        absent = journal.faults or (_absent(spec, folders, request),)
        is_present = any(folder.exists() for folder in folders)
        return Reading(None, is_present=is_present, read_at=request.now, unparsed_inputs=1, notes=absent)
    return _reading(spec, request, journal, history)


def _absent(spec: KahaDbSource, folders: list[Path], request: Request) -> str:
    """Return that there is no journal, and what there is instead."""
    found = list(elsewhere(folders))
    names = [name_of(path, request.base_dir) for path in found]
    reason = f"{', '.join(spec.path)}: no file of a KahaDB journal, db-1.log"
    if found and found[0].suffix == ARTEMIS:
        return f"{reason}; {_ARTEMIS.format(names[0])}"
    return f"{reason}; {_BELOW.format(', '.join(names))}" if found else reason


def _reading(spec: KahaDbSource, request: Request, journal: Journal, history: QueueHistory) -> Reading:
    taken_at = spec.taken_time(request.now)
    faults = (
        *journal.faults,
        *((_NOT_STORED,) if spec.concurrent_store_and_dispatch else ()),
        *_naming_faults(spec, history),
        *_parking_faults(spec, request, history),
    )
    unknown = sum(one.arrival is None for one in history.departures)
    unknown_notes = (
        (f"{unknown} acknowledgements of messages that the journal does not have",) if unknown else ()
    )
    return Reading(
        rows=_rows(spec, request, journal, history),
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        size=sum(file.input.size for file in journal.files),
        digests=tuple(f"{file.input.digest}  {file.input.name}" for file in journal.files),
        unparsed_inputs=len(faults),
        notes=(*shortened(faults), *unknown_notes, *_queue_notes(spec, request, history)),
        complete_until=taken_at,
        taken_at=taken_at,
        is_share_group=request.ledger is Ledger.COMMITTED,
    )


def _naming_faults(spec: KahaDbSource, history: QueueHistory) -> Iterator[str]:
    """Yield why a queue without messages is not the one that was meant: a journal has nothing of it."""
    if history.arrivals or history.departures:
        return
    queue = spec.destination
    alike = sorted(name for name in history.others if name.casefold() == queue.casefold())
    if history.receivers:
        yield _HANDED_ON.format(shown(queue), ", ".join(map(shown, sorted(history.receivers))))
    elif history.is_topic:
        yield _TOPIC.format(shown(queue))
    elif alike:
        yield _OTHER_LETTERS.format(shown(queue), ", ".join(map(shown, alike)))


def _parking_faults(spec: KahaDbSource, request: Request, history: QueueHistory) -> Iterator[str]:
    """Yield that dead letters may be in another store of the broker."""
    stores = [path for path in spec.path if Path(path).name.startswith(_OWN_STORE)]
    if request.ledger is Ledger.DEAD_LETTERS and stores and (unparked := _unparked(history)):
        yield _PARKED_ELSEWHERE.format(stores[0], unparked)


def _unparked(history: QueueHistory) -> int:
    return sum(one.reason == POISON and not one.has_dead_letter for one in history.departed)


def _queue_notes(spec: KahaDbSource, request: Request, history: QueueHistory) -> Iterator[str]:
    """Yield notes about the queue's transactions and departed messages."""
    states = [history.state_of(one.transaction) for one in history.arrivals]
    for state in ("aborted", "open"):
        if count := states.count(state):
            yield f"{count} messages in transactions that are {state}, in no output"
    departures = ", ".join(f"{count} {reason}" for reason, count in reasons_of(history.departures).items())
    is_absent = not history.arrivals and not history.departures
    if is_absent and not any(_naming_faults(spec, history)):
        found = ", ".join(map(shown, sorted(history.others))) or "none"
        yield f"no message of the queue {shown(spec.destination)} in the journal, found messages of {found}"
    if departures:
        yield f"messages that left the queue: {departures}"
    departed = history.departed
    returned = sum(one.has_returned for one in departed)
    if returned:
        yield f"{returned} messages came back into the queue after they had left it"
    if unparked := _unparked(history):
        yield f"{unparked} messages were taken away as poison, and no dead letter queue has them"
    if request.ledger is Ledger.COMMITTED:
        yield _ONE_BY_ONE.format(spec.destination)


def _rows(spec: KahaDbSource, request: Request, journal: Journal, history: QueueHistory) -> DataFrame:
    if request.ledger is Ledger.LOG:
        schema, rows = _LOG, list(_of_log(spec, request, journal, history))
    elif request.ledger is Ledger.COMMITTED:
        schema, rows = _COMMITTED, list(_of_committed(spec, request, history))
    else:
        schema, rows = _ASIDE, list(_set_aside(spec, request.ledger, history))
    return request.spark.createDataFrame(rows, schema) if rows else no_rows(request.spark, schema)


def _of_log(spec: KahaDbSource, request: Request, journal: Journal, history: QueueHistory) -> Iterator[_Row]:
    """Yield a row for each message that was given to the queue; of one without, its bounds alone."""
    end = journal.last << BYTE_BITS | journal.end
    bounds = (True, 0, end, end, spec.taken_time(request.now))
    place = (spec.destination, 0)
    if not history.arrivals:
        yield (*place, *(None,) * 7, *bounds, journal.files[-1].uri, None, 0, 0, None)
    for number, one in enumerate(history.arrivals):
        state = history.state_of(one.transaction)
        found = one.message
        sent_at = None if found is None else _moment(found.sent_at or found.arrived_at)
        arrived_at = None if found is None else _moment(found.arrived_at)
        yield (
            *(*place, one.position, *_content(one), sent_at, arrived_at, state, *bounds),
            *(one.file, None, 0, number, one.fault),
        )


def _of_committed(spec: KahaDbSource, request: Request, history: QueueHistory) -> Iterator[_Row]:
    """Yield a row for each message that left the queue and did not come back, for any reason."""
    taken_at = spec.taken_time(request.now)
    for number, one in enumerate(history.departures):
        if one.arrival is None or history.state_of(one.transaction) not in ("none", "committed"):
            continue
        first = one.arrival.position
        yield (
            *(request.group, spec.destination, 0, first, first + 1, True),
            *(_moment(one.before_millis) or taken_at, one.reason),
            *(one.file, None, 0, number, None),
        )


def _set_aside(spec: KahaDbSource, ledger: Ledger, history: QueueHistory) -> Iterator[_Row]:
    """Yield a row for each message that expired, or that is in a dead letter queue as poison.

    One that somebody may have removed instead of its time to live counts as in an open transaction: nobody knows. One
    that came back into the queue is not set aside any more.
    """
    for number, one in enumerate(history.departed):
        if one.arrival is None or one.has_returned or not _belongs(one, ledger):
            continue
        state = "open" if one.reason == MAYBE_EXPIRED else history.state_of(one.transaction)
        yield (
            *(spec.destination, 0, one.arrival.position, *_content(one.arrival)),
            *(_moment(one.before_millis), one.reason, state),
            *(one.file, None, 0, number, None),
        )


def _belongs(one: Departure, ledger: Ledger) -> bool:
    if ledger is Ledger.DEAD_LETTERS:
        return one.reason == POISON and one.has_dead_letter
    return one.reason in (EXPIRED, MAYBE_EXPIRED)


def _content(one: Arrival) -> _Row:
    if one.message is None:
        return one.message_id, None, None
    return one.message_id, dict(one.message.properties), one.message.body


def _moment(millis: int | None) -> datetime | None:
    return datetime.fromtimestamp(millis / 1000, UTC) if millis is not None and is_time(millis) else None
