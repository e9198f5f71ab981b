"""What the manifest of a file sink names as its output, and where that lies now."""

from __future__ import annotations

import json

import pytest

from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.spark_manifest import (
    LogName,
    SinkFile,
    log_name,
    logged_files,
    origin_of,
    output_of,
)


def _line(path: str, action: str = "add", **fields: object) -> str:
    return json.dumps({"path": path, "size": 7, "isDir": False, "action": action, **fields})


def _log(*names: str) -> tuple[SinkFile, ...]:
    return tuple(SinkFile(f"/out/{name.removeprefix('-')}", 7, not name.startswith("-")) for name in names)


def test_a_path_is_decoded_once() -> None:
    """A percent sign in a folder's own name stays one; the scheme and its host are not part of the path."""
    content = f"v1\n{_line('hdfs://nn:8020/out/at=a%253Ab/part%201')}".encode()

    assert logged_files(content) == (SinkFile("/out/at=a%3Ab/part 1", 7, is_added=True),)
    assert logged_files(b"v1") == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"v2\n",
        b"v1\n{",
        b"v1\n",
        f"v1\n{_line('/out/a')}\n".encode(),
        b"v1\n[]",
        b"v1\n\xff",
        f"v1\n{_line('/out/a', size=-1)}".encode(),
        f"v1\n{_line('/out/a', action='move')}".encode(),
        f"v1\n{_line('/out/a', isDir=True)}".encode(),
        f"v1\n{_line('/out/../../etc/passwd')}".encode(),
        f"v1\n{_line('/out/%00')}".encode(),
        f"v1\n{_line('/out/%ff')}".encode(),
        f"v1\n{_line('http://[')}".encode(),
        f"v1\n{_line('///')}".encode(),
    ],
)
def test_a_log_of_another_form_is_refused(content: bytes) -> None:
    """Another version, a line that is cut off, a path that leads elsewhere."""
    with pytest.raises(FormatError):
        logged_files(content)


@pytest.mark.parametrize("name", ["01", "-1", "1.compact.tmp", "x", "9" * 30, "٣"])
def test_another_name_is_no_log(name: str) -> None:
    """Digits alone, and no zero before them."""
    assert log_name(name) is None


def test_the_last_compact_log_stands_for_all_before_it() -> None:
    """What was compacted away is not missed; what was deleted is no output."""
    logs = {
        LogName(8, is_compact=False): _log("old"),
        LogName(9, is_compact=True): _log("a", "b"),
        LogName(10, is_compact=False): _log("c", "-b"),
    }

    output, missing = output_of(logs)

    assert sorted(output) == ["/out/a", "/out/c"]
    assert missing == ()


def test_a_missing_log_is_named() -> None:
    """Behind the last compact one, and from the first on where none is compact."""
    assert output_of({LogName(9, is_compact=True): (), LogName(12, is_compact=False): ()})[1] == ("10 to 11",)
    assert output_of({LogName(1, is_compact=False): ()})[1] == ("0",)
    assert output_of({})[1] == ()


@pytest.mark.parametrize(
    ("paths", "there", "origin"),
    [
        (["/out/a", "/out/x=1/b"], set(), "/out"),
        (["/old/a", "/old/x=1/b"], {"a"}, "/old"),
        (["/old/x=1/b", "/old/x=2/c"], {"x=1/b", "x=2/c"}, "/old"),
        (["/old/a", "/old/b"], {"b"}, "/old"),
        (["/old/a"], set(), "/out"),
    ],
)
def test_a_moved_folder_is_found_by_the_files_in_it(paths: list[str], there: set[str], origin: str) -> None:
    """By the shortest end of a path that is there; partitions' folders are part of it."""
    assert origin_of(paths, "/out", lambda below: below in there) == origin
