"""Effects that no message explains: phantoms, or unverifiable (taxonomy section 3, PHANTOM_UNKNOWN)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.oracle.fates import Fates
from tests.oracle.findings import Finding
from tests.oracle.history import BEGINNING, Position, Row, contradict, known, position, undated_last
from tests.oracle.messages import Unmatched
from tests.oracle.pairing import may_be_nameless

from tieout.model import BreakClass, Identity, Ledger, Locus


def phantom_findings(fates: Fates) -> list[Finding]:
    """Return one finding for each identity with an effect in the window that no message has (20, 21)."""
    units = units_of(fates, fates.matched.unmatched_effects)
    doubtful = units_of(fates, fates.matched.unmatched_uncertain)
    found = [finding_of(fates, effects) for effects in units.values()]
    return found + [_unverifiable(fates, rows[0][0]) for unit, rows in doubtful.items() if unit not in units]


def units_of(fates: Fates, rows: list[tuple[Row, Unmatched]]) -> dict[Any, list[tuple[Row, Unmatched]]]:
    """Return the rows of the window by what they show: their identity, else all of it."""
    by_content = fates.history.contract.identity is Identity.CONTENT
    units: dict[Any, list[tuple[Row, Unmatched]]] = {}
    for row, why in rows:
        name = _identity_of(fates, row)
        unit: Any = (name, why) if by_content else name
        unit = ("row", _shown_by(row)) if name is None else unit
        if fates.history.holds(row.get("processed_at"), window_position(fates, row)):
            units.setdefault(unit, []).append((row, why))
    return units


def _shown_by(row: Row) -> str:
    """Return all that the row shows: rows alike in everything nobody can tell apart (20)."""
    return repr(sorted((name, value) for name, value in row.items() if value is not None))


def window_position(fates: Fates, row: Row) -> Position | None:
    """Return the lowest position that rows of the effect's identity name, in its ledgers or the log (78)."""
    name = _identity_of(fates, row)
    rows = [one for one, _ in fates.matched.unmatched_effects if name and _identity_of(fates, one) == name]
    record = record_of(fates, row)
    logged = [record] if record is not None else []
    return min(known(map(position, logged)) or known(map(position, [row, *rows])), default=None)


def _identity_of(fates: Fates, row: Row) -> Any:
    if fates.history.contract.identity is Identity.CONTENT:
        return row.get("payload_hash")
    at = position(row)
    if fates.history.contract.identity is Identity.MESSAGE_ID:
        name = row.get("message_id") or _name_in_the_log(fates, at)
        return at if name is None else name
    return at


def _name_in_the_log(fates: Fates, at: Position | None) -> str | None:
    """Return the id that the log shows at the position of a row which shows none itself (20)."""
    record = fates.history.records.get(at) if at else None
    return None if record is None or record.get("is_control") else record.get("message_id")


def is_phantom(fates: Fates, row: Row, why: Unmatched) -> bool:
    """Return whether the effect certainly comes from no covered producer; else it is unverifiable."""
    if why is not Unmatched.UNATTEMPTED or _identity_of(fates, row) is None:
        return False
    record = record_of(fates, row)
    name = row.get("message_id") if record is None else record.get("message_id") or row.get("message_id")
    is_nameless = fates.history.contract.identity is Identity.POSITION or name is None
    if could_be_an_unplaced_send(fates, row, is_nameless) or (
        is_nameless and could_be_a_copy(fates, row, record)
    ):
        return False
    return origin_is_covered(fates, row, record)


def could_be_a_copy(fates: Fates, row: Row, record: Row | None) -> bool:
    """Return whether the effect holds what was sent to its topic: a client that retried may have written it (85)."""
    if fates.history.contract.identity is Identity.CONTENT:
        return False
    unit = [
        one
        for one, _ in fates.matched.unmatched_effects
        if _identity_of(fates, one) == _identity_of(fates, row)
    ]
    shown = known(one.get("payload_hash") for one in [*unit, record or {}])
    return any(
        shown & message.values("payload_hash") and fates.place(message)[0] == row.get("topic")
        for message in fates.matched.messages
    )


