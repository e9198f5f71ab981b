"""Every class that holds for a message (taxonomy section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tests.oracle.aside import is_set_aside_twice
from tests.oracle.certainty import handed
from tests.oracle.contents import changes
from tests.oracle.fates import Fates
from tests.oracle.history import (
    NEVER,
    Position,
    Row,
    contradict,
    known,
    position,
    state_of,
    undated_last,
)
from tests.oracle.loci import locus_of
from tests.oracle.matching import is_before_its_sends
from tests.oracle.messages import Message

from tieout.model import BreakClass, Identity, Ledger, Locus

ORDER = (
    BreakClass.PHANTOM_UNKNOWN,
    BreakClass.PHANTOM_ABORTED,
    BreakClass.PHANTOM_UNCOMMITTED,
    BreakClass.LOST,
    BreakClass.CORRUPTED_VALUE,
    BreakClass.CORRUPTED_KEY,
    BreakClass.CORRUPTED_HEADER,
    BreakClass.CORRUPTED_TIMESTAMP,
    BreakClass.OUTPUT_DUPLICATE,
    BreakClass.LOG_DUPLICATE,
    BreakClass.REDELIVERY,
    BreakClass.MISROUTED,
    BreakClass.LATE,
    BreakClass.IN_FLIGHT,
    BreakClass.DEAD_LETTERED,
    BreakClass.FILTERED,
    BreakClass.COMPACTED,
    BreakClass.UNVERIFIABLE,
    BreakClass.RECOVERED,
    BreakClass.DELIVERED,
    BreakClass.NOT_SENT,
)
NO_BREAK = frozenset({BreakClass.DELIVERED, BreakClass.RECOVERED, BreakClass.NOT_SENT})
LEGAL = frozenset({BreakClass.COMPACTED, BreakClass.FILTERED, BreakClass.DEAD_LETTERED})


@dataclass
class Finding:
    """One primary class with everything else that holds; `shown_by` says which rows of which ledgers show each."""

    primary: BreakClass
    also: set[str]
    time: datetime | None
    message_id: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    locus: Locus
    shown_by: dict[str, list[tuple[Ledger, datetime | None]]] = field(default_factory=dict)
    window_at: Position | None = None
    possible_effects: int = 0

    @property
    def names(self) -> set[str]:
        """The primary class and the flags."""
        return {str(self.primary), *self.also}

    @property
    def is_break(self) -> bool:
        """Whether the finding is a row of `breaks` (interpretation 30)."""
        if self.primary in NO_BREAK | LEGAL:
            return False
        return self.primary is not BreakClass.IN_FLIGHT or "OVERDUE" in self.also


Shown = dict[str, list[tuple[Ledger, datetime | None]]]


def message_findings(fates: Fates, judged: frozenset[BreakClass]) -> list[Finding]:
    """Return one finding a message, whichever window it belongs to."""
    return [_finding(fates, message, judged) for message in fates.matched.messages]


def _finding(fates: Fates, message: Message, judged: frozenset[BreakClass]) -> Finding:
    shown = {name: rows for name, rows in _holding(fates, message).items() if name in judged}
    primary = next(name for name in (*ORDER, BreakClass.NOT_SENT) if name in shown)
    flags = {str(name) for name in shown if name not in NO_BREAK and name is not primary}
    plain = _plain_flags(fates, message, primary, judged)
    is_phantom = primary.startswith("PHANTOM")
    times = _phantom_times(fates, shown[primary]) if is_phantom else set()
    first = fates.first_position(message)
    place = fates.place(message)
    if is_phantom and first is None:
        first = _phantom_position(message)
    return Finding(
        primary=primary,
        also=flags | plain,
        time=min(times, default=None) if is_phantom else message.began_at,
        message_id=message.message_id,
        topic=first[0] if first else place[0],
        partition=first[1] if first else place[1],
        offset=first[2] if first else None,
        locus=locus_of(primary, fates, message),
        shown_by={
            str(BreakClass.PHANTOM_ABORTED): _effects_and_attempts(fates, message) + _a_sound_log(fates),
            **{str(name): rows for name, rows in shown.items()},
        },
        window_at=fates.window_position(message),
        possible_effects=len(message.uncertain) + len(message.strays),
    )


def _effects_and_attempts(fates: Fates, message: Message) -> list[tuple[Ledger, datetime | None]]:
    effects = [(fates.history.output, undated_last(row.get("processed_at"))) for row in message.effects]
    return effects + [(Ledger.PRODUCED, undated_last(attempt.at)) for attempt in message.attempts]


def _up_to_the_effects(fates: Fates, message: Message) -> list[tuple[Ledger, datetime | None]]:
    """Return where another attempt of the message may lie, from which an effect of it would be (45)."""
    times = known(row.get("processed_at") for row in message.effects)
    moments = {moment for time in times for moment in (time, time + fates.history.skew)}
    return [(Ledger.PRODUCED, moment) for moment in moments]


def _a_sound_log(fates: Fates) -> list[tuple[Ledger, datetime | None]]:
    """Return that the log must be sound: what it does not show whole may have decided a transaction otherwise (45)."""
    return [(Ledger.LOG, None)] if Ledger.LOG in fates.history.contract.ledgers else []


def _in_the_log(fates: Fates, message: Message) -> list[tuple[Ledger, datetime | None]]:
    """Return where a failed send's record may lie; none where the log shows the aborted one, or none is declared (45).

    What a committed transaction failed to send only a log can show not to be there (87).
    """
    if any(state_of(record) == "aborted" for record in message.records):
        return _a_sound_log(fates)
    if Ledger.LOG not in fates.history.contract.ledgers:
        return [(Ledger.LOG, None)] if any(one.is_contradicted for one in message.attempts) else []
    if any(_may_be_its_record(fates, row) for row in message.effects):
        return [(Ledger.LOG, NEVER)]
    return [(Ledger.LOG, attempt.at) for attempt in message.attempts]


def _may_be_its_record(fates: Fates, effect: Row) -> bool:
    """Return whether an effect names a record of the log that nobody sent and that does not show another id (45)."""
    return any(
        position(record) == position(effect)
        and fates.history.is_written(record)
        and not contradict(record.get("message_id"), effect.get("message_id"))
        for record in fates.matched.unattempted_records
    )


def _phantom_times(fates: Fates, rows: list[tuple[Ledger, datetime | None]]) -> set[datetime]:
    """Return when the phantom showed itself: in this window where it did, else ever, or in none."""
    times = known(time for ledger, time in rows if ledger not in (Ledger.PRODUCED, Ledger.LOG))
    times -= {NEVER}
    return {time for time in times if fates.history.in_window(time)} or times


def _phantom_position(message: Message) -> Position | None:
    return min(
        known(position(row) for row in message.effects) or known(map(position, message.records)), default=None
    )


def _holding(fates: Fates, message: Message) -> Shown:
    """Return every class of the order that holds for the message, with the rows that show it."""
    output = fates.history.output
    # A row without a time lies in nobody's coverage (2).
    effects = [(output, undated_last(row.get("processed_at"))) for row in fates.ordered_effects(message)]
    attempts = [(Ledger.PRODUCED, undated_last(attempt.at)) for attempt in message.attempts]
    holding: Shown = {}
    if message.outcome == "failed" and effects:
        shown = effects + attempts + _up_to_the_effects(fates, message) + _in_the_log(fates, message)
        holding[BreakClass.PHANTOM_ABORTED] = shown
    uncommitted = _uncommitted_rows(fates, message)
    if uncommitted:
        early = [
            (ledger, NEVER)
            for ledger, time in uncommitted
            if is_before_its_sends(fates.history, message, time)
        ]
        covered = [
            (ledger, time)
            for ledger, time in uncommitted
            if time is not None and fates.history.covers(ledger, time, time)
        ]
        holding[BreakClass.PHANTOM_UNCOMMITTED] = (covered or uncommitted) + early + _a_sound_log(fates)
    for name in changes(fates.history, message):
        holding[name] = effects + attempts
    if len(fates.further_effects(message)) > 0:
        holding[BreakClass.OUTPUT_DUPLICATE] = effects
    if fates.history.contract.identity is not Identity.POSITION and len(fates.copies(message)) > 1:
        holding[BreakClass.LOG_DUPLICATE] = attempts
    reads = handed(fates.history, message.reads)
    if _is_read_again(reads):
        holding[BreakClass.REDELIVERY] = [(Ledger.READ, row.get("processed_at")) for row in reads]
    if _is_misrouted(fates, message):
        holding[BreakClass.MISROUTED] = attempts
    if message.is_accepted and _late_effect(fates, message):
        holding[BreakClass.LATE] = effects
    holding[_outcome_class(fates, message)] = []
    return holding


def _outcome_class(fates: Fates, message: Message) -> BreakClass:
    """Return the class of the disposition, or of what an unaccepted message amounts to."""
    if not message.is_accepted:
        return _unaccepted_class(fates, message)
    disposition = fates.disposition(message)
    if disposition != "delivered":
        return BreakClass(disposition.upper())
    return BreakClass.DELIVERED if message.outcome == "acked" else BreakClass.RECOVERED


def _unaccepted_class(fates: Fates, message: Message) -> BreakClass:
    """Return the first that holds of a message that neither was acked nor is proven."""
    is_failed = message.outcome == "failed"
    is_doubtful = bool(message.uncertain or message.strays)
    is_doubtful = is_doubtful or message.has_ambiguous_effect or message.may_be_recorded
    is_somewhere = any(state_of(record) != "aborted" for record in message.records) or bool(message.reads)
    is_staged = Ledger.STAGED in message.accounted
    is_absent = not (is_somewhere or is_staged or message.pending_aside or message.taken_back)
    is_due = fates.is_due(message)
    rules = (
        (bool(message.effects), BreakClass.NOT_SENT),
        (Ledger.DEAD_LETTERS in message.accounted, BreakClass.DEAD_LETTERED),
        (Ledger.FILTERED in message.accounted, BreakClass.FILTERED),
        (is_doubtful, BreakClass.UNVERIFIABLE),
        (is_failed, BreakClass.NOT_SENT),
        (fates.evidence_is_missing(message), BreakClass.UNVERIFIABLE),
        (is_absent and is_due, BreakClass.NOT_SENT),
        (bool(message.pending_aside) and is_due, BreakClass.UNVERIFIABLE),
    )
    return next((name for holds, name in rules if holds), BreakClass.IN_FLIGHT)


def _plain_flags(
    fates: Fates, message: Message, primary: BreakClass, judged: frozenset[BreakClass]
) -> set[str]:
    flags = set(message.plain_flags)
    fate = fates.fate(message)
    if fate == "in_flight" and fates.is_old_enough(message):
        flags.add("OVERDUE")
    if fate == "lost" and fates.is_expired(message):
        flags.add("EXPIRED")
    if fate == "lost" and message.effects:
        flags.add("partial")
    possible = len(message.uncertain) + len(message.strays)
    if message.effects and possible > len(fates.lone_uncertain(message)):
        flags.add("POSSIBLE_DUPLICATE")
    if len(fates.further_effects(message)) > 0 and len(fates.copies(message)) >= fates.repeats(message):
        flags.add("inherited")
    if is_set_aside_twice(fates.history, message, is_fully_delivered=fates.is_fully_delivered(message)):
        flags.add("set_aside_and_delivered")
    if primary is not BreakClass.PHANTOM_ABORTED and _has_aborted_effect(fates, message):
        flags |= {str(BreakClass.PHANTOM_ABORTED)} & {str(name) for name in judged}
    return flags


def _has_aborted_effect(fates: Fates, message: Message) -> bool:
    """Return whether an accepted message's effect came from a position whose record was aborted."""
    if not message.is_accepted:
        return False
    taken_from = ((row, fates.history.records.get(at)) for row in message.effects if (at := position(row)))
    return any(
        record is not None
        and not record.get("is_control")
        and state_of(record) == "aborted"
        and not contradict(row.get("message_id"), record.get("message_id"))
        for row, record in taken_from
    )


