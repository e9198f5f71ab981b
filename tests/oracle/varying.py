"""What sources of one and the same pipeline do differently: precision of times, gaps in offsets, groups, order.

The simulation makes histories in which much can go wrong. Each variation here changes how a history is recorded, or
adds what other pipelines have as well. Most histories get few, so that a difference shows its source.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

from tests.engine.histories import GRACE_END, GROUP, START, TOPIC, WINDOW
from tests.oracle.misleading import MISLEADING

from tieout.model import Ledger

Row = dict[str, Any]
Rows = dict[Ledger, list[Row]]
Variation = Callable[[Random, Rows], None]

P, LOG, D, R = Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.READ
C, A, M = Ledger.COMMITTED, Ledger.ASSIGNED, Ledger.MIRRORED
_OUTPUT = (D, R)
_PLACED = (P, LOG, D, R, Ledger.FILTERED, Ledger.DEAD_LETTERS, Ledger.STAGED)
_HELD = (P, LOG, D, R)
_TIMES = {
    P: "attempted_at",
    LOG: "record_timestamp",
    D: "processed_at",
    R: "processed_at",
    C: "committed_at",
    M: "committed_at",
}
_MICROSECOND = timedelta(microseconds=1)
_MAX_LATENCY = timedelta(minutes=10)
EDGES = (WINDOW.start, WINDOW.end, GRACE_END)
_BOUNDS = ("log_start_offset", "last_stable_offset", "end_offset")


def varied(rng: Random, rows: Rows, share: float = 0.1) -> Rows:
    """Return varied copies of the rows; each variation is chosen with this probability."""
    varied_rows = {ledger: [dict(row) for row in found] for ledger, found in rows.items()}
    for variation in (*VARIATIONS, *MISLEADING):
        if rng.random() < share:
            variation(rng, varied_rows)
    return varied_rows


# -- order -------------------------------------------------------------------------------------------------------


def number_deliveries(rng: Random, rows: Rows) -> None:
    """Count each consumer's deliveries in their order of time; some have no number, or another's."""
    lacking, swapped = rng.choice((0.0, 0.0, 0.3)), rng.choice((0.0, 0.0, 0.2))
    for ledger in _OUTPUT:
        ours = sorted(rows.get(ledger, []), key=lambda row: row.get("processed_at") or GRACE_END)
        for number, row in enumerate(ours):
            row["delivery_sequence"] = None if rng.random() < lacking else number
        for one, other in pairwise(ours):
            if rng.random() < swapped:
                names = one["delivery_sequence"], other["delivery_sequence"]
                other["delivery_sequence"], one["delivery_sequence"] = names


def share_out(rng: Random, rows: Rows) -> None:
    """Let two consumers have the partitions, by turns; some rows do not say whose they are."""
    since = START + timedelta(minutes=rng.choice((10, 30)))
    for ledger in _OUTPUT:
        for row in rows.get(ledger, []):
            is_later = (row.get("processed_at") or since) >= since
            turn = (row.get("partition") or 0) + is_later
            row["consumer_id"], row["generation"] = f"c{turn % 2 + 1}", 1 + is_later
            if rng.random() < 0.1:
                row[rng.choice(("consumer_id", "generation"))] = None


def deliver_in_one_moment(rng: Random, rows: Rows) -> None:
    """Give the whole output of some minutes the same time, as batches have."""
    unit = rng.choice((timedelta(seconds=10), timedelta(minutes=5), timedelta(hours=1)))
    for ledger in rng.sample(_OUTPUT, rng.choice((1, 2))):
        for row in rows.get(ledger, []):
            row["processed_at"] = _floor(row.get("processed_at"), unit)


def keep_coarse_clocks(rng: Random, rows: Rows) -> None:
    """Cut all times of a ledger down to seconds or minutes, so that many are equal."""
    unit = rng.choice((timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=15)))
    timed = sorted(ledger for ledger in _TIMES if ledger is not M or M in rows)
    for ledger in rng.sample(timed, rng.randint(1, len(timed))):
        for row in rows.get(ledger, []):
            for name in (_TIMES[ledger], "completed_at"):
                if row.get(name) is not None:
                    row[name] = _floor(row[name], unit)


def _floor(time: datetime | None, unit: timedelta) -> datetime | None:
    return None if time is None else time - (time - START) % unit


# -- edges -------------------------------------------------------------------------------------------------------


def touch_edges(rng: Random, rows: Rows) -> None:
    """Move some rows to an edge of the window or of its grace, or a microsecond beside it."""
    for ledger, name in _TIMES.items():
        for row in rows.get(ledger, []):
            if row.get(name) is not None and rng.random() < 0.3:
                row[name] = rng.choice(EDGES) + rng.choice((-1, 0, 0, 1)) * _MICROSECOND
                if row.get("completed_at") is not None:
                    row["completed_at"] = row[name] + rng.choice((timedelta(0), _MICROSECOND))


def touch_deadlines(rng: Random, rows: Rows) -> None:
    """Let effects come at the end of the allowed latency, or a microsecond before or after that."""
    done = {row["message_id"]: row.get("completed_at") or row["attempted_at"] for row in rows[P]}
    skew = rng.choice((timedelta(0), timedelta(seconds=1), timedelta(seconds=30)))
    for row in rows[D]:
        if row.get("message_id") in done and rng.random() < 0.5:
            moment = done[row["message_id"]] + _MAX_LATENCY + skew
            row["processed_at"] = moment + rng.choice((-1, 0, 0, 1)) * _MICROSECOND


# -- positions ---------------------------------------------------------------------------------------------------


def leave_gaps(rng: Random, rows: Rows) -> None:
    """Put hundreds of offsets between two neighbours of a partition, in every ledger alike."""
    place, since = rng.randrange(2), rng.randint(0, 4)
    width = rng.choice((1, 3, 700, 2500))
    is_legal = rng.random() < 0.5
    names = ("offset", "first_offset", "committed_offset", *_BOUNDS)
    for ledger in (*_PLACED, C, M):
        for row in rows.get(ledger, []):
            if row.get("partition") != place:
                continue
            for name in names:
                is_next = name != "offset"
                if row.get(name) is not None and row[name] >= since + is_next:
                    row[name] += width
            if is_legal and ledger is LOG:
                row["cleanup_policy"] = "compact"


def mirror(rng: Random, rows: Rows) -> None:
    """Let the output name the positions of a mirror, which are lower or higher, of the same topic or its copy."""
    shift, name = rng.choice((-1, 1, 2, 5000)), rng.choice((TOPIC, TOPIC, f"copy.{TOPIC}"))
    ledgers = rng.choice(((D,), (D, R), (D, R, C)))
    for ledger in ledgers:
        for row in rows.get(ledger, []):
            row["topic"] = name
            for column in ("offset", "first_offset", "committed_offset"):
                if row.get(column) is not None:
                    row[column] = max(0, row[column] + shift)


def elect_leaders(rng: Random, rows: Rows) -> None:
    """Say leader epochs, which rise with the log; consumers may lag behind, or not say them."""
    since = rng.randint(0, 5)
    for row in rows.get(LOG, []):
        if row.get("offset") is not None:
            row["leader_epoch"] = int(row["offset"] >= since) + int(row["offset"] >= since + 3)
    for ledger in (D, R, C):
        for row in rows.get(ledger, []):
            at = row.get("offset", row.get("committed_offset"))
            if at is not None and rng.random() < 0.7:
                row["leader_epoch"] = max(0, int(at >= since) - rng.choice((0, 0, 1)))


# -- parties -----------------------------------------------------------------------------------------------------


def let_others_read(rng: Random, rows: Rows) -> None:
    """Add another group that reads the same, further or less far; some of our rows name no group."""
    for ledger in (D, R, C, M):
        ours = rows.get(ledger, [])
        theirs = [row | {"consumer_group": "other"} for row in ours if rng.random() < 0.7]
        for row in theirs:
            if row.get("committed_offset") is not None:
                row["committed_offset"] += rng.choice((0, 0, 50))
        for row in ours:
            if rng.random() < 0.1:
                row["consumer_group"] = None
        rows[ledger] = ours + theirs


def hide_producers(rng: Random, rows: Rows) -> None:
    """Let some sends name no producer, no session, or another producer."""
    for row in rows[P]:
        if rng.random() < 0.3:
            row[rng.choice(("producer_id", "producer_session"))] = rng.choice((None, "p2"))


def name_sessions(rng: Random, rows: Rows) -> None:
    """Let the output say the session of its message's first send, or now and then another."""
    sessions = {row["message_id"]: row["producer_session"] for row in reversed(rows[P])}
    for ledger in _OUTPUT:
        for row in rows.get(ledger, []):
            if rng.random() < 0.7:
                row["producer_session"] = sessions.get(row.get("message_id"))
            elif rng.random() < 0.2:
                row["producer_session"] = "s2"


