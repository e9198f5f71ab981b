"""What a row says of a message's content, and what was changed on the way (taxonomy section 8, 1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.oracle.certainty import handed
from tests.oracle.history import History, Row, is_log_append
from tests.oracle.messages import Message

from tieout.model import BreakClass, Identity, Ledger

HASHES = {
    BreakClass.CORRUPTED_VALUE: "payload_hash",
    BreakClass.CORRUPTED_KEY: "key_hash",
    BreakClass.CORRUPTED_HEADER: "header_hash",
    BreakClass.CORRUPTED_TIMESTAMP: "record_timestamp",
}


def said(history: History, ledger: Ledger, row: Row, column: str) -> set[Any]:
    """Return what the row says of the column: its value, None where it says that there is none, or nothing at all."""
    value = row.get(column)
    if value is not None:
        return {value}
    is_set_by_the_client = ledger is Ledger.PRODUCED and column == "record_timestamp"
    is_unknown = (
        row.get("outcome") in ("failed", "unknown")
        or is_set_by_the_client
        or _is_declared_unknown(history, ledger, column)
        or row.get("content") == "unknown"
        or _is_lacking(row, column)
        or not history.has_column(ledger, column)
    )
    return set() if is_unknown else {None}


def _is_declared_unknown(history: History, ledger: Ledger, column: str) -> bool:
    """Return whether the contract says that the ledger's nulls in the column are unknown: they are not judged."""
    return column in (getattr(history.contract.ledgers.get(ledger), "unknown", None) or ())


def _is_lacking(row: Row, column: str) -> bool:
    """Return whether the row is of a file that has not the column, though other files of its ledger have it."""
    content = row.get("content") or ""
    return row.get(column) is None and content.startswith("lacks:") and column in content.split()


def _all_said(history: History, ledger: Ledger, rows: Iterable[Row], column: str) -> set[Any]:
    return {value for row in rows for value in said(history, ledger, row, column)}


def attempted_values(history: History, message: Message, column: str) -> set[Any]:
    """Return what the attempts say was sent; a broker that stamps its records keeps no time that was sent."""
    records = written_records(history, message)
    if column == "record_timestamp" and any(is_log_append(record) for record in records):
        return set()
    return _all_said(history, Ledger.PRODUCED, (attempt.row for attempt in message.attempts), column)


def logged_values(history: History, message: Message, column: str) -> set[Any]:
    """Return what the message's written records say."""
    return _all_said(history, Ledger.LOG, written_records(history, message), column)


def written_records(history: History, message: Message) -> list[Row]:
    """Return the message's records that no transaction holds back or took away."""
    return [record for record in message.records if history.is_written(record)]


def _received_values(history: History, message: Message, column: str, right: set[Any]) -> set[Any]:
    """Return what effects and reads say; in a fan-out null is nothing beside an effect with the sent value."""
    effects = _all_said(history, history.output, message.effects, column)
    reads = handed(history, message.reads)
    read = _all_said(history, Ledger.READ, reads, column)
    if history.contract.multiplicity.kind == "one_to_many" and effects & (right - {None}):
        effects -= {None}
        read -= {None} if history.output is Ledger.READ else set()
    return effects | read


def changes(history: History, message: Message) -> list[BreakClass]:
    """Return the CORRUPTED_* that hold for the message, and UNVERIFIABLE where null headers may be no headers.

    A value is right if any attempt says it, or where none says anything, any record; none is wrong where one of these
    is of a file that lacks the column. Of several equal payloads nobody
    can tell which key or header is whose.
    """
    found: set[BreakClass] = set()
    by_content = history.contract.identity is Identity.CONTENT
    for name, column in HASHES.items():
        if by_content and name is not BreakClass.CORRUPTED_VALUE:
            continue
        sent, logged = attempted_values(history, message, column), logged_values(history, message, column)
        seen = logged | _received_values(history, message, column, sent or logged)
        if column == "header_hash" and _may_be_no_headers(sent or logged, seen):
            found.add(BreakClass.UNVERIFIABLE)
        if _is_lacking_against_what_is_known(history, message, column):
            found.add(BreakClass.UNVERIFIABLE)
        if column == "header_hash":
            sent, logged, seen = sent - {None}, logged - {None}, seen - {None}
        right = sent or logged
        source = [attempt.row for attempt in message.attempts] if sent else written_records(history, message)
        if right and seen - right and not any(_is_lacking(row, column) for row in source):
            found.add(name)
    return sorted(found)


def _is_lacking_against_what_is_known(history: History, message: Message, column: str) -> bool:
    """Return whether a row of a file without the column stands against what another ledger says.

    What was sent, else what the log has, is right by any row that says it: one that lacks it then takes nothing back.
    """
    reads = handed(history, message.reads)
    sides = (
        (Ledger.PRODUCED, [attempt.row for attempt in message.attempts]),
        (Ledger.LOG, written_records(history, message)),
        (history.output, message.effects + (reads if history.output is Ledger.READ else [])),
        (Ledger.READ, [] if history.output is Ledger.READ else reads),
    )
    lacking = [
        number
        for number, (ledger, rows) in enumerate(sides)
        if not _is_declared_unknown(history, ledger, column) and any(_is_lacking(row, column) for row in rows)
    ]
    contents = [_all_said(history, ledger, rows, column) for ledger, rows in sides]
    nothing = {None} if column == "header_hash" else set()
    source = 0 if contents[0] - nothing else 1
    return any(
        set().union(*contents[:number], *contents[number + 1 :])
        - (contents[number] if number == source else set())
        for number in lacking
    )


def _may_be_no_headers(right: set[Any], seen: set[Any]) -> bool:
    """Return whether null stands against a hash, which may be the hash of no headers."""
    return (None in right and right == {None} and bool(seen - right)) or (
        bool(right) and None not in right and None in seen
    )
