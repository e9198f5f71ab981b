"""Settings in what others wrap them in: frameworks, operators, REST answers, containers' environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.linting.contracts import contract, lint

from tieout.linting import contradictions
from tieout.linting.declaring import declared
from tieout.linting.findings_text import findings_text
from tieout.model import Severity

SPRING = """
spring:
  application: {name: loader}
  kafka:
    bootstrap-servers: broker:9092
    properties: {isolation.level: read_uncommitted, security.protocol: PLAINTEXT}
    consumer:
      group-id: loader
      enable-auto-commit: false
      auto-offset-reset: latest
      isolation-level: READ_UNCOMMITTED
      properties: {isolation.level: read_committed}
    producer: {acks: 1, transaction-id-prefix: tx-}
    listener: {ack-mode: record}
    streams: {application-id: s, properties: {processing.guarantee: exactly_once_v2}}
"""
SPRING_PROPERTIES = """
spring.kafka.bootstrap-servers=broker:9092
spring.kafka.consumer.enable-auto-commit=false
spring.kafka.consumer.autoOffsetReset=latest
spring.kafka.consumer.properties[isolation.level]=read_committed
spring.kafka.producer.acks=1
"""
QUARKUS = """
kafka.bootstrap.servers=broker:9092
kafka.isolation.level=read_committed
mp.messaging.incoming.orders.connector=smallrye-kafka
mp.messaging.incoming.orders.auto.offset.reset=latest
mp.messaging.outgoing.bills.connector=smallrye-kafka
mp.messaging.outgoing.bills.acks=1
%dev.mp.messaging.incoming.orders.auto.offset.reset=earliest
%prod.kafka.bootstrap.servers=prod:9092
"""
MICRONAUT = """
micronaut: {application: {name: loader}}
kafka:
  bootstrap.servers: broker:9092
  producers:
    default: {acks: all, enable.idempotence: true}
    orders: {acks: 1}
  consumers:
    default: {auto.offset.reset: latest, isolation.level: read_committed}
"""
CLOUD_STREAM = """
spring.cloud.stream.kafka.binder.required-acks: all
spring.cloud.stream.kafka.binder.consumer-properties.isolation.level: read_committed
spring.cloud.stream.kafka.bindings.in.consumer.start-offset: latest
spring.cloud.stream.kafka.bindings.out.producer.configuration.acks: 1
"""
STRIMZI = """
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata: {name: main}
spec:
  kafka:
    replicas: 3
    config: {min.insync.replicas: 1, unclean.leader.election.enable: "true"}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: orders}
spec: {partitions: 6, replicas: 1, config: {min.insync.replicas: 2}}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnect
metadata: {name: connect}
spec: {config: {group.id: connect, exactly.once.source.support: enabled}}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata: {name: orders-sink}
spec: {class: io.example.Sink, tasksMax: 2, config: {topics: orders, errors.tolerance: all}}
"""
FLINK = """
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata: {name: job}
spec:
  flinkVersion: v1_18
  flinkConfiguration: {taskmanager.numberOfTaskSlots: "2", execution.checkpointing.mode: AT_LEAST_ONCE}
