"""What lies in a folder that nobody may look into is missing, and is told: `glob` and `os.walk` say nothing of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tieout.engine.kafka.folders import folders_of
from tieout.engine.sources import connect_files
from tieout.engine.sources.discovery import inputs_of

_NOBODY: Final = 65534
_NO_SPARK: Final[Any] = None


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that everybody may enter, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def closed(folder: Path, mode: int = 0) -> Iterator[None]:
    """Close the folder to whoever runs this; root, whom no mode stops, is nobody meanwhile."""
    folder.chmod(mode)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("in", 0),
        ("in/", 0o111),
        ("in/*", 0),
        ("in/*/p.jsonl", 0o444),
        ("in/*/p.jsonl", 0),
        ("in/*/*.jsonl", 0),
        ("in/**/*.jsonl", 0),
        ("in/**", 0o111),
        ("i?/day-[12]/*.jsonl", 0o111),
        ("in/day-2/p.jsonl", 0),
        ("in/day-2", 0),
    ],
)
def test_a_folder_that_cannot_be_looked_into_is_a_fault(home: Path, path: str, mode: int) -> None:
    """Beside it another is read: without a word, what the closed one holds would be missed by nobody."""
    for day in ("day-1", "day-2"):
        (home / "in" / day).mkdir(parents=True)
        (home / "in" / day / "p.jsonl").write_text("{}")
    # Asked first while it is open: Python loads here what nobody could load from root's home.
    assert inputs_of(_NO_SPARK, [path], home, "jsonl").faults == ()

    with closed(home / "in" / "day-2", mode):
        found = inputs_of(_NO_SPARK, [path], home, "jsonl")

    assert any(
        fault.startswith("in/day-2") and "cannot be read: Permission denied" in fault
        for fault in found.faults
    )
    assert {file.name for file in found.readable} <= {"in/day-1/p.jsonl"}


def test_a_pattern_that_matches_little_says_nothing_of_other_folders(home: Path) -> None:
    """What the contract does not lead into may be as closed as it likes."""
    for name in ("in/day-1", "in/other", "in/day-2.txt"):
        (home / name).mkdir(parents=True)
    (home / "in" / "day-1" / "p.jsonl").write_text("{}")

    with closed(home / "in" / "other"):
        found = inputs_of(_NO_SPARK, ["in/day-?/*.jsonl"], home, "jsonl")

    assert (len(found.readable), found.faults) == (1, ())


def test_a_name_that_is_too_long_is_a_fault(home: Path) -> None:
    """And no failure of the run: no file can be called so."""
    found = inputs_of(_NO_SPARK, ["x" * 300], home, "jsonl")

    assert "cannot be read: File name too long" in found.faults[0]


@pytest.mark.parametrize("path", ["logs-2", "logs-*"])
def test_a_log_directory_that_cannot_be_looked_into_is_a_fault(home: Path, path: str) -> None:
    """The broker's own user often owns it alone."""
    for name in ("logs-1/orders-0", "logs-2/orders-1"):
        (home / name).mkdir(parents=True)

    with closed(home / "logs-2"):
        found = folders_of([path], home, "orders")

    assert [fault.rpartition("/")[2] for fault in found.faults] == [
        "logs-2: cannot be read: Permission denied"
    ]


def test_a_connector_s_folder_that_cannot_be_looked_into_is_reported(home: Path) -> None:
    """The walk goes on, and keeps the reason."""
    (home / "topics" / "orders").mkdir(parents=True)
    reasons: list[OSError] = []

    with closed(home / "topics" / "orders"):
        assert list(connect_files._paths(home, reasons)) == []

    assert [(one.filename, one.strerror) for one in reasons] == [
        (str(home / "topics" / "orders"), "Permission denied")
    ]
