"""The audit bundle: what DuckDB alone makes of it, what is noticed, and what is refused."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from tests.engine.histories import Case, load_cases
from tests.judging.bundles import bundle_of, with_changed
from tests.judging.kernel import is_of_one_topic_each, scope_of

from tieout.engine.bundle.opening import open_bundle
from tieout.engine.bundle.script import literal
from tieout.engine.bundle.verifying import verify
from tieout.engine.judging.bucket import Limits, connected, prepared
from tieout.engine.judging.terms import terms_of, type_of
from tieout.errors import BundleError

MOST_MB = 64
HISTORIES = 9


def _expected_names(case: Case) -> frozenset[str]:
    return frozenset({*case.expect.get("classes", {}), *case.expect.get("flags", {})})


def _chosen() -> list[Case]:
    """Return few histories that expect nearly every class and flag that golden histories do, the first with a loss."""
    cases = [case for case in load_cases() if is_of_one_topic_each(case)]
    found = [next(case for case in cases if {"LOST", "DELIVERED"} <= case.expect.get("classes", {}).keys())]
    seen = set(_expected_names(found[0]))
    while len(found) < HISTORIES:
        best = max(cases, key=lambda case: len(_expected_names(case) - seen))
        seen |= _expected_names(best)
        found.append(best)
    return found


CHOSEN = _chosen()


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of a history with a lost message."""
    case = CHOSEN[0]
    file = tmp_path_factory.mktemp("bundles") / "lost.zip"
    bundle_of(case, file)
    return file


def test_histories_of_many_classes_are_bundled() -> None:
    """Few of them must not look like agreement on many classes."""
    assert len(frozenset[str]().union(*map(_expected_names, CHOSEN))) > 20


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_a_bundle_says_what_its_statement_says(case: Case, tmp_path: Path) -> None:
    """Classes, flags, counts, offsets, latency, incidents and break ids, for every class that there is."""
    file = tmp_path / "bundle.zip"
    digest = bundle_of(case, file)

    found = verify(file, MOST_MB, digest)

    assert found.faults == ()
    assert sum(part.compared for part in found.parts if part.name == "class") > 0
    assert found.notes[0].endswith("the same as the installed ones of 0.1.0")


def test_duckdb_alone_says_the_same(lost: Path, tmp_path: Path) -> None:
    """The script needs nothing of ours: a Python that cannot import Tieout runs it in the unpacked folder."""
    with zipfile.ZipFile(lost) as packed:
        packed.extractall(tmp_path)
    site = Path(duckdb.__file__).parents[1]
    run = (
        f"import sys; sys.path.append({str(site)!r}); sys.modules['tieout'] = None; import duckdb; "
        "print(duckdb.sql(open('verify.sql').read()).fetchall())"
    )
    ended = subprocess.run(
        [sys.executable, "-S", "-c", run], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert ended.returncode == 0, ended.stderr
    last = re.findall(r"\('everything', (\d+), (\d+), (\d+)\)", ended.stdout)[0]
    assert int(last[0]) == int(last[1]) > 20
    assert last[2] == "0"


@pytest.mark.parametrize(
    "name",
    [
        "evidence/evidence_produced.parquet",
        "breaks.parquet",
        "contract.json",
        "verify.sql",
        "README.txt",
        "statement.json",
    ],
)
def test_a_changed_part_is_named(lost: Path, name: str, tmp_path: Path) -> None:
    """One byte more in any part is a difference that names it."""
    changed = with_changed(lost, name, lambda data: data + b" ")

    found = open_bundle(changed, tmp_path, MOST_MB)

    assert [fault for fault in found.faults if fault.startswith(f"{name}: changed")]


def test_a_damaged_part_is_named(lost: Path, tmp_path: Path) -> None:
    """A flipped bit within the zip is no reason to give up: the part is named."""
    data = bytearray(lost.read_bytes())
    with zipfile.ZipFile(lost) as packed:
        entry = packed.getinfo("evidence/evidence_produced.parquet")
    data[entry.header_offset + 30 + len(entry.filename) + 60] ^= 0xFF
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(data)

    found = verify(damaged, MOST_MB)

    assert not found.is_same
    assert "evidence/evidence_produced.parquet: damaged in the zip" in found.faults


def _with_another_count(folder: Path) -> None:
    path = folder / "statement.json"
    statement = json.loads(path.read_text())
    statement["classes"]["LOST"] += 1
    path.write_text(json.dumps(statement))


def _cut(path: Path, kept: int) -> None:
    """Leave so many rows of a Parquet file, or so many from its end on out."""
    rows = pq.read_table(path)
    pq.write_table(rows.slice(0, kept if kept >= 0 else rows.num_rows + kept), path)


def _without_a_row(folder: Path) -> None:
    _cut(folder / "evidence" / "evidence_delivered.parquet", -1)


def _without_breaks(folder: Path) -> None:
    _cut(folder / "breaks.parquet", 0)


@pytest.mark.parametrize(
    ("edit", "part"),
    [(_with_another_count, "class LOST"), (_without_a_row, "class "), (_without_breaks, "break ")],
)
def test_a_change_under_new_digests_is_found_by_judging_again(edit: Any, part: str, tmp_path: Path) -> None:
    """Who makes the manifest anew has its digests right, and the numbers wrong; the bundle's digest tells it, too."""
    case = CHOSEN[0]
    digest = bundle_of(case, tmp_path / "first.zip")
    bundle_of(case, tmp_path / "bundle.zip", before_packing=edit)

    found = verify(tmp_path / "bundle.zip", MOST_MB, digest)

    assert any(fault.startswith(part) for fault in found.faults)
    assert any(fault.startswith("the bundle: expected digest") for fault in found.faults)


def test_another_verdict_is_found(tmp_path: Path) -> None:
    """The verdict follows from the numbers, by the judge of the same version."""

    def kept(folder: Path) -> None:
        path = folder / "statement.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"verdict": "KEPT"}))

    case = CHOSEN[0]
    bundle_of(case, tmp_path / "bundle.zip", before_packing=kept)

    found = verify(tmp_path / "bundle.zip", MOST_MB)

    assert [fault for fault in found.faults if fault.startswith("verdict: stated KEPT, found ")]


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO 'stolen.csv';",
        "ATTACH 'other.db';",
        "INSTALL httpfs;",
        "SET memory_limit = '1TB';",
        "PREPARE p AS COPY (SELECT 1) TO 'stolen.csv';",
        "SELECT content FROM read_text('/etc/passwd');",
        "CREATE TABLE leaked AS FROM read_text('../../../../etc/passwd');",
    ],
)
def test_the_sql_of_a_bundle_reads_nothing_but_the_bundle(sql: str, tmp_path: Path) -> None:
    """Its SQL is a stranger's: it writes no file, loads no extension, and reads no other file."""

    def with_more(folder: Path) -> None:
        path = folder / "verify.sql"
        path.write_text(sql + path.read_text())

    bundle_of(CHOSEN[0], tmp_path / "bundle.zip", before_packing=with_more)

    with pytest.raises(
        BundleError, match=r"verify\.sql: (expected only statements that judge|fails with DuckDB)"
    ):
        verify(tmp_path / "bundle.zip", MOST_MB)


