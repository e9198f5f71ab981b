"""The reader of the kind `pulsar`: a topic's entries as a broker hands them out, up to the last that was confirmed.

A transaction's marker, an entry behind its data, shows how the transaction ended. The broker says it with each entry as
well, but not while it loads a topic: until then it holds back all entries, as it does those behind an open transaction.
It never answers beyond the last confirmed entry, so nothing is requested there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import PulsarSource
from tieout.engine.sources.kafka_log import for_ledger, refuse_other_ledgers
from tieout.engine.sources.positions import shortened
from tieout.engine.sources.pulsar_missing import Missing
from tieout.engine.sources.pulsar_rows import Spool
from tieout.engine.sources.pulsar_topics import Partition, Statistics, absent, partitions_of, statistics_of
from tieout.engine.sources.removed import cut_partitions_of
from tieout.engine.sources.source import FAULT, FILE, TEXT, Reading, Request
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.pulsar_entries import ABORTED, COMMITTED, Entry, TransactionId, entry_in
from tieout.engine.systems.pulsar_positions import Place, packed
from tieout.model import Ledger
from tieout.pulsar import MISSING, Administration, Answer, AnswerError, Answers, opened_answers

_STATES: Final = {COMMITTED: "committed", ABORTED: "aborted"}
_RECOVERY_SECONDS: Final = 15.0
"""Seconds within which a broker has loaded a topic's transactions."""
_PAUSE: Final = 0.25
_PARALLEL_REQUESTS: Final = 4
"""Entries requested from a broker at once: it spends most of an answer's time waiting for its bookies."""
_AHEAD: Final = 200
"""How many answers are in memory."""
_DELETED_LEDGERS: Final = (
    "Pulsar deletes ledgers that were acknowledged, and does not say what lay before those that are left"
)
_IN_A_ROW: Final = 1_000
"""After so many missing entries in a row, the broker is asked whether there are any, and for no more."""
_NEWER: Final = (
    "{}: has entry {}:{}, beyond the last that internalStats confirms: the statistics are older than the entries; copy "
    "them again"
)
_BOUNDS: Final = (
    "of_partition INT, log_start_offset BIGINT, last_stable_offset BIGINT, end_offset BIGINT, "
    "observed_at TIMESTAMP"
)
_OF_TRANSACTIONS: Final = "in_partition INT, of_transaction STRING, known_state STRING"


@dataclass
class _Transaction:
    """What the entries show of a transaction: where it begins, its marker, and the broker's last statement."""

    first: Place
    state: str = "open"
    is_decided: bool = False


@dataclass
class _Log:
    """One partition's entries as far as they were read."""

    statistics: Statistics
    transactions: dict[TransactionId, _Transaction] = field(default_factory=dict)
    first_uncommitted: Place | None = None
    missing: Missing = field(default_factory=Missing)
    missing_in_a_row: int = 0
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, place: Place, entry: Entry) -> None:
        """Update the transactions by an entry."""
        if entry.is_uncommitted and self.first_uncommitted is None:
            self.first_uncommitted = place
        if entry.transaction is None:
            return
        known = self.transactions.setdefault(entry.transaction, _Transaction(place))
        if entry.marker in _STATES:
            known.state, known.is_decided = _STATES[entry.marker], True
        elif not known.is_decided:
            known.state = "aborted" if entry.is_aborted else "open" if entry.is_uncommitted else "committed"

    @property
    def first_open(self) -> Place | None:
        """The first entry of a transaction that is open, None where none is."""
        return min((one.first for one in self.transactions.values() if one.state == "open"), default=None)

    @property
    def stable(self) -> int:
        """The position up to which a reader of committed messages is handed all of them."""
        limits = [place for place in (self.first_open, self.first_uncommitted) if place is not None]
        return packed(*min(limits)) if limits else self.statistics.ledgers.end


def read(spec: PulsarSource, request: Request) -> Reading:
    """Return the topic's messages and markers with the states of their transactions, as the ledger takes them.

    Raises:
        ConnectionNotFoundError: where the connection is not defined.
        SourceError: for a ledger that a topic cannot be, and where the broker does not answer.
    """
    refuse_other_ledgers(request, spec.kind)
    answers = opened_answers(spec, request.base_dir, request.place)
    try:
        return for_ledger(_reading(answers, spec, request), request.ledger)
    finally:
        answers.close()