"""
CONFIG_MAP = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: flink}
  data:
    flink-conf.yaml: |
      execution.checkpointing.mode: AT_LEAST_ONCE
      metrics.filter: *RSS:*:*
    application.properties: |
      spring.kafka.consumer.auto-offset-reset=latest
"""
ANCHORED = """\
x-kafka: &kafka
  KAFKA_UNCLEAN_LEADER_ELECTION_ENABLE: "true"
  KAFKA_MIN_INSYNC_REPLICAS: 2
services:
  kafka:
    environment:
      <<: *kafka
      KAFKA_MIN_INSYNC_REPLICAS: 1
"""
COMPOSE = """
services:
  kafka-1: &kafka
    image: kafka
    environment: {KAFKA_CFG_MIN_INSYNC_REPLICAS: 1, KAFKA_LISTENERS: x}
  kafka-2: *kafka
  connect:
    environment: [CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT=enabled, CONNECT_GROUP_ID=c]
  app:
    environment: {SPRING_KAFKA_CONSUMER_AUTO_OFFSET_RESET: latest, SPRING_KAFKA_PRODUCER_ACKS: "1"}
"""
POD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec: {template: {spec: {containers: [{name: app, env: [{name: KAFKA_CONSUMER_AUTO_OFFSET_RESET, value: latest}]}]}}}
"""
REST: dict[str, Any] = {
    "orders-sink": {
        "info": {
            "name": "orders-sink",
            "config": {"connector.class": "io.example.Sink", "topics": "orders", "errors.tolerance": "all"},
            "tasks": [{"connector": "orders-sink", "task": 0}],
            "type": "sink",
        },
        "status": {"name": "orders-sink", "connector": {"state": "RUNNING"}, "type": "sink"},
    }
}
NESTED = {
    "bootstrap.servers": "broker:9092",
    "producer": {"acks": 1},
    "consumer": {"auto.offset.reset": "latest", "isolation.level": "read_committed"},
}
DOTNET = {
    "Logging": {"LogLevel": {"Default": "Information"}},
    "Kafka": {
        "ConsumerSettings": {"GroupId": "g", "AutoOffsetReset": "Latest", "IsolationLevel": "ReadCommitted"},
        "ProducerSettings": {"Acks": "Leader"},
    },
}
PYTHON = "kafka: {consumer: {auto_offset_reset: latest}, producer: {acks: 1, bootstrap_servers: [b]}}"
SINK: dict[str, Any] = REST["orders-sink"]["info"]

READS_COMMITTED = {"auto.offset.reset": "latest", "isolation.level": "read_committed"}
ACTIVEMQ = """\
<beans xmlns="http://www.springframework.org/schema/beans">
  <bean class="a.b.C"><property name="locations" value="file:x"/></bean>
  <bean class="a.b.D"/>
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="b" dataDirectory="${activemq.data}">
    <destinationPolicy><policyMap><policyEntries>
      <policyEntry topic="&gt;"/><policyEntry queue="&gt;"/>
    </policyEntries></policyMap></destinationPolicy>
    <persistenceAdapter>
      <kahaDB directory="${activemq.data}/kahadb" journalDiskSyncStrategy="never"/>
    </persistenceAdapter>
    <plugins><discardingDLQBrokerPlugin dropAll="true"/></plugins>
  </broker>
