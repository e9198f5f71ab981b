"""What goes wrong between the log and the application: crashes around commits, zombies, resets, skipped polls."""

from __future__ import annotations

from tieout.model import BreakClass, Cause, Ledger, Locus
from tieout.simulation.faults.fault import CATALOGUE, SINGLE, Story
from tieout.simulation.line import Line
from tieout.simulation.records import Record
from tieout.simulation.truth import Finding

fault = CATALOGUE.fault

_COMMITTED_OVER = ("COMMIT_AHEAD",)


def _ordinary_round(line: Line) -> None:
    """Send a batch and consume all there is."""
    messages = line.draw()
    line.send(messages, line.session(*SINGLE))
    line.consume()
    line.delivered(messages)


def _sent(line: Line) -> list[Record]:
    return line.send(line.draw(), line.session(*SINGLE))


@fault(rounds=2)
def process_before_commit(line: Line) -> Story:
    """A consumer crashes after processing and before committing; its successor processes again."""
    records = _sent(line)
    polled = line.poll()
    done = line.world.rng.randint(1, len(polled))
    line.output(polled[:done])
    line.wants_rebalance = True
    yield
    _ordinary_round(line)
    cause = Cause.PROCESS_BEFORE_COMMIT
    twice = Finding(BreakClass.OUTPUT_DUPLICATE, Locus.CONSUMER_OR_SINK, cause, ("REDELIVERY",))
    line.broken(records[:done], twice)
    line.broken(records[done:], Finding(BreakClass.REDELIVERY, Locus.BROKER_TO_CONSUMER, cause))
    yield


@fault(rounds=2)
def commit_before_process(line: Line) -> Story:
    """A consumer commits what a poll gave it and crashes before it has processed all of it."""
    records = _sent(line)
    polled = line.poll()
    line.commit()
    done = line.world.rng.randrange(len(polled))
    line.output(polled[:done])
    line.wants_rebalance = True
    line.delivered(records[:done])
    lost = Finding(BreakClass.LOST, Locus.CONSUMER, Cause.COMMIT_BEFORE_PROCESS, _COMMITTED_OVER)
    line.broken(records[done:], lost)
    yield
    _ordinary_round(line)
    yield


@fault(rounds=2)
def commit_before_acknowledgement(line: Line) -> Story:
    """A consumer commits ahead and crashes while the acknowledgements hang: what it left is in flight, not yet lost."""
    session, messages = line.session(*SINGLE), line.draw()
    done = line.world.rng.randrange(1, len(messages))
    line.send(messages[:done], session)
    hanging = [line.attempt(message, session, answered_at=line.world.horizon) for message in messages[done:]]
    polled = line.poll()
    line.commit()
    line.output(polled[:done])
    line.wants_rebalance = True
    line.delivered(messages[:done])
    line.unbroken(BreakClass.IN_FLIGHT, len(hanging))
    ahead = Finding(BreakClass.COMMIT_AHEAD, Locus.OFFSET_STORE, Cause.COMMIT_BEFORE_PROCESS)
    line.broken_at("commit", ahead, hanging[0].offset)
    yield
    _ordinary_round(line)
    yield


@fault(rounds=2)
def zombie_wakes_after_commit(line: Line) -> Story:
    """A consumer stalls, its successor processes and commits, and then it wakes and processes as well."""
    records = _sent(line)
    stalled, polled = line.reader, line.poll()
    line.wants_rebalance = True
    yield
    _ordinary_round(line)
    line.output(polled, stalled)
    line.broken(records, _ZOMBIE)
    yield


@fault(rounds=2)
def zombie_wakes_before_commit(line: Line) -> Story:
    """A consumer stalls, its successor processes, and it wakes and processes as well before the successor commits."""
    records = _sent(line)
    stalled, polled = line.reader, line.poll()
    line.wants_rebalance = True
    yield
    messages = line.draw()
    line.send(messages, line.session(*SINGLE))
    line.output(line.poll())
    line.output(polled, stalled)
    line.commit()
    line.delivered(messages)
    line.broken(records, _ZOMBIE)
    yield


