"""An archive of Java's classes for later commands: loading 23,000 of them takes a third of a small window's time.

The first command on a machine leaves a marker file. The second makes Java write an archive of the classes it loaded,
and later ones map it, so a machine that runs a single command, such as a container, pays nothing. Java itself checks
that an archive belongs to this Java and this class path. Source: "Class Data Sharing" in the Java Virtual Machine
Guide of JDK 17, "Dynamic Archives".
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home

from tieout import settings
from tieout.cli.engine import Progress
from tieout.cli.java import archive_name

_SILENT: Final = "-Xlog:disable"
"""Suppresses Java's warnings about single classes and about an archive of another Java."""
_SECONDS: Final = 60


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Java and one installation of Spark: `file`, or None where Java cannot keep one."""

    file: Path | None

    @classmethod
    def of(cls, java: str) -> ClassArchive:
        """Return the archive for this output of `java -version`, in the user's cache folder.

        Java cannot archive a class path that contains a folder with files: Spark's configuration, or Hadoop's.
        """
        spark_home = Path(_find_spark_home())  # type: ignore[no-untyped-call]
        if any(_has_files(folder) for folder in (spark_home / "conf", *settings.spark_class_path())):
            return cls(None)
        return cls(settings.cache_folder() / archive_name(java, spark_home))

    def started(self, start: Callable[[str], Any]) -> tuple[Any, Path | None]:
        """Call `start` with options for Java; return its result, and the draft for `finish` if one is written."""
        if self.file is None:
            return start(""), None
        if not self.file.is_file():
            draft = _draft_of(self.file)
            return start("" if draft is None else f"-XX:ArchiveClassesAtExit={draft} {_SILENT}"), draft
        try:
            return start(f"-XX:SharedArchiveFile={self.file} {_SILENT}"), None
        except PySparkRuntimeError:
            # Java does not start with a damaged archive: start without it.
            self.file.unlink(missing_ok=True)
            return start(""), None

    def finish(self, draft: Path, progress: Progress) -> None:
        """Stop Java, which writes the draft as it exits, and rename it to the archive; gives up after a minute."""
        gateway: Any = SparkContext._gateway
        progress("keeping Java's classes, once: the next commands start sooner")
        gateway.shutdown()
        gateway.proc.stdin.close()
        try:
            is_written = gateway.proc.wait(_SECONDS) == 0
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            is_written = False
        if is_written and draft.is_file() and self.file is not None:
            draft.rename(self.file)
        draft.unlink(missing_ok=True)
        SparkContext._gateway = SparkContext._jvm = None


def _draft_of(archive: Path) -> Path | None:
    """Return the file for Java to write the archive to; None for the first command, which leaves the marker file.

    All commands share one file, so commands that fail before `finish` leave one draft behind, not many.
    """
    note = archive.with_suffix(".wanted")
    try:
        if note.exists():
            return archive.with_suffix(".draft")
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.touch()
    except OSError:
        # A home folder that is not writable gets no archive.
        pass
    return None


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