</beans>
"""
CASES: list[tuple[str, str, str, dict[str, str]]] = [
    (
        "consumer",
        "application.yml",
        SPRING,
        {**READS_COMMITTED, "enable.auto.commit": "false", "commits": "after processing"},
    ),
    ("producer", "application.yml", SPRING, {"acks": "1", "transactional.id": "tx-"}),
    ("streams", "application.yml", SPRING, {"processing.guarantee": "exactly_once_v2"}),
    ("consumer", "application.properties", SPRING_PROPERTIES, READS_COMMITTED),
    (
        "consumer",
        "application.properties",
        SPRING_PROPERTIES.replace("commit=false", "commit=off"),
        {"enable.auto.commit": "false"},
    ),
    ("producer", "application.properties", SPRING_PROPERTIES, {"acks": "1"}),
    ("consumer", "q.properties", QUARKUS, {**READS_COMMITTED, "enable.auto.commit": "false"}),
    ("producer", "q.properties", QUARKUS, {"acks": "1", "bootstrap.servers": "prod:9092"}),
    ("producer", "q.properties", QUARKUS.replace("bills.acks=1", "bills.x=1"), {"acks": "1"}),
    ("consumer", "application.yml", MICRONAUT, READS_COMMITTED),
    ("producer", "application.yml", MICRONAUT, {"acks": "1", "enable.idempotence": "true"}),
    ("consumer", "application.yaml", CLOUD_STREAM, {**READS_COMMITTED, "enable.auto.commit": "false"}),
    ("producer", "application.yaml", CLOUD_STREAM, {"acks": "1"}),
    ("broker", "k.yaml", STRIMZI, {"replication.factor": "1", "min.insync.replicas": "2"}),
    ("broker", "k.yaml", STRIMZI, {"unclean.leader.election.enable": "true"}),
    ("connect", "k.yaml", STRIMZI, {"exactly.once.source.support": "enabled"}),
    ("connector", "k.yaml", STRIMZI, {"errors.tolerance": "all", "name": "orders-sink", "tasks.max": "2"}),
    (
        "spark",
        "s.yaml",
        "spark: {options: {subscribe: orders, startingOffsets: earliest, failOnDataLoss: 'False'}}",
        {"failOnDataLoss": "False", "startingOffsets": "earliest"},
    ),
    ("flink", "f.yaml", FLINK, {"execution.checkpointing.mode": "AT_LEAST_ONCE"}),
    ("flink", "c.yaml", CONFIG_MAP, {"execution.checkpointing.mode": "AT_LEAST_ONCE"}),
    ("consumer", "c.yaml", CONFIG_MAP, {"auto.offset.reset": "latest"}),
    (
        "broker",
        "docker-compose.yml",
        ANCHORED,
        {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    ),
    ("broker", "docker-compose.yml", COMPOSE, {"min.insync.replicas": "1"}),
    ("connect", "docker-compose.yml", COMPOSE, {"exactly.once.source.support": "enabled"}),
    ("consumer", "docker-compose.yml", COMPOSE, {"auto.offset.reset": "latest"}),
    ("producer", "docker-compose.yml", COMPOSE, {"acks": "1"}),
    ("consumer", "pod.yaml", POD, {"auto.offset.reset": "latest"}),
    ("connector", "all.json", json.dumps(REST), {"errors.tolerance": "all", "topics": "orders"}),
    ("connector", "one.json", json.dumps(SINK), {"errors.tolerance": "all", "name": "orders-sink"}),
    ("connector", "config.json", json.dumps(SINK["config"]), {"errors.tolerance": "all"}),
    ("connector", "list.json", json.dumps([SINK]), {"errors.tolerance": "all"}),
    ("connector", "map.json", json.dumps({"orders-sink": SINK["config"]}), {"errors.tolerance": "all"}),
    ("consumer", "clients.json", json.dumps(NESTED), READS_COMMITTED),
    ("producer", "clients.json", json.dumps(NESTED), {"acks": "1", "bootstrap.servers": "broker:9092"}),
    ("producer", "deep.json", json.dumps({"kafka": {"settings": NESTED["producer"]}}), {"acks": "1"}),
    ("consumer", "appsettings.json", json.dumps(DOTNET), READS_COMMITTED),
    ("producer", "appsettings.json", json.dumps(DOTNET), {"acks": "1"}),
    ("consumer", "settings.yaml", PYTHON, {"auto.offset.reset": "latest"}),
    (
        "broker",
        "values.yaml",
        "image: {tag: 3}\nconfig: |-\n  # ours\n  min.insync.replicas=1\n  x=2\n",
        {"min.insync.replicas": "1"},
    ),
    (
        "broker",
        "merged.yaml",
        "a: &a {min.insync.replicas: 1}\nb: {<<: *a, log.dirs: x}\n",
        {"min.insync.replicas": "1"},
    ),
    (
        "pulsar",
        "values.yaml",
        "broker: {configData: {PULSAR_PREFIX_journalSyncData: 'false', managedLedgerDefaultAckQuorum: '1'}}",
        {"journalSyncData": "false", "managedLedgerDefaultAckQuorum": "1"},
    ),
    ("activemq", "activemq.xml", ACTIVEMQ, {"journalDiskSyncStrategy": "never", "dropAll": "true"}),
    ("activemq", "c.properties", "jms.useAsyncSend=true\n", {"useAsyncSend": "true"}),
    (
        "streams",
        "q.properties",
        "quarkus.kafka-streams.application-id=x\nkafka-streams.processing.guarantee=at_least_once\n",
        {"processing.guarantee": "at_least_once"},
    ),
    (
        "broker",
        "b.properties",
        "Dynamic configs for topic orders are:\n"
        "  min.insync.replicas=1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:min.insync.replicas=1}\n"
        "  retention.ms=1000 sensitive=false synonyms={}\n",
        {"min.insync.replicas": "1", "retention.ms": "1000"},
    ),
    ("producer", "worker.properties", "group.id=c\nkey.converter=x\nproducer.acks=1\n", {"acks": "1"}),
]


@pytest.mark.parametrize(("section", "name", "text", "settings"), CASES)
def test_settings_are_found_under_other_names_and_in_wrappers(
    tmp_path: Path, section: str, name: str, text: str, settings: dict[str, str]
) -> None:
    """What a program is set to is what counts, wherever in a file and however named it stands."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    known = declared(contract({section: {"file": name}}, base=tmp_path))

    assert len(known.parts[section]) == 1
    assert dict(known[section].settings) | settings == dict(known[section].settings)
    assert {trouble.rule for trouble in known.troubles} <= {"file_read_as"}