_ZOMBIE = Finding(BreakClass.OUTPUT_DUPLICATE, Locus.CONSUMER_OR_SINK, Cause.ZOMBIE, ("REDELIVERY",))


@fault()
def parallel_commits(line: Line) -> Story:
    """Workers commit on their own, and a slow one commits less after a fast one committed more."""
    records = _sent(line)
    line.output(line.poll())
    line.commit()
    behind = records[len(records) // 2].offset
    line.commit(behind)
    line.commit()
    back = Finding(BreakClass.COMMIT_REGRESSION, Locus.OFFSET_STORE, Cause.PARALLEL_COMMITS)
    line.broken_at("commit", back, behind)
    line.delivered(records)
    yield


@fault(rounds=2)
def operator_rewinds(line: Line) -> Story:
    """An operator resets the group's offset to read a batch again, and notes it; the output drops what it has."""
    records = _sent(line)
    line.consume()
    yield
    start = records[0].offset
    line.world.annotations.append(line.round_began_at)
    line.commit(start)
    line.assigned("reset")
    line.position = start
    later = _sent(line)
    given = line.poll()
    line.output(record for record in given if record.offset >= later[0].offset)
    line.commit()
    cause = Cause.OFFSET_RESET
    line.broken_at(
        "commit", Finding(BreakClass.COMMIT_REGRESSION, Locus.OFFSET_STORE, cause, ("annotated",)), start
    )
    line.broken(records, Finding(BreakClass.REDELIVERY, Locus.BROKER_TO_CONSUMER, cause))
    line.delivered(later)
    yield


@fault()
def application_seeks_back(line: Line) -> Story:
    """The application seeks back and is given records a second time; the output drops what it has."""
    records = _sent(line)
    line.output(line.poll())
    again = records[-line.some(len(records)) :]
    line.assigned("seek")
    line.position = again[0].offset
    line.poll()
    line.commit()
    line.broken(again, Finding(BreakClass.REDELIVERY, Locus.BROKER_TO_CONSUMER))
    line.delivered(records[: -len(again)])
    yield


def _reset_to_latest(line: Line, *, is_committed_at_once: bool) -> Story:
    """Lose the group's offset while a batch waits, and go on behind that batch."""
    records = _sent(line)
    line.wants_rebalance = True
    yield
    line.position = line.log_end
    line.assigned("reset")
    if is_committed_at_once:
        line.commit()
    _ordinary_round(line)
    causes = (Cause.OFFSET_RESET, Cause.OFFSETS_EXPIRED)
    line.broken(
        records, Finding(BreakClass.LOST, Locus.CONSUMER, Cause.OFFSET_RESET, _COMMITTED_OVER, causes)
    )
    yield


@fault(rounds=2)
def offset_reset_to_latest(line: Line) -> Story:
    """The group's offset is gone, the consumer begins at the log's end, and a batch is never read."""
    return _reset_to_latest(line, is_committed_at_once=False)


@fault(rounds=2)
def offset_reset_and_committed(line: Line) -> Story:
    """The same as offset_reset_to_latest, and the client commits the end before it has read anything."""
    return _reset_to_latest(line, is_committed_at_once=True)


def _poll_with_a_gap(line: Line) -> tuple[list[Record], list[Record]]:
    """Fetch a batch, hand over all but some in its middle and process those; return the jumped and the others."""
    _sent(line)
    given = line.fetch()
    jumped = given[1 : 1 + line.some(len(given))]
    others = [given[0], *given[1 + len(jumped) :]]
    line.hand_over(others)
    line.output(others)
    return jumped, others


@fault()
def poll_skips(line: Line) -> Story:
    """A client's fetch jumps records in the middle of a partition that stays assigned, and commits beyond them."""
    jumped, others = _poll_with_a_gap(line)
    line.commit()
    line.broken(jumped, Finding(BreakClass.LOST, Locus.CONSUMER, flags=_COMMITTED_OVER))
    line.broken_at("order", Finding(BreakClass.SKIPPED, Locus.BROKER_TO_CONSUMER), jumped[0].offset)
    line.delivered(others)
    yield


@fault(when="last")
def poll_skips_uncommitted(line: Line) -> Story:
    """A client's fetch jumps records, and nothing is committed any more."""
    jumped, others = _poll_with_a_gap(line)
    line.broken(jumped, Finding(BreakClass.LOST, Locus.BROKER_TO_CONSUMER))
    line.broken_at("order", Finding(BreakClass.SKIPPED, Locus.BROKER_TO_CONSUMER), jumped[0].offset)
    line.broken_at("commit", Finding(BreakClass.COMMIT_STALE, Locus.OFFSET_STORE), others[0].offset)
    line.delivered(others)
    yield


@fault()
def poison_swallowed(line: Line) -> Story:
    """A consumer cannot process a record, says nothing, and goes on."""
    records = _sent(line)
    given = line.poll()
    poison = given[len(given) // 2]
    line.output(record for record in given if record is not poison)
    line.commit()
    causes = (Cause.POISON, Cause.COMMIT_BEFORE_PROCESS)
    line.broken([poison], Finding(BreakClass.LOST, Locus.CONSUMER, Cause.POISON, _COMMITTED_OVER, causes))
    line.delivered(records[1:])
    yield


@fault()
def fetches_overtake(line: Line) -> Story:
    """Parallel fetches hand over two neighbours in the wrong order; the output sorts them."""
    records = _sent(line)
    given = line.fetch()
    at = line.world.rng.randrange(1, len(given) - 2)
    swapped = [*given[:at], given[at + 1], given[at], *given[at + 2 :]]
    line.hand_over(swapped)
    line.output(given)
    line.commit()
    # Neither was jumped: SKIPPED is never what the same consumer read, before or after.
    line.broken_at("order", Finding(BreakClass.REORDER_CONSUMER, Locus.CONSUMER), given[at].offset)
    line.delivered(records)
    yield


@fault(rounds=lambda latency_rounds: latency_rounds + 3)
def commits_stop(line: Line) -> Story:
    """The consumer works on while its commits fail, for longer than a message may take."""
    first = None
    since = line.clock
    while True:
        records = _sent(line)
        line.output(line.poll())
        first = records[0].offset if first is None else first
        line.delivered(records)
        if line.clock - since > line.world.max_latency_ms + line.world.round_ms:
            break
        yield
    line.commit()
    line.broken_at("commit", Finding(BreakClass.COMMIT_STALE, Locus.OFFSET_STORE), first)
    yield


@fault(rounds=2, when="last")
def consumer_stalls(line: Line) -> Story:
    """The consumer of a partition stalls for good, and what is sent waits."""
    _ordinary_round(line)
    yield
    line.broken(_sent(line), Finding(BreakClass.IN_FLIGHT, flags=("OVERDUE",)))
    yield


@fault()
def dead_lettered(line: Line) -> Story:
    """The consumer parks records that it cannot process: legal, and counted."""
    _set_aside(line, Ledger.DEAD_LETTERS, BreakClass.DEAD_LETTERED, "cannot be parsed")
    yield


@fault()
def filtered(line: Line) -> Story:
    """The consumer drops records that it is told to drop: legal, and counted."""
    _set_aside(line, Ledger.FILTERED, BreakClass.FILTERED, "not wanted")
    yield


def _set_aside(line: Line, ledger: Ledger, name: BreakClass, reason: str) -> None:
    records = _sent(line)
    given = line.poll()
    count = line.some(len(given))
    for record in given[:count]:
        line.set_aside(ledger, record, reason)
    line.output(given[count:])
    line.commit()
    line.unbroken(name, count)
    line.delivered(records[count:])
