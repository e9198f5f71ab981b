"""The output of a file sink that a real query wrote, and what else lies in its folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, evidence_of, reading_of, rows_of
from tests.engine.sources.checkpoints import written

from tieout.contracts import SparkFilesSource
from tieout.engine.evidence import Evidence
from tieout.engine.sources.source import Reading, Request
from tieout.engine.sources.spark_files import read
from tieout.errors import SourceError
from tieout.model import Ledger

_FORMATS = {"json": "jsonl", "parquet": "parquet"}
_COMPACT_EACH = "spark.sql.streaming.fileSink.log.compactInterval"


@pytest.fixture(scope="module", params=["json", "parquet"])
def sink(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Five batches of a message each, into folders by day; the manifest is compacted with the third."""
    folder = tmp_path_factory.mktemp(request.param)
    for number in range(5):
        line = json.dumps({"message_id": f"m{number}", "day": f"2026:{number % 2}"})
        source = folder / "in" / f"{number}.json"
        source.parent.mkdir(exist_ok=True)
        source.write_text(line)
        os.utime(source, (number + 1, number + 1))
    spark.conf.set(_COMPACT_EACH, "3")
    rows = spark.readStream.schema("message_id STRING, day STRING").option("maxFilesPerTrigger", 1)
    query = (
        rows.json(str(folder / "in"))
        .writeStream.format(request.param)
        .partitionBy("day")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "out files"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.conf.unset(_COMPACT_EACH)
    return folder / "out files"


@pytest.fixture
def out(sink: Path, tmp_path: Path) -> Path:
    """A copy of the folder, which so has been moved since its manifest was written."""
    return Path(shutil.copytree(sink, tmp_path / sink.parent.name / "moved"))


def _source(out: Path) -> dict[str, Any]:
    format_ = _FORMATS["json" if "json" in out.parent.name else "parquet"]
    return {"kind": "spark_files", "path": out.name, "format": format_, "taken_at": "now"}


def _evidence(spark: SparkSession, out: Path, ledger: str = "delivered", **spec: Any) -> Evidence:
    return evidence_of(spark, out.parent, ledger, source=_source(out), **spec)


def _reading(spark: SparkSession, out: Path) -> Reading:
    return reading_of(spark, out.parent, "delivered", _source(out))


def _ids(evidence: Evidence) -> list[str]:
    return [row[0] for row in rows_of(evidence, "message_id")]


def _id_in(spark: SparkSession, path: Path) -> str:
    """The one message in a file."""
    reader = spark.read.json if path.suffix == ".json" else spark.read.parquet
    return str(reader(str(path)).collect()[0]["message_id"])


def _parts(out: Path) -> list[Path]:
    return sorted(out.rglob("day=*/part-*"))


def test_the_output_is_what_the_manifest_names(spark: SparkSession, sink: Path) -> None:
    """Through a compact log and those behind it; where it was written, whatever signs are in its path."""
    assert (sink / "_spark_metadata" / "2.compact").is_file()

    found = _evidence(spark, sink)

    assert _ids(found) == ["m0", "m1", "m2", "m3", "m4"]
    assert found.coverage.is_sound
    assert found.coverage.complete_until == NOW
    assert len(found.coverage.digests) == 3 + 5
    assert found.coverage.notes == ("5 rows without processed_at",)


def test_a_moved_folder_is_read_where_it_is(spark: SparkSession, out: Path) -> None:
    """Whether its files are still in the old place as well or not."""
    found = _evidence(spark, out)

    assert _ids(found) == ["m0", "m1", "m2", "m3", "m4"]
    assert found.coverage.is_sound
    assert any("names files in" in note for note in found.coverage.notes)


def test_an_orphan_is_no_output_and_is_staged(spark: SparkSession, out: Path) -> None:
    """It is told in a note; of one that is cut off, what does not read is left out."""
    orphan = _parts(out)[0].with_name("part-00000-orphan" + "".join(_parts(out)[0].suffixes))
    shutil.copy(_parts(out)[0], orphan)
    (orphan.parent / f"torn{orphan.suffix}").write_bytes(orphan.read_bytes()[:-3])

    delivered, staged = _evidence(spark, out), _evidence(spark, out, "staged")

    assert _ids(delivered) == ["m0", "m1", "m2", "m3", "m4"]
    assert any(
        note.startswith("2 files that _spark_metadata does not name are no output")
        for note in delivered.coverage.notes
    )
    assert rows_of(staged, "message_id", "reason") == [(_id_in(spark, orphan), "not in _spark_metadata")]
    assert delivered.coverage.is_sound
    assert staged.coverage.is_sound


def test_files_that_a_sink_forgot_are_before_the_output_s_beginning(spark: SparkSession, out: Path) -> None:
    """With `retention` a compacted manifest names newer files alone; an orphan among those is no reason."""
    named = _parts(out)
    shutil.copy(named[-1], named[-1].with_name(f"part-9{named[-1].name[4:]}"))
    assert _reading(spark, out).complete_from is None
    log = next((out / "_spark_metadata").glob("*.compact"))
    version, oldest, *others = log.read_text().split("\n")
    log.write_text("\n".join((version, *others)))
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    forgotten = next(path for path in named if path.name in oldest)

    os.utime(forgotten, (1, 1))

    reading = _reading(spark, out)
    assert reading.complete_from is not None
    assert any("the sink forgets its files (retention)" in note for note in reading.notes)


def test_a_folder_without_orphans_has_nothing_staged(spark: SparkSession, sink: Path) -> None:
    """That is evidence, and no fault."""
    found = _evidence(spark, sink, "staged")

    assert _ids(found) == []
    assert found.coverage.is_sound


def test_when_a_file_was_written_may_be_the_time_of_its_rows(spark: SparkSession, sink: Path) -> None:
    """Where the folder is the sink's own; a copy has none."""
    columns = {"processed_at": "file_modified_at"}
    known = {name: value for name, value in _source(sink).items() if name != "taken_at"}

    own = _evidence(spark, sink, columns=columns)
    copied = evidence_of(spark, sink.parent, "delivered", source=known, columns=columns)

    written_at = {int(path.stat().st_mtime_ns // 1_000_000) for path in _parts(sink)}
    assert {round(row[0].timestamp() * 1000) for row in rows_of(own, "processed_at")} == written_at
    assert {row[0] for row in rows_of(copied, "processed_at")} == {None}
    assert copied.coverage.complete_until is None


def _without_file(out: Path) -> str:
    path = _parts(out)[2]
    path.unlink()
    return f"{path.relative_to(out.parent)}: cannot be read"


def _with_short_file(out: Path) -> str:
    path = _parts(out)[1]
    path.write_bytes(path.read_bytes() + b"\n")
    path.with_name(f".{path.name}.crc").unlink()
    return f"{path.name}: "


def _without_log(out: Path) -> str:
    (out / "_spark_metadata" / "3").unlink()
    return "_spark_metadata/3: not there"


def _with_torn_log(out: Path) -> str:
    path = out / "_spark_metadata" / "4"
    path.write_bytes(path.read_bytes()[:-20])
    return "_spark_metadata/4"


def _with_log_cut_at_a_line(out: Path) -> str:
    path = out / "_spark_metadata" / "2.compact"
    path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[:2]))
    return "_spark_metadata/2.compact: its checksum"


def _with_later_version(out: Path) -> str:
    written(out / "_spark_metadata" / "4", b"v2\n")
    return "_spark_metadata/4: expected version v1"


def _with_stranger(out: Path) -> str:
    content = (out / "_spark_metadata" / "4").read_bytes()
    line = json.dumps({"path": "file:///etc/hostname", "size": 9, "isDir": False, "action": "add"})
    written(out / "_spark_metadata" / "4", content + b"\n" + line.encode())
    return "/etc/hostname: named by _spark_metadata"


def _with_another_name(out: Path) -> str:
    (out / "_spark_metadata" / "4.tmp").touch()
    return "_spark_metadata/4.tmp"


@pytest.mark.parametrize(
    "damage",
    [
        _without_file,
        _with_short_file,
        _without_log,
        _with_torn_log,
        _with_log_cut_at_a_line,
        _with_later_version,
        _with_stranger,
        _with_another_name,
    ],
)
def test_a_damaged_folder_does_not_cover_and_names_the_file(
    spark: SparkSession, out: Path, damage: Callable[[Path], str]
) -> None:
    """A file that is gone or of another size, a log that is missing, cut off or names a file elsewhere."""
    reported = damage(out)

    found = _reading(spark, out)

    assert found.unparsed_inputs > 0
    assert any(reported in note for note in found.notes), found.notes


def test_a_folder_without_a_manifest_is_no_evidence(spark: SparkSession, out: Path) -> None:
    """Nobody says then which files are output."""
    shutil.rmtree(out / "_spark_metadata")

    found = _evidence(spark, out)

    assert not found.coverage.is_sound
    assert _ids(found) == []
    assert "no folder _spark_metadata" in found.coverage.notes[0]


@pytest.mark.parametrize("path", ["moved", "moved/*/part-*"])
def test_the_kind_files_refuses_such_a_folder(spark: SparkSession, out: Path, path: str) -> None:
    """Orphans would be read as output."""
    is_json = "json" in out.parent.name
    source = {"kind": "files", "path": path, "format": "jsonl" if is_json else "parquet"}

    with pytest.raises(SourceError, match="moved, where _spark_metadata says which ones are"):
        evidence_of(spark, out.parent, "delivered", source=source)


def test_another_ledger_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A sink's folder has effects, or what was to become some."""
    with pytest.raises(SourceError, match="is evidence for delivered and staged only"):
        read(SparkFilesSource(path="x", format="jsonl"), Request(spark, Ledger.PRODUCED, tmp_path, NOW))
