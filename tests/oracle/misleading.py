"""What sources say wrongly, or leave unsaid: nulls, clocks, spellings of ids, polls and dead letters taken back.

Variations as in `varying.py`: each changes how a history is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

from tests.engine.histories import GRACE_END

from tieout.model import Ledger

Row = dict[str, Any]
Rows = dict[Ledger, list[Row]]

P, LOG, D, R = Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.READ
_ASIDE = (Ledger.FILTERED, Ledger.DEAD_LETTERS)
_HELD = (P, LOG, D, R)
_DISTANCES = (
    timedelta(seconds=1),
    timedelta(seconds=1, microseconds=1),
    timedelta(seconds=2),
    timedelta(seconds=31),
    timedelta(seconds=32),
    timedelta(minutes=45),
    timedelta(hours=1),
    timedelta(hours=4),
    timedelta(hours=5, minutes=30),
)


def forget_contents(rng: Random, rows: Rows) -> None:
    """Leave out contents on one side; some rows say that they do not know them, or their file has no such column."""
    columns = rng.sample(("payload_hash", "payload_hash", "key_hash", "header_hash"), rng.choice((1, 1, 2)))
    share, marked = rng.choice((0.1, 0.4, 1.0)), rng.choice((0.0, 0.0, 0.5, 1.0))
    for ledger in rng.sample(_HELD, rng.choice((1, 1, 2))):
        for row in rows.get(ledger, []):
            if row.get("is_control") or rng.random() >= share:
                continue
            row.update(dict.fromkeys(columns))
            if ledger in (D, R) and "record_timestamp" in row and rng.random() < 0.3:
                row["record_timestamp"] = None
            if rng.random() < marked:
                row["content"] = rng.choice(("unknown", "unknown", f"lacks: {' '.join(columns)}"))


def set_clocks_wrong(rng: Random, rows: Rows) -> None:
    """Let the output's clock be behind by seconds or by a time zone, or ahead; some sends have no exact time."""
    away = rng.choice(_DISTANCES) * rng.choice((-1, -1, -1, 1))
    share = rng.choice((0.3, 1.0))
    for ledger in rng.choice(((D,), (R,), (D, R))):
        for row in rows.get(ledger, []):
            if row.get("processed_at") is not None and rng.random() < share:
                row["processed_at"] += away
    roughly = rng.choice((0.0, 0.0, 0.3))
    for row in rows[P]:
        if rng.random() < roughly:
            row["is_approximate"] = True


def deliver_before_the_send(rng: Random, rows: Rows) -> None:
    """Move some effects to just before the first send of their message."""
    sent = {row["message_id"]: row["attempted_at"] for row in reversed(rows[P])}
    skew = rng.choice((timedelta(0), timedelta(seconds=1), timedelta(seconds=30)))
    for ledger in (D, R):
        for row in rows.get(ledger, []):
            if row.get("message_id") in sent and rng.random() < 0.4:
                row["processed_at"] = sent[row["message_id"]] - skew - rng.choice(_DISTANCES)


def take_polls_back(rng: Random, rows: Rows) -> None:
    """Let some polls fail, or be in a consumer's transaction that was aborted or nobody resolved."""
    share = rng.choice((0.2, 0.6))
    for row in rows.get(R, []):
        if rng.random() < share:
            kind = rng.choice(("failed", "failed", "unknown", "aborted", "open", "committed"))
            if kind in ("failed", "unknown"):
                row["outcome"] = kind
            else:
                row.update({"transaction_id": "poll", "transaction_state": kind})


def mistype_ids(rng: Random, rows: Rows) -> None:
    """Write the ids of one side as decimals, most often all of them."""
    share = rng.choice((1.0, 1.0, 0.5))
    for ledger in rng.choice(((D,), (D,), (R,), (D, R), (LOG,), (D, R, *_ASIDE))):
        for row in rows.get(ledger, []):
            if row.get("message_id") is not None and rng.random() < share:
                row["message_id"] = f"{row['message_id']}.0"