def record_of(fates: Fates, row: Row) -> Row | None:
    """Return the effect's record in the log: at its position, else the first unattempted one with its id."""
    at = position(row)
    if fates.history.contract.identity is Identity.CONTENT:
        return _earliest_of_payload(fates, row)
    if at is not None and at in fates.history.records:
        record = fates.history.records[at]
        if not record.get("is_control") and not contradict(record.get("message_id"), row.get("message_id")):
            return record
    return min(_records_of_its_id(fates, row), key=lambda one: known([position(one)]), default=None)


def _records_of_its_id(fates: Fates, row: Row) -> list[Row]:
    """Return the records that nobody sent with the effect's id."""
    name, records = row.get("message_id"), fates.matched.unattempted_records
    return [one for one in records if name is not None and one.get("message_id") == name]


def _earliest_of_payload(fates: Fates, row: Row) -> Row | None:
    """Return the earliest record that nobody sent of the row's payload: all of them are one identity (66).

    Where effects say from which of them they came, it is the earliest of those.
    """
    same = {
        position(one): one
        for one in fates.matched.unattempted_records
        if one.get("payload_hash") is not None and one["payload_hash"] == row.get("payload_hash")
    }
    named = {
        position(one)
        for one, why in fates.matched.unmatched_effects
        if why is Unmatched.UNATTEMPTED and one.get("payload_hash") == row.get("payload_hash")
    }
    shown = [same[at] for at in named & set(same) if same[at].get("record_timestamp") is not None]
    records = shown or list(same.values())
    return min(records, key=lambda one: one.get("record_timestamp") or BEGINNING, default=None)


def origin_is_covered(fates: Fates, row: Row, record: Row | None) -> bool:
    """Return whether `produced` would show the origin of an effect or record if a known producer had sent it."""
    history = fates.history
    coverage = history.coverage.get(Ledger.PRODUCED)
    if coverage is None or not coverage.names_all_producers:
        return False
    logged_at = _logged_at(fates, row, record)
    if logged_at is not None:
        return history.covers(Ledger.PRODUCED, logged_at - history.skew, logged_at + history.skew)
    at = row.get("processed_at")
    if at is None:
        return False
    reaches_back = min(at - history.contract.look_back, at)
    firsts = known([_first_of_the_topic(fates, row.get("topic")), _first_of_the_partitions(fates, row)])
    from_there = max([reaches_back, *(first - history.skew for first in firsts)])
    return history.covers(Ledger.PRODUCED, min(from_there, at), at + history.skew)


def _logged_at(fates: Fates, row: Row, record: Row | None) -> datetime | None:
    """Return when the first of the records was written that the effect may come from, None where any has no time."""
    if record is None:
        return None
    is_known = position(record) == position(row) or fates.history.contract.identity is Identity.CONTENT
    records = [record] if is_known else _records_of_its_id(fates, row)
    times = [one.get("record_timestamp") for one in records]
    return min(known(times)) if None not in times else None


def _first_of_the_topic(fates: Fates, topic: str | None) -> datetime | None:
    """Return when the topic's first record was written, where the log still has every partition's beginning."""
    bounds = [bound for place, bound in fates.history.bounds.items() if place[0] == topic]
    used = [place for place, bound in fates.history.bounds.items() if place[0] == topic and bound.end > 0]
    if any((*place, 0) not in fates.history.records for place in used):
        return None
    times = [record.get("record_timestamp") for at, record in fates.history.records.items() if at[0] == topic]
    dated: list[datetime] = [time for time in times if time is not None]
    if not bounds or any(bound.start > 0 for bound in bounds) or not dated or len(dated) < len(times):
        return None
    return min(dated)


