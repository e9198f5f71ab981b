"""What a settings file says in words that are not read: it is left open, never taken for not set."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.linting.contracts import lint

POD = """
apiVersion: v1
kind: Pod
spec:
  containers:
  - name: shop
    env:
    - {name: KAFKA_BOOTSTRAP_SERVERS, value: "b:9092"}
    - {name: KAFKA_ACKS, valueFrom: {configMapKeyRef: {name: kafka, key: acks}}}
"""
CHART = "env: {KAFKA_BOOTSTRAP_SERVERS: b, KAFKA_ACKS: {valueFrom: {secretKeyRef: {name: k, key: a}}}}"
COMPOSE = "services: {shop: {environment: %s}}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (POD, "<valueFrom configMapKeyRef>"),
        (CHART, "<valueFrom secretKeyRef>"),
        (COMPOSE % "[KAFKA_BOOTSTRAP_SERVERS=b, KAFKA_ACKS]", "$KAFKA_ACKS"),
        (COMPOSE % "[KAFKA_ACKS]", "$KAFKA_ACKS"),
        (COMPOSE % "{KAFKA_BOOTSTRAP_SERVERS: b, KAFKA_ACKS: }", "$KAFKA_ACKS"),
    ],
)
def test_a_variable_whose_value_stands_elsewhere_is_left_open(tmp_path: Path, text: str, value: str) -> None:
    """It is set, so the default does not count; to what, the file does not say."""
    found = lint(tmp_path, "producer", "a.yml", text, client="java-4.0")

    assert found["value_open"].value == value
    assert (found["producer_acks"].value, found["producer_acks"].is_certain) == (value, False)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (".env", "SPRING_CONFIG_IMPORT=configserver:http://c", "SPRING_CONFIG_IMPORT"),
        (".env", "SPRING_CONFIG_ADDITIONAL_LOCATION=/etc/app/", "SPRING_CONFIG_ADDITIONAL_LOCATION"),
        (".env", "SMALLRYE_CONFIG_LOCATIONS=/etc/app", "SMALLRYE_CONFIG_LOCATIONS"),
        (".env", "SPRING_APPLICATION_JSON=$JSON", "SPRING_APPLICATION_JSON"),
        ("a.properties", "spring.cloud.config.uri=http://c", "spring.cloud.config.uri"),
    ],
)
def test_a_variable_that_takes_in_more_leaves_open_what_is_not_set(
    tmp_path: Path, name: str, text: str, expected: str
) -> None:
    """As the same setting does in a file of Spring's or Quarkus's own."""
    found = lint(tmp_path, "producer", name, f"{text}\nSPRING_KAFKA_PRODUCER_ACKS=1\n", client="java-4.0")

    assert f"takes in more by {expected}, which is not read" in found["file_read_as"].failure
    assert not found["producer_idempotence"].is_certain


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".env", "SPRING_KAFKA_CONSUMER_AUTO_OFFSET_RESET=none\nSPRING_APPLICATION_JSON=%s\n"),
        (".env", "SPRING_APPLICATION_JSON='%s'\nSPRING_KAFKA_CONSUMER_AUTO_OFFSET_RESET=none\n"),
        ("c.yml", "services: {a: {environment: ['SPRING_APPLICATION_JSON=%s']}}"),
        ("p.yml", "{apiVersion: v1, kind: Pod, spec: {env: [{name: SPRING_APPLICATION_JSON, value: '%s'}]}}"),
    ],
)
def test_the_json_of_a_variable_is_read_and_counts_before_others(
    tmp_path: Path, name: str, text: str
) -> None:
    """Spring puts it before every other variable, wherever it stands."""
    json = '{"spring": {"kafka": {"consumer": {"auto-offset-reset": "latest", "sasl.password": "hunter2"}}}}'
    found = lint(tmp_path, "consumer", name, text % json)

    assert found["consumer_reset_latest"].is_certain
    assert str(found["consumer_reset_latest"].file).endswith(
        "SPRING_APPLICATION_JSON.spring.kafka.consumer.auto-offset-reset"
    )
    assert "file_read_as" not in found
    assert "hunter2" not in repr(found)


SECTIONS = (
    "[orders-producer]\nbootstrap.servers=b\nacks=1\n\n[audit-producer]\nbootstrap.servers=b\nacks=all\n"
)


@pytest.mark.parametrize("name", ["kafka.conf", "kafka.properties"])
def test_sections_in_brackets_are_places_of_their_own(tmp_path: Path, name: str) -> None:
    """Two clients in one file have nothing to do with each other."""
    found = lint(tmp_path, "producer", name, SECTIONS, client="librdkafka-2.3")

    assert "2 places that differ: orders-producer; audit-producer" in found["settings_several"].failure
    assert (found["producer_acks"].value, found["producer_acks"].is_certain) == ("1", False)


def test_what_stands_above_sections_and_in_their_default_holds_in_each(tmp_path: Path) -> None:
    """The section that is another part's is left out."""
    text = "acks=all\n[default] ; of all\nretries=5\n[consumer]\nacks=0\n[orders-producer]\nacks=1\n"
    found = lint(tmp_path, "producer", "kafka.conf", text, client="librdkafka-2.3")

    assert "settings_several" not in found
    assert (found["producer_acks"].value, found["producer_acks"].is_certain) == ("1", True)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.yml", "kafka: {bootstrap.servers: b, config: 'acks=1,retries=5'}", "kafka.config"),
        ("a.yml", "bootstrap.servers: b\nextra: |-\n  acks=1\n", "extra"),
        ("a.yml", "bootstrap.servers: b\nextraEnvs: |\n  - name: KAFKA_ACKS\n    value: '1'\n", "extraEnvs"),
        ("a.yml", "bootstrap.servers: b\nargs: [--topic, x, --spring.kafka.producer.acks=1]\n", "args"),
        ("a.yml", "bootstrap.servers: b\nargs: [a=b, x, --acks=1]\n", "args.[2]"),
        ("a.yml", "bootstrap.servers: b\nargs: [{a: b}, --acks=1]\n", "args.[1]"),
        ("a.json", '{"bootstrap.servers": "b", "more": "{\\"acks\\": 1}"}', "more"),
        ("a.properties", "bootstrap.servers=b\nmore=acks:1\n", "more"),
        (".env", "KAFKA_BOOTSTRAP_SERVERS=b\nJAVA_OPTS=-Xmx1g -Dacks=1\n", "JAVA_OPTS"),
        (".env", "KAFKA_BOOTSTRAP_SERVERS=b\nMORE=acks=1;ssl.key.password=hunter2\n", "MORE"),
    ],
)
def test_a_setting_within_a_text_is_reported_and_left_open(
    tmp_path: Path, name: str, text: str, expected: str
) -> None:
    """Where it stands is said, what stands there is not."""
    found = lint(tmp_path, "producer", name, text, client="java-4.0")

    assert f"in the text of {expected}, which is not read" in found["file_read_as"].failure
    assert " gives acks" in found["file_read_as"].failure
    assert not found["producer_acks"].is_certain
    assert "hunter2" not in repr(found)


