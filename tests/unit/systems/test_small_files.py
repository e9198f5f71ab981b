"""Small files of another system's state: what is too large, of no time, or not what its checksums say."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.engine.sources.checkpoints import written

from tieout.engine.sources.small_files import small_file, time_of


def test_a_file_is_read_with_its_digest_and_time(tmp_path: Path) -> None:
    """Where its checksums hold, or are not there."""
    path = written(tmp_path / "0", b"v1\n" * 400)

    for _ in range(2):
        found = small_file(path, tmp_path, tmp_path)
        assert (found.content, found.input.fault, found.input.name) == (b"v1\n" * 400, None, "0")
        assert found.modified_at is not None
        path.with_name(".0.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("content", [b"v1\n" * 399, b"v2\n" + b"v1\n" * 399, b"v1\n" * 401, b""])
def test_a_file_that_is_not_what_its_checksums_say_has_a_fault(tmp_path: Path, content: bytes) -> None:
    """Cut off, changed, longer or empty."""
    path = written(tmp_path / "0", b"v1\n" * 400)
    path.write_bytes(content)

    assert small_file(path, tmp_path, tmp_path).input.fault == (
        "its checksum in .0.crc does not hold: cut off or changed"
    )


def test_a_file_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    """Nor is one that is gone."""
    path = written(tmp_path / "0", b"v1\n" * 4000)

    found = small_file(path, tmp_path, tmp_path, most=2048)

    assert (found.content, found.input.fault) == (b"", "expected at most 2 kB, found more")
    assert (
        small_file(tmp_path / "1", tmp_path, tmp_path).input.fault
        == "cannot be read: No such file or directory"
    )


def test_a_time_beyond_the_calendar_is_none() -> None:
    """Some file systems take any number."""
    assert time_of(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert time_of(10**12 * 10**9) is None
    assert time_of(-(10**12) * 10**9) is None


def test_a_name_with_a_zero_byte_is_no_files(tmp_path: Path) -> None:
    """A checkpoint may name one, and the file system is not asked for it: that ended the run."""
    found = small_file(tmp_path / "a\0b", tmp_path, tmp_path)

    assert (found.input.name, found.input.fault) == (
        "a\\0b",
        "expected the name of a file, found one with a zero byte",
    )
