"""Files that take in more from elsewhere: what is not read may set what they do not, and override what they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.linting.contracts import lint

IMPORTING = "spring: {config: {import: 'configserver:'}, kafka: {bootstrap-servers: b, producer: {acks: %s}}}"
QUARKUS = "kafka.bootstrap.servers=b\nmp.messaging.outgoing.a.acks=all\nsmallrye.config.locations=/etc/a\n"
COMPOSE = "services: {a: {%s, environment: {SPRING_KAFKA_PRODUCER_ACKS: '1'}}}"
ENV = "SPRING_KAFKA_PRODUCER_ACKS=1\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yml", IMPORTING % "all"),
        (
            "a.yml",
            IMPORTING % "all" + "\n---\nspring.config.activate.on-profile: prod\nspring.config.import: a.yml",
        ),
        ("a.properties", QUARKUS),
        (".env", "SPRING_APPLICATION_JSON=$JSON\nSPRING_KAFKA_PRODUCER_ACKS=all\n"),
        (
            "c.yml",
            "{apiVersion: v1, kind: ConfigMap, data: {SPRING_CONFIG_IMPORT: x, application.properties: "
            "'spring.kafka.producer.acks=all'}}",
        ),
    ],
)
def test_what_is_taken_in_counts_before_the_file_that_takes_it_in(
    tmp_path: Path, name: str, text: str
) -> None:
    """Whatever the file sets may be set otherwise there, and what it does not set may be set."""
    found = lint(tmp_path, "producer", name, text, client="java-3.7")

    assert "which is not read and counts before it" in found["file_read_as"].failure
    assert (found["producer_acks"].value, found["producer_acks"].is_certain) == ("all", False)
    assert not found["producer_idempotence"].is_certain


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".env", f"SPRING_CONFIG_IMPORT=configserver:http://c\n{ENV}"),
        ("c.yml", COMPOSE % "env_file: [a.env]"),
        ("c.yml", COMPOSE % "envFrom: [{configMapRef: {name: a}}]"),
    ],
)
def test_variables_count_before_what_is_taken_in(tmp_path: Path, name: str, text: str) -> None:
    """What they set is certain, and only what they do not set is left open."""
    found = lint(tmp_path, "producer", name, text, client="java-3.7")

    assert found["file_read_as"].failure.endswith("which is not read")
    assert found["producer_acks"].is_certain
    assert not found["producer_idempotence"].is_certain


def test_what_the_contract_says_as_well_is_taken_as_said(tmp_path: Path) -> None:
    """Who writes the contract knows what is taken in."""
    found = lint(tmp_path, "producer", "a.yml", IMPORTING % "all", acks="all")

    assert not {"producer_acks", "settings_disagree"} & found.keys()


def test_what_a_profile_takes_in_that_is_not_active_is_nothing(tmp_path: Path) -> None:
    """Spring does not open it."""
    text = (
        "spring.kafka: {bootstrap-servers: b, producer: {acks: all}}\n---\n"
        "{spring.config.activate.on-profile: dev, spring.config.import: dev.yml}"
    )

    assert "producer_acks" not in lint(
        tmp_path, "producer", "a.yml", text, **{"spring.profiles.active": "prod"}
    )
