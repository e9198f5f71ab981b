"""Settings as operators, images and deployment tools write them: around a program, with prefixes of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.linting.contracts import contract, lint

from tieout.linting import findings

SOURCE = {"connector.class": "x", "name": "g"}


def _rules(folder: Path, file: str, text: str, settings: dict[str, Any], **fields: Any) -> dict[str, Any]:
    (folder / file).write_text(text, encoding="utf-8")
    return {finding.rule: finding for finding in findings(contract(settings, base=folder, **fields))}


@pytest.mark.parametrize("name", ["log.retention.hours", "log.retention.minutes"])
def test_a_retention_without_end_is_one_in_every_unit(tmp_path: Path, name: str) -> None:
    """Kafka takes -1 for no limit, and -1 hours are no number of milliseconds."""
    found = lint(tmp_path, "broker", "server.properties", f"broker.id=1\n{name}=-1\n", client="kafka-3.9")

    assert "value_unknown" not in found
    assert "broker_retention" not in found


def test_an_image_that_has_two_ways_of_naming_variables_is_read(tmp_path: Path) -> None:
    """Debezium's image of Connect takes `GROUP_ID` and some others as they are, and the rest below `CONNECT_`."""
    text = (
        "services: {connect: {environment: [BOOTSTRAP_SERVERS=k:9092, CONFIG_STORAGE_TOPIC=c, OFFSET_STORAGE_TOPIC=o, "
        "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT=enabled]}}"
    )
    settings = {
        "connect": {"file": "compose.yml"},
        "connector": {**SOURCE, "exactly.once.support": "required"},
    }
    found = _rules(tmp_path, "compose.yml", text, settings)

    assert not {"connect_source_support", "setting_misspelt", "connect_source_refused"} & found.keys()


@pytest.mark.parametrize(
    ("alias", "is_reported", "is_certain"), [("B", False, False), ("A", True, True), (None, True, False)]
)
def test_clusters_of_mirror_maker_have_settings_of_their_own(
    tmp_path: Path, alias: str | None, is_reported: bool, is_certain: bool
) -> None:
    """Which of them is the target the contract says; without that it is left open."""
    text = (
        "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
        "offset.storage.replication.factor = 3\n"
        "B.exactly.once.source.support = enabled\nA.exactly.once.source.support = disabled\n"
    )
    named = {"name": alias} if alias else {}
    settings = {"connect": {"file": "mm2.properties", **named}, "connector": SOURCE}
    found = _rules(tmp_path, "mm2.properties", text, settings)

    assert "setting_misspelt" not in found
    assert ("connect_source_support" in found) is is_reported
    if is_reported:
        assert found["connect_source_support"].is_certain is is_certain


@pytest.mark.parametrize(
    ("connector", "is_reported"),
    [("org.apache.kafka.connect.mirror.MirrorSourceConnector", False), ("io.debezium.Sink", True)],
)
def test_connectors_of_mirror_maker_name_their_clients_in_their_own_way(
    tmp_path: Path, connector: str, is_reported: bool
) -> None:
    """Any other connector's clients have `consumer.override.`, without which nothing is set."""
    text = f'{{"name": "g", "connector.class": "{connector}", "consumer.auto.offset.reset": "latest"}}'
    found = lint(tmp_path, "connector", "c.json", text)

    assert ("setting_misspelt" in found) is is_reported


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "ksql-server.properties",
            "bootstrap.servers=b\nksql.service.id=k\nksql.streams.{}=exactly_once_v2\n",
        ),
        (
            "compose.yml",
            "services: {{k: {{environment: {{KSQL_BOOTSTRAP_SERVERS: b, KSQL_KSQL_STREAMS_{}: exactly_once_v2}}}}}}",
        ),
    ],
)
def test_ksqldb_hands_on_what_stands_below_its_name(tmp_path: Path, file: str, text: str) -> None:
    """`ksql.streams.` is before each setting of Streams."""
    name = "processing.guarantee" if file.endswith("properties") else "PROCESSING_GUARANTEE"
    found = lint(tmp_path, "streams", file, text.format(name), client="streams-3.9")

    assert found.keys() == set()


