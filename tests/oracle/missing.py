"""What evidence that is left says of rows that were taken away (interpretation 132); where nothing, nobody misses them.

The other side of `expecting`: there a rule holds only for rows that are sure of what they say, here for every row of
which something is left. Where nothing is, the rest is, line by line, the evidence of another history, in which the
removed rows never happened: only the word of whoever calls the ledger complete says otherwise. Commits, positions,
assignments and reads beside an output are such rows always, as 132 says: nothing else names them. An id that several
sessions used counts as one here. What at most once allows, a loss or a truncated log, the statement names and keeps.

One kind is told and not held (docs/explanation/trust.md): it begins with `UNMARKED`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tests.oracle.deleting import Deletion
from tests.oracle.history import Row
from tests.oracle.placing import in_window, is_effect, is_written, output_of, place_of
from tests.oracle.random_histories import RandomHistory

from tieout.contracts import CoverageSpec
from tieout.model import Guarantee, Identity, Ledger

UNMARKED = "a topic without markers"
"""A hole in a transactional topic of which no marker is left: it counts as a marker (43), and the statement says so."""
_ASIDE = (Ledger.FILTERED, Ledger.DEAD_LETTERS, Ledger.STAGED)


def missed_by(deletion: Deletion) -> list[str]:
    """Return who misses what was removed, and what they still say of it."""
    if deletion.ledger is Ledger.PRODUCED:
        return [*_producers(deletion), *_numbers(deletion), *_without_sends(deletion)]
    if deletion.ledger is Ledger.LOG:
        return [*_partitions(deletion), *_bounds(deletion), *_without_records(deletion)]
    if deletion.ledger in (output_of(deletion.after), *_ASIDE):
        return list(_without_effects(deletion))
    return []


def _producers(deletion: Deletion) -> Iterable[str]:
    said = deletion.after.contract.ledgers[Ledger.PRODUCED].coverage
    left = {row.get("producer_id") for row in deletion.after.rows[Ledger.PRODUCED]}
    declared = set(said.producers) if isinstance(said, CoverageSpec) else set()
    return [f"producer {name} is declared" for name in sorted(declared - left)]


def _numbers(deletion: Deletion) -> Iterable[str]:
    said = deletion.after.contract.ledgers[Ledger.PRODUCED].coverage
    if not isinstance(said, CoverageSpec) or said.sequences is None:
        return
    left: dict[Any, set[int]] = {}
    for row in deletion.after.rows[Ledger.PRODUCED]:
        if row.get("sequence") is not None:
            left.setdefault(_session(row), set()).add(row["sequence"])
    for row in deletion.removed:
        number, numbers = row.get("sequence"), left.get(_session(row), set())
        # Sessions count from 0 or 1, and a number twice is no gap: whoever has the other row misses none.
        if number and numbers and number < max(numbers) and number not in numbers:
            yield f"number {number} of {_session(row)}"


def _without_sends(deletion: Deletion) -> Iterable[str]:
    """Yield the records and effects of the window whose send was removed, and no other is theirs."""
    after = deletion.after
    records = [
        row
        for row in after.rows.get(Ledger.LOG, [])
        if is_written(row) and in_window(after, row.get("record_timestamp"))
    ]
    own = [row for row in after.rows.get(output_of(after), []) if is_effect(after, row)]
    # What nobody sent is of the window of its first effect.
    older = {
        key
        for row in own
        if (time := row.get("processed_at")) is not None and time < after.window.start
        for key in _keys(deletion, row)
    }
    effects = [
        row
        for row in own
        if in_window(after, row.get("processed_at")) and older.isdisjoint(_keys(deletion, row))
    ]
    sends = after.rows[Ledger.PRODUCED]
    yield from _unaccounted(deletion, "effect", effects, sends)
    yield from _unaccounted(deletion, "record", records, sends)


def _without_records(deletion: Deletion) -> Iterable[str]:
    """Yield the places of acknowledged sends whose record was removed, from where the log begins."""
    after = deletion.after
    if after.contract.guarantee is Guarantee.AT_MOST_ONCE or _may_be_compacted(deletion):
        return
    left = {place_of(row) for row in after.rows[Ledger.LOG]}
    gone = {place for row in deletion.removed if is_written(row) and (place := place_of(row))} - left
    starts = {_partition(row): row.get("log_start_offset") for row in after.rows[Ledger.LOG]}
    for row in after.rows[Ledger.PRODUCED]:
        place = place_of(row)
        if place in gone and _is_accepted(row) and in_window(after, row.get("attempted_at")):
            start = starts.get(_partition(row))
            if start is None or place[2] >= start:
                yield f"a send was acknowledged at {place}"


def _partitions(deletion: Deletion) -> Iterable[str]:
    after = deletion.after
    left = {_partition(row) for row in after.rows[Ledger.LOG]}
    sent = {
        _partition(row)
        for row in after.rows[Ledger.PRODUCED]
        if _is_accepted(row) and place_of(row) and in_window(after, row.get("attempted_at"))
    }
    gone = {_partition(row) for row in deletion.removed} - left
    return [f"sends of {place}" for place in sorted(sent & gone, key=str)]


def _bounds(deletion: Deletion) -> Iterable[str]:
    after = deletion.after
    stated = {_partition(row): row for row in after.rows[Ledger.LOG]}
    left = {place_of(row) for row in after.rows[Ledger.LOG]}
    if after.contract.guarantee is Guarantee.AT_MOST_ONCE:  # a lost message's place is accounted for (134)
        left |= {place_of(row) for row in after.rows[Ledger.PRODUCED] if _is_accepted(row)}
    for row in deletion.removed:
        bounds, offset = stated.get(_partition(row), {}), row.get("offset")
        first, end = bounds.get("log_start_offset"), bounds.get("end_offset")
        if offset is None or first is None or end is None or place_of(row) in left:
            continue
        is_whole = bounds.get("cleanup_policy") == "delete" and not bounds.get("is_sparse")
        if is_whole and first <= offset < end and _is_near(after, row):
            found = f"bounds {first} to {end} of {_partition(row)} hold {offset}"
            yield f"{UNMARKED}: {found}" if _may_be_marker(after, row) else found


def _may_be_marker(after: RandomHistory, removed: Row) -> bool:
    in_topic = [row for row in after.rows[Ledger.LOG] if row.get("topic") == removed.get("topic")]
    states = [row.get("transaction_state") for row in in_topic]
    states += [row.get("transaction_id") and "committed" for row in after.rows[Ledger.PRODUCED]]
    has_transactions = any(state not in (None, "none") for state in states)
    return has_transactions and not any(row.get("is_control") for row in in_topic)


def _is_near(after: RandomHistory, removed: Row) -> bool:
    """Return whether the window is asked for the offset: its record may have been one of it (134).

    Not where the records on both sides are of other times: then nobody knows that it was.
    """
    own = [row for row in after.rows[Ledger.LOG] if _partition(row) == _partition(removed)]
    stamps = {row["offset"]: row.get("record_timestamp") for row in own if row.get("offset") is not None}
    below = [offset for offset in stamps if offset < removed["offset"]]
    above = [offset for offset in stamps if offset > removed["offset"]]
    inside = [offset for offset, time in stamps.items() if in_window(after, time)]
    if inside and min(inside) < removed["offset"] < max(inside):
        return True
    before = [offset for offset in below if _is_reached(stamps[offset], after.window.start)]
    if before:  # some record of the window or later lies below: the hole follows the window's last one, or a later one
        ended = any(_is_reached(stamps[offset], after.window.end) for offset in below)
        return not ended or bool(inside and max(inside) == max(below))
    between = [offset for offset in above if _is_reached(stamps[offset], after.window.start)]
    if any(offset < min(between, default=offset + 1) for offset in above):
        return False  # an earlier record follows
    begins = after.coverage.get(Ledger.LOG)
    return bool(below) or begins is None or begins.covers_from is None


def _is_reached(time: datetime | None, moment: datetime) -> bool:
    return time is not None and time >= moment


def _without_effects(deletion: Deletion) -> Iterable[str]:
    """Yield the accepted messages of the window that nothing is left of at the consumer's side."""
    after = deletion.after
    if after.contract.guarantee is Guarantee.AT_MOST_ONCE or _may_be_compacted(deletion):
        return
    left = [row for row in after.rows.get(output_of(after), []) if is_effect(after, row)]
    left += [row for name in _ASIDE for row in after.rows.get(name, [])]
    unwritten = {
        place_of(row)
        for row in after.rows.get(Ledger.LOG, [])
        if row.get("transaction_state") in ("aborted", "open")
    } - {None}
    sends = [
        row for row in after.rows[Ledger.PRODUCED] if _is_accepted(row) and place_of(row) not in unwritten
    ]
    # A message is of the window in which it was sent first.
    older = {
        row.get("message_id") for row in after.rows[Ledger.PRODUCED] if not _is_of_window(after, row)
    } - {None}
    of_window = [row for row in sends if _is_of_window(after, row) and row.get("message_id") not in older]
    yield from _unaccounted(deletion, "send", of_window, left)


