"""A Kafka cluster on this machine: a controller that no fault strikes, and brokers to strike, each a process.

Offsets and transactions are coordinated by the first broker alone, so that what happens to the second leaves them be.
Standard settings are shortened where a fault would else be waited for in minutes.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCONT
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tools.record.jars import Jars
from tools.record.processes import RecordingError, end, free_port, pause
from tools.record.segments import Batch, partition_batches

OFFSETS_TOPIC = "__consumer_offsets"
_CLUSTER = "dGllb3V0LWZhdWx0cy0wMQ"
_CONTROLLER = 100
_COMMON = """\
node.id={node}
controller.quorum.voters=100@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
"""
_OF_CONTROLLER = """\
process.roles=controller
listeners=CONTROLLER://127.0.0.1:{controller_port}
broker.session.timeout.ms=9000
"""
_OF_BROKER = """\
process.roles=broker
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
broker.heartbeat.interval.ms=500
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.share.min.record.lock.duration.ms=1000
group.share.record.lock.duration.ms=3000
group.share.min.session.timeout.ms=1000
group.share.session.timeout.ms=3000
group.share.min.heartbeat.interval.ms=500
group.share.heartbeat.interval.ms=500
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
log.initial.task.delay.ms=500
log.retention.check.interval.ms=500
log.flush.start.offset.checkpoint.interval.ms=500
log.cleaner.backoff.ms=500
replica.lag.time.max.ms=60000
"""
_PAUSE = 0.1
_INTERNAL_TOPICS = (OFFSETS_TOPIC, "__transaction_state")


@dataclass
class Node:
    """One broker or the controller: its folder, and its process while it runs."""

    number: int
    folder: Path
    bootstrap: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """Return where it keeps its logs."""
        return self.folder / "data"

    def pause(self) -> None:
        """Stop the process where it is: what it is sent waits in the kernel's buffers."""
        pause(self._running())

    def resume(self) -> None:
        """Let the stopped process go on."""
        self._running().send_signal(SIGCONT)

    def kill(self) -> None:
        """End the process as a failing machine would."""
        self._running().kill()
        self._running().wait(20)

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            raise RecordingError(f"node {self.number} does not run")
        return self.process