def _uncommitted_rows(fates: Fates, message: Message) -> list[tuple[Ledger, datetime | None]]:
    """Return the effects and reads of a transaction still open then, and reads of a transaction's own write."""
    own = {attempt.row.get("transaction_id") for attempt in message.attempts} - {None}
    found: list[tuple[Ledger, datetime | None]] = []
    rows = [(fates.history.output, row) for row in message.effects]
    rows += [(Ledger.READ, row) for row in message.reads]
    by_content = fates.history.contract.identity is Identity.CONTENT
    for ledger, row in rows:
        at = position(row)
        there = fates.history.records.get(at) if at is not None else None
        if there is not None and there.get("is_control") and ledger is fates.history.output:
            at, there = None, None  # nothing is handed out from a marker's position
        candidates = message.records if at is None else []
        if there is not None and (
            by_content or not contradict(there.get("message_id"), row.get("message_id"))
        ):
            candidates = [there]  # whoever sent what lies there: the row says that it came from it
        if at is None and not _is_from_the_log(fates, message):
            candidates = []  # nobody knows from which of its positions the row came
        is_open = any(_was_open(fates, record, row.get("processed_at")) for record in candidates)
        is_own = row in message.reads and row.get("transaction_id") in own
        if is_open or is_own:
            found.append((ledger, row.get("processed_at")))
    return found