def test_a_finding_names_the_setting_as_the_file_has_it(tmp_path: Path) -> None:
    """Whoever looks for `auto.offset.reset` in an `application.yml` finds nothing."""
    found = lint(tmp_path, "consumer", "application.yml", SPRING, client="java-3.7")["consumer_reset_latest"]

    assert found.file == "application.yml: spring.kafka.consumer.auto-offset-reset"
    assert found.subject == "consumer.auto.offset.reset = latest"


def test_what_a_framework_sets_is_no_default_of_the_client(tmp_path: Path) -> None:
    """SmallRye sends with acks=1 where nothing is said, which switches idempotence off; Spring commits by itself."""
    text = QUARKUS.replace("mp.messaging.outgoing.bills.acks=1", "")
    found = lint(tmp_path, "producer", "q.properties", text, client="java-3.7")
    said = lint(tmp_path, "producer", "q.properties", text, client="java-3.7", acks="all")
    spring = lint(
        tmp_path,
        "consumer",
        "a.properties",
        "spring.kafka.consumer.group-id=g\nspring.kafka.bootstrap-servers=b",
    )

    assert found["producer_acks"].value == "1"
    assert found["producer_acks"].file == "q.properties, by smallrye-kafka"
    assert "producer_idempotence" in found
    assert "producer_acks" not in said
    assert not {"consumer_auto_commit_twice", "consumer_auto_commit_threads"} & spring.keys()


NOT_UNDERSTOOD = [
    (
        "consumer",
        "application.yml",
        "server: {port: 8080}\ndebug: true\nspring: {rabbitmq: {host: x}}\n",
        "server.port",
    ),
    ("producer", "k.yaml", STRIMZI, "Kafka main, KafkaTopic orders"),
    (
        "connector",
        "status.json",
        json.dumps({"a": {"status": {"name": "a", "type": "sink"}}}),
        "a.status.name",
    ),
    ("connector", "names.json", '["a", "b"]', "none at all"),
    ("broker", "values.yaml", "image: {tag: 3.7}\nreplicaCount: 3\n", "image.tag, replicaCount"),
    ("flink", "flink-conf.yaml", "execution:\n  checkpointing:\n    mode: AT_LEAST_ONCE\n", "mode"),
    ("producer", "empty.yaml", "", "none at all"),
    (
        "flink",
        "job.yaml",
        "pipeline: {name: x}\nsink: {type: kafka, table: orders}\n",
        "pipeline.name, sink.type",
    ),
    (
        "connect",
        "clients.json",
        '{"producer": {"linger.ms": 1}, "consumer": {"topic": "a"}}',
        "producer.linger.ms",
    ),
    ("pulsar", "app.json", '{"consumerGroup": "g", "topicName": "a"}', "consumerGroup, topicName"),
    (
        "consumer",
        "p.json",
        '{"producer": {"bootstrap.servers": "b", "client.rack": "a"}}',
        "producer.client.rack",
    ),
    ("producer", "empty.properties", "# nothing\n", "none at all"),
    (
        "consumer",
        "amqp.properties",
        "mp.messaging.incoming.a.connector=smallrye-amqp\n",
        "incoming.a.connector",
    ),
    (
        "streams",
        "package.json",
        '{"name": "app", "version": "1.0", "scripts": {"test": "x"}}',
        "name, version",
    ),
]