def _reading(answers: Answers, spec: PulsarSource, request: Request) -> Reading:
    try:
        partitions = partitions_of(answers, spec)
    except FormatError as error:
        return Reading(None, is_present=True, read_at=request.now, unparsed_inputs=1, notes=(str(error),))
    if not partitions:
        return Reading(None, is_present=False, read_at=request.now, notes=tuple(absent(spec)))
    logs: list[_Log] = []
    faults: list[str] = []
    with Spool(spec.topic) as spool:
        for partition in partitions:
            try:
                logs.append(_log(answers, partition, spool))
            except FormatError as error:
                faults.append(str(error))
    taken_at = request.now if spec.connection is not None else spec.taken_time(request.now)
    faults += [fault for log in logs for fault in log.faults]
    rows = _with_facts(spool.rows(request.spark), logs, spec, request)
    return Reading(
        rows=rows,
        is_present=True,
        read_at=request.now if taken_at is None else taken_at,
        size=spool.size,
        digests=(f"{spool.digest}  {spec.topic}",),
        unparsed_inputs=len(faults),
        notes=(*shortened(tuple(faults)), *shortened(tuple(note for log in logs for note in log.notes))),
        complete_until=taken_at,
        cut_partitions=() if request.ledger is Ledger.LOG else cut_partitions_of(rows, _DELETED_LEDGERS),
    )


def _log(answers: Answers, partition: Partition, spool: Spool) -> _Log:
    """Add the partition's entries to the spool, and return a summary of them.

    Raises:
        FormatError: where its statistics cannot be read.
    """
    found = statistics_of(answers, partition)
    if found is None:
        raise FormatError(f"{partition.path}: the broker says nothing of it")
    log = _Log(found)
    is_empty = True
    for place, answer in _entries(answers, log):
        is_empty = False
        try:
            if isinstance(answer, AnswerError):
                raise answer
            if answer.status == MISSING:
                log.missing.add(place[0], [place[1]], 1)
                continue
            entry = entry_in(answer)
            spool.add(partition.number, place, entry, answer)
            log.add(place, entry)
        except (AnswerError, FormatError) as error:
            spool.add_fault(partition.number, f"entry {place[0]}:{place[1]}: {error}")
    if log.missing:
        _account_for(log, answers)
        log.faults += [f"{partition.path}: {log.missing.shown}"] if log.missing else []
    log.faults += _newer(answers, log)
    if is_empty:
        spool.add_bounds(partition.number)
    _await_recovery(log, answers)
    return log


def _entries(answers: Answers, log: _Log) -> Iterator[tuple[Place, Answer | AnswerError]]:
    """Yield the answer for each entry of the partition, in order; several are requested at once.

    Statistics may claim any number of entries: after a long row of missing ones, requests stop.

    Raises:
        FormatError: where the partition's statistics cannot be read again.
    """

    def request_entry(place: Place) -> Answer | AnswerError:
        try:
            return answers.get(_path_of(log, place))
        except AnswerError as error:
            return error

    places = _places(answers, log)
    with ThreadPoolExecutor(_PARALLEL_REQUESTS) as pool:
        while some := list(islice(places, _AHEAD)):
            for place, answer in zip(some, pool.map(request_entry, some), strict=True):
                is_present = isinstance(answer, Answer) and answer.status != MISSING
                log.missing_in_a_row = 0 if is_present else log.missing_in_a_row + 1
                yield place, answer
            if log.missing_in_a_row >= _IN_A_ROW and not _account_for(log, answers):
                ledger, entry = some[-1]
                log.faults.append(
                    f"{log.statistics.partition.path}: none of the {log.missing_in_a_row} entries before "
                    f"{ledger}:{entry + 1} is there, though the broker's statistics name them: the rest was not "
                    "asked for"
                )
                return


def _places(answers: Answers, log: _Log) -> Iterator[Place]:
    """Yield the entries that can be requested; the others count as missing.

    Raises:
        FormatError: where a copy is a link to elsewhere.
    """
    path = log.statistics.partition.path
    try:
        for ledger, count, entries in answers.entries(path, log.statistics.ledgers.counts):
            if len(entries) < count:
                present = set(entries)
                others = (number for number in range(count) if number not in present)
                log.missing.add(ledger, others, count - len(entries))
            for entry in entries:
                if ledger < log.statistics.ledgers.counts[0][0]:
                    break
                yield ledger, entry
    except AnswerError as error:
        raise FormatError(f"{path}: {error}") from None


