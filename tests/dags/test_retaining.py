"""Only what Tieout wrote is deleted, and only what is old enough."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tieout.orchestration import retaining
from tieout.orchestration.retaining import delete_statements

BEFORE = datetime(2026, 11, 20, 10, tzinfo=UTC)


def folder(path: Path, *, is_statement: bool = True) -> Path:
    """Make a folder that looks like a window's."""
    path.mkdir(parents=True)
    (path / ("statement.json" if is_statement else "mine.txt")).write_text("{}")
    return path


def test_old_statements_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    """Neither younger ones, nor what has another name or no statement in it, nor what a link leads to."""
    old = folder(tmp_path / "orders" / "2026-11-20T095959Z")
    elsewhere = folder(tmp_path.parent / "elsewhere")
    kept = [
        folder(tmp_path / "orders" / "2026-11-20T100000Z"),
        folder(tmp_path / "orders" / "2020-notes"),
        folder(tmp_path / "payments" / "2020-01-01T000000Z", is_statement=False),
    ]
    (tmp_path / "payments" / "2020-01-02T000000Z").symlink_to(elsewhere)

    assert delete_statements(tmp_path, BEFORE) == 1

    assert not old.exists()
    assert all(path.exists() for path in (*kept, elsewhere))
    assert delete_statements(tmp_path / "missing", BEFORE) == 0


def test_one_pass_deletes_a_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first; the next pass goes on."""
    monkeypatch.setattr(retaining, "FOLDERS_PER_PASS", 1)
    first, second = (folder(tmp_path / "orders" / f"2026-11-0{day}T000000Z") for day in (1, 2))

    assert delete_statements(tmp_path, BEFORE) == 1

    assert (first.exists(), second.exists()) == (False, True)