@pytest.mark.parametrize(("section", "name", "text", "expected"), NOT_UNDERSTOOD)
def test_a_file_that_was_not_understood_is_reported_and_nothing_else_is_said_of_it(
    tmp_path: Path, section: str, name: str, text: str, expected: str
) -> None:
    """Nothing in it is "not set": nobody here could tell. Nor does nothing in it speak against the guarantee."""
    found = lint(tmp_path, section, name, text)

    assert found["settings_not_understood"].severity is Severity.CRITICAL
    assert f"{name}: no setting for {section} is known in it" in found["settings_not_understood"].failure
    assert expected in found["settings_not_understood"].failure
    assert f"{section}." not in "".join(
        finding.subject for finding in found.values() if "(not set)" in finding.subject
    )


def test_what_the_contract_says_counts_beside_a_file_that_was_not_understood(tmp_path: Path) -> None:
    """A finding about it is one that may be so."""
    found = lint(tmp_path, "producer", "a.json", '{"x": 1}', client="java-4.0", acks=1)

    assert "settings_not_understood" in found
    assert (found["producer_acks"].value, found["producer_acks"].is_certain) == ("1", False)


def test_a_file_that_was_not_understood_contradicts_no_statement(tmp_path: Path) -> None:
    """Defaults are no claim where nothing is known."""
    (tmp_path / "a.json").write_text('{"x": 1}')
    made = contract({"producer": {"client": "java-4.0", "file": "a.json"}}, base=tmp_path)
    incident = {"class": "LOG_DUPLICATE", "locus": "producer → broker", "cause": "retry without idempotence"}
    place = {"topic": "t", "partition": 0, "breaks": 1}

    assert contradictions(made, {"incidents": [{**incident, **place}]}) == ()


def test_several_places_are_reported_and_what_they_differ_in_is_left_open(tmp_path: Path) -> None:
    """Until the contract names one of them."""
    text = json.dumps(
        {**REST, "copy": {"info": {"name": "copy", "config": {"tasks.max": 1, "topics": "orders"}}}}
    )
    found = lint(tmp_path, "connector", "all.json", text, guarantee="at_least_once")
    named = lint(tmp_path, "connector", "all.json", text, guarantee="at_least_once", name="orders-sink")
    other = lint(tmp_path, "connector", "all.json", text, guarantee="at_least_once", name="copy")

    plain = json.dumps({"Orders_Sink": SINK["config"], "b": {"tasks.max": 1, "topics": "orders"}})

    assert lint(tmp_path, "connector", "map.json", plain, name="Orders_Sink")["connect_tolerance"].is_certain
    assert "2 places that differ: orders-sink; copy" in found["settings_several"].failure
    assert (found["connect_tolerance"].severity, found["connect_tolerance"].is_certain) == (
        Severity.WARNING,
        False,
    )
    assert (
        found["connect_tolerance"].file == "all.json (orders-sink): orders-sink.info.config.errors.tolerance"
    )
    assert named["connect_tolerance"].is_certain
    assert not {"settings_several", "connect_tolerance"} & other.keys()


def test_the_place_of_the_contracts_group_is_meant(tmp_path: Path) -> None:
    """One application may read for several groups."""
    clients = {
        "consumers": [
            {"group.id": "x", "auto.offset.reset": "latest"},
            {"group.id": "g", "max.poll.records": 1},
        ]
    }
    found = lint(tmp_path, "consumer", "c.json", json.dumps(clients), client="librdkafka-2.3")

    assert "settings_several" not in found
    assert found["consumer_reset_latest"].value is None