def _newer(answers: Answers, log: _Log) -> Iterator[str]:
    """Yield that a copy has answers about entries that its statistics do not know yet: then they bound nothing.

    Raises:
        FormatError: where the folder of such an entry is a link to elsewhere.
    """
    path = log.statistics.partition.path
    try:
        beyond = sorted(answers.beyond(path, log.statistics.ledgers.counts))
    except AnswerError as error:
        raise FormatError(f"{path}: {error}") from None
    for place in beyond:
        with suppress(AnswerError):  # requested, but never answered
            if answers.get(_path_of(log, place)).status != MISSING:
                yield _NEWER.format(path, *place)
                return


def _path_of(log: _Log, place: Place) -> str:
    return f"{log.statistics.partition.path}/ledger/{place[0]}/entry/{place[1]}"


def _account_for(log: _Log, answers: Answers) -> bool:
    """Request where the topic begins now, and return whether the missing entries were deleted meanwhile (legal).

    Raises:
        FormatError: where the partition's statistics cannot be read again.
    """
    statistics = statistics_of(answers, log.statistics.partition)
    if statistics is None:
        raise FormatError(f"{log.statistics.partition.path}: the topic was deleted while it was read")
    first = statistics.ledgers.counts[0][0]
    if not log.missing.forget_before(first):
        return False
    log.statistics = statistics
    log.missing_in_a_row = 0
    log.notes.append(
        f"{statistics.partition.path}: ledgers before {first} were deleted while the topic was read"
    )
    return True


def _await_recovery(log: _Log, answers: Answers) -> None:
    """Wait until the broker holds back only entries after an open transaction's first; a copy does not change."""
    first_open = log.first_open
    held_from = log.first_uncommitted
    if held_from is None or (first_open is not None and first_open <= held_from):
        log.first_uncommitted = first_open
        return
    path = _path_of(log, held_from)
    until = time.monotonic() + (_RECOVERY_SECONDS if isinstance(answers, Administration) else 0)
    while time.monotonic() < until:
        if not entry_in(answers.get(path)).is_uncommitted:
            log.first_uncommitted = first_open
            return
        time.sleep(_PAUSE)
    log.notes.append(
        f"{log.statistics.partition.path}: the broker holds back entries from {held_from[0]}:{held_from[1]} on, which "
        "is the first of no open transaction: it had not loaded the topic's transactions yet; read it again"
    )


def _with_facts(rows: DataFrame, logs: list[_Log], spec: PulsarSource, request: Request) -> DataFrame:
    """Return the rows with their partitions' bounds and the states of their transactions.

    | topic  | partition | offset      | position | transaction_state | end_offset  | is_sparse | … |
    |--------|-----------|-------------|----------|-------------------|-------------|-----------|---|
    | orders | 0         | 21474836480 | 5:0:0    | committed         | 21474840576 | true      | … |
    """
    bounds = request.spark.createDataFrame([_bounds(log, spec, request) for log in logs], _BOUNDS)
    states = [
        (log.statistics.partition.number, _shown(transaction), one.state)
        for log in logs
        for transaction, one in log.transactions.items()
    ]
    known = rows.join(F.broadcast(bounds), F.col("partition") == F.col("of_partition"), how="left")
    state = F.when(F.col(FAULT).isNull() & F.col("offset").isNotNull(), F.lit("none"))
    if states:
        found = request.spark.createDataFrame(states, _OF_TRANSACTIONS)
        is_same = (F.col("partition") == F.col("in_partition")) & (
            F.col("transaction_id") == F.col("of_transaction")
        )
        known = known.join(F.broadcast(found), is_same, how="left")
        state = F.coalesce("known_state", state)
    return known.withColumns(
        {
            "transaction_state": state,
            "timestamp_type": F.lit("CreateTime"),
            "cleanup_policy": F.lit("delete"),
            "is_sparse": F.lit(True),
            FILE: F.lit(None).cast("string"),
            TEXT: F.lit(None).cast("string"),
        }
    ).drop("of_partition", "in_partition", "of_transaction", "known_state")


def _bounds(log: _Log, spec: PulsarSource, request: Request) -> tuple[int, int, int, int, datetime | None]:
    ledgers = log.statistics.ledgers
    requested_at = (
        log.statistics.requested_at if spec.connection is not None else spec.taken_time(request.now)
    )
    return log.statistics.partition.number, ledgers.first, log.stable, ledgers.end, requested_at


def _shown(transaction: TransactionId) -> str:
    return f"({transaction[0]},{transaction[1]})"
