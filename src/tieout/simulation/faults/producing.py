"""What goes wrong between an application and the log: crashes, retries, wrong partitions, changed bits."""

from __future__ import annotations

from collections.abc import Callable

from tieout.model import BreakClass, Cause, Locus
from tieout.simulation.faults.fault import CATALOGUE, SINGLE, Story
from tieout.simulation.line import Line
from tieout.simulation.records import Message, Record, Session
from tieout.simulation.truth import UNPROVEN, Finding
from tieout.simulation.world import digest

fault = CATALOGUE.fault

_DOUBLED = ("LOG_DUPLICATE", "inherited")


@fault()
def crash_before_ack(line: Line) -> Story:
    """A producer dies between the log's write and its acknowledgement: unknown sends that arrived."""
    session, messages = line.session(*SINGLE), line.draw()
    for message in messages:
        line.attempt(message, session, outcome="unknown")
    line.world.producers.restarted(session.producer)
    line.consume()
    line.unbroken(BreakClass.RECOVERED, len(messages))
    yield


@fault()
def send_refused(line: Line) -> Story:
    """The broker refuses some messages, and the application gives up on them."""
    yield from _sent_in_vain(line, "failed")


@fault()
def send_timed_out(line: Line) -> Story:
    """Some sends end in a timeout, and the log never got them."""
    yield from _sent_in_vain(line, "unknown")


def _sent_in_vain(line: Line, outcome: str) -> Story:
    session, messages = line.session(*SINGLE), line.draw()
    count = line.some(len(messages))
    for message in messages[:count]:
        line.attempt_in_vain(message, session, outcome)
    line.send(messages[count:], session)
    line.consume()
    disposition = "failed" if outcome == "failed" else UNPROVEN
    line.unbroken(BreakClass.NOT_SENT, count, disposition=disposition)
    line.delivered(messages[count:])
    yield


@fault()
def refused_then_sent(line: Line) -> Story:
    """Some messages are refused, and arrive when the application sends them once more."""
    session, messages = line.session(*SINGLE), line.draw()
    for message in messages[: line.some(len(messages))]:
        line.attempt_in_vain(message, session, "failed")
    line.send(messages, session)
    line.consume()
    line.delivered(messages)
    yield


@fault()
def failure_that_was_none(line: Line) -> Story:
    """Some sends are reported as failed although the log has them."""
    session, messages = line.session(*SINGLE), line.draw()
    count = line.some(len(messages))
    for message in messages[:count]:
        line.attempt(message, session, outcome="failed")
    line.send(messages[count:], session)
    line.consume()
    line.unbroken(BreakClass.RECOVERED, count, "FAILED_BUT_WRITTEN")
    line.delivered(messages[count:])
    yield


@fault(producers=("plain",))
def retry_without_idempotence(line: Line) -> Story:
    """A batch is written, its acknowledgement is lost, and the client writes it again."""
    copies = _written_twice(line)
    line.consume()
    cause = Cause.RETRY_WITHOUT_IDEMPOTENCE
    line.broken(copies, _inherited(cause, cause))
    yield


@fault(producers=("plain",))
def retry_deduplicated(line: Line) -> Story:
    """A batch is written twice as in retry_without_idempotence; the consumer drops what it has seen."""
    copies = _written_twice(line)
    _consume_firsts(line)
    cause = Cause.RETRY_WITHOUT_IDEMPOTENCE
    line.broken(copies, Finding(BreakClass.LOG_DUPLICATE, Locus.PRODUCER_TO_BROKER, cause))
    yield


def _written_twice(line: Line) -> list[Record]:
    """Write a plain producer's batch twice for one attempt each; return the first copies."""
    session, messages = line.session("plain"), line.draw()
    copies = [line.append(message, session, at=line.tick()) for message in messages]
    for copy, message in zip(copies, messages, strict=True):
        sent_at = copy.content.timestamp
        retried = line.append(message, session, at=sent_at)
        line.attempt(message, session, at=sent_at, answered_at=line.tick(), record=retried)
    return copies


def _consume_firsts(line: Line) -> None:
    """Consume as a deduplicating consumer does: of each id only the first record reaches the output."""
    seen: set[str] = set()
    for record in line.poll():
        if record.id not in seen:
            line.emit(record)
        seen.add(record.id)
    line.commit()


def _inherited(cause: Cause, *admissible: Cause) -> Finding:
    return Finding(BreakClass.OUTPUT_DUPLICATE, Locus.PRODUCER_TO_BROKER, cause, _DOUBLED, admissible)


@fault()
def producer_restart_resends(line: Line) -> Story:
    """A producer crashes before it notes what was acknowledged, and its next session sends the batch again."""
    copies = _sent_again(line, "acked")
    line.consume()
    line.broken(copies, _inherited(Cause.RESEND, Cause.RESEND))
    yield


