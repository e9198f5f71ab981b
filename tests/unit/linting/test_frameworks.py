"""Settings that a framework or a container hands on: to which program, and under which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.linting.contracts import lint


def test_each_service_says_for_itself_which_settings_are_its_producers(tmp_path: Path) -> None:
    """That a worker of Connect names its producers does not make another service's settings somebody else's."""
    worker = "connect: {environment: {CONNECT_PRODUCER_ACKS: '1', CONNECT_BOOTSTRAP_SERVERS: b}}"
    named = "shop: {environment: {KAFKA_ACKS: '0', KAFKA_PRODUCER_ACKS: all, KAFKA_BOOTSTRAP_SERVERS: b}}"
    bare = "bare: {environment: {KAFKA_ACKS: '0', KAFKA_BOOTSTRAP_SERVERS: b}}"
    text = f"services: {{{worker}, {named}, {bare}}}"
    found = lint(tmp_path, "producer", "c.yml", text, client="java-4.0")

    assert "services.bare.kafka" in found["settings_several"].failure
    assert "in 3 places" in found["settings_several"].failure


@pytest.mark.parametrize(
    ("name", "text", "is_reported"),
    [
        ("s.properties", "application.id=a\nacks=1\n", True),
        ("s.properties", "application.id=a\nacks=1\nproducer.acks=all\n", False),
        ("s.properties", "application.id=a\nproducer.acks=1\nprocessing.guarantee=exactly_once_v2\n", False),
        (
            "s.yml",
            "spring.kafka: {bootstrap-servers: b, properties: {acks: 1}, streams: {application-id: a}}",
            True,
        ),
        (
            "s.yml",
            "spring.kafka: {bootstrap-servers: b, producer: {acks: 1}, streams: {application-id: a}}",
            False,
        ),
        (".env", "SPRING_KAFKA_PRODUCER_ACKS=1\nSPRING_KAFKA_STREAMS_APPLICATION_ID=a\n", False),
    ],
)
def test_the_producers_of_streams_take_acks_from_it(
    tmp_path: Path, name: str, text: str, is_reported: bool
) -> None:
    """With and without the prefix, which counts first; what Spring sets for a producer is not theirs."""
    found = lint(tmp_path, "streams", name, text, guarantee="at_least_once")

    assert ("streams_acks" in found) is is_reported
    assert "settings_several" not in found


@pytest.mark.parametrize("delay", ["10s", "10000", "PT10S"])
@pytest.mark.parametrize(
    ("mode", "is_reported"), [("non_persistent", True), ("NON-PERSISTENT", True), ("persistent", False)]
)
def test_spring_has_its_own_words_for_jms(tmp_path: Path, delay: str, mode: str, is_reported: bool) -> None:
    """A mode of delivery is whether messages are persistent, and a time has a unit."""
    text = (
        "spring: {activemq: {broker-url: 'tcp://b:61616'}, "
        f"jms: {{template: {{delivery-mode: {mode}, time-to-live: {delay}}}}}}}"
    )
    found = lint(tmp_path, "activemq", "a.yml", text, guarantee="at_least_once")

    assert {"activemq_expiry"} | ({"activemq_persistence"} if is_reported else set()) == found.keys()
    assert all(each.is_certain for each in found.values())
