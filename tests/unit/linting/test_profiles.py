"""Profiles of Spring and Quarkus: what may be active counts, and what is not known to be active is left open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.linting.contracts import lint

PROFILES = """
spring: {kafka: {bootstrap-servers: b, consumer: {auto-offset-reset: none}}}
---
spring:
  config: {activate: {on-profile: prod}}
  kafka: {consumer: {auto-offset-reset: latest}}
"""


def test_a_profile_is_left_open_until_it_is_chosen(tmp_path: Path) -> None:
    """By the file or by the contract, in Spring's own words."""
    opened = lint(tmp_path, "consumer", "a.yml", PROFILES)
    chosen = lint(tmp_path, "consumer", "a.yml", PROFILES, **{"spring.profiles.active": "prod"})
    by_file = lint(tmp_path, "consumer", "a.yml", f"spring.profiles.active: prod, eu\n---{PROFILES}")
    other = lint(tmp_path, "consumer", "a.yml", PROFILES, **{"spring.profiles.active": "test"})

    assert not opened["consumer_reset_latest"].is_certain
    assert opened["consumer_reset_latest"].file == (
        "a.yml (profile prod, spring.kafka.consumer): spring.kafka.consumer.auto-offset-reset"
    )
    assert "consumer_reset_latest" not in other
    for found in (chosen, by_file):
        assert found["consumer_reset_latest"].is_certain
        assert "settings_several" not in found


def test_what_is_never_deployed_is_left_out(tmp_path: Path) -> None:
    """Quarkus's profiles for development and tests are not what a pipeline runs with; others may be."""
    text = "mp.messaging.incoming.a.auto.offset.reset=none\n%dev.mp.messaging.incoming.a.auto.offset.reset=latest\n"
    found = lint(tmp_path, "consumer", "q.properties", text)
    staged = lint(tmp_path, "consumer", "q.properties", text.replace("%dev", "%staging"))

    assert "consumer_reset_latest" not in found
    assert not staged["consumer_reset_latest"].is_certain


COMMON = """
spring:
  profiles: {%s}
  kafka: {bootstrap-servers: b, consumer: {auto-offset-reset: none}}
"""
PROD = """
---
spring.config.activate.on-profile: prod
spring.kafka.consumer.auto-offset-reset: latest
"""


@pytest.mark.parametrize(
    "said",
    [
        "active: '${SPRING_PROFILES_ACTIVE:dev}'",
        "active: '@activatedProperties@'",
        "active: 'eu,${MORE}'",
        "active: eu, include: '${MORE}'",
        "active: eu, group: {eu: '@more@'}",
        "include: eu",
    ],
)
def test_a_profile_that_is_filled_in_elsewhere_leaves_all_of_them_possible(tmp_path: Path, said: str) -> None:
    """A default is one possibility; what is deployed is filled in with another."""
    found = lint(tmp_path, "consumer", "a.yml", COMMON % said + PROD)

    assert "settings_several" in found
    assert not found["consumer_reset_latest"].is_certain


@pytest.mark.parametrize(
    ("said", "is_active"),
    [
        ("active: production, group: {production: 'prod, metrics'}", True),
        ("active: a, group: {a: [b], b: [prod, a]}", True),
        ("active: eu, include: prod", True),
        ("active: eu, include: [x, prod]", True),
        ("active: eu, group: {production: prod}", False),
    ],
)
def test_groups_and_included_profiles_are_followed(tmp_path: Path, said: str, is_active: bool) -> None:
    """Where they are plain words, what they name is active too, and nothing else."""
    found = lint(tmp_path, "consumer", "a.yml", COMMON % said + PROD)

    assert "settings_several" not in found
    assert ("consumer_reset_latest" in found) is is_active
    assert all(found[rule].is_certain for rule in found if rule == "consumer_reset_latest")


def test_lists_of_profiles_are_read_from_properties(tmp_path: Path) -> None:
    """Spring numbers what is a list in YAML."""
    text = (
        "spring.profiles.active[0]=a\nspring.profiles.group.a[0]=b\nspring.profiles.group.a[1]=prod\n"
        "spring.kafka.consumer.auto-offset-reset=none\n#---\nspring.config.activate.onProfile=prod\n"
        "spring.kafka.consumer.auto-offset-reset=latest\n"
    )

    assert lint(tmp_path, "consumer", "a.properties", text)["consumer_reset_latest"].is_certain


def test_a_document_of_a_cloud_platform_is_left_open(tmp_path: Path) -> None:
    """No profile says on which platform a program runs."""
    text = COMMON % "active: prod" + PROD.replace("on-profile: prod", "on-cloud-platform: kubernetes")

    assert not lint(tmp_path, "consumer", "a.yml", text)["consumer_reset_latest"].is_certain


def test_the_later_document_counts_whether_it_has_a_profile_or_not(tmp_path: Path) -> None:
    """Spring goes through the documents of a file from top to bottom."""
    text = PROD.strip("-\n") + "\n---" + COMMON % "active: prod"

    assert "consumer_reset_latest" not in lint(tmp_path, "consumer", "a.yml", text)


