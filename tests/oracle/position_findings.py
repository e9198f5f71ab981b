"""Break classes of commits, positions and transactions, which belong to no single message (taxonomy section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from tests.oracle.commits import covers, is_individual, is_range
from tests.oracle.compaction import superseding
from tests.oracle.fates import Fates
from tests.oracle.findings import Finding
from tests.oracle.history import Place, Position, Row, known, position
from tests.oracle.matching import is_before_its_sends
from tests.oracle.messages import Attempt, Message
from tests.oracle.queues import is_queue

from tieout.model import BreakClass, Ledger, Locus


def position_finding(
    name: BreakClass,
    at: tuple[str | None, int | None, int | None],
    locus: Locus,
    time: datetime | None,
    shown: Sequence[tuple[Ledger, datetime | None]],
    message_id: str | None = None,
) -> Finding:
    """Return a finding about a position, commit or transaction."""
    topic, partition, offset = at
    finding = Finding(
        name, set(), time, message_id, topic, partition, offset, locus, {str(name): list(shown)}
    )
    # A commit outside the log lies in no range of it.
    if None not in (topic, partition, offset) and name is not BreakClass.COMMIT_OUT_OF_RANGE:
        finding.window_at = position({"topic": topic, "partition": partition, "offset": offset})
    return finding


def commits_of(fates: Fates) -> dict[Place, list[Row]]:
    """Return the group's dated commits, per partition in order of time."""
    found: dict[Place, list[Row]] = {}
    for row in fates.history.rows(Ledger.COMMITTED):
        if None not in (row.get("committed_at"), row.get("committed_offset"), row.get("partition")):
            found.setdefault((row["topic"], row["partition"]), []).append(row)
    return {place: sorted(rows, key=lambda row: row["committed_at"]) for place, rows in found.items()}


def _instants(rows: list[Row]) -> list[tuple[datetime, list[int]]]:
    """Return each commit time with the offsets committed then."""
    times: dict[datetime, list[int]] = {}
    for row in rows:
        times.setdefault(row["committed_at"], []).append(row["committed_offset"])
    return sorted(times.items())


# -- COMMIT_AHEAD ----------------------------------------------------------------------------------------------


def commit_ahead(fates: Fates) -> tuple[list[Finding], set[int], list[Position]]:
    """Return the commits ahead of records not lost, and which lost messages (by `id`) a commit went ahead of (32).

    Also return one position of each message that is not lost and that a commit went ahead of.

    The first commit that covers a record counts. A commit covers all records below its offset; a range, its own.
    """
    found: list[Finding] = []
    flagged: set[int] = set()
    jumped_ids: dict[int, Position] = {}
    for place, rows in commits_of(fates).items():
        held = [{**row, "committed_offset": fates.held_back(row)} for row in rows]
        ahead: dict[tuple[Any, ...], list[tuple[Position, Message]]] = {}
        for at, message in _open_records(fates, place):
            cover = _first_cover(fates, held, message, at)
            if cover is not None and _is_accounted_after(fates, cover[0]):
                ahead.setdefault(cover, []).append((at, message))
        for (time, *_), jumped in sorted(ahead.items(), key=repr):
            flagged |= {id(message) for _, message in jumped if fates.disposition(message) == "lost"}
            pending = [(at, message) for at, message in jumped if fates.disposition(message) != "lost"]
            jumped_ids |= {id(message): at for at, message in pending}
            if pending:
                at, message = pending[0]
                shown = [(Ledger.COMMITTED, time)]
                found.append(
                    position_finding(
                        BreakClass.COMMIT_AHEAD, at, Locus.OFFSET_STORE, time, shown, message.message_id
                    )
                )
    return found, flagged, [*jumped_ids.values()]


def _first_cover(fates: Fates, commits: list[Row], message: Message, at: Position) -> tuple[Any, ...] | None:
    """Return the first commit that covers the message's position, by its time and, of a range, its ends.

    Of one moment all commits that are no ranges are one, and come before those that are. Where the first one is older
    than the message, the furthest since is meant.
    """
    covering = [row for row in commits if covers(row, at)]
    since = [row for row in covering if not is_before_its_sends(fates.history, message, row["committed_at"])]
    of_all = [row for row in since if not is_range(row) and at[2] >= _first_covered(fates, at[:2])]
    if sum(not is_range(row) for row in covering) > sum(not is_range(row) for row in since) and of_all:
        furthest = max(row["committed_offset"] for row in of_all)
        of_all = [row for row in of_all if row["committed_offset"] == furthest]
    found: list[tuple[Any, ...]] = [(row["committed_at"], 0) for row in of_all]
    found += [
        (row["committed_at"], 1, row["committed_offset"], row["first_offset"])
        for row in since
        if is_range(row)
    ]
    return min(found, default=None)


