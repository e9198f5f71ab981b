"""What goes wrong in the log: unclean elections, lost segments, retention; and the cleaner, which does no wrong."""

from __future__ import annotations

from collections.abc import Sequence

from tieout.model import BreakClass, Cause, Locus
from tieout.simulation.faults.fault import CATALOGUE, SINGLE, Story
from tieout.simulation.line import Line, own_key
from tieout.simulation.records import Record
from tieout.simulation.truth import Finding

fault = CATALOGUE.fault

_LOST_BY_ELECTION = Finding(BreakClass.LOST, Locus.BROKER, Cause.UNCLEAN_ELECTION)
_TRUNCATED_BY_ELECTION = Finding(BreakClass.LOG_TRUNCATION, Locus.BROKER, Cause.UNCLEAN_ELECTION)


def _each(line: Line, records: Sequence[Record], finding: Finding) -> None:
    """Say that the position of each record is broken."""
    for record in records:
        line.broken_at("position", finding, record.offset)


@fault(policy="delete")
def unclean_election_overwrites(line: Line) -> Story:
    """An out-of-sync replica becomes leader, and new records take the offsets of acknowledged ones."""
    session, messages = line.session(*SINGLE), line.draw()
    count = line.some(len(messages))
    start = line.log_end
    line.send(messages[:count], session)
    gone = line.elect_leader(keep_below=start)
    line.send(messages[count:], line.world.producers.restarted(session.producer))
    line.consume()
    line.broken(gone, _LOST_BY_ELECTION)
    _each(line, gone, Finding(BreakClass.LOG_IDENTITY_CONFLICT, Locus.BROKER, Cause.UNCLEAN_ELECTION))
    line.delivered(messages[count:])
    yield


@fault(policy="delete", when="last")
def unclean_election_cuts_tail(line: Line) -> Story:
    """An out-of-sync replica becomes leader, and acknowledged records that nobody has read are gone."""
    start = line.log_end
    line.send(line.draw(), line.session(*SINGLE))
    gone = line.elect_leader(keep_below=start)
    line.broken(gone, _LOST_BY_ELECTION)
    _each(line, gone, _TRUNCATED_BY_ELECTION)
    yield


@fault(policy="delete", when="last")
def unclean_election_after_read(line: Line) -> Story:
    """An out-of-sync replica becomes leader after the group committed what the new leader lacks."""
    start = line.log_end
    line.send(line.draw(), line.session(*SINGLE))
    line.consume()
    gone = line.elect_leader(keep_below=start)
    line.delivered(gone)
    _each(line, gone, _TRUNCATED_BY_ELECTION)
    ahead = Finding(BreakClass.COMMIT_OUT_OF_RANGE, Locus.OFFSET_STORE, Cause.COMMIT_AFTER_TRUNCATION)
    line.broken_at("commit", ahead, line.committed)
    yield


@fault(policy="delete")
def segment_lost(line: Line) -> Story:
    """Acknowledged records vanish from the middle of the log before anyone has read them."""
    records = line.send(line.draw(), line.session(*SINGLE))
    gone = records[1 : 1 + line.some(len(records))]
    line.remove(gone)
    line.consume()
    line.broken(gone, Finding(BreakClass.LOST, Locus.BROKER))
    _each(line, gone, Finding(BreakClass.LOG_TRUNCATION, Locus.BROKER))
    line.delivered(records[len(gone) :])
    yield


@fault(policy="delete")
def segment_lost_after_read(line: Line) -> Story:
    """Records vanish from the middle of the log when the output has them: the log is broken, the messages are not."""
    records = line.send(line.draw(), line.session(*SINGLE))
    line.consume()
    gone = records[1 : 1 + line.some(len(records))]
    line.remove(gone)
    _each(line, gone, Finding(BreakClass.LOG_TRUNCATION, Locus.BROKER))
    line.delivered(records)
    yield


@fault(rounds=3, policy="delete", when="first")
def retention_overrun(line: Line) -> Story:
    """The consumer is down until retention has taken what it had not read."""
    session = line.session(*SINGLE)
    read = line.send(line.draw(), session)
    line.consume()
    line.delivered(read)
    yield
    unread = line.send(line.draw(), session)
    line.expire()
    line.broken(
        unread,
        Finding(BreakClass.LOST, Locus.AFTER_ACKNOWLEDGEMENT, Cause.RETENTION_OVERRUN, ("EXPIRED",)),
    )
    yield
    line.assigned("reset")
    line.position = line.log_start
    later = line.send(line.draw(), session)
    line.consume()
    line.delivered(later)
    yield


def _send_pairs(line: Line) -> tuple[list[Record], list[Record]]:
    """Send a batch in which every second message has its predecessor's key; return the old and the new records."""
    messages = line.draw()
    for old, new in zip(messages[::2], messages[1::2], strict=False):
        own_key(old, new)
    records = line.send(messages, line.session(*SINGLE))
    paired = len(records) // 2 * 2
    return records[:paired:2], [*records[1:paired:2], *records[paired:]]


@fault(policy="compact")
def compacted_before_read(line: Line) -> Story:
    """The cleaner removes records whose key was written again before the group reads: legal, and counted."""
    old, new = _send_pairs(line)
    line.remove(old)
    line.consume()
    line.unbroken(BreakClass.COMPACTED, len(old))
    line.delivered(new)
    yield


@fault(policy="compact")
def compacted_after_read(line: Line) -> Story:
    """The cleaner removes records that the output has: their absence means nothing."""
    old, new = _send_pairs(line)
    line.consume()
    line.remove(old)
    line.delivered([*old, *new])
    yield
