"""Writes the small segments that the decoders' tests read, with the output of Kafka's own tools for them.

Run by the recorder's own Python in the root: `.tieout/record/venv/bin/python -m tools.record.sample`.
"""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from tools.record.broker import OFFSETS_TOPIC, Broker, start_broker
from tools.record.recorder import JARS, ROOT, SCRATCH

TOPIC, GROUP = "sample", "sample-readers"
TARGET = ROOT / "tests" / "unit" / "record" / "segments"


def main() -> None:
    """Write a partition with every kind of record, an offsets topic, and the output of Kafka's tools for both."""
    work = SCRATCH / "sample"
    shutil.rmtree(work, ignore_errors=True)
    TARGET.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        broker = start_broker(JARS, work, stack)
        broker.create_topic(TOPIC, 1)
        open_transaction = _produce(broker.bootstrap)
        _commit(broker.bootstrap)
        while not any(batch.is_control for batch in broker.log(OFFSETS_TOPIC)[0]):
            time.sleep(0.1)  # the broker writes the abort's marker after its answer
        segments = {
            topic: broker.partition_folder(topic, 0) / f"{0:020}.log" for topic in (TOPIC, OFFSETS_TOPIC)
        }
        for topic, segment in segments.items():
            shutil.copy(segment, TARGET / f"{topic.strip('_')}.log")
        (TARGET / "sample.dump.txt").write_text(_dump(broker, segments[TOPIC]))
        (TARGET / "consumer_offsets.formatted.txt").write_text(broker.formatted_offsets())
        open_transaction.abort_transaction(10)


def _produce(bootstrap: str) -> Producer:
    """Send without idempotence, with it, in a committed and an aborted transaction; return an open transaction."""
    plain_producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": False})
    idempotent = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for producer in (plain_producer, idempotent):
        producer.produce(
            TOPIC, b'{"order_id":"keyed"}', b"customer-1", headers=[("trace", b"1"), ("empty", None)]
        )
        producer.produce(TOPIC, b'{"order_id":"unkeyed"}')
        producer.produce(TOPIC, None, b"customer-1")
        producer.flush(10)
    transactional = _transactional(bootstrap, "sample-1")
    for finish in (transactional.commit_transaction, transactional.abort_transaction):
        transactional.begin_transaction()
        transactional.produce(TOPIC, b'{"order_id":"in a transaction"}')
        transactional.produce(TOPIC, b"1.17")
        transactional.flush(10)
        finish(10)
    unfinished = _transactional(bootstrap, "sample-2")
    unfinished.begin_transaction()
    unfinished.produce(TOPIC, b'{"order_id":"undecided"}')
    unfinished.flush(10)
    return unfinished


def _transactional(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(10)
    return producer


def _commit(bootstrap: str) -> None:
    """Commit forward, with metadata, and backward; and once in an aborted transaction."""
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    for offset, metadata in ((2, "first"), (5, "by hand"), (3, "back")):
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset, metadata)], asynchronous=False)
    producer = _transactional(bootstrap, "sample-3")
    producer.begin_transaction()
    producer.send_offsets_to_transaction(
        [TopicPartition(TOPIC, 0, 99)], consumer.consumer_group_metadata(), 10
    )
    producer.abort_transaction(10)
    consumer.close()


def _dump(broker: Broker, segment: Path) -> str:
    """Return the output of Kafka's log dumper for the segment, without the lines with its path."""
    printed = broker.jars.run(
        "org.apache.kafka.tools.DumpLogSegments", "--print-data-log", "--files", str(segment)
    )
    return "".join(line for line in printed.splitlines(keepends=True) if line.startswith(("baseOffset", "|")))


if __name__ == "__main__":
    main()