@pytest.mark.parametrize(("condition", "is_held"), [("'!dev'", True), ("'!prod'", False), ("a | prod", True)])
def test_a_condition_may_be_negated_or_name_several(tmp_path: Path, condition: str, is_held: bool) -> None:
    """A mark of exclamation before a profile is no tag of YAML."""
    text = COMMON % "active: prod" + PROD.replace("on-profile: prod", f"on-profile: {condition}")
    found = lint(tmp_path, "consumer", "a.yml", text)

    assert ("consumer_reset_latest" in found) is is_held


@pytest.mark.parametrize(
    ("condition", "active", "is_held"),
    [
        ("prod & eu", "prod, eu", True),
        ("prod & eu", "prod", False),
        ("'!dev & !test'", "prod", True),
        ("'!dev & !prod'", "prod", False),
        ("(prod | test) & eu", "eu, test", True),
        ("(prod | test) & eu", "prod", False),
        ("[dev, prod & eu]", "prod, eu", True),
        ("[dev, '!prod']", "prod", False),
        ("'!(prod & eu)'", "prod", True),
        ("default", "prod", False),
        (f"'{'(' * 1_000}'", "prod", None),
    ],
)
def test_an_expression_of_profiles_is_worked_out(
    tmp_path: Path, condition: str, active: str, is_held: bool | None
) -> None:
    """Where it is known which are active, it is known whether they meet it; one of endless brackets is left open."""
    text = COMMON % "x: y" + PROD.replace("on-profile: prod", f"on-profile: {condition}")
    reported = lint(tmp_path, "consumer", "a.yml", text, **{"spring.profiles.active": active}).get(
        "consumer_reset_latest"
    )

    assert (reported is not None) is (is_held is not False)
    assert reported is None or reported.is_certain is (is_held is True)


def test_a_condition_may_be_a_list_in_properties(tmp_path: Path) -> None:
    """Spring numbers what is a list in YAML, and one of them suffices."""
    text = (
        "spring.kafka.consumer.auto-offset-reset=none\n#---\nspring.config.activate.on-profile[0]=eu\n"
        "spring.config.activate.on-profile[1]=us\nspring.kafka.consumer.auto-offset-reset=latest\n"
    )
    held, left_out = (
        lint(tmp_path, "consumer", "a.properties", text, **{"spring.profiles.active": name})
        for name in ("us", "prod")
    )

    assert held["consumer_reset_latest"].is_certain
    assert "consumer_reset_latest" not in left_out


TWO = """
---
spring.config.activate.on-profile: %s
spring.kafka.producer.properties.enable.idempotence: true
---
spring.config.activate.on-profile: %s
spring.kafka.producer.retries: 0
"""


@pytest.mark.parametrize(
    ("first", "second", "is_reported"),
    [
        ("prod", "eu", True),
        ("prod", "prod & eu", True),
        ("prod", "'!prod'", False),
        ("dev", "'!dev & eu'", False),
    ],
)
def test_profiles_that_may_be_active_together_are_combined(
    tmp_path: Path, first: str, second: str, is_reported: bool
) -> None:
    """The client starts with either of them alone; those that exclude each other are never active together."""
    text = "spring.kafka.producer.acks: all" + TWO % (first, second)

    reported = lint(tmp_path, "producer", "a.yml", text, client="java-3.7").get("producer_refuses")
    assert (reported.is_certain if reported else None) is (False if is_reported else None)


QUARKUS = """
mp.messaging.incoming.a.auto.offset.reset=none
%s.mp.messaging.incoming.a.auto.offset.reset=latest
"""


@pytest.mark.parametrize(
    ("mark", "more", "is_certain"),
    [
        ("%{prod,staging}", "", True),
        ("%{dev,staging}", "", False),
        ("%{dev,test}", "", None),
        ("%staging", "quarkus.profile=staging\n", True),
        ("%common", "%prod.x=1\nquarkus.config.profile.parent=common\n", True),
        ("%staging", "quarkus.profile=${PROFILE:prod}\n", False),
    ],
)
def test_one_key_may_be_of_several_profiles(
    tmp_path: Path, mark: str, more: str, is_certain: bool | None
) -> None:
    """Quarkus writes them in braces; its other keys say which is active."""
    found = lint(tmp_path, "consumer", "q.properties", more + QUARKUS % mark)

    reported = found.get("consumer_reset_latest")
    assert (reported.is_certain if reported else None) is is_certain


@pytest.mark.parametrize("wrapper", ["{apiVersion: v1, kind: ConfigMap, data: %s}", "config: %s"])
@pytest.mark.parametrize(
    ("name", "text", "is_certain"),
    [
        ("application.yml", COMMON % "active: '${P:dev}'" + PROD, False),
        ("application.yml", COMMON % "active: prod" + PROD, True),
        ("application.yml", COMMON % "active: eu" + PROD, None),
        ("application.yml", COMMON % "active: a, group: {a: prod}" + PROD, True),
        ("application.properties", QUARKUS % "%{prod,staging}", True),
        ("application.properties", QUARKUS % "%staging", False),
        ("application.properties", QUARKUS % "%dev", None),
    ],
)
def test_profiles_are_those_of_a_file_within_the_file_too(
    tmp_path: Path, wrapper: str, name: str, text: str, is_certain: bool | None
) -> None:
    """A ConfigMap holds an application's files, each with its own documents."""
    found = lint(tmp_path, "consumer", "c.yml", wrapper % json.dumps({name: text}))

    reported = found.get("consumer_reset_latest")
    assert (reported.is_certain if reported else None) is is_certain
    assert ("settings_several" in found) is (is_certain is False)