def _first_of_the_partitions(fates: Fates, row: Row) -> datetime | None:
    """Return when the first of the partitions began that effects of the row's identity come from.

    An attempt says it that is at offset 0 there; None where one of them has none, or an effect shows no position.
    """
    name = _identity_of(fates, row)
    of_unit = [
        position(one) for one, _ in fates.matched.unmatched_effects if _identity_of(fates, one) == name
    ]
    attempts = [attempt for message in fates.matched.messages for attempt in message.attempts]
    firsts = [
        min(known(one.at for one in attempts if at and position(one.row) == (*at[:2], 0)), default=None)
        for at in of_unit
    ]
    return None if None in firsts else min(known(firsts), default=None)


def could_be_an_unplaced_send(fates: Fates, row: Row, is_nameless: bool) -> bool:
    """Return whether a send of which no position and no effect is known may be what the row shows (20).

    The row or the send must not say who it is: two known ids that differ are two messages.
    """
    if fates.history.contract.identity is Identity.CONTENT:
        return may_be_nameless(fates.matched.messages, record_of(fates, row) or row)
    return any(
        fates.is_unplaced(message)
        and (is_nameless or message.message_id is None)
        and any(not contradict(attempt.row.get("topic"), row.get("topic")) for attempt in message.attempts)
        for message in fates.matched.messages
    )


def finding_of(fates: Fates, effects: list[tuple[Row, Unmatched]]) -> Finding:
    """Return the finding of the effects of one identity."""
    row, why = min(effects, key=lambda effect: undated_last(effect[0].get("processed_at")))
    if not is_phantom(fates, row, why):
        return _unverifiable(fates, row)
    record = record_of(fates, row)
    at = position(row) or (position(record) if record else None)
    locus = Locus.UNKNOWN
    if record is not None:
        locus = Locus.PRODUCER
    elif _would_be_in_the_log(fates, row, at):
        locus = Locus.SINK
    return Finding(
        primary=BreakClass.PHANTOM_UNKNOWN,
        also=_read_again(fates, row),
        time=row.get("processed_at"),
        message_id=row.get("message_id"),
        topic=at[0] if at else row.get("topic"),
        partition=at[1] if at else row.get("partition"),
        offset=at[2] if at else None,
        locus=locus,
        shown_by={str(BreakClass.PHANTOM_UNKNOWN): [(fates.history.output, row.get("processed_at"))]},
        window_at=window_position(fates, row),
    )


def _read_again(fates: Fates, row: Row) -> set[str]:
    """Return REDELIVERY where what nobody sent was read twice at a position (29)."""
    name = _identity_of(fates, row)
    owned = {id(read) for message in fates.matched.messages for read in message.reads}
    places = [
        position(read)
        for read in fates.history.rows(Ledger.READ)
        if id(read) not in owned
        and read.get("outcome") in (None, "ok")
        and name is not None
        and _identity_of(fates, read) == name
        and position(read) is not None
    ]
    return {str(BreakClass.REDELIVERY)} if len(places) > len(set(places)) else set()


def _would_be_in_the_log(fates: Fates, row: Row, at: Position | None) -> bool:
    """Return whether the log would show the effect's record, at its position or by its id, if there were one."""
    if at is not None:
        return fates.history.log_covers(at, row.get("processed_at"))
    return fates.history.is_sound(Ledger.LOG) and fates.history.has_column(Ledger.LOG, "message_id")


def _unverifiable(fates: Fates, row: Row) -> Finding:
    """Return the finding of an effect of unknown origin; that a position of it was read again comes first."""
    at, again = position(row), _read_again(fates, row)
    return Finding(
        primary=BreakClass.REDELIVERY if again else BreakClass.UNVERIFIABLE,
        also={str(BreakClass.UNVERIFIABLE)} if again else set(),
        time=row.get("processed_at") or BEGINNING,
        message_id=row.get("message_id"),
        topic=row.get("topic"),
        partition=row.get("partition"),
        offset=at[2] if at else None,
        locus=Locus.BROKER_TO_CONSUMER if again else Locus.UNKNOWN,
        window_at=window_position(fates, row),
    )