def _is_from_the_log(fates: Fates, message: Message) -> bool:
    """Return whether a row of the message without position can only come from the one record of it, or none written."""
    is_written = any(fates.history.is_written(record) for record in message.records)
    named = known(position(attempt.row) for attempt in message.attempts if attempt.outcome != "failed")
    named |= known(position(row) for row in message.reads)
    is_elsewhere = bool(named - known(map(position, message.records)))
    return not is_elsewhere and (not is_written or len(message.records) == 1)


def _was_open(fates: Fates, record: Row, when: datetime | None) -> bool:
    """Return whether the record's transaction was demonstrably open at that time."""
    at = position(record)
    if when is None or at is None or record.get("is_control"):
        return False
    if state_of(record) == "open":
        observed = fates.history.bounds[at[:2]].observed_at
        return observed is not None and when <= observed - fates.history.skew
    if state_of(record) != "committed" or record.get("broker_producer_id") is None:
        return False
    markers = [
        marker
        for other, marker in sorted(fates.history.records.items(), key=lambda item: item[0])
        if other[:2] == at[:2]
        and other[2] > at[2]
        and marker.get("is_control")
        and marker.get("broker_producer_id") == record["broker_producer_id"]
    ]
    ended = markers[0].get("record_timestamp") if markers else None
    return ended is not None and when < ended - fates.history.skew


def _is_read_again(reads: list[Row]) -> bool:
    places = [at for at in map(position, reads) if at is not None]
    return len(places) > len(set(places))


def _is_misrouted(fates: Fates, message: Message) -> bool:
    intended = message.values("intended_partition")
    taken = {at[1] for at in fates.positions(message)}
    claimed = any(
        contradict(attempt.row.get("partition"), attempt.row.get("intended_partition"))
        for attempt in message.attempts
        if message.is_accepted and attempt.outcome != "failed"
    )
    if fates.history.contract.identity is Identity.CONTENT:
        return claimed  # which of several equal records is the message's, nobody can tell
    return claimed or (bool(intended) and bool(taken - intended))


def _late_effect(fates: Fates, message: Message) -> bool:
    deadline, times = (
        fates.deadline(message),
        [row.get("processed_at") for row in fates.first_effects(message)],
    )
    return deadline is not None and any(time is not None and time > deadline for time in times)
