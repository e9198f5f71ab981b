"""Java's classes are kept from the second command on, and an archive that Java refuses is given up."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from tieout.cli.java_classes import ClassArchive

JAVA = 'openjdk version "17.0.15"'


@pytest.fixture(autouse=True)
def spark_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An installation of Spark, and a home, of the test's own."""
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH"):
        monkeypatch.delenv(name, raising=False)
    return home


def started(archive: ClassArchive) -> tuple[str, Path | None]:
    """Return the options that Java is started with, and the draft that it is to write."""
    options, draft = archive.started(lambda given: given)
    return str(options), draft


def test_the_first_command_writes_a_note_the_second_an_archive_and_later_ones_map_it() -> None:
    """A container that runs one command pays for no archive."""
    archive = ClassArchive.of(JAVA)
    assert started(archive) == ("", None)

    options, draft = started(archive)
    assert draft is not None
    assert options.startswith(f"-XX:ArchiveClassesAtExit={draft} ")

    assert archive.file is not None
    draft.touch()
    draft.rename(archive.file)
    assert started(archive) == (f"-XX:SharedArchiveFile={archive.file} -Xlog:disable", None)


@pytest.mark.parametrize(("code", "is_kept"), [(0, True), (1, False), (None, False)])
def test_the_archive_is_kept_once_java_has_ended_well(
    monkeypatch: pytest.MonkeyPatch, code: int | None, *, is_kept: bool
) -> None:
    """What Java did not write to its end, or not in time, is given up: the command itself has done its work."""
    archive = ClassArchive.of(JAVA)
    started(archive)
    _, draft = started(archive)
    assert draft is not None
    assert archive.file is not None
    draft.write_bytes(b"classes")
    killed = []

    def wait(seconds: float) -> int:
        if code is None:
            raise subprocess.TimeoutExpired("java", seconds)
        return code

    java = SimpleNamespace(stdin=io.BytesIO(), wait=wait, kill=lambda: killed.append(True))
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=java, shutdown=lambda: None))

    archive.finish(draft, lambda _step: None)

    assert (archive.file.is_file(), draft.exists()) == (is_kept, False)
    assert bool(killed) is (code is None)


def test_commands_that_fail_leave_one_draft() -> None:
    """Java writes its draft as it ends, whatever became of the command: always to one place."""
    archive = ClassArchive.of(JAVA)
    started(archive)

    assert started(archive)[1] == started(archive)[1] is not None


def test_an_archive_that_java_does_not_start_with_is_given_up() -> None:
    """As one on a disk that was full."""
    archive = ClassArchive.of(JAVA)
    assert archive.file is not None
    archive.file.parent.mkdir(parents=True)
    archive.file.write_bytes(b"torn")
    tried = []

    def start(options: str) -> str:
        tried.append(options)
        if options:
            raise PySparkRuntimeError("Java gateway process exited before sending its port number")
        return options

    assert archive.started(start) == ("", None)
    assert len(tried) == 2
    assert not archive.file.exists()


def test_another_java_and_another_spark_have_archives_of_their_own(spark_home: Path) -> None:
    """Java would refuse the one of another."""
    one = ClassArchive.of(JAVA).file
    assert ClassArchive.of(JAVA).file == one
    assert ClassArchive.of("openjdk 21").file != one
    (spark_home / "jars" / "spark-core.jar").touch()
    assert ClassArchive.of(JAVA).file != one


def test_none_is_kept_where_java_refuses_to_write_one(
    spark_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Java does not start with that option where a folder with files is on its class path."""
    (spark_home / "conf").mkdir()
    assert ClassArchive.of(JAVA).file is not None
    (spark_home / "conf" / "spark-defaults.conf").touch()
    assert ClassArchive.of(JAVA).file is None

    (spark_home / "conf" / "spark-defaults.conf").unlink()
    (tmp_path / "hadoop").mkdir()
    (tmp_path / "hadoop" / "core-site.xml").touch()
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "hadoop"))
    assert started(ClassArchive.of(JAVA)) == ("", None)


def test_a_home_that_takes_no_files_keeps_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file stands where the folder would be, as in a container that may not write."""
    (tmp_path / "taken").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "taken"))
    archive = ClassArchive.of(JAVA)
    assert [started(archive), started(archive)] == [("", None)] * 2