def _is_of_window(after: RandomHistory, send: Row) -> bool:
    """Return whether the send is the window's: by its time, or by its place where the window is ranges of offsets."""
    if not after.window.offsets:
        return in_window(after, send.get("attempted_at"))
    place = place_of(send)
    return place is not None and any(
        place[:2] == (one.topic, one.partition) and one.start <= place[2] < one.end
        for one in after.window.offsets
    )


def _unaccounted(deletion: Deletion, name: str, rows: list[Row], others: list[Row]) -> Iterable[str]:
    """Yield the rows that belonged to what was removed, and to none of the others: by id, else by place or content."""
    contract = deletion.after.contract
    if contract.multiplicity.kind == "many_to_one":
        return
    if contract.identity is Identity.CONTENT:
        removed = {row.get("payload_hash") for row in deletion.removed} - {None}
        shown, left = (Counter(row.get("payload_hash") for row in found) for found in (rows, others))
        # Equal ones that are left may be copies: only content of which nothing is left was never sent, or lost.
        yield from (f"{name}s of content {one}" for one in sorted(removed) if shown[one] and not left[one])
        return
    keys = _places if contract.identity is Identity.POSITION else _keys
    gone = {key for row in deletion.removed for key in keys(deletion, row)}
    kept = {key for row in others for key in keys(deletion, row)}
    named = _named(deletion)
    for row in rows:
        own = set(keys(deletion, row))
        if own & gone and not own.union(*(named[key] for key in own)) & kept:
            yield f"{name} {row.get('message_id')} at {place_of(row)}"