def name_broker_producers(rng: Random, rows: Rows) -> None:
    """Say the broker's producer ids: one for what transactions wrote, with their markers, one for the rest."""
    plain = rng.choice((-1, 7, None))
    for row in rows.get(LOG, []):
        if row.get("offset") is not None:
            is_plain = row.get("transaction_state") in (None, "none")
            row["broker_producer_id"] = plain if is_plain else 9


# -- sends and deliveries ----------------------------------------------------------------------------------------


def fail_before_and_after(rng: Random, rows: Rows) -> None:
    """Add failed sends of a message beside its others: earlier or later ones, with or without a position."""
    for row in rng.sample(rows[P], min(len(rows[P]), rng.randint(1, 3))):
        away = timedelta(seconds=rng.choice((-3600, -30, 0, 30, 3600)))
        at = rng.choice((None, row.get("offset")))
        failed = {"outcome": "failed", "offset": at, "partition": None if at is None else row["partition"]}
        time = {"attempted_at": row["attempted_at"] + away, "completed_at": None}
        rows[P].append(row | failed | time | {"sequence": len(rows[P])})


def deliver_many_times(rng: Random, rows: Rows) -> None:
    """Deliver, or read, one message dozens of times."""
    for ledger in rng.sample(_OUTPUT, rng.choice((1, 2))):
        if not rows.get(ledger):
            continue
        row, pause = rng.choice(rows[ledger]), timedelta(seconds=rng.choice((0, 1, 300)))
        times = rng.choice((5, 40))
        rows[ledger] += [row | {"processed_at": row["processed_at"] + pause * n} for n in range(times)]