def test_a_setting_that_a_text_gives_too_is_left_open(tmp_path: Path) -> None:
    """Which of them counts is the program's affair; what the contract says of one that is only in a text, counts."""
    text = "bootstrap.servers: b\nacks: all\nmore: 'acks=1'\n"
    both = lint(tmp_path, "producer", "a.yml", text, client="java-4.0")
    said = lint(tmp_path, "producer", "a.yml", text.replace("acks: all\n", ""), client="java-4.0", acks="all")

    assert (both["producer_acks"].value, both["producer_acks"].is_certain) == ("all", False)
    assert "producer_acks" not in said


@pytest.mark.parametrize(
    "text",
    [
        "bootstrap.servers: b\nnote: waits for all acks, retries too\n",
        "bootstrap.servers: b\nconsumer: {more: 'acks=1'}\n",
        "bootstrap.servers: b\nnote: 'maxacks=1, acks_of_mine=2'\n",
        "bootstrap.servers: b\ntransactional.id: 'acks=1'\n",
    ],
)
def test_a_text_that_gives_nothing_to_the_part_is_no_finding(tmp_path: Path, text: str) -> None:
    """A word is no setting, nor is what another part's text gives."""
    assert "file_read_as" not in lint(tmp_path, "producer", "a.yml", text, client="java-4.0")


ACKS = '"acks": "%s", "enable.idempotence": false, "request.required.acks": %s'


@pytest.mark.parametrize(
    ("values", "is_certain"),
    [(("all", 1), False), (("1", "-1"), False), (("1", 0), True), (("all", -1), None)],
)
def test_which_of_two_names_counts_is_open_where_no_order_is_known(
    tmp_path: Path, values: tuple[str, int], is_certain: bool | None
) -> None:
    """The client takes the last one, and who goes through a JSON object need not keep its order."""
    text = "{" + ACKS % values + "}"
    found = lint(tmp_path, "producer", "p.json", text, client="confluent-kafka-python-2.3")

    reported = found.get("producer_acks")
    assert (reported.is_certain if reported else None) is is_certain
    assert ("setting_twice" in found) is (is_certain is not None)


@pytest.mark.parametrize(
    ("lines", "is_safe"),
    [
        ("acks=all\nrequest.required.acks=1\n", False),
        ("request.required.acks=1\nacks=all\n", True),
        ("acks=1\nrequest.required.acks=1\nacks=all\n", True),
        ("acks=all\nrequest.required.acks=all\nacks=1\nrequest.required.acks=all\n", True),
    ],
)
def test_the_last_of_two_names_counts_in_lines(tmp_path: Path, lines: str, is_safe: bool) -> None:
    """A file of lines is gone through from top to bottom."""
    found = lint(tmp_path, "producer", "p.conf", lines, client="librdkafka-2.3")

    assert "setting_twice" not in found
    assert ("producer_acks" not in found) is is_safe
    assert is_safe or found["producer_acks"].is_certain


def test_two_names_in_the_contract_are_reported(tmp_path: Path) -> None:
    """Of a client that is not named as well; what the file says of the setting counts before both."""
    both = {"acks": "all", "request.required.acks": 1}
    alone = lint(tmp_path, "producer", "p.json", '{"linger.ms": 1}', **both)
    other = lint(tmp_path, "producer", "p.json", '{"acks": "all"}', client="librdkafka-2.3", **both)

    assert "the contract sets request.required.acks to 1" in alone["setting_twice"].failure
    assert not alone["producer_acks"].is_certain
    assert "producer_acks" not in other


def test_a_setting_where_secrets_stand_is_reported_and_left_open(tmp_path: Path) -> None:
    """What looks like a secret is not read, nor is what stands beside it."""
    text = "kafka: {bootstrap.servers: b}\ncredentials: {kafka: {acks: hunter2}}\n"
    found = lint(tmp_path, "producer", "a.yml", text, client="java-4.0")

    assert "gives credentials.kafka.acks where secrets stand" in found["file_read_as"].failure
    assert not found["producer_acks"].is_certain
    assert "hunter2" not in repr(found)