def test_an_operator_of_flink_retains_the_checkpoints_of_its_jobs(tmp_path: Path) -> None:
    """Nothing of that stands in the resource; what does stand there counts before it."""
    resource = (
        "apiVersion: flink.apache.org/v1beta1\nkind: FlinkDeployment\nmetadata: {{name: j}}\n"
        "spec: {{flinkVersion: v1_20, flinkConfiguration: {{{}}}{}}}"
    )
    job = ", job: {jarURI: 'local:///j.jar', upgradeMode: last-state}"
    deleted = "execution.checkpointing.externalized-checkpoint-retention: DELETE_ON_CANCELLATION"
    given = {"client": "flink-1.20", "output": "keyed by id"}
    found = [
        lint(tmp_path, "flink", "j.yaml", resource.format(*each), **given).keys()
        for each in (
            ("taskmanager.numberOfTaskSlots: '2'", job),
            ("taskmanager.numberOfTaskSlots: '2'", job.replace("last-state", "savepoint")),
            (f"{deleted}, execution.checkpointing.interval: 1 min", job),
            ("execution.checkpointing.mode: EXACTLY_ONCE", ""),
        )
    ]

    reported = [keys & {"flink_retention", "flink_checkpoints"} for keys in found]
    assert reported == [
        set(),
        {"flink_checkpoints"},
        {"flink_retention"},
        {"flink_retention", "flink_checkpoints"},
    ]


def test_the_variable_of_flinks_image_is_read_by_its_lines(tmp_path: Path) -> None:
    """`FLINK_PROPERTIES` holds what the image writes into its configuration."""
    lines = "\n        jobmanager.rpc.address: j\n        execution.checkpointing.mode: AT_LEAST_ONCE\n"
    mapping = f"services:\n  j:\n    environment:\n      FLINK_PROPERTIES: |{lines}"
    listed = f"services:\n  j:\n    environment:\n      - |\n        FLINK_PROPERTIES={lines}"

    for text in (mapping, listed):
        found = lint(tmp_path, "flink", "compose.yml", text, client="flink-1.20")
        assert found["flink_checkpoint_mode"].is_certain
        assert not {"file_read_as", "settings_not_understood"} & found.keys()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "application.yml",
            "spring: {pulsar: {client: {service-url: p}, producer: {name: w, send-timeout: 0s}, "
            "consumer: {subscription: {name: g, type: shared}}}}",
        ),
        (
            "application.properties",
            "mp.messaging.incoming.orders.connector=smallrye-pulsar\n"
            "mp.messaging.incoming.orders.subscriptionType=Shared\n"
            "mp.messaging.outgoing.x.connector=smallrye-pulsar\n"
            "mp.messaging.outgoing.x.producerName=w\nmp.messaging.outgoing.x.sendTimeoutMs=0\n",
        ),
    ],
)
def test_frameworks_have_words_for_pulsar(tmp_path: Path, file: str, text: str) -> None:
    """Spring's and SmallRye's settings of a client are those of the pipeline."""
    given = {
        "client": "pulsar-4.1",
        "brokerDeduplicationEnabled": True,
        "output": "keyed by id",
        "file": file,
    }
    found = _rules(tmp_path, file, text, {"pulsar": given}, ordering="key")

    assert found.keys() == {"pulsar_shared"}


@pytest.mark.parametrize(
    "text",
    [
        "kind: Kustomization\nconfigMapGenerator:\n- name: c\n"
        "  literals: [KAFKA_CONSUMER_AUTO_OFFSET_RESET=latest, KAFKA_CONSUMER_GROUP_ID=g]",
        "kind: Template\nobjects:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n"
        "  data: {KAFKA_CONSUMER_AUTO_OFFSET_RESET: latest}",
    ],
)
def test_resources_that_hold_settings_elsewhere_than_most_are_read(tmp_path: Path, text: str) -> None:
    """Kustomize has neither `spec` nor `data`, and a template of OpenShift lists its resources as objects."""
    found = lint(tmp_path, "consumer", "r.yaml", f"apiVersion: v1\n{text}", client="java-4.0")

    assert found["consumer_reset_latest"].is_certain