def _first_covered(fates: Fates, place: Place) -> int:
    bounds = fates.history.bounds.get(place)
    if bounds is not None:
        return bounds.start
    return min(
        (at[2] for message in fates.matched.messages for at in fates.positions(message) if at[:2] == place),
        default=0,
    )


def _is_accounted_after(fates: Fates, time: datetime) -> bool:
    until = time + fates.history.contract.max_latency + fates.history.skew
    return fates.history.accounts(until, until)


def _open_records(fates: Fates, place: Place) -> list[tuple[Position, Message]]:
    """Return the accepted, visible messages without effect of the partition, by position."""
    found = []
    for message in fates.matched.messages:
        is_open = message.is_accepted and not message.effects
        if not is_open or fates.disposition(message) not in ("lost", "in_flight"):
            continue
        if fates.may_be_elsewhere(message) or message.pending_aside:
            continue
        for at in fates.positions(message):
            if at[:2] == place and _counts(fates, message, at):
                found.append((at, message))
    return sorted(found, key=lambda item: item[0])


def _counts(fates: Fates, message: Message, at: Position) -> bool:
    """Return whether the message's record there is visible, or asserted where there is no log."""
    if not fates.history.has(Ledger.LOG):
        return True
    return any(position(record) == at and fates.history.is_visible(record) for record in message.records)


# -- COMMIT_REGRESSION, COMMIT_OUT_OF_RANGE, COMMIT_STALE --------------------------------------------------------


def commit_regressions(fates: Fates) -> list[Finding]:
    """Return every certain descent of the committed position (33)."""
    found = []
    for place, rows in commits_of(fates).items():
        instants = _instants([row for row in rows if not is_range(row)])
        for (before, old), (after, new) in pairwise(instants):
            if min(new) < min(old):
                shown = [(Ledger.COMMITTED, before), (Ledger.COMMITTED, after)]
                at = (*place, min(new))
                finding = position_finding(BreakClass.COMMIT_REGRESSION, at, Locus.OFFSET_STORE, after, shown)
                if is_annotated(fates, before, after):
                    finding.also.add("annotated")
                found.append(finding)
    return found


def is_annotated(fates: Fates, before: datetime, after: datetime) -> bool:
    """Return whether an operator reset the group between the two times."""
    contract = fates.history.contract
    return any(
        note.kind == "offset_reset"
        and note.group in (None, contract.group)
        and before - contract.clock_skew <= note.at <= after + contract.clock_skew
        for note in contract.annotations
    )


def commits_out_of_range(fates: Fates) -> list[Finding]:
    """Return the latest commits that lie outside log bounds observed no earlier.

    A row without a time says what holds when its table was taken: then a start has to be observed no later. It is one
    of every window that begins before that.
    """
    found = []
    for place, row in _latest_rows(fates).items():
        bounds, window = fates.history.bounds.get(place), fates.history.window
        committed, taken = row.get("committed_at"), row.get("taken_at")
        if bounds is None or bounds.observed_at is None:
            continue
        is_seen_after = bounds.observed_at >= (committed or taken)
        is_end_known = bounds.is_end_stated or not bounds.is_sparse
        is_above = is_seen_after and is_end_known and row["committed_offset"] > bounds.end
        is_start_true = is_seen_after if committed else bounds.observed_at <= taken
        is_below = is_start_true and bounds.is_start_stated and row["committed_offset"] < bounds.start
        is_below = is_below and place[0] not in fates.individual_topics
        if is_below or is_above:
            time = committed or (window.start if window.start < taken else taken)
            at = (*place, row["committed_offset"])
            shown = [(Ledger.COMMITTED, time), (Ledger.LOG, None)]
            found.append(
                position_finding(BreakClass.COMMIT_OUT_OF_RANGE, at, Locus.OFFSET_STORE, time, shown)
            )
    return found


def _latest_rows(fates: Fates) -> dict[Place, Row]:
    """Return each partition's latest position, of one instant the highest; undated ones at their table's taking.

    Of acknowledgements one by one all stand: the furthest of them counts, if it is beyond the latest position.
    """
    found: dict[tuple[Place, bool], Row] = {}
    for row in fates.history.rows(Ledger.COMMITTED):
        place, time = (row.get("topic"), row.get("partition")), _stands_at(row)
        if None in (*place, row.get("committed_offset"), time):
            continue
        is_one = is_individual(row) and is_range(row)
        held = found.get((place, is_one))
        if held is None or _rank(row, is_one) > _rank(held, is_one):
            found[place, is_one] = row
    latest = {place: row for (place, is_one), row in found.items() if not is_one}
    for (place, is_one), row in found.items():
        if is_one and (place not in latest or row["committed_offset"] > latest[place]["committed_offset"]):
            latest[place] = row
    return latest