def end_otherwise(rng: Random, rows: Rows) -> None:
    """Let some sends of transactions say another outcome than their transaction did."""
    for row in rows[P]:
        if row.get("transaction_id") is not None and rng.random() < 0.3:
            row["outcome"] = rng.choice(("failed", "unknown", "acked"))
        if row.get("transaction_id") is not None and rng.random() < 0.2:
            row["transaction_state"] = None


# -- contents ----------------------------------------------------------------------------------------------------


def carry_headers(rng: Random, rows: Rows) -> None:
    """Give every message headers and a time of its own; now and then one side has others."""
    kind, changed = rng.choice((None, "CreateTime", "LogAppendTime")), rng.choice((0.0, 0.1))
    sent = {row["message_id"]: row["attempted_at"] for row in reversed(rows[P])}
    for ledger in _HELD:
        for row in rows.get(ledger, []):
            name = row.get("message_id")
            if name is not None:
                row["header_hash"] = "other" if rng.random() < changed else f"t-{name}"
            else:
                row["content"] = "unknown"
            if ledger is LOG:
                row["timestamp_type"] = kind
            elif name in sent and rng.random() > changed:
                row["record_timestamp"] = sent[name]


def write_in_capitals(rng: Random, rows: Rows) -> None:
    """Write what is no word of a ledger's own, such as a policy of the broker's, in capitals."""
    for found in rows.values():
        for row in found:
            for name in ("isolation", "timestamp_type", "cleanup_policy", "kind"):
                if row.get(name) is not None:
                    row[name] = row[name].upper()


def assign(rng: Random, rows: Rows) -> None:
    """Show the consumer's assignments: the first, and now and then one that moves it."""
    moments = [START - timedelta(minutes=30)] + [
        START + timedelta(minutes=minute) for minute in (5, 40) if rng.random() < 0.3
    ]
    kinds = ("assign", *(rng.choice(("rebalance", "seek", "reset", "assign")) for _ in moments[1:]))
    rows[A] = [
        {
            "consumer_group": rng.choice((GROUP, GROUP, None, "other")),
            "consumer_id": rng.choice(("c1", "c1", "c2")),
            "generation": 1,
            "kind": kind,
            "assigned_at": at,
            "partitions": [{"topic": TOPIC, "partition": partition} for partition in range(3)],
        }
        for kind, at in zip(kinds, moments, strict=True)
    ]


VARIATIONS: tuple[Variation, ...] = (
    fail_before_and_after,
    end_otherwise,
    keep_coarse_clocks,
    touch_edges,
    touch_deadlines,
    deliver_many_times,
    deliver_in_one_moment,
    share_out,
    assign,
    number_deliveries,
    name_broker_producers,
    name_sessions,
    hide_producers,
    let_others_read,
    leave_gaps,
    elect_leaders,
    mirror,
    write_in_capitals,
)