def _zip(file: Path, *entries: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for entry, data in entries:
            packed.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return file


def _link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("statement.json")
    entry.create_system = 3
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([("../outside.json", b"{}")], r"found '\.\./outside\.json'"),
        ([("/tmp/outside.json", b"{}")], r"found '/tmp/outside\.json'"),  # noqa: S108 - never written
        ([("evidence/../../outside.json", b"{}")], "expected the names of a bundle's parts"),
        ([(_link(), b"/etc/passwd")], "found a link"),
        (
            [("statement.json", b"0" * (3 << 20))],
            r"unpacks to 3 megabytes: expected at most 1; raise --max-mb",
        ),
        ([("statement.json", b"{}")], r"found none of manifest\.json, contract\.json"),
        ([(f"evidence/e{number}.parquet", b"") for number in range(300)], "has 300 entries"),
    ],
    ids=["parent", "absolute", "through a folder", "link", "bomb", "incomplete", "many"],
)
def test_a_zip_that_is_no_bundle_is_refused_before_it_is_unpacked(
    entries: list[tuple[zipfile.ZipInfo | str, bytes]], message: str, tmp_path: Path
) -> None:
    """Nothing is written outside the folder, and nothing within it."""
    file = _zip(tmp_path / "given.zip", *entries)
    folder = tmp_path / "folder"
    folder.mkdir()

    with pytest.raises(BundleError, match=message):
        open_bundle(file, folder, max_mb=1)

    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "given.zip"]


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    """With words, not with a stack trace."""
    file = tmp_path / "given.zip"
    file.write_bytes(b"no zip at all")

    with pytest.raises(BundleError, match="expected the zip of a bundle, found none"):
        verify(file, MOST_MB)


def test_a_device_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    """The one has no end, the other may have no beginning."""
    os.mkfifo(tmp_path / "pipe.zip")
    (tmp_path / "device.zip").symlink_to("/dev/zero")

    for name, kind in (("pipe.zip", "a named pipe"), ("device.zip", "a device")):
        with pytest.raises(OSError, match=f"expected a file, found {kind}"):
            verify(tmp_path / name, MOST_MB)


def test_a_manifest_of_another_form_is_refused(lost: Path) -> None:
    """A bundle of a later form is not guessed at."""
    later = b'"bundle_version": 2'
    changed = with_changed(lost, "manifest.json", lambda data: data.replace(b'"bundle_version": 1', later))

    with pytest.raises(BundleError, match="bundle_version"):
        verify(changed, MOST_MB)


@pytest.mark.parametrize("case", CHOSEN[:5], ids=str)
def test_variables_are_written_as_they_were_set(case: Case) -> None:
    """What the script assigns is what the connection was given, for every variable."""
    terms = terms_of(scope_of(case, case.rows, case.present))
    with connected(Limits()) as given:
        prepared(given, terms)
        for name, value in terms.values.items():
            is_map = type_of(name).startswith("MAP")
            text = f"SELECT CAST({'MAP ' if is_map else ''}{literal(value)} AS {type_of(name)}) = getvariable('{name}')"
            assert value is None or given.sql(text).fetchall() == [(True,)], name


def test_literals_are_safe() -> None:
    """Quotes within text end no literal, and times and durations keep their microseconds."""
    value = {"a'b": ["'; DROP TABLE x; --", None, True, 7]}
    text = f"SELECT {literal(value)}, {literal(timedelta(days=-1, microseconds=3))}"
    (found,) = duckdb.connect().execute("SELECT " + literal("it's; --")).fetchall()

    assert found == ("it's; --",)
    assert literal(datetime(2026, 11, 20, 10, 0, 0, 1, tzinfo=UTC).replace(tzinfo=None)) == (
        "TIMESTAMP '2026-11-20 10:00:00.000001'"
    )
    assert "to_microseconds(-86399999997)" in text