@pytest.mark.parametrize(
    ("section", "name", "text", "meant"),
    [
        (
            "consumer",
            "a.yml",
            "spring.kafka.consumer: {enable-auto-comit: false, max-poll-records: 1}",
            "enable.auto.commit",
        ),
        ("producer", "p.properties", "bootstrap.servers=b\nack=0\n", "acks"),
        ("producer", "p.properties", "bootstrap.servers=b\nenable-idempotence=false\n", "enable.idempotence"),
        ("connector", "c.json", '{"config": {"topics": "a", "error.tolerance": "all"}}', "errors.tolerance"),
    ],
)
def test_a_name_that_is_almost_one_is_reported_in_a_file_too(
    tmp_path: Path, section: str, name: str, text: str, meant: str
) -> None:
    """Java's client takes no notice of `enable-idempotence`."""
    client = {} if section == "connector" else {"client": "java-4.0"}
    found = lint(tmp_path, section, name, text, **client)

    assert f"{meant} counts as not set" in found["setting_misspelt"].failure


@pytest.mark.parametrize(
    ("section", "text", "meant"),
    [
        (
            "consumer",
            "spring.kafka.consumer: {max-poll-records: 1, properties: {isolation-level: read_committed}}",
            "isolation.level",
        ),
        (
            "producer",
            "spring.cloud.stream.kafka.bindings.o.producer.configuration: {acks: all, enableIdempotence: true}",
            "enable.idempotence",
        ),
        (
            "producer",
            "spring.cloud.stream.kafka.binder: {required-acks: all, producer-properties: {enable-idempotence: true}}",
            "enable.idempotence",
        ),
    ],
)
def test_what_spring_hands_on_counts_as_it_is_written(
    tmp_path: Path, section: str, text: str, meant: str
) -> None:
    """Spring Boot binds `isolation-level`; its map `properties` goes to the client as it is written."""
    found = lint(tmp_path, section, "application.yml", text, client="java-4.0")

    assert f"{meant} counts as not set" in found["setting_misspelt"].failure


@pytest.mark.parametrize(
    ("section", "name", "text", "meant"),
    [
        (
            "consumer",
            "a.properties",
            "spring.kafka.consumer.max-poll-records=1\nspring.kafka.consumer.auto.offset.reset=none\n",
            "auto.offset.reset",
        ),
        (
            "consumer",
            "a.yml",
            "spring.kafka.consumer: {max-poll-records: 1, isolation: {level: read_committed}}",
            "isolation.level",
        ),
        ("producer", "a.yml", "spring.kafka.producer: {acks: all, transactional-id: a}", "transactional.id"),
        (
            "producer",
            "a.env",
            "SPRING_KAFKA_PRODUCER_ACKS=all\nSPRING_KAFKA_PRODUCER_ENABLE_IDEMPOTENCE=true\n",
            "enable.idempotence",
        ),
        (
            "streams",
            "a.yml",
            "spring.kafka.streams: {application-id: a, processing-guarantee: exactly_once_v2}",
            "processing.guarantee",
        ),
    ],
)
def test_what_spring_boot_has_no_property_for_is_not_set(
    tmp_path: Path, section: str, name: str, text: str, meant: str
) -> None:
    """Spring binds what it knows, says nothing of the rest, and hands only `properties` on to the client."""
    client = "streams-3.7" if section == "streams" else "java-3.7"
    found = lint(tmp_path, section, name, text, client=client)

    assert f"takes no notice of it, so that {meant} counts as not set" in found["setting_misspelt"].failure