def test_values_that_a_release_takes_from_elsewhere_are_left_open(tmp_path: Path) -> None:
    """What the release itself says counts before them."""
    text = (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r}\n"
        "spec: {valuesFrom: [{kind: ConfigMap, name: x}], values: {kafka: {consumer: {auto.offset.reset: latest}}}}"
    )
    found = lint(tmp_path, "consumer", "r.yaml", text, client="java-4.0")

    assert found["consumer_reset_latest"].is_certain
    assert not found["consumer_auto_commit_threads"].is_certain
    assert "valuesFrom" in found["file_read_as"].failure


def test_json_with_comments_and_commas_at_its_ends_is_read(tmp_path: Path) -> None:
    """.NET reads such files, and a text that looks like a comment is none."""
    text = (
        '{\n  // kafka\n  "Kafka": { "BootstrapServers": "http://b/*x*/", /* all\n of it */\n'
        '    "Producer": {"Acks": "Leader", "EnableIdempotence": false,}, // end\n  },\n}'
    )
    found = lint(tmp_path, "producer", "appsettings.json", text, client="confluent-kafka-dotnet-2.5")

    assert found["producer_acks"].is_certain
    assert "settings_unreadable" not in found


@pytest.mark.parametrize("name", [".env.production", "loader.env"])
def test_variables_of_one_environment_are_read(tmp_path: Path, name: str) -> None:
    """A file of variables is often named after what it is for."""
    found = lint(tmp_path, "consumer", name, "KAFKA_CONSUMER_AUTO_OFFSET_RESET=latest\n", client="java-4.0")

    assert found["consumer_reset_latest"].is_certain


def test_what_only_a_contract_says_is_not_left_open_by_a_file(tmp_path: Path) -> None:
    """No file sets `commits` to something that loses, nor a setting that its program does not have."""
    text = "env: {KAFKA_CONSUMER_AUTO_OFFSET_RESET: latest, JAVA_OPTS: -Disolation.level=read_committed}"
    found = lint(tmp_path, "consumer", "d.yml", text, client="java-4.0")

    assert "consumer_reset_latest" in found
    assert not {"consumer_commits_before", "consumer_auto_commit_store"} & found.keys()


@pytest.mark.parametrize(
    "text",
    [
        "<beans><bean id='f'><map><entry key='bootstrap.servers' value='b'/><entry key='acks' value='1'/></map></bean>"
        "</beans>",
        "<beans><props id='p'><prop key='bootstrap.servers'>b</prop><prop key='acks'>1</prop></props></beans>",
        "<c><property><name>bootstrap.servers</name><value>b</value></property><property><name>acks</name>"
        "<value>\n 1 </value></property></c>",
        "<shop><kafka><bootstrap_servers>b</bootstrap_servers><acks>1</acks></kafka></shop>",
    ],
)
def test_xml_names_settings_in_attributes_and_in_elements(tmp_path: Path, text: str) -> None:
    """As Spring, Hadoop and ClickHouse write them."""
    found = lint(tmp_path, "producer", "s.xml", text, client="java-4.0")

    assert found["producer_acks"].is_certain
    assert "settings_not_understood" not in found


@pytest.mark.parametrize(
    "lines",
    [
        "auto.offset.reset=latest\nconsumer.auto.offset.reset=earliest\n",
        "consumer.auto.offset.reset=earliest\nauto.offset.reset=latest\n",
    ],
)
def test_the_more_particular_name_counts_whichever_comes_last(tmp_path: Path, lines: str) -> None:
    """What Streams is told of its consumers counts before what it is told of all its clients."""
    text = f"application.id=a\nprocessing.guarantee=exactly_once_v2\n{lines}"
    found = lint(tmp_path, "streams", "s.properties", text, client="streams-4.0")

    assert "streams_reset" not in found