@fault()
def resend_deduplicated(line: Line) -> Story:
    """A batch is sent again as in producer_restart_resends; the consumer drops what it has seen."""
    copies = _sent_again(line, "acked")
    _consume_firsts(line)
    line.broken(copies, Finding(BreakClass.LOG_DUPLICATE, Locus.PRODUCER_TO_BROKER, Cause.RESEND))
    yield


@fault()
def resend_after_timeout(line: Line) -> Story:
    """A batch is written but never acknowledged, so the application sends it again."""
    copies = _sent_again(line, "unknown")
    line.consume()
    # One attempt with two records and one without any would look the same.
    line.broken(copies, _inherited(Cause.RESEND, Cause.RESEND, Cause.RETRY_WITHOUT_IDEMPOTENCE))
    yield


def _sent_again(line: Line, outcome: str) -> list[Record]:
    """Send a batch, restart its producer and send it again; return the first records."""
    session, messages = line.session(*SINGLE), line.draw()
    copies = [line.attempt(message, session, outcome=outcome) for message in messages]
    line.send(messages, line.world.producers.restarted(session.producer))
    return copies


@fault(producers=("plain",))
def several_requests_in_flight(line: Line) -> Story:
    """Of two requests in flight the first fails and is retried behind the second."""
    session, messages = line.session("plain"), line.draw()
    first, second = messages[: len(messages) // 2], messages[len(messages) // 2 :]
    sent_at = [line.tick() for _ in messages]
    times = dict(zip((message.id for message in messages), sent_at, strict=True))
    records = {
        message.id: line.append(message, session, at=times[message.id]) for message in (*second, *first)
    }
    for message in messages:
        line.attempt(
            message, session, at=times[message.id], answered_at=line.tick(), record=records[message.id]
        )
    line.consume()
    line.delivered(messages)
    finding = Finding(BreakClass.REORDER_PRODUCER, Locus.PRODUCER_TO_BROKER, Cause.SEVERAL_IN_FLIGHT)
    line.broken_at("order", finding, records[second[0].id].offset)
    yield


@fault()
def partitioner_goes_wrong(line: Line) -> Story:
    """An application's partitioner sends some messages to another partition than their key's."""
    session, messages = line.session(*SINGLE), line.draw()
    count = line.some(len(messages))
    astray = [line.attempt(message, session, intended=line.partition + 1) for message in messages[:count]]
    line.send(messages[count:], session)
    line.consume()
    line.broken(astray, Finding(BreakClass.MISROUTED, Locus.PRODUCER))
    line.delivered(messages[count:])
    yield


@fault()
def id_used_twice(line: Line) -> Story:
    """Two sessions use one id for different messages: nothing is wrong, and nothing may be mixed up."""
    session, messages = line.session(*SINGLE), line.draw()
    half = len(messages) // 2
    line.send(messages[:half], session)
    for first, second in zip(messages[:half], messages[half:], strict=False):
        second.id = first.id
    line.send(messages[half:], line.world.producers.restarted(session.producer))
    line.consume()
    line.delivered(messages)
    yield


def _flip(digits: str | None) -> str:
    """Return a hash with another last digit."""
    return digest("" if digits is None else f"{digits}/flipped")


def rot_value(record: Record) -> None:
    """Change the payload."""
    record.content.value = _flip(record.content.value)


def rot_key(record: Record) -> None:
    """Change the key."""
    record.content.key = _flip(record.content.key)


def rot_header(record: Record) -> None:
    """Change a header."""
    record.content.header = _flip(record.content.header)


def rot_timestamp(record: Record) -> None:
    """Flip a bit of the record's time, 32 ms."""
    record.content.timestamp ^= 32


ROTS: dict[str, tuple[BreakClass, Callable[[Record], None]]] = {
    "value": (BreakClass.CORRUPTED_VALUE, rot_value),
    "key": (BreakClass.CORRUPTED_KEY, rot_key),
    "header": (BreakClass.CORRUPTED_HEADER, rot_header),
    "timestamp": (BreakClass.CORRUPTED_TIMESTAMP, rot_timestamp),
}
"""What a record carries that must not change, and how it does."""


def send_keyed(line: Line) -> tuple[Session, list[Message], list[Record]]:
    """Send a batch of messages that all have a key."""
    session, messages = line.session(*SINGLE), line.draw(has_key=True)
    return session, messages, line.send(messages, session)


def _rotting(name: BreakClass, rot: Callable[[Record], None]) -> Callable[[Line], Story]:
    def story(line: Line) -> Story:
        _session, messages, records = send_keyed(line)
        count = line.some(len(messages))
        for record in records[:count]:
            rot(record)
        line.consume()
        line.broken(records[:count], Finding(name, Locus.PRODUCER_TO_BROKER))
        line.delivered(records[count:])
        yield

    return story


for _part, (_name, _rot) in ROTS.items():
    CATALOGUE.enter(
        f"{_part}_changed_before_log",
        f"The {_part} of some records changes on the way to the log.",
        _rotting(_name, _rot),
    )
