"""Rows that say of no message what became of it: each may be a lost one's (interpretation 20)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

from tests.oracle.aside import ASIDE, rows_that_took_place
from tests.oracle.certainty import certainty
from tests.oracle.findings import Finding
from tests.oracle.history import History, Position, Row

from tieout.model import Identity


def topics_of_possible_losses(
    history: History, findings: list[Finding], jumped: list[Position]
) -> set[str | None]:
    """Return the topics of which no more messages are lost than rows there may be theirs.

    `jumped` are the positions of what is not lost yet, and a commit went ahead of.
    """
    lost = Counter(finding.topic for finding in findings if "LOST" in finding.names)
    lost.update(topic for topic, _, _ in jumped)
    nameless = Counter(row.get("topic") for row in outcomes(history) if _is_nameless(history, row))
    return {
        topic
        for topic, count in lost.items()
        if count <= (nameless.total() if topic is None else nameless[topic] + nameless[None])
    }


def outcomes(history: History) -> Iterable[Row]:
    """Yield what became of messages: effects, dead letters and filtered rows, also those that may be none."""
    needs_key = history.contract.multiplicity.effect_key is not None
    rows = history.rows(history.output)
    has_state = history.has_column(history.output, "transaction_state")
    yield from (row for row in rows if certainty(row, rows, has_state, needs_key) != "failed")
    for ledger in ASIDE:
        for state in ("ok", "unknown"):
            yield from rows_that_took_place(history, ledger, state)


def _is_nameless(history: History, row: Row) -> bool:
    """Return whether the row shows neither what identifies a message nor a position, and may follow a send."""
    identity = history.contract.identity
    name = {Identity.MESSAGE_ID: "message_id", Identity.CONTENT: "payload_hash"}.get(identity)
    at = row.get("processed_at") or row.get("at")
    offset = row.get("offset")
    is_placed = row.get("partition") is not None and offset is not None and offset >= 0
    since = history.window.start - history.skew - timedelta(seconds=1)
    is_before = not history.window.offsets and not history.is_undated(at) and at is not None and at < since
    return not is_placed and not is_before and (name is None or row.get(name) is None)
