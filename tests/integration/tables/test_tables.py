"""Delta and Iceberg tables that Spark wrote, read as their current snapshot: see playing.py, which has the scenes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.kafka_faults.selection import IS_LEFT_OUT, VARIABLE

from tieout import settings

ROOT = Path(__file__).parents[3]
_PATIENCE = 800
_LOGS = {"iceberg": "metadata", "delta": "_delta_log"}

Played = dict[str, Any]


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Played]]:
    """A process that plays the scenes in the format that it is given."""
    if IS_LEFT_OUT:
        pytest.skip(f"NOT TESTED, the jars of table formats are left out: {VARIABLE}=none")
    found = {jar.name.partition("-")[0] for jar in settings.jars(_LOGS)}
    if not set(_LOGS) <= found:
        pytest.fail(
            f"no table to read: needs the jars of `make jars`; or leave them out with {VARIABLE}=none"
        )
    folder = tmp_path_factory.mktemp("tables")
    command = [sys.executable, "-m", "tests.integration.tables.playing", str(folder)]
    # Half of the time goes into compiling what runs once.
    variables = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    log = folder / "log.txt"
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

    def play(table_format: str) -> Played:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{table_format}\n")
        process.stdin.flush()
        reported = next((line for line in process.stdout if line.startswith("{")), None)
        assert reported is not None, log.read_text()[-2000:]
        return Played(json.loads(reported))

    try:
        yield play
    finally:
        process.communicate(timeout=_PATIENCE)


@pytest.fixture(scope="module", params=_LOGS)
def table_format(request: pytest.FixtureRequest) -> str:
    """Each format in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def scenes(table_format: str, player: Callable[[str], Played]) -> Played:
    """What the engine made of each scene."""
    return player(table_format)


@pytest.mark.parametrize("table_format", ["iceberg"], indirect=True)
def test_a_table_without_a_snapshot_is_present(scenes: Played) -> None:
    """It says that nothing arrived, which is not the same as no table."""
    found = scenes["empty"]

    assert (found["ids"], found["is_present"], found["is_sound"]) == ([], True, True)
    assert found["present"] == ["message_id", "offset", "processed_at"]


def test_the_current_snapshot_is_read(scenes: Played, table_format: str) -> None:
    """Without the row that was deleted, though its file still holds it; the snapshot is named in the digest."""
    found = scenes["current"]

    assert found["ids"] == ["m-0", "m-1", "m-3", "m-4", "m-5"]
    assert (found["is_sound"], found["unparsed"], found["notes"]) == (True, 0, [])
    assert found["complete_until"] == "2026-11-20 12:00:00+00:00", "now() is when the snapshot was asked for"
    (digest,) = found["digests"]
    assert digest.startswith(f"{table_format}-table:")
    assert digest.endswith("  orders")


def test_the_first_rows_are_looked_at(scenes: Played) -> None:
    """As many as asked for, with all columns, and with times that name their zone."""
    expected = [["message_id", "offset", "processed_at"], "2026-11-20 12:00:00+00:00"]

    assert scenes["looked"] == [expected, expected]


def test_a_write_meanwhile_changes_nothing(scenes: Played) -> None:
    """Which snapshot counts is settled when the table is looked at; the next run finds the newer one."""
    before, has_size = scenes["meanwhile"]
    after = scenes["several"]

    assert before["ids"] == scenes["current"]["ids"]
    assert before["digests"] == scenes["current"]["digests"]
    assert after["ids"] == [*before["ids"], "m-9"]
    assert after["digests"][0] != before["digests"][0]
    assert has_size


def test_a_value_of_a_wrong_type_is_named_with_its_file(scenes: Played, table_format: str) -> None:
    """As in any other file."""
    found = scenes["faulty"]

    (note,) = found["notes"]
    assert note.startswith("faulty/data/" if table_format == "iceberg" else "faulty/part-")
    assert note.endswith(".parquet: offset: expected a whole number below 2^62, found x")
    assert (found["unparsed"], found["is_sound"]) == (1, False)


def test_each_table_of_a_list_is_read_or_named(scenes: Played) -> None:
    """A list of tables is a promise about each of them; one that is named twice is read once."""
    found = scenes["several"]

    assert "m-9" in found["ids"]
    assert "nowhere: no such table" in found["notes"]
    assert len(found["digests"]) == 2
    assert not found["is_sound"]


def test_a_table_without_a_column_of_contents_says_so(scenes: Played) -> None:
    """Null in it says nothing, unlike null in the table that has the column."""
    reported = {content for name, content in scenes["lacking"] if name != "m-20"}

    assert reported == {"lacks: payload_hash"}
    assert ["m-20", None] in scenes["lacking"]


def test_what_is_no_table_is_refused(scenes: Played, table_format: str) -> None:
    """A plain folder, a pattern, and an Iceberg table whose current snapshot only its catalog knows."""
    plain, pattern, catalogued = scenes["refused"]

    place = "ledgers.delivered.source.path: "
    assert plain.startswith(
        f"{place}expected a table's folder, found plain without a folder {_LOGS[table_format]}"
    )
    assert (
        pattern
        == f"{place}expected the folder of a table, found the pattern ord*; name the folder, or list several"
    )
    if table_format == "iceberg":
        assert catalogued.startswith(f"{place}catalogued/metadata does not say which snapshot is current")


@pytest.mark.parametrize(
    ("scene", "reason"),
    [
        ("torn", "torn: the table cannot be opened: "),
        ("incomplete", "faulty: does not read through; a file of its snapshot is missing or corrupt"),
    ],
)
def test_a_damaged_table_is_never_an_empty_one(scenes: Played, scene: str, reason: str) -> None:
    """A log that is cut off, or a file that the log names and nobody has: counted, named, and not covered."""
    found = scenes[scene]

    assert found["ids"] == []
    assert (found["is_present"], found["is_sound"], found["unparsed"]) == (True, False, 1)
    (note,) = found["notes"]
    assert note.startswith(reason)


@pytest.mark.parametrize("table_format", ["iceberg"], indirect=True)
def test_a_state_that_the_contract_names_is_as_old_as_it_is(scenes: Played) -> None:
    """What a catalog's table was at a time is complete until that time, and not until now."""
    found = scenes["named"]

    assert found["ids"] == scenes["current"]["ids"]
    assert found["digests"][0].split("  ")[0] == scenes["current"]["digests"][0].split("  ")[0]
    assert found["complete_until"] > "2026-11-20 12:00:00+00:00", "the table was written after the tests' now"
