"""Writes the input files of the Kafka readers' tests: a real broker's files, and the output of its tools.

Run by the recorder's own Python in the root: `.tieout/record/venv/bin/python -m tools.record.kafka_files`. The
folders under `log/` are a broker's log directory after a clean shutdown, without files that no reader needs.
`text/kafka-*.txt` are not written here: they are the output of the tools of those versions (Maven: `kafka_2.12`,
`kafka_2.11`) for these segments, with `--deep-iteration --print-data-log`, and for two groups.
"""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tools.record.broker import OFFSETS_TOPIC, Broker, start_broker
from tools.record.processes import RecordingError, end
from tools.record.recorder import JARS, ROOT, SCRATCH

TARGET = ROOT / "tests" / "kafka_files"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PAYMENTS, GROUP = "payments", "payments-loader"
_SEGMENT_BYTES = "1500"
_KEPT = ("*.log", "partition.metadata", "leader-epoch-checkpoint")
_CHECKPOINTS = ("log-start-offset-checkpoint", "replication-offset-checkpoint")
_TIMEOUT = 20


def main() -> None:
    """Write a segment per codec, a topic with every kind of transaction, an offsets topic, and the tools' output."""
    work = SCRATCH / "kafka_files"
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(TARGET, ignore_errors=True)
    (TARGET / "text").mkdir(parents=True)
    with ExitStack() as stack:
        broker = start_broker(JARS, work, stack)
        for codec in CODECS:
            _compressed(broker, codec)
        unfinished = _payments(broker)
        _commits(broker)
        while sum(batch.is_control for batch in broker.log(OFFSETS_TOPIC)[0]) < 2:
            time.sleep(0.1)  # the broker writes a marker after its answer
        _texts(broker)
        end(broker.process)
        _copy(broker)
        del unfinished  # its transaction is still open in the files


def _compressed(broker: Broker, codec: str) -> None:
    """Write a batch compressed by the client, and one compressed by the broker: snappy has two framings."""
    topic = f"codec-{codec}"
    config = {"compression.type": codec if codec != "none" else "producer"}
    broker.admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(_TIMEOUT)
    for client_codec in (codec, "none"):
        producer = _producer(broker, {"compression.type": client_codec, "linger.ms": 200})
        for number in range(3):
            headers: list[tuple[str, Any]] = [("codec", codec.encode()), ("empty", None)]
            producer.produce(
                topic, f"{client_codec}-{number} ".encode() * 9, f"k{number}".encode(), headers=headers
            )
        producer.flush(_TIMEOUT)


def _payments(broker: Broker) -> Producer:
    """Fill two partitions: plain and idempotent records, a tombstone, committed, aborted and open transactions.

    Partition 0 has several segments; one transaction's marker is in another segment than its records. Partition 1
    starts above 0, because its first records were deleted.
    """
    config = {"internal.segment.bytes": _SEGMENT_BYTES}
    broker.admin.create_topics([NewTopic(PAYMENTS, 2, 1, config=config)])[PAYMENTS].result(_TIMEOUT)
    plain_producer = _producer(broker, {"enable.idempotence": False})
    _send(plain_producer, 0, "plain", 2)
    plain_producer.produce(PAYMENTS, None, b"customer-9", 0)
    _flush(plain_producer)
    _send(_producer(broker, {"enable.idempotence": True}), 0, "idempotent", 3)
    for number, (name, finish) in enumerate(
        (("committed", "commit"), ("aborted", "abort"), ("committed", "commit"))
    ):
        producer = _transactional(broker, f"payments-{number % 2}")
        producer.begin_transaction()
        for part in range(4):
            _send(producer, 0, f"{name}-{number}-{part}", 3)
        getattr(producer, f"{finish}_transaction")(_TIMEOUT)
    _send(_producer(broker, {}), 1, "first", 4)
    broker.admin.delete_records([TopicPartition(PAYMENTS, 1, 2)])[TopicPartition(PAYMENTS, 1)].result(
        _TIMEOUT
    )
    unfinished = _transactional(broker, "payments-9")
    unfinished.begin_transaction()
    _send(unfinished, 0, "open", 2)
    _send(_producer(broker, {}), 0, "above", 1)
    return unfinished


def _send(producer: Producer, partition: int, name: str, count: int) -> None:
    """Send `count` payments in one batch."""
    for number in range(count):
        key, body = f"customer-{number}".encode(), f'{{"id":"{name}-{number}","amount":{number}}}'.encode()
        producer.produce(PAYMENTS, body, key, partition, headers=[("trace", name.encode())])
    _flush(producer)


