"""A standalone worker's file as Java writes it, and positions as Connect's JSON."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tieout.engine.systems.connect_positions import SourcePosition, source_position
from tieout.engine.systems.java_maps import byte_map
from tieout.engine.systems.json_texts import FormatError

_WRITER = """
import java.io.*; import java.nio.file.*; import java.util.*;
public class Writer {
    public static void main(String[] args) throws Exception {
        Map<Object, Object> map = args[1].equals("tree") ? new TreeMap<>() : new HashMap<>();
        for (int i = 2; i < args.length; i += 2) map.put(value(args[1], args[i]), value("", args[i + 1]));
        OutputStream file = Files.newOutputStream(Paths.get(args[0]));
        try (ObjectOutputStream out = new ObjectOutputStream(file)) { out.writeObject(map); }
    }
    static Object value(String form, String text) throws Exception {
        return text.equals("-") ? null : form.isEmpty() ? text.getBytes("UTF-8") : text;
    }
}
"""
_KEY = b'["src",{"filename":"/in"}]'


def _serialised(folder: Path, form: str, *entries: str) -> bytes:
    """What Java writes of a map."""
    java = shutil.which("java")
    assert java is not None
    (folder / "Writer.java").write_text(_WRITER)
    target = folder / "map"
    subprocess.run(
        [java, "-XX:TieredStopAtLevel=1", str(folder / "Writer.java"), str(target), form, *entries],
        check=True,
    )
    return target.read_bytes()


@pytest.fixture(scope="module")
def serialised(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A map of three entries, one of them deleted."""
    folder = tmp_path_factory.mktemp("java")
    keys = ['["src",{"filename":"/in"}]', '["src",{"filename":"/old"}]', '["other",{"t":"x"}]']
    return _serialised(folder, "", keys[0], '{"position":30}', keys[1], "-", keys[2], "{}")


def test_what_java_wrote_is_read(serialised: bytes, tmp_path: Path) -> None:
    """Bytes and null, whatever their order; an empty map as well."""
    assert sorted(byte_map(serialised), key=str) == [
        (b'["other",{"t":"x"}]', b"{}"),
        (_KEY, b'{"position":30}'),
        (b'["src",{"filename":"/old"}]', None),
    ]
    assert byte_map(_serialised(tmp_path, "")) == []


def test_a_key_stands_for_itself_and_once(serialised: bytes, tmp_path: Path) -> None:
    """Two positions of one place would contradict each other."""
    for keys in (("a", "a"), ("-", "a")):
        with pytest.raises(FormatError, match="expected each key once"):
            byte_map(_serialised(tmp_path, "", keys[0], "x", keys[1], "y"))


@pytest.mark.parametrize("form", ["tree", "text"])
def test_another_object_is_refused(tmp_path: Path, form: str) -> None:
    """A map of another class, and one whose keys are texts."""
    with pytest.raises(FormatError):
        byte_map(_serialised(tmp_path, form, "a", "b"))


def test_a_file_is_refused_wherever_it_is_cut_off(serialised: bytes) -> None:
    """A worker that was killed while it wrote leaves such a file; neither may it go on."""
    for end in range(len(serialised)):
        with pytest.raises(FormatError):
            byte_map(serialised[:end])
    with pytest.raises(FormatError, match="found more"):
        byte_map(serialised + b"\0")


def test_numbers_in_the_file_are_no_sizes_of_work(serialised: bytes) -> None:
    """Neither the count of entries nor a length that is beyond the file."""
    count_at = serialised.index(b"\x77\x08") + 6
    length_at = serialised.index(_KEY) - 4
    began = time.process_time()

    for place in (count_at, length_at):
        for number in (2**31 - 1, 2**31, 2**32 - 1):
            changed = serialised[:place] + number.to_bytes(4, "big") + serialised[place + 4 :]
            with pytest.raises(FormatError):
                byte_map(changed)

    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("value", "offset"),
    [(b'{"position":30}', 30), (b'{"position":"30","more":1}', 30), (None, None), (b"null", None)],
)
def test_a_position_is_the_connector_s_own(value: bytes | None, offset: int | None) -> None:
    """A value that is nothing deletes it; another connector's is none."""
    fields = ("filename", "position")

    assert source_position(_KEY, value, "src", fields) == SourcePosition("src", "/in", offset)
    assert source_position(_KEY, value, "other", fields) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b"{}"),
        (b'{"filename":"/in"}', b"{}"),
        (b'["src"]', b"{}"),
        (b'["src",{"file":"/in"}]', b'{"position":30}'),
        (_KEY, b"{}"),
        (_KEY, b"30"),
        (_KEY, b'{"position":-1}'),
        (_KEY, b'{"position":true}'),
        (_KEY, b'{"position":30'),
        (_KEY, b'{"position":30,"position":40}'),
        (_KEY, b'{"position":4611686018427387904}'),
        (b"\xff", b"{}"),
    ],
)
def test_a_position_of_another_form_is_refused(key: bytes, value: bytes) -> None:
    """A key that is none, a field that is not there, a number that is no position."""
    with pytest.raises(FormatError):
        source_position(key, value, "src", ("filename", "position"))