@pytest.mark.parametrize(
    ("text", "is_set"),
    [
        ("mp: {messaging: {incoming: {o: {topic: o, auto.offset.reset: none}}}}", False),
        ('"%prod": {mp: {messaging: {incoming: {o: {topic: o, "auto.offset.reset": none}}}}}', False),
        ("mp: {messaging: {incoming: {o: {topic: o, auto: {offset: {reset: none}}}}}}", True),
        ("spring: {kafka: {consumer: {group-id: o, auto.offset.reset: none}}}", True),
    ],
)
def test_a_key_with_dots_sets_nothing_in_the_yaml_of_smallrye(
    tmp_path: Path, text: str, is_set: bool
) -> None:
    """SmallRye puts such a key in quotes; the client says that it knows no `"auto.offset.reset"`, and goes on."""
    found = lint(tmp_path, "consumer", "application.yml", text, client="java-3.7")

    assert ("setting_misspelt" not in found) is is_set
    assert ("consumer_reset_latest" not in found) is is_set
    if not is_set:
        assert found["setting_misspelt"].subject == 'consumer."auto.offset.reset" = none'
        assert "auto.offset.reset counts as not set" in found["setting_misspelt"].failure


def test_the_pieces_of_one_program_are_taken_together(tmp_path: Path) -> None:
    """A query's source and sink have options of their own; together they are the query's."""
    source = {"kafka.bootstrap.servers": "b", "startingOffsets": "latest"}
    found = lint(
        tmp_path, "spark", "q.json", json.dumps({"source": source, "sink": {"checkpointLocation": "/c"}})
    )

    assert "spark_starting_offsets" in found
    assert not {"spark_checkpoint", "settings_several"} & found.keys()


def test_many_places_are_all_looked_at(tmp_path: Path) -> None:
    """However many connectors a worker has, the one that drops records is found."""
    configs = {f"c{i}": {"tasks.max": 1, "topics": "t", "errors.tolerance": f"x{i}"} for i in range(600)}
    text = json.dumps({**configs, "last": {"tasks.max": 1, "topics": "a", "errors.tolerance": "all"}})

    assert lint(tmp_path, "connector", "c.json", text)["connect_tolerance"].value == "all"


def test_settings_beside_settings_are_not_taken_for_them(tmp_path: Path) -> None:
    """A connector that makes topics with three copies says nothing of the topic that it reads."""
    text = json.dumps({"kafka.clients": 1, "min.insync.replicas": 2, "my.plugin.replication.factor": 1})

    assert "broker_one_copy" not in lint(tmp_path, "broker", "b.json", text)


def test_flink_before_2_is_read_by_its_lines(tmp_path: Path) -> None:
    """Values of colons, signs that YAML keeps for itself, keys given twice, quotes that are part of a value."""
    text = """# Flink 1.18
execution.checkpointing.mode: AT_LEAST_ONCE # for speed
execution.checkpointing.interval: 60s
metrics.filter: *RSS:*:*;Heap:Used,Max:*
env.java.opts: -Dfile=a: b
no value:
execution.checkpointing.interval: 30s
"""
    found = lint(tmp_path, "flink", "flink-conf.yaml", text, client="flink-1.18")
    quoted = lint(tmp_path, "flink", "flink-conf.yaml", 'execution.checkpointing.mode: "AT_LEAST_ONCE"\n')
    other = lint(tmp_path, "flink", "my.yaml", text, client="flink-1.20")

    assert found["flink_checkpoint_mode"].value == "AT_LEAST_ONCE"
    assert not {"flink_checkpoints", "settings_unreadable", "file_not_read"} & found.keys()
    assert "read by its lines" in findings_text([found["file_read_as"]])
    assert "the quotes are part of the value" in quoted["value_unknown"].failure
    assert "is no YAML" in other["file_read_as"].failure
    assert "flink_checkpoint_mode" in other


def test_flink_from_2_on_is_read_as_yaml(tmp_path: Path) -> None:
    """What does not parse is an error there, and the older file is not read at all."""
    nested = "execution: {checkpointing: {mode: AT_LEAST_ONCE, interval: 10s}}\n"
    broken = "execution.checkpointing.mode: AT_LEAST_ONCE\na: *x:*\n"

    assert "flink_checkpoint_mode" in lint(tmp_path, "flink", "config.yaml", nested, client="flink-2.0")
    assert "settings_unreadable" in lint(tmp_path, "flink", "config.yaml", broken, client="flink-2.0")
    assert "file_not_read" in lint(tmp_path, "flink", "flink-conf.yaml", broken, client="flink-2.1")
    assert "file_not_read" in lint(tmp_path, "flink", "config.yaml", nested, client="flink-1.18")
    assert "file_not_read" not in lint(tmp_path, "flink", "config.yaml", nested, client="flink-1.19")
    assert "settings_unreadable" in lint(tmp_path, "flink", "config.yaml", broken, client="flink-1.19")


