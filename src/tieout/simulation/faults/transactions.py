"""What goes wrong with transactions: aborted, hanging and torn ones, and readers that do not care."""

from __future__ import annotations

from typing import Final

from tieout.model import BreakClass, Cause, Locus
from tieout.simulation.faults.fault import CATALOGUE, Story
from tieout.simulation.line import Line, send_batch
from tieout.simulation.records import Message, Record, Session, State
from tieout.simulation.truth import UNPROVEN, Finding
from tieout.simulation.world import ProducerKind

fault = CATALOGUE.fault
ONLY: Final[tuple[ProducerKind, ...]] = ("transactional",)


def _transaction(line: Line, session: Session, messages: list[Message], fate: State) -> list[Record]:
    """Send messages in one transaction and end it; return their records."""
    transaction = session.begin(fate)
    records = line.send(messages, session, transaction)
    line.end(transaction, session)
    return records


@fault(producers=ONLY)
def transaction_aborted(line: Line) -> Story:
    """A transaction is aborted for good: its records are in the log, and nobody is to see them."""
    messages = line.draw()
    _transaction(line, line.session(*ONLY), messages, "aborted")
    line.consume()
    line.unbroken(BreakClass.NOT_SENT, len(messages))
    yield


@fault(producers=ONLY)
def transaction_aborted_and_sent_again(line: Line) -> Story:
    """A transaction is aborted, and the next one sends the same messages."""
    session, messages = line.session(*ONLY), line.draw()
    _transaction(line, session, messages, "aborted")
    _transaction(line, session, messages, "committed")
    line.consume()
    line.delivered(messages)
    yield


@fault(rounds=2, producers=ONLY, when="last")
def transaction_left_open(line: Line) -> Story:
    """A producer dies in a transaction: it and all records above it cannot be read until somebody ends it."""
    session, messages = line.session(*ONLY), line.draw()
    hanging = session.begin("open")
    for message in messages:
        line.attempt(message, session, outcome="unknown", transaction=hanging)
    line.world.producers.restarted(session.producer)
    line.consume()
    line.unbroken(BreakClass.IN_FLIGHT, len(messages), disposition=UNPROVEN)
    yield
    waiting = send_batch(line, line.draw())
    line.consume()
    line.broken(waiting, Finding(BreakClass.IN_FLIGHT, flags=("OVERDUE",)))
    yield


@fault(producers=ONLY, policy="delete")
def transaction_torn(line: Line) -> Story:
    """Of a committed transaction the broker loses some records and keeps the others."""
    messages = line.draw()
    records = _transaction(line, line.session(*ONLY), messages, "committed")
    gone = records[1 : 1 + line.some(len(records))]
    line.remove(gone)
    line.consume()
    line.broken(gone, Finding(BreakClass.LOST, Locus.BROKER))
    for record in gone:
        line.broken_at("position", Finding(BreakClass.LOG_TRUNCATION, Locus.BROKER), record.offset)
    line.broken_at("transaction", Finding(BreakClass.TORN_TRANSACTION), gone[0].offset)
    line.delivered(records[len(gone) :])
    yield


@fault(producers=ONLY)
def aborted_read(line: Line) -> Story:
    """The consumer reads uncommitted data, and puts an aborted transaction into the output."""
    records = _transaction(line, line.session(*ONLY), line.draw(), "aborted")
    line.output(line.poll(is_committed_only=False))
    line.commit()
    line.broken(records, Finding(BreakClass.PHANTOM_ABORTED, Locus.CONSUMER_ISOLATION, Cause.ABORTED_READ))
    yield


@fault(producers=ONLY)
def aborted_read_and_sent_again(line: Line) -> Story:
    """The consumer puts an aborted transaction into the output, and then the one that sends its messages again."""
    session, messages = line.session(*ONLY), line.draw()
    _transaction(line, session, messages, "aborted")
    line.output(line.poll(is_committed_only=False))
    records = _transaction(line, session, messages, "committed")
    line.consume()
    line.broken(
        records,
        Finding(
            BreakClass.OUTPUT_DUPLICATE, Locus.CONSUMER_OR_SINK, Cause.ABORTED_READ, ("PHANTOM_ABORTED",)
        ),
    )
    yield


@fault(producers=ONLY)
def uncommitted_read(line: Line) -> Story:
    """The consumer outputs the records of a transaction before it is committed."""
    session, messages = line.session(*ONLY), line.draw()
    transaction = session.begin()
    records = line.send(messages, session, transaction)
    line.output(line.poll(is_committed_only=False))
    line.tick(5)
    line.end(transaction, session)
    line.consume()
    line.broken(records, Finding(BreakClass.PHANTOM_UNCOMMITTED, Locus.CONSUMER_ISOLATION))
    yield
