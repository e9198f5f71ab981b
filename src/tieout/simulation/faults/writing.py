"""What goes wrong in the output: rows doubled, late, uncertain, out of order, changed, lost in staging, invented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tieout.model import BreakClass, Ledger, Locus
from tieout.simulation.faults.fault import CATALOGUE, SINGLE, Story
from tieout.simulation.faults.producing import ROTS, send_keyed
from tieout.simulation.line import Line, own_key
from tieout.simulation.records import Record, Session
from tieout.simulation.truth import Finding

fault = CATALOGUE.fault


def _given(line: Line) -> tuple[list[Record], int]:
    """Send and poll a batch; return it, and how many of it the fault strikes."""
    line.send(line.draw(), line.session(*SINGLE))
    records = line.poll()
    return records, line.some(len(records))


@fault()
def output_doubled(line: Line) -> Story:
    """The sink writes some rows, is not sure of it, and writes them again."""
    records, count = _given(line)
    line.output(records)
    line.output(records[:count])
    line.commit()
    line.broken(records[:count], Finding(BreakClass.OUTPUT_DUPLICATE, Locus.CONSUMER_OR_SINK))
    line.delivered(records[count:])
    yield


@fault()
def output_overtakes(line: Line) -> Story:
    """The sink writes two messages of one key in the wrong order."""
    messages = line.draw()
    own_key(messages[1], messages[2])
    line.send(messages, line.session(*SINGLE))
    records = line.poll()
    line.output([records[0], records[2], records[1], *records[3:]])
    line.commit()
    line.broken_at("order", Finding(BreakClass.REORDER_OUTPUT, Locus.SINK), records[1].offset)
    line.delivered(records)
    yield


@fault()
def output_late(line: Line) -> Story:
    """Some rows lie in the sink's buffer for longer than a message may take."""
    messages = line.draw()
    count = line.some(len(messages))
    for message in messages[:count]:
        own_key(message)
    line.send(messages, line.session(*SINGLE))
    records = line.poll()
    for record in records[:count]:
        line.emit(record, at=line.tick() + line.world.max_latency_ms + 1_000)
    line.output(records[count:])
    line.commit()
    line.broken(records[:count], Finding(BreakClass.LATE, Locus.AFTER_ACKNOWLEDGEMENT))
    line.delivered(records[count:])
    yield


@fault()
def output_uncertain(line: Line) -> Story:
    """The sink does not know whether it wrote some rows: nobody can tell whether they arrived."""
    records, count = _given(line)
    for record in records[:count]:
        line.emit(record, outcome="unknown")
    line.output(records[count:])
    line.commit()
    line.broken(records[:count], Finding(BreakClass.UNVERIFIABLE))
    line.delivered(records[count:])
    yield


@fault()
def output_perhaps_doubled(line: Line) -> Story:
    """The sink writes some rows again and does not know whether that succeeded: perhaps a duplicate."""
    records, count = _given(line)
    line.output(records)
    for record in records[:count]:
        line.emit(record, outcome="unknown")
    line.commit()
    line.unbroken(BreakClass.DELIVERED, count, "POSSIBLE_DUPLICATE")
    line.delivered(records[count:])
    yield


@fault()
def sink_transaction_aborted(line: Line) -> Story:
    """The sink's transaction is rolled back and done again: one effect each, and nothing wrong."""
    records, _count = _given(line)
    name = f"{line.topic}-{line.partition}-{line.polls}"
    for attempt, state in enumerate(("aborted", "committed")):
        for record in records:
            line.emit(record, transaction=(f"{name}/{attempt}", state))
    line.commit()
    line.delivered(records)
    yield


@fault()
def other_group_reads(line: Line) -> Story:
    """Another group reads the partition as well: its rows are not this group's effects."""
    records, _count = _given(line)
    line.output(records)
    stranger = replace(line.reader, member="somebody-else")
    for record in records:
        line.emit(record, stranger, group="another-group")
    line.commit()
    line.delivered(records)
    yield


@fault(when="last")
def lost_in_staging(line: Line) -> Story:
    """The consumer stages a batch, a part of it never reaches the output, and nothing is committed any more."""
    records, count = _given(line)
    for record in records:
        line.set_aside(Ledger.STAGED, record, "to be loaded")
    line.output(records[count:])
    line.broken(records[:count], Finding(BreakClass.LOST, Locus.SINK))
    line.broken_at("commit", Finding(BreakClass.COMMIT_STALE, Locus.OFFSET_STORE), records[count].offset)
    line.delivered(records[count:])
    yield


@fault()
def output_invented(line: Line) -> Story:
    """The output holds rows that nobody ever sent, and the log knows nothing of them."""
    records, count = _given(line)
    line.output(records)
    line.commit()
    line.delivered(records)
    for record in records[:count]:
        name = f"{record.id}-invented"
        line.invent(name)
        line.phantom(name, Finding(BreakClass.PHANTOM_UNKNOWN, Locus.SINK))
    yield


@fault()
def record_invented(line: Line) -> Story:
    """Somebody writes into the topic who is none of its producers, and the output has the records."""
    messages = line.draw()
    line.send(messages, line.session(*SINGLE))
    stranger = Session("stranger", 1, "plain", -1)
    for sent in messages[: line.some(len(messages))]:
        invented = replace(sent, id=f"{sent.id}-invented")
        line.append(invented, stranger, at=line.tick())
        line.phantom(invented.id, Finding(BreakClass.PHANTOM_UNKNOWN, Locus.PRODUCER))
    line.consume()
    line.delivered(messages)
    yield


def _rotting(name: BreakClass, rot: Callable[[Record], None]) -> Callable[[Line], Story]:
    def story(line: Line) -> Story:
        send_keyed(line)
        records = line.poll()
        count = line.some(len(records))
        for record in records[:count]:
            sound = record.content
            record.content = replace(sound)
            rot(record)
            line.emit(record)
            record.content = sound
        line.output(records[count:])
        line.commit()
        line.broken(records[:count], Finding(name, Locus.CONSUMER_OR_SINK))
        line.delivered(records[count:])
        yield

    return story


for _part, (_name, _rot) in ROTS.items():
    CATALOGUE.enter(
        f"{_part}_changed_after_log",
        f"The {_part} of some records changes on the way to the output.",
        _rotting(_name, _rot),
    )