def _flush(producer: Producer) -> None:
    if producer.flush(_TIMEOUT):
        raise RecordingError("the broker did not take every record")


def _producer(broker: Broker, settings: dict[str, Any]) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, **settings})


def _transactional(broker: Broker, transactional_id: str) -> Producer:
    producer = _producer(broker, {"transactional.id": transactional_id, "transaction.timeout.ms": 600_000})
    producer.init_transactions(_TIMEOUT)
    return producer


def _commits(broker: Broker) -> None:
    """Commit forward, with metadata, backward, and in committed and aborted transactions; delete another group's."""
    consumer = _consumer(broker, GROUP)
    for offset, metadata in ((2, "first"), (5, 'by hand: {"a": 1}'), (3, "")):
        consumer.commit(offsets=[TopicPartition(PAYMENTS, 0, offset, metadata)], asynchronous=False)
    for number, (offset, finish) in enumerate(((6, "commit"), (99, "abort"))):
        producer = _transactional(broker, f"loader-{number}")
        producer.begin_transaction()
        place = [TopicPartition(PAYMENTS, 0, offset)]
        producer.send_offsets_to_transaction(place, consumer.consumer_group_metadata(), _TIMEOUT)
        getattr(producer, f"{finish}_transaction")(_TIMEOUT)
    consumer.commit(offsets=[TopicPartition(PAYMENTS, 1, 4)], asynchronous=False)
    consumer.close()
    consumer_to_delete = _consumer(broker, "abandoned")
    consumer_to_delete.commit(offsets=[TopicPartition(PAYMENTS, 1, 3)], asynchronous=False)
    consumer_to_delete.close()
    broker.admin.delete_consumer_groups(["abandoned"])["abandoned"].result(_TIMEOUT)
    member = _consumer(broker, GROUP)  # a member leaves group metadata in the table
    member.subscribe([PAYMENTS])
    deadline = time.monotonic() + _TIMEOUT
    while not member.assignment() and time.monotonic() < deadline:
        member.poll(0.2)
    member.close()


def _consumer(broker: Broker, group: str) -> Consumer:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False}
    return Consumer({**settings, "auto.offset.reset": "earliest"})


def _texts(broker: Broker) -> None:
    """Write the output of Kafka's own tools."""
    text, jars, server = TARGET / "text", broker.jars, ("--bootstrap-server", broker.bootstrap)
    dump = "org.apache.kafka.tools.DumpLogSegments"
    for partition in (0, 1):
        segments = ",".join(map(str, sorted(broker.partition_folder(PAYMENTS, partition).glob("*.log"))))
        shown = jars.run(dump, "--print-data-log", "--files", segments)
        (text / f"{PAYMENTS}-{partition}.dump.txt").write_text(_without_folders(shown, broker))
    segment = broker.partition_folder(PAYMENTS, 1) / f"{0:020}.log"
    shown = jars.run(dump, "--deep-iteration", "--files", str(segment))
    (text / f"{PAYMENTS}-1.deep.dump.txt").write_text(_without_folders(shown, broker))
    groups = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    shown = jars.run(groups, *server, "--describe", "--group", GROUP)
    (text / "describe.txt").write_text(shown)
    (text / "describe_verbose.txt").write_text(
        jars.run(groups, *server, "--describe", "--group", GROUP, "--verbose")
    )
    export = ("--reset-offsets", "--to-current", "--dry-run", "--export", "--all-topics")
    (text / "export.csv").write_text(jars.run(groups, *server, *export, "--group", GROUP))
    (text / "consumer_offsets.formatted.txt").write_text(broker.formatted_offsets())


def _without_folders(dump: str, broker: Broker) -> str:
    return dump.replace(str(broker.data), "/var/lib/kafka/data")


def _copy(broker: Broker) -> None:
    """Copy the files that the readers need from the stopped broker's folder."""
    target = TARGET / "log"
    folders = [broker.data / f"codec-{codec}-0" for codec in CODECS]
    folders += [broker.data / f"{PAYMENTS}-{number}" for number in (0, 1)]
    for folder in (*folders, broker.data / f"{OFFSETS_TOPIC}-0"):
        (target / folder.name).mkdir(parents=True)
        for file in (match for pattern in _KEPT for match in folder.glob(pattern)):
            shutil.copy(file, target / folder.name)
    for name in _CHECKPOINTS:
        if (broker.data / name).exists():
            shutil.copy(broker.data / name, target)


if __name__ == "__main__":
    main()
