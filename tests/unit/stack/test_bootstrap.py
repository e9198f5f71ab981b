"""What the installation says about a machine on which it cannot work, and how it knows that it is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import bootstrap


def java(folder: Path, expected: str) -> dict[str, str]:
    """Return an environment whose Java says `told` about its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{expected}' >&2\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


@pytest.mark.parametrize(
    "expected", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19']
)
def test_a_java_that_spark_runs_on_is_taken(tmp_path: Path, expected: str) -> None:
    """17 and whatever is newer."""
    bootstrap.check_java(java(tmp_path, expected))


@pytest.mark.parametrize(
    "expected", ['openjdk version "11.0.2" 2019-01-15', 'java version "1.8.0_402"', "no idea"]
)
def test_an_old_java_is_named_with_the_remedy(tmp_path: Path, expected: str) -> None:
    """One line: what is needed, what was found where, what to do."""
    with pytest.raises(bootstrap.BootstrapError) as caught:
        bootstrap.check_java(java(tmp_path, expected))

    assert "\n" not in str(caught.value)
    for part in ("Java 17", expected, str(tmp_path), "apt install", "JAVA_HOME"):
        assert part in str(caught.value)


def test_a_missing_java_is_named_with_the_remedy(tmp_path: Path) -> None:
    """An empty path has no Java."""
    with pytest.raises(bootstrap.BootstrapError, match="found none in PATH: install it"):
        bootstrap.check_java({"PATH": str(tmp_path)})


def test_another_python_is_refused() -> None:
    """The pins hold for one version."""
    with pytest.raises(
        bootstrap.BootstrapError, match=r"Python 3\.11 is needed, found 3\.12 at /usr/bin/python3"
    ):
        bootstrap.check_python((3, 12), "/usr/bin/python3")


@pytest.mark.parametrize(
    "log",
    [
        "error: Request failed after 3 retries\n  Caused by: dns error\n  Caused by: failed to lookup address",
        "WARNING: Retrying … NewConnectionError\nERROR: No matching distribution found for uv==0.13.9",
        "error: Failed to fetch: `…`\n  Caused by: operation timed out",
    ],
)
def test_a_package_index_out_of_reach_is_one_line(log: str) -> None:
    """Not a page of retries."""
    reported = bootstrap.failure("installing", log)

    assert "the package index cannot be reached: check the network" in reported
    assert "\n" not in reported


def test_another_failure_shows_its_last_line() -> None:
    """The log has the rest."""
    assert "No space left on device" in bootstrap.failure(
        "installing", "a\nNo space left on device\n\nhint: b\n"
    )


def test_changed_pins_are_another_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stamp of an older one does not count."""
    for name in ("runtime", "build"):
        (tmp_path / "requirements").mkdir(exist_ok=True)
        (tmp_path / "requirements" / f"{name}.txt").write_text("a==1\n")
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    before = bootstrap.digest("runtime")

    (tmp_path / "requirements" / "runtime.txt").write_text("a==2\n")

    assert bootstrap.digest("runtime") != before