def spell_hashes(rng: Random, rows: Rows) -> None:
    """Write the hashes of one side in capitals, or in another alphabet."""
    column, share = rng.choice(("payload_hash", "payload_hash", "key_hash")), rng.choice((1.0, 1.0, 0.5))
    is_upper = rng.random() < 0.5
    for ledger in rng.choice(((D,), (R,), (D, R), (LOG,), (LOG, D, R))):
        for row in rows.get(ledger, []):
            if row.get(column) is not None and rng.random() < share:
                row[column] = row[column].upper() if is_upper else f"{row[column]}=="


def doubt_set_asides(rng: Random, rows: Rows) -> None:
    """Write dead letters, filters and staged rows in transactions, some of them twice, some of what was delivered."""
    seen = [*rows.get(D, []), *rows.get(R, []), *rows[P]]
    names = ("message_id", "topic", "partition", "offset", "payload_hash")
    for row in rng.sample(seen, min(len(seen), rng.choice((0, 1, 3)))):
        at = row.get("processed_at") or row.get("attempted_at")
        aside = {name: row.get(name) for name in names} | {"at": at, "reason": "test"}
        rows.setdefault(rng.choice(_ASIDE), []).append(aside)
    states = rng.choice(
        ((None, "committed", "aborted", "open"), ("aborted",), ("open",), (None, "committed"))
    )
    has_keys = rng.random() < 0.5
    for ledger in (*_ASIDE, Ledger.STAGED):
        found = rows.get(ledger, [])
        found += [dict(row) for row in found if rng.random() < 0.2]
        for row in found:
            row["transaction_state"] = rng.choice(states)
            row["effect_key"] = rng.choice(("1", "2", None)) if has_keys else None


def forget_when_positions_were_committed(rng: Random, rows: Rows) -> None:
    """Show positions as a table of what holds now, of which one knows, or not, when it was taken."""
    taken = rng.choice((None, GRACE_END - timedelta(minutes=15), GRACE_END, GRACE_END + timedelta(hours=2)))
    for row in [*rows.get(Ledger.COMMITTED, []), *rows.get(Ledger.MIRRORED, [])]:
        row.update({"committed_at": None, "taken_at": taken})
        if rng.random() < 0.3:
            row["committed_offset"] += rng.choice((1, 50))


def crowd_into_one_key(rng: Random, rows: Rows) -> None:
    """Give all messages one key, wherever they lie; some sends say no number, or not when they were done."""
    for ledger in _HELD:
        for row in rows.get(ledger, []):
            if not row.get("is_control"):
                row["key_hash"] = "k1"
    effects = [row for row in rows.get(D, []) if row.get("processed_at") is not None]
    since = max((row["processed_at"] for row in effects), default=None)
    if since is not None and rng.random() < 0.7:
        for row in effects:  # a backlog that several consumers work off
            row["processed_at"] = since + timedelta(seconds=rng.choice((0, 0, 1, 20, 40, 90)))
            row["consumer_id"] = rng.choice(("c1", "c1", "c2"))
    for column in ("sequence", "completed_at"):
        share = rng.choice((0.0, 0.0, 0.2, 1.0))
        for row in rows[P]:
            if rng.random() < share:
                row[column] = None


def read_what_another_has(rng: Random, rows: Rows) -> None:
    """Let a poll show another message at a position than the log, the sends or other polls do."""
    for row in rows.get(R, []):
        if rng.random() < 0.2:
            other = rng.choice(rows[R])
            row.update(
                {name: other.get(name) for name in ("message_id", "payload_hash", "key_hash", "header_hash")}
            )


MISLEADING: tuple[Callable[[Random, Rows], None], ...] = (
    forget_contents,
    set_clocks_wrong,
    deliver_before_the_send,
    take_polls_back,
    mistype_ids,
    spell_hashes,
    doubt_set_asides,
    forget_when_positions_were_committed,
    crowd_into_one_key,
    read_what_another_has,
)
