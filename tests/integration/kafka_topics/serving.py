"""A real broker with topics of every kind, for the readers of clusters: serves until its standard input is closed.

Run by the recorder's Python, which has a Kafka client: `python -m tests.integration.kafka_topics.serving FOLDER`. It
prints one line of JSON: where the broker is, without and with a login, and where it keeps its data.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import NewTopic
from tests.engine.sources.share_state import ACKNOWLEDGED, ARCHIVED, key, update
from tests.integration.kafka_topics.sent import GROUP, LATEST_STAMP, PASSWORD, PAYLOADS, USER
from tools.record.__main__ import JARS
from tools.record.broker import Broker, start_broker
from tools.record.jars import Jars
from tools.record.processes import free_port

_LONGEST_MILLIS = 4 * 3_600_000
"""How long a transaction may stay open and a share group's state is left as it is: longer than all tests take on a slow
machine.
"""
_STORE_PASSWORD = "changeit"  # noqa: S105 - of a store that lives as long as the tests
_SECURED = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port},SECURED://127.0.0.1:{secured}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SECURED://localhost:{secured}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL
listener.name.secured.sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config={module} required user_{user}="{password}";
listener.name.secured.ssl.keystore.location={keystore}
listener.name.secured.ssl.keystore.password={store_password}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
super.users=User:ANONYMOUS
transaction.max.timeout.ms={longest}
share.coordinator.cold.partition.snapshot.interval.ms={longest}
"""


def main(folder: Path) -> None:
    """Start the broker, fill its topics, and hold it until nobody wants it any more."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        secured, authority = free_port(), folder / "authority.pem"
        more = {
            "secured": secured,
            "module": "org.apache.kafka.common.security.plain.PlainLoginModule",
            "user": USER,
            "password": PASSWORD.replace("\\", "\\\\\\\\").replace('"', '\\\\"'),
            "keystore": _keystore(folder, authority),
            "store_password": _STORE_PASSWORD,
            "longest": _LONGEST_MILLIS,
        }
        broker = start_broker(Jars(JARS), folder / "broker", stack, _SECURED, more)
        held = filled(broker)
        address = {
            "bootstrap": broker.bootstrap,
            "secured": f"localhost:{secured}",
            "authority": str(authority),
            "data": str(broker.data),
        }
        print(json.dumps(address), flush=True)
        sys.stdin.read()
        del held


def filled(broker: Broker) -> Producer:
    """Fill the topics, and return the producer that holds a transaction open."""
    settings: dict[str, dict[str, str]] = {
        name: {} for name in ("plain", "orders", "silent", "cut", "replayed")
    }
    settings["latest"] = {"cleanup.policy": "compact"}
    settings["stamped"] = {"message.timestamp.after.max.ms": str(LATEST_STAMP)}
    partitions = {"plain": 2, "orders": 2, "replayed": 3}
    requested = [
        NewTopic(name, partitions.get(name, 1), 1, config=config) for name, config in settings.items()
    ]
    for future in broker.admin.create_topics(requested).values():
        future.result(120)
    _send(Producer({"bootstrap.servers": broker.bootstrap}), "plain", PAYLOADS[:10])
    for topic in ("latest", "cut"):
        _send(Producer({"bootstrap.servers": broker.bootstrap}), topic, PAYLOADS[:5], partition=0)
    stamping = Producer({"bootstrap.servers": broker.bootstrap})
    stamping.produce("stamped", PAYLOADS[0], "k", timestamp=LATEST_STAMP)
    stamping.flush(120)
    sender = _transactional(broker, "orders-1")
    for start, is_committed in ((0, True), (8, False), (12, True)):
        sender.begin_transaction()
        _send(sender, "orders", PAYLOADS[start : start + 4])
        _send_offsets(broker, sender, start + 4)
        sender.commit_transaction() if is_committed else sender.abort_transaction()
    _commit(broker, 6)
    _share(broker)
    holder = _transactional(broker, "orders-2")
    holder.begin_transaction()
    _send(holder, "orders", PAYLOADS[16:18], partition=1)
    return holder


def _transactional(broker: Broker, name: str) -> Producer:
    lasting = {"transaction.timeout.ms": _LONGEST_MILLIS}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, **lasting})
    producer.init_transactions(120)
    return producer


def _send(producer: Producer, topic: str, payloads: list[str], partition: int | None = None) -> None:
    """Send the payloads in turn to the topic's two partitions, and wait until they are in the log."""
    for number, payload in enumerate(payloads):
        place = number % 2 if partition is None else partition
        key = None if number == 3 and topic == "plain" else f"k-{number}"
        headers: list[Any] = [("source", b"checkout"), ("nothing", None)] if number % 2 else []
        producer.produce(topic, payload, key, partition=place, headers=headers)
    producer.flush(120)


def _send_offsets(broker: Broker, sender: Producer, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP})
    sender.send_offsets_to_transaction(
        [TopicPartition("plain", 0, offset)], consumer.consumer_group_metadata(), 120
    )
    consumer.close()


def _commit(broker: Broker, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition("plain", 1, offset)], asynchronous=False)
    consumer.close()


def _share(broker: Broker) -> None:
    """Write the state of a share group, as its coordinator would; brokers take it from this client alone."""
    state = "__share_group_state"
    policy = {"cleanup.policy": "delete", "retention.ms": "-1"}
    broker.admin.create_topics([NewTopic(state, 2, 1, config=policy)])[state].result(120)
    described = broker.admin.describe_topics(TopicCollection(["plain"]))["plain"].result(120)
    topic_id = str(described.topic_id).translate(str.maketrans("+/", "-_"))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "__admin_client"})
    for partition, reported in enumerate(((0, 2, ACKNOWLEDGED, 1), (1, 1, ARCHIVED, 5))):
        name = key(1, GROUP, topic_id, partition)
        producer.produce(state, update(0, reported), name, partition=partition)
    producer.flush(120)


def _keystore(folder: Path, authority: Path) -> Path:
    """Return a key store with a key of this broker's own, whose certificate is written to `authority`."""
    store = folder / "broker.p12"
    access = ["-keystore", str(store), "-storepass", _STORE_PASSWORD, "-alias", "broker"]
    subject = ["-dname", "CN=localhost", "-ext", "SAN=DNS:localhost,IP:127.0.0.1", "-validity", "2"]
    subprocess.run(
        ["keytool", "-genkeypair", *access, "-keyalg", "RSA", "-storetype", "PKCS12", *subject],
        check=True,
        capture_output=True,
    )
    subprocess.run(
        ["keytool", "-exportcert", "-rfc", *access, "-file", str(authority)], check=True, capture_output=True
    )
    return store


if __name__ == "__main__":
    main(Path(sys.argv[1]))
