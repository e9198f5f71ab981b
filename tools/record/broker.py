"""A Kafka broker from its published jars: one node, KRaft, with its own data folder and free ports."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tools.record.jars import Jars
from tools.record.log_ledger import Bounds
from tools.record.messages import now_text
from tools.record.processes import RecordingError, end, free_port, pause
from tools.record.segments import Batch, partition_batches

OFFSETS_TOPIC = "__consumer_offsets"
_TRIES = 40
_NOT_READY = (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE)
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
log.cleaner.enable=false
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


@dataclass(frozen=True)
class Broker:
    """A running broker.

    It has one administration client for its lifetime: librdkafka crashes if dozens of clients are created.
    """

    jars: Jars
    bootstrap: str
    data: Path
    process: subprocess.Popen[bytes]
    admin: AdminClient

    def pause(self) -> None:
        """Pause the broker's process: requests wait in the kernel's buffers."""
        pause(self.process)

    def resume(self) -> None:
        """Resume the paused broker."""
        self.process.send_signal(signal.SIGCONT)

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create the topic."""
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)

    def bounds(self, topic: str) -> dict[int, Bounds]:
        """Return the current bounds of each of the topic's partitions."""
        numbers = sorted(self.admin.list_topics(topic).topics[topic].partitions)
        observed_at = now_text()
        starts = self._offsets(topic, numbers, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)
        stable = self._offsets(topic, numbers, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        ends = self._offsets(topic, numbers, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        return {n: Bounds(starts[n], stable[n], ends[n], observed_at, "delete") for n in numbers}

    def _offsets(
        self, topic: str, numbers: Sequence[int], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[int, int]:
        request = {TopicPartition(topic, number): spec for number in numbers}
        futures = self.admin.list_offsets(request, isolation_level=isolation)
        return {place.partition: future.result(30).offset for place, future in futures.items()}

    def committed(self, group: str) -> dict[int, int]:
        """Return the group's current position per partition.

        Raises:
            RecordingError: if the broker's group coordinator does not start.
        """
        for _ in range(_TRIES):
            futures = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
            try:
                places = futures[group].result(30).topic_partitions
            except KafkaException as error:
                if error.args[0].code() not in _NOT_READY:
                    raise
                time.sleep(0.5)
            else:
                return {place.partition: place.offset for place in places if place.offset >= 0}
        raise RecordingError(f"the broker did not say where {group} is, asked {_TRIES} times")

    def partition_folder(self, topic: str, partition: int) -> Path:
        """Return the folder of one partition's segment files."""
        return self.data / f"{topic}-{partition}"

    def log(self, topic: str) -> dict[int, tuple[Batch, ...]]:
        """Return the batches of each partition's segment files."""
        numbers = sorted(int(folder.name.rsplit("-", 1)[1]) for folder in self.data.glob(f"{topic}-*"))
        return {number: tuple(partition_batches(self.partition_folder(topic, number))) for number in numbers}

    def formatted_offsets(self) -> str:
        """Return the history of the offsets topic as Kafka's formatter prints it: concatenated JSON documents."""
        return self.jars.run(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", self.bootstrap, "--topic", OFFSETS_TOPIC, "--from-beginning"),
            *("--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"),
            *("--isolation-level", "read_committed", "--timeout-ms", "8000"),
        )

    def positions_read(self, topic: str, isolation: str) -> set[tuple[int, int]]:
        """Return every position that a new consumer of that isolation level receives, up to the log's end.

        Raises:
            RecordingError: if the consumer receives nothing for 30 seconds.
        """
        settings = {"bootstrap.servers": self.bootstrap, "group.id": f"probe-{isolation}"}
        consumer = Consumer({**settings, "isolation.level": isolation, "enable.partition.eof": True})
        unfinished = set(self.log(topic))
        consumer.assign([TopicPartition(topic, number, 0) for number in unfinished])
        positions: set[tuple[int, int]] = set()
        while unfinished:
            message = consumer.poll(30)
            if message is None:
                raise RecordingError(f"a {isolation} reader was handed nothing for 30 s")
            error = message.error()
            if error is None:
                positions.add((message.partition(), message.offset()))
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
            else:
                raise KafkaException(error)
        consumer.close()
        return positions


def start_broker(
    jars: Jars,
    folder: Path,
    stack: ExitStack,
    further: str = "",
    words: Mapping[str, object] = MappingProxyType({}),
) -> Broker:
    """Format the storage, start a broker and return it once it answers; the stack stops it.

    `further` properties override those of the same name; ports and `words` are substituted in them.

    Raises:
        RecordingError: if it has not answered after 90 seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port, controller_port = free_port(), free_port()
    data, properties, log = folder / "data", folder / "server.properties", folder / "broker.log"
    values = {"port": port, "controller_port": controller_port, "data": data, **words}
    properties.write_text((_PROPERTIES + further).format(**values))
    uuid = jars.run("kafka.tools.StorageTool", "random-uuid").strip().splitlines()[-1]
    jars.run("kafka.tools.StorageTool", "format", "-t", uuid, "-c", str(properties))
    with log.open("w") as output:
        process = subprocess.Popen(
            jars.java("kafka.Kafka", str(properties), memory="512m", logging="INFO"),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    stack.callback(end, process)
    bootstrap = f"127.0.0.1:{port}"
    # The client's log is dropped: a broker that is still starting is not an error.
    broker = Broker(
        jars, bootstrap, data, process, AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    )
    _wait_until_up(broker, log)
    return broker


def _wait_until_up(broker: Broker, log: Path, timeout: float = 90) -> None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and broker.process.poll() is None:
        try:
            broker.admin.list_topics(timeout=2)
        except KafkaException:
            time.sleep(0.3)
        else:
            return
    raise RecordingError(f"the broker did not answer within {timeout:.0f} s; see {log}")