def _rank(row: Row, is_one: bool) -> tuple[Any, ...]:
    return (row["committed_offset"] if is_one else 0, _stands_at(row), row["committed_offset"])


def _stands_at(row: Row) -> datetime | None:
    return row.get("committed_at") or row.get("taken_at")


def stale_commits(fates: Fates) -> list[Finding]:
    """Return each stretch in which output went on for longer than `max_latency` without a commit following."""
    history, limit = fates.history, fates.history.contract.max_latency + fates.history.skew
    commits = commits_of(fates)
    if not history.is_sound(Ledger.COMMITTED) or not commits or is_queue(history.contract):
        return []
    until = history.coverage[Ledger.COMMITTED].complete_until
    found = []
    for place, rows in commits.items():
        instants = [*_instants(rows)]
        for number, (time, offsets) in enumerate(instants):
            following = instants[number + 1][0] if number + 1 < len(instants) else until
            # A range below another one takes nothing back.
            ends = [row["committed_offset"] for row in rows if is_range(row) and row["committed_at"] <= time]
            ahead = _output_beyond(fates, place, max(*offsets, *ends, -1), time, following)
            if ahead and following is not None and following - ahead[0][0] > limit:
                at = (*place, ahead[0][1])
                shown = [(Ledger.COMMITTED, following), (history.output, ahead[0][0])]
                found.append(
                    position_finding(BreakClass.COMMIT_STALE, at, Locus.OFFSET_STORE, ahead[0][0], shown)
                )
    return found


def _output_beyond(
    fates: Fates, place: Place, committed: int, after: datetime, before: datetime | None
) -> list[tuple[datetime, int]]:
    found = []
    for message in fates.matched.messages:
        for row in message.effects:
            at, when = fates.position_of(message, row), row.get("processed_at")
            if at is None or when is None or before is None:
                continue
            reached = fates.passed(at, row)
            if at[:2] == place and reached >= committed and after <= when < before:
                found.append((when, reached))
    for row, _ in fates.matched.unmatched_effects:
        at, when = position(row), row.get("processed_at")
        if at is None or when is None or before is None:
            continue
        reached = fates.passed(at, row)
        if at[:2] == place and reached >= committed and after <= when < before:
            found.append((when, reached))
    return sorted(found)


# -- positions and transactions ----------------------------------------------------------------------------------


def identity_conflicts(fates: Fates) -> list[Finding]:
    """Return the positions that were asserted for two identities, or with two contents."""
    return [
        position_finding(
            BreakClass.LOG_IDENTITY_CONFLICT,
            conflict.at,
            Locus.BROKER,
            conflict.time,
            conflict.shown,
            conflict.message.message_id if conflict.message else None,
        )
        for conflict in fates.matched.conflicts
    ]


def truncations(fates: Fates) -> list[Finding]:
    """Return the acked positions that the log covers and lacks, neither expired nor compacted."""
    found: dict[Position, Finding] = {}
    for message in fates.matched.messages:
        for attempt in message.attempts:
            at = position(attempt.row)
            if at is None or attempt.outcome != "acked" or not _is_truncated(fates, message, attempt, at):
                continue
            found[at] = position_finding(
                BreakClass.LOG_TRUNCATION,
                at,
                Locus.BROKER,
                attempt.at,
                [(Ledger.PRODUCED, attempt.at), (Ledger.LOG, None)],
                message.message_id,
            )
    return list(found.values())


def _is_truncated(fates: Fates, message: Message, attempt: Attempt, at: Position) -> bool:
    is_absent = at not in fates.history.records and fates.history.log_covers(at, attempt.done_at)
    keys = known([attempt.row.get("key_hash")])
    return is_absent and superseding(fates, message, at, attempt.done_at, keys) is None


def torn_transactions(fates: Fates) -> list[Finding]:
    """Return the transactions that have a delivered and a lost member."""
    members: dict[Any, list[Message]] = {}
    for message in fates.matched.messages:
        for transaction in message.transactions:
            members.setdefault(transaction, []).append(message)
    found = []
    for messages in members.values():
        lost = [
            message for message in messages if message.is_accepted and fates.disposition(message) == "lost"
        ]
        whole = [
            message
            for message in messages
            if message.is_accepted and fates.disposition(message) == "delivered"
        ]
        if lost and whole:
            first = min(lost, key=fates.earliest_time)
            at = fates.first_position(first) or (*fates.place(first), None)
            shown: list[tuple[Ledger, datetime | None]] = []
            found.append(
                position_finding(
                    BreakClass.TORN_TRANSACTION, at, Locus.UNKNOWN, first.began_at, shown, first.message_id
                )
            )
    return found