def test_flink_that_knew_no_yaml_reads_no_yaml_whatever_the_file_is_called(tmp_path: Path) -> None:
    """Quotes that YAML takes away are part of the value; what wraps the configuration is YAML all the same."""
    text = 'execution.checkpointing.mode: "AT_LEAST_ONCE"\n'

    assert "value_unknown" in lint(tmp_path, "flink", "job.yaml", text, client="flink-1.17")
    assert "flink_checkpoint_mode" in lint(tmp_path, "flink", "job.yaml", text, client="flink-1.20")
    assert "flink_checkpoint_mode" in lint(tmp_path, "flink", "job.yaml", FLINK, client="flink-1.17")


@pytest.mark.parametrize(
    ("name", "text", "is_taken"),
    [
        (".env", "SPRING_KAFKA_CONSUMER_ISOLATION_LEVEL=READ_COMMITTED", True),
        (".env", "SPRING_KAFKA_CONSUMER_ISOLATION_LEVEL=read-committed", True),
        (".env", "SPRING_KAFKA_CONSUMER_ISOLATION_LEVEL=READ_COMITTED", False),
        (".env", "SPRING_KAFKA_CONSUMER_ENABLE_AUTO_COMMIT=off", True),
        (".env", "SPRING_KAFKA_CONSUMER_PROPERTIES_ISOLATION_LEVEL=READ_COMMITTED", False),
        (".env", "KAFKA_ISOLATION_LEVEL=READ_COMMITTED", False),
        (
            "a.yml",
            "services: {a: {environment: [SPRING_KAFKA_CONSUMER_ISOLATION_LEVEL=READ_COMMITTED]}}",
            True,
        ),
        ("a.yml", "spring.kafka.consumer: {isolation_level: Read_Committed}", True),
        ("a.yml", "spring.kafka.consumer: {isolationLevel: READ_COMMITTED}", True),
        ("a.yml", "spring.kafka.consumer.properties: {isolation.level: READ_COMMITTED}", False),
    ],
)
def test_spring_binds_its_own_kinds_however_they_are_written(
    tmp_path: Path, name: str, text: str, is_taken: bool
) -> None:
    """An enum and a truth; what stands below `properties` is handed to the client as it is."""
    assert ("value_unknown" not in lint(tmp_path, "consumer", name, text, client="java-4.0")) is is_taken


SMALLRYE = """
mp.messaging.incoming.orders.connector=smallrye-kafka
mp.messaging.incoming.orders.topic=orders
mp.messaging.incoming.orders.auto.offset.reset=earliest
mp.messaging.incoming.orders.dead-letter-queue.topic=parked
mp.messaging.incoming.orders.failure-strategy=ignore
mp.messaging.incoming.mail.connector=smallrye-amqp
mp.messaging.incoming.mail.failure-strategy=fail
"""


@pytest.mark.parametrize("name", ["a.properties", ".env"])
def test_strategies_of_smallrye_are_found_in_its_channels(tmp_path: Path, name: str) -> None:
    """Those of another connector's channel, and the topic of a queue, are none of the channel's own."""
    lines = SMALLRYE
    if name == ".env":
        keys = (line.partition("=") for line in SMALLRYE.split())
        lines = "\n".join(
            f"{key.upper().replace('.', '_').replace('-', '_')}={value}" for key, _, value in keys
        )
    found = lint(tmp_path, "consumer", name, lines)

    assert "settings_several" not in found
    assert (found["smallrye_failures"].value, found["smallrye_failures"].is_certain) == ("ignore", True)
