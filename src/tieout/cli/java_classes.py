"""Java's classes, kept from one command to the next: loading 23,000 of them is a third of a small window's time.

The first command on a machine leaves a note, the second has Java write an archive of the classes that it loaded, later
ones map that: a machine that runs one command only, as a container may, pays nothing. Java checks by itself that an
archive is of this Java and this class path. Source: "Class Data Sharing" in the Java Virtual Machine Guide of JDK 17,
"Dynamic Archives".
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
"""Java prints what it thinks of single classes, and that an archive is of another Java."""
_SECONDS: Final = 60


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Java and one installation of Spark: `file`, or None where Java cannot keep one."""

    file: Path | None

    @classmethod
    def of(cls, java: str) -> ClassArchive:
        """Return the archive for what `java -version` told, in this user's folder for caches.

        Java archives no class path with a folder in which files lie: Spark's configuration, or Hadoop's.
        """
        home = Path(_find_spark_home())  # type: ignore[no-untyped-call]
        if any(_has_files(one) for one in (home / "conf", *settings.spark_class_path())):
            return cls(None)
        return cls(settings.cache_folder() / archive_name(java, home))

    def started(self, start: Callable[[str], Any]) -> tuple[Any, Path | None]:
        """Return what `start` returns, given options for Java, and the draft that `finish` puts in place if any."""
        if self.file is None:
            return start(""), None
        if not self.file.is_file():
            draft = _draft_of(self.file)
            return start("" if draft is None else f"-XX:ArchiveClassesAtExit={draft} {_SILENT}"), draft
        try:
            return start(f"-XX:SharedArchiveFile={self.file} {_SILENT}"), None
        except PySparkRuntimeError:
            # An archive that is torn is no reason to fail: Java does not start with it.
            self.file.unlink(missing_ok=True)
            return start(""), None

    def finish(self, draft: Path, progress: Progress) -> None:
        """End Java, which writes the draft as it does, and put that in place; what takes too long is given up."""
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
    """Return where Java is to write the archive; None for the first command, which leaves its note.

    It is one place for all commands: of those that fail, and so never come to `finish`, one draft is left, not many.
    """
    note = archive.with_suffix(".wanted")
    try:
        if note.exists():
            return archive.with_suffix(".draft")
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.touch()
    except OSError:
        # A home that takes no files keeps none.
        pass
    return None


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
