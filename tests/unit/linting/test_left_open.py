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
    ("name", "text", "told"),
    [
        (".env", "SPRING_CONFIG_IMPORT=configserver:http://c", "SPRING_CONFIG_IMPORT"),
        (".env", "SPRING_CONFIG_ADDITIONAL_LOCATION=/etc/app/", "SPRING_CONFIG_ADDITIONAL_LOCATION"),
        (".env", "SMALLRYE_CONFIG_LOCATIONS=/etc/app", "SMALLRYE_CONFIG_LOCATIONS"),
        (".env", "SPRING_APPLICATION_JSON=$JSON", "SPRING_APPLICATION_JSON"),
        ("a.properties", "spring.cloud.config.uri=http://c", "spring.cloud.config.uri"),
    ],
)
def test_a_variable_that_takes_in_more_leaves_open_what_is_not_set(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    """As the same setting does in a file of Spring's or Quarkus's own."""
    found = lint(tmp_path, "producer", name, f"{text}\nSPRING_KAFKA_PRODUCER_ACKS=1\n", client="java-4.0")

    assert f"takes in more by {told}, which is not read" in found["file_read_as"].failure
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