@pytest.mark.parametrize("name", ["deserialization.exception.handler", "production.exception.handler"])
def test_a_handler_that_continues_is_shown_whatever_its_name_is(tmp_path: Path, name: str) -> None:
    """`default.` begins the names before 4.0; where both are set, the newer one counts."""
    text = f"application.id=a\ndefault.{name}=o.LogAndContinueHandler\n"
    rule = f"streams_{name.split('.', maxsplit=1)[0]}"
    found = lint(tmp_path, "streams", "s.properties", text, client="streams-3.7")
    newer = lint(tmp_path, "streams", "s.properties", f"{text}{name}=o.LogAndFail\n", client="streams-4.0")

    assert found[rule].value == "o.LogAndContinueHandler"
    assert rule not in newer


_SCRIPT = """
-- a job
SET 'execution.checkpointing.interval' = '10s';
SET 'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION';
CREATE TABLE orders_in (id STRING, `at` TIMESTAMP(3)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b', 'properties.group.id' = 'g',
  'scan.startup.mode' = 'group-offsets',
  'properties.isolation.level' = 'read_committed'
);
CREATE TABLE IF NOT EXISTS `out` (id STRING) WITH (
  'connector' = 'kafka', 'topic' = 'out', 'properties.bootstrap.servers' = 'b',
  'sink.delivery-guarantee' = 'exactly-once', -- 'sink.x' = 'y'
  'sink.transactional-id-prefix' = 'o''s', 'properties.transaction.timeout.ms' = '900000'
);
CREATE TABLE other (id STRING) WITH ('connector' = 'jdbc', 'sink.delivery-guarantee' = 'none');
INSERT INTO `out` SELECT id FROM orders_in;
"""


@pytest.mark.parametrize(
    ("before", "after", "rules"),
    [
        ("", "", set()),
        ("'exactly-once'", "'at-least-once'", {"flink_sink_twice"}),
        ("interval' = '10s'", "mode' = 'AT_LEAST_ONCE'", {"flink_checkpoints", "flink_checkpoint_mode"}),
        (
            "INTO `out` SELECT",
            "INTO `out` /*+ OPTIONS('sink.delivery-guarantee' = 'none') */ SELECT",
            {"flink_sink_none", "flink_sink_twice"},
        ),
    ],
)
def test_a_script_of_flink_sql_is_one_job(tmp_path: Path, before: str, after: str, rules: set[str]) -> None:
    """Its source and its sink have topics of their own, and are pieces of it all the same."""
    assert before in _SCRIPT
    found = lint(tmp_path, "flink", "job.sql", _SCRIPT.replace(before, after), client="flink-1.20")

    assert {rule for rule in found if found[rule].is_certain} == rules
    assert "settings_several" not in found


def test_two_sinks_of_flink_stay_two_places(tmp_path: Path) -> None:
    """One that says nothing may be written at least once."""
    second = (
        "CREATE TABLE second (id STRING) WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b');"
    )
    found = lint(tmp_path, "flink", "job.sql", _SCRIPT + second, client="flink-1.20")

    assert not found["flink_sink_twice"].is_certain
    assert "settings_several" in found


def test_the_binder_of_spring_cloud_stream_has_transactions(tmp_path: Path) -> None:
    """They have a section of their own, whose name is before that of the prefix."""
    text = (
        "spring.cloud.stream.kafka.binder:\n  brokers: b\n  required-acks: all\n"
        "  producer-properties: {enable.idempotence: true}\n  transaction: {transaction-id-prefix: tx-}\n"
    )
    found = lint(tmp_path, "producer", "application.yml", text, client="java-4.0")

    assert "producer_restart" not in found


@pytest.mark.parametrize(("adapter", "is_reported"), [("memoryPersistenceAdapter", True), ("kahaDB", False)])
def test_a_broker_that_keeps_messages_in_memory_is_reported(
    tmp_path: Path, adapter: str, is_reported: bool
) -> None:
    """Its store is an element without any attribute."""
    text = f"<beans><broker brokerName='b'><persistenceAdapter><{adapter}/></persistenceAdapter></broker></beans>"
    found = lint(tmp_path, "activemq", "activemq.xml", text, client="activemq-6.3", output="keyed by id")

    assert ("activemq_persistence" in found) is is_reported
    assert "settings_not_understood" not in found
