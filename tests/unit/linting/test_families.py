"""Files that Spring and Quarkus read together: a profile's own file counts before the file beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.linting.contracts import lint

BASE = "spring: {kafka: {bootstrap-servers: b, consumer: {auto-offset-reset: none, isolation-level: read_committed}}}"
LATEST = "spring.kafka.consumer.auto-offset-reset: latest"
NONE = "spring.kafka.consumer.auto-offset-reset: none"
ACTIVE = "spring.profiles.active"


@pytest.mark.parametrize(
    ("chosen", "is_certain"), [({}, False), ({ACTIVE: "prod"}, True), ({ACTIVE: "eu"}, None)]
)
def test_a_profile_has_a_file_beside_the_one_that_is_named(
    tmp_path: Path, chosen: dict[str, str], is_certain: bool | None
) -> None:
    """It counts where its profile is active, and which file says so is told."""
    (tmp_path / "application-prod.yml").write_text(LATEST)
    found = lint(tmp_path, "consumer", "application.yml", BASE, **chosen)

    reported = found.get("consumer_reset_latest")
    assert (reported.is_certain if reported else None) is is_certain
    assert "together with application-prod.yml beside it" in found["file_read_as"].failure
    if reported:
        assert str(reported.file).endswith("application-prod.yml: spring.kafka.consumer.auto-offset-reset")


def test_the_file_of_a_profile_is_named_itself(tmp_path: Path) -> None:
    """Its profile is active then, and what it does not set is set by the file of all profiles."""
    (tmp_path / "application.yml").write_text(BASE)
    (tmp_path / "application-eu.yml").write_text("spring.kafka.consumer.isolation-level: read_uncommitted")
    found = lint(tmp_path, "consumer", "application-prod.yml", LATEST)

    assert found["consumer_reset_latest"].is_certain
    assert "consumer_isolation" not in found


@pytest.mark.parametrize(
    ("said", "is_held"),
    [
        ("active: 'a, b'", True),
        ("active: 'b, a'", False),
        ("active: b, include: a", True),
        ("active: g, group: {g: 'a, b'}", True),
        ("active: g, group: {g: 'b, a'}", False),
    ],
)
def test_the_file_of_the_later_profile_counts(tmp_path: Path, said: str, is_held: bool) -> None:
    """In the order in which profiles are active, and not in that of their names."""
    (tmp_path / "application-a.yml").write_text(NONE)
    (tmp_path / "application-b.yml").write_text(LATEST)
    found = lint(tmp_path, "consumer", "application.yml", f"spring.profiles: {{{said}}}\n---\n{BASE}")

    assert ("consumer_reset_latest" in found) is is_held
    assert "settings_several" not in found


def test_a_condition_in_the_file_of_a_profile_holds_beside_it(tmp_path: Path) -> None:
    """A document within it needs both profiles; so does what Quarkus marks."""
    (tmp_path / "application-prod.yml").write_text(f"spring.config.activate.on-profile: eu\n{LATEST}")
    found, both = (
        lint(tmp_path, "consumer", "application.yml", BASE, **{ACTIVE: active})
        for active in ("eu", "prod, eu")
    )

    assert "consumer_reset_latest" not in found
    assert both["consumer_reset_latest"].is_certain


def test_properties_count_before_yaml_beside_them(tmp_path: Path) -> None:
    """Both are read, and of two kinds of one file Spring prefers this one."""
    (tmp_path / "application.properties").write_text(LATEST.replace(":", "="))

    assert lint(tmp_path, "consumer", "application.yml", BASE)["consumer_reset_latest"].is_certain


def test_a_file_beside_it_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    """What it sets is left open; the file that is named is read."""
    (tmp_path / "application-prod.yml").write_text("{")
    found = lint(tmp_path, "consumer", "application.yml", BASE)

    assert "application-prod.yml: spring.config.import, which is not read" in found["file_read_as"].failure
    assert "settings_unreadable" not in found


@pytest.mark.parametrize("name", ["consumer-prod.yml", "application-prod.txt", "my-application-prod.yml"])
def test_other_files_beside_it_are_none_of_the_family(tmp_path: Path, name: str) -> None:
    """Nobody reads them together."""
    (tmp_path / name).write_text(LATEST)

    assert "file_read_as" not in lint(tmp_path, "consumer", "application.yml", BASE)
