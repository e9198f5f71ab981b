"""Java is checked before Spark starts, in words that say what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.cli.java import JavaError, major_version, require_java


def _java_home(folder: Path, expected: str) -> Path:
    """Return a JAVA_HOME whose Java tells a version on standard error, as real ones do."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >&2 <<'X'\n{expected}\nX\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("expected", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2" 2019', 11),
        ("no such thing", None),
    ],
)
def test_versions_are_read_from_what_java_tells(expected: str, version: int | None) -> None:
    """Old and new numbering, early access builds, and options that Java repeats first."""
    assert major_version(expected) == version


@pytest.mark.parametrize("expected", ['openjdk version "17.0.15"', 'openjdk version "21.0.1"'])
def test_a_new_java_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, expected: str) -> None:
    """17 is the oldest that Spark 4 starts on."""
    monkeypatch.setenv("JAVA_HOME", str(_java_home(tmp_path, expected)))

    require_java()


@pytest.mark.parametrize(
    ("expected", "found"),
    [('java version "1.8.0_392"', "found Java 8 at"), ("Segmentation fault", "found one that does not tell")],
)
def test_an_old_java_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, expected: str, found: str
) -> None:
    """The error says what was found, where, and what to do."""
    monkeypatch.setenv("JAVA_HOME", str(_java_home(tmp_path, expected)))

    with pytest.raises(JavaError, match=f"{found}.*install Java 17 or newer"):
        require_java()


def test_a_missing_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java on the path, and a JAVA_HOME without one, are different mistakes."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaError, match="Java was not found, and Spark needs it; install"):
        require_java()

    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(JavaError, match=r"JAVA_HOME is .*gone, but there is no .*gone/bin/java; install"):
        require_java()