@dataclass
class Cluster:
    """The running cluster; it has one administration client for life, as librdkafka likes it best."""

    jars: Jars
    controller: Node
    brokers: dict[int, Node]
    stack: ExitStack
    admin: AdminClient = field(init=False)
    _topic_ids: dict[str, str] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """Return the addresses of all brokers."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def start(self) -> None:
        """Format the storage, start all processes, and return once every broker answers."""
        nodes = [self.controller, *self.brokers.values()]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._format, nodes))
        for node in nodes:
            self.start_node(node)
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self.wait_for_brokers(len(self.brokers))
        for topic in _INTERNAL_TOPICS:
            self.create_topic(topic, [[1]], {"cleanup.policy": "compact"})

    def _format(self, node: Node) -> None:
        properties = str(node.folder / "server.properties")
        self.jars.run("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", properties, timeout=300)

    def start_node(self, node: Node) -> None:
        """Start the node's process; the stack ends it."""
        command = self.jars.java(
            "kafka.Kafka", str(node.folder / "server.properties"), memory="256m", logging="INFO"
        )
        with (node.folder / "node.log").open("a") as output:
            node.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self.stack.callback(_kill, node.process)

    def wait_for_brokers(self, count: int) -> None:
        """Wait until so many brokers are alive.

        Raises:
            RecordingError: where they are not after a minute and a half of asking, or one of them has ended.
        """
        wait_until(lambda: self._living() == count, f"{count} living brokers")

    def _living(self) -> int:
        for node in (self.controller, *self.brokers.values()):
            if node.process is not None and node.process.poll() is not None:
                raise RecordingError(f"node {node.number} did not start; see {node.folder / 'node.log'}")
        try:
            return len(self.admin.list_topics(timeout=5).brokers)
        except KafkaException:
            return 0

    def _metadata(self, topic: str | None = None) -> Any:
        for _ in range(4):
            try:
                return self.admin.list_topics(topic, timeout=5)
            except KafkaException:
                time.sleep(0.3)
        return self.admin.list_topics(topic, timeout=5)

    def create_topic(
        self, topic: str, replicas: Sequence[Sequence[int]], settings: Mapping[str, str] | None = None
    ) -> str:
        """Create the topic with these brokers for each partition, the first of which leads it; return its id."""
        places = [list(brokers) for brokers in replicas]
        new = NewTopic(topic, len(places), replica_assignment=places, config=dict(settings or {}))
        self.admin.create_topics([new])[topic].result(30)
        leaders = [brokers[0] for brokers in replicas]
        wait_until(lambda: self.leaders(topic) == leaders, f"the leaders of {topic}")
        wait_until(lambda: self._topic_id(topic) is not None, f"the id of {topic}")
        return str(self._topic_id(topic))

    def _topic_id(self, topic: str) -> str | None:
        """Return the topic's id as Kafka prints it, base 64 for addresses; None while a broker has not heard of it."""
        if topic not in self._topic_ids:
            try:
                described = self.admin.describe_topics(TopicCollection([topic]))[topic].result(30)
            except KafkaException:
                return None
            self._topic_ids[topic] = str(described.topic_id).translate(str.maketrans("+/", "-_"))
        return self._topic_ids[topic]

    def leaders(self, topic: str) -> list[int]:
        """Return each partition's leading broker, -1 where it has none."""
        partitions = self._metadata(topic).topics[topic].partitions
        return [partitions[number].leader for number in sorted(partitions)]

    def delete_topic(self, topic: str) -> None:
        """Delete the topic, and wait until it is gone."""
        self.admin.delete_topics([topic])[topic].result(30)
        self._topic_ids.pop(topic, None)
        wait_until(lambda: topic not in self._metadata().topics, f"{topic} to be gone")

    def configure(self, topic: str, **settings: str) -> None:
        """Set the topic's settings; underscores stand for dots."""
        entries = [
            ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(30)

    def start_offset(self, topic: str) -> int:
        """Return where the log of the topic's first partition starts."""
        return self._offset(topic, OffsetSpec.earliest())

    def end_offset(self, topic: str) -> int:
        """Return where the log of the topic's first partition ends."""
        return self._offset(topic, OffsetSpec.latest())

    def _offset(self, topic: str, spec: OffsetSpec) -> int:
        place = TopicPartition(topic, 0)
        return int(self.admin.list_offsets({place: spec})[place].result(30).offset)

    def committed(self, group: str) -> dict[int, int]:
        """Return the group's position per partition, as the broker gives it now."""
        requested = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        places = requested[group].result(30).topic_partitions
        return {place.partition: place.offset for place in places if place.offset >= 0}

    def reset_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Set the position of a group without members, as `kafka-consumer-groups --reset-offsets` does."""
        places = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, places)]
        self.admin.alter_consumer_group_offsets(request)[group].result(30)

    def delete_group(self, group: str) -> None:
        """Delete a group without members, and all its positions."""
        self.admin.delete_consumer_groups([group])[group].result(30)

    def log(self, broker: int, topic: str, partition: int = 0) -> tuple[Batch, ...]:
        """Return what the broker's segment files of the partition hold, decoded without Tieout."""
        return tuple(partition_batches(self.brokers[broker].data / f"{topic}-{partition}"))


def new_cluster(jars: Jars, folder: Path, stack: ExitStack, brokers: int = 2) -> Cluster:
    """Return a cluster of so many brokers, with its settings written, ready to start."""
    controller_port = free_port()
    controller = Node(_CONTROLLER, folder / "controller")
    nodes = {number: Node(number, folder / f"broker-{number}") for number in range(1, brokers + 1)}
    for node in (controller, *nodes.values()):
        node.folder.mkdir(parents=True)
        port = free_port()
        node.bootstrap = f"127.0.0.1:{port}"
        own = _OF_CONTROLLER if node is controller else _OF_BROKER
        text = (_COMMON + own).format(
            node=node.number, controller_port=controller_port, port=port, data=node.data
        )
        (node.folder / "server.properties").write_text(text)
    return Cluster(jars, controller, nodes, stack)


def wait_until(happened: Callable[[], bool], what: str, patience: float = 90) -> None:
    """Wait until it has happened; a machine that stood still meanwhile does not use up the patience.

    As long as no broker answers, it has not.

    Raises:
        RecordingError: where it has not after `patience` seconds of asking.
    """
    for _ in range(int(patience / _PAUSE)):
        with suppress(KafkaException):
            if happened():
                return
        time.sleep(_PAUSE)
    raise RecordingError(f"waited {patience:.0f} s for {what}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    end(process)
