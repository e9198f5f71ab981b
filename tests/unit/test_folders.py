"""A result folder is whole under its name at every moment, and what killed processes left is removed."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tieout.errors import DiskFullError
from tieout.folders import replaced


def _write(directory: Path, text: str) -> None:
    with replaced(directory) as staged:
        (staged / "a").write_text(text)


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """The first time it is made, parents included; later nothing of the old one is left, nor anything beside it."""
    result = tmp_path / "deep" / "result"
    _write(result, "one")
    (result / "b").touch()

    _write(result, "two")

    assert [entry.name for entry in result.iterdir()] == ["a"]
    assert (result / "a").read_text() == "two"
    assert [entry.name for entry in result.parent.iterdir()] == ["result"]
    assert result.stat().st_mode & 0o777 == 0o755


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    """And nothing beside it."""
    _write(tmp_path / "result", "one")

    def fail() -> None:
        with replaced(tmp_path / "result") as staged:
            (staged / "a").write_text("half")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()

    assert (tmp_path / "result" / "a").read_text() == "one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result"]


WRITER = """
import sys
from pathlib import Path
from tieout.folders import replaced
n = 0
while True:
    n += 1
    with replaced(Path(sys.argv[1])) as staged:
        for name in ("a", "b"):
            (staged / name).write_text(str(n))
    print(n, flush=True)
"""


def test_a_killed_writer_leaves_a_whole_folder(tmp_path: Path) -> None:
    """At whatever moment: 20 writers are killed, and readers find both files of one writing all along."""
    result, seen = tmp_path / "result", 0
    for round_ in range(20):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(result)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"1\n"
        until = time.monotonic() + 0.05 + round_ * 0.003
        while time.monotonic() < until:
            os.close(os.open(result, os.O_RDONLY | os.O_DIRECTORY))
            seen += 1
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert sorted(entry.name for entry in result.iterdir()) == ["a", "b"]
        assert (result / "a").read_text() == (result / "b").read_text()
    assert seen > 1000

    _write(result, "last")

    assert [entry.name for entry in tmp_path.iterdir()] == ["result"]


def test_what_a_living_writer_stages_is_left_alone(tmp_path: Path) -> None:
    """Two at a time: the later one to end has the name, and neither removes the other's folder."""
    result = tmp_path / "result"

    with replaced(result) as staged:
        _write(result, "other")
        (staged / "a").write_text("mine")

    assert (result / "a").read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result"]


def test_a_file_system_that_exchanges_no_names_renames_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As network file systems do; a mock, for none is here."""

    class Libc:
        @staticmethod
        def renameat2(*_arguments: object) -> int:
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc)
    monkeypatch.setattr(ctypes, "get_errno", lambda: errno.EINVAL)
    _write(tmp_path / "result", "one")

    _write(tmp_path / "result", "two")

    assert (tmp_path / "result" / "a").read_text() == "two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result"]


FULL = """
set -e
mount -t tmpfs -o size=64k none "$1"
"$2" -c 'if True:
    import sys
    from pathlib import Path
    from tieout.errors import DiskFullError
    from tieout.folders import replaced
    result = Path(sys.argv[1]) / "result"
    with replaced(result) as staged:
        (staged / "a").write_text("small")
    try:
        with replaced(result) as staged:
            (staged / "a").write_bytes(bytes(1_000_000))
    except DiskFullError as error:
        print(error)
    print((result / "a").read_text(), len(list(result.parent.iterdir())))
' "$1"
"""


def test_a_full_device_is_named(tmp_path: Path) -> None:
    """What was there before is whole, and there is no litter."""
    ran = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            FULL,
            "sh",
            str(tmp_path),
            sys.executable,
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stdout == f"no space left on the device of {tmp_path}\nsmall 1\n", ran.stderr


def test_another_error_is_reported_unchanged(tmp_path: Path) -> None:
    """A parent that is a file is no full device."""
    (tmp_path / "file").touch()

    with pytest.raises(OSError, match="file") as raised:
        _write(tmp_path / "file" / "result", "x")

    assert not isinstance(raised.value, DiskFullError)