def _named(deletion: Deletion) -> defaultdict[Any, set[Any]]:
    """Return the places that sends, records and reads name for an id, and the ids that they name for a place."""
    named: defaultdict[Any, set[Any]] = defaultdict(set)
    if deletion.after.contract.identity is not Identity.MESSAGE_ID:
        return named
    for ledger in (Ledger.PRODUCED, Ledger.LOG, Ledger.READ):
        for row in deletion.after.rows.get(ledger, []):
            found = _keys(deletion, row)
            for key in found:
                named[key].update(found)
    return named


def _keys(deletion: Deletion, row: Row) -> list[Any]:
    name = row.get("message_id")
    return [*([("id", name)] if name is not None else []), *_places(deletion, row)]


def _places(_: Deletion, row: Row) -> list[Any]:
    place = place_of(row)
    return [] if place is None else [place]


def _may_be_compacted(deletion: Deletion) -> bool:
    rows = deletion.after.rows.get(Ledger.LOG, [])
    return any("compact" in (row.get("cleanup_policy") or "").lower() for row in rows)


def _is_accepted(send: Row) -> bool:
    """Return whether the send itself says that it was accepted; what becomes of a transaction, others say."""
    is_alone = send.get("transaction_id") is None and send.get("transaction_state") in (None, "none")
    return send.get("outcome") == "acked" and (is_alone or send.get("transaction_state") == "committed")


def _session(row: Row) -> tuple[Any, Any]:
    return row.get("producer_id"), row.get("producer_session")


def _partition(row: Row) -> tuple[Any, Any]:
    return row.get("topic"), row.get("partition")
