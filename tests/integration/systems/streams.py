"""Kafka Streams: an application that copies a topic, killed between its output and its commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import HASHED, UNTIL_READ, committed_of, log_of, output_of
from tests.integration.kafka_faults.remote import Remote
from tests.integration.kafka_faults.scene import Place, Scene, breaks_of
from tests.integration.systems.engine import Engine, class_path_of
from tests.integration.systems.scene import Case, Expected, Stage

_COMMITTED, _MORE = 30, 30
_SEEN_MORE = 10
"""So many records beyond the commit are in the output before the application is killed."""
_FAULT: Final = "application killed when its output is ahead of its commits"
_SETTINGS: Final = {
    "commit.interval.ms": 5000,
    "producer.transaction.timeout.ms": 6000,
    "consumer.session.timeout.ms": 3000,
    "consumer.heartbeat.interval.ms": 500,
    "producer.linger.ms": 0,
    "replication.factor": 1,
    "pause.ms": 30,
}
"""Under exactly_once_v2 an application without state leaves its transaction to its timeout, and the commit interval
must be the shorter one of the two."""


def engine(folder: Path) -> Engine:
    """Return Kafka Streams with the application that copies a topic, compiled into the folder."""
    return Engine(class_path_of("streams", folder))


def killed_at_least_once(stage: Stage) -> list[Case]:
    """What was output and not committed is output again."""
    source, output, twice = _killed(stage, "at_least_once")
    again = breaks_of(twice, "OUTPUT_DUPLICATE", "consumer or sink", "process before commit")
    classes = {"DELIVERED": _COMMITTED + _MORE - len(again), "OUTPUT_DUPLICATE": len(again)}
    ledgers = _ledgers(stage, output)
    broken, kept = Expected("BROKEN", classes, again), Expected("KEPT", classes, again)
    how = "processing.guarantee=at_least_once"
    return [
        stage.case(_FAULT, how, source, ledgers, broken, group=stage.name),
        stage.case(_FAULT, how, source, ledgers, kept, group=stage.name, guarantee="at_least_once"),
    ]


def killed_exactly_once(stage: Stage) -> list[Case]:
    """What was output and not committed is aborted, and output again; a reader that looks at both has it twice."""
    source, output, twice = _killed(stage, "exactly_once_v2")
    all_once = Expected("KEPT", {"DELIVERED": _COMMITTED + _MORE})
    how = "processing.guarantee=exactly_once_v2"
    cases = [stage.case(_FAULT, how, source, _ledgers(stage, output), all_once, group=stage.name)]
    for isolation in ("read_committed", "read_uncommitted"):
        output.drain(isolation, isolation_level=isolation)
    output.end()
    twice_ids = {id_ for *_, id_ in twice}
    places = {id_: [0, offset, id_] for offset, id_ in output.records() if id_ in twice_ids}
    again = breaks_of(
        list(places.values()),
        "OUTPUT_DUPLICATE",
        "consumer or sink",
        "aborted transaction read",
        ["PHANTOM_ABORTED"],
    )
    classes = {"DELIVERED": _COMMITTED + _MORE - len(again), "OUTPUT_DUPLICATE": len(again)}
    for isolation, expected in (
        ("read_committed", all_once),
        ("read_uncommitted", Expected("BROKEN", classes, again)),
    ):
        ledgers = {
            "produced": _written(stage, output),
            "delivered": output_of(output.folder, isolation),
            "committed": committed_of(stage.data, isolation),
        }
        cases.append(
            stage.case("the same, read behind it", isolation, output, ledgers, expected, group=isolation)
        )
    return cases


PLAYS: Final = {"streams-at-least-once": killed_at_least_once, "streams-exactly-once": killed_exactly_once}


def _killed(stage: Stage, guarantee: str) -> tuple[Scene, Scene, list[Any]]:
    """Kill the application between two commits, start it again, and return what it wrote twice, as its input has it."""
    source, output = stage.topic("in"), stage.topic("out", message_timestamp_type="LogAppendTime")
    settings = {
        **_SETTINGS,
        "bootstrap.servers": stage.cluster.bootstrap,
        "application.id": stage.name,
        "processing.guarantee": guarantee,
        "state.dir": stage.folder / "state",
        "input": source.name,
        "output": output.name,
    }
    sender = source.sender()
    _send(source, sender, _COMMITTED)
    application = stage.start("Copy", settings, "copy")
    _await_commit(stage, _COMMITTED)
    places = _send(source, sender, _MORE)
    wait_until(lambda: len(output.records()) >= _COMMITTED + _SEEN_MORE, f"records in {output.name}")
    application.kill()
    source.end()
    sender.kill()
    if stage.cluster.committed(stage.name) != {0: _COMMITTED}:
        raise AssertionError(f"expected {_COMMITTED} committed, found {stage.cluster.committed(stage.name)}")
    ahead = {id_ for _, id_ in output.records()[_COMMITTED:]}
    successor = stage.start("Copy", settings, "copy")
    _await_commit(stage, _COMMITTED + _MORE)
    successor.stop()
    return source, output, [place for place in places if place[-1] in ahead]


def _send(source: Scene, sender: Remote, count: int) -> list[Place]:
    """Send so many new messages with a client that runs already: until the kill no commit may come between."""
    sender.call("send", ids=source.ids(count), partition=0)
    return [[partition, offset, id_] for id_, partition, offset, _ in sender.call("settle")]


def _await_commit(stage: Stage, offset: int) -> None:
    wait_until(lambda: stage.cluster.committed(stage.name) == {0: offset}, f"{stage.name} to commit {offset}")


def _ledgers(stage: Stage, output: Scene) -> dict[str, Any]:
    """Return the output topic as what was delivered, and the positions of the application.

    A life of a producer is a producer id and an epoch; when a record was written is when the broker appended it.
    """
    columns = {
        **HASHED,
        "processed_at": "source_timestamp",
        "consumer_id": "concat(broker_producer_id, ':', producer_epoch)",
    }
    return {
        "delivered": {**log_of(stage.data, output.name), "columns": columns},
        "committed": committed_of(stage.data, stage.name),
    }


def _written(stage: Stage, output: Scene) -> dict[str, Any]:
    """Return the output topic as what its own readers are sent: all of it, with the outcome of its transactions."""
    columns = {
        **HASHED,
        **{name: f"source_{name}" for name in ("topic", "topic_id", "partition", "offset")},
        "producer_session": "concat(broker_producer_id, ':', producer_epoch)",
        "attempted_at": "source_timestamp",
        "completed_at": "source_timestamp",
        "outcome": "case transaction_state when 'aborted' then 'failed' when 'open' then 'unknown' else 'acked' end",
    }
    return {**log_of(stage.data, output.name), "columns": columns, "coverage": UNTIL_READ}
