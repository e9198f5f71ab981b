"""Java for Spark: its version is checked before it starts, and its output is kept out of the command's output."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from tieout import settings
from tieout.errors import TieoutError

OLDEST_JAVA: Final = 17
_MESSAGES_SHOWN: Final = 20
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_ADVICE: Final = (
    f"install Java {OLDEST_JAVA} or newer (Debian: openjdk-17-jre-headless) or point JAVA_HOME at one"
)


class JavaError(TieoutError):
    """Java is missing or too old for Spark."""


def require_java() -> str:
    """Return the output of `java -version` for the Java that Spark would start.

    Raises:
        JavaError: if it is missing, does not start, or is too old; the message says what to install.
    """
    java = _java()
    try:
        answer = subprocess.run(  # noqa: S603 - the program that Spark would start
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"Java at {java} does not start: {error}; {_ADVICE}") from error
    version = major_version(answer.stderr + answer.stdout)
    if version is None or version < OLDEST_JAVA:
        found = "one that does not tell its version" if version is None else f"Java {version}"
        raise JavaError(f"expected Java {OLDEST_JAVA} or newer, found {found} at {java}; {_ADVICE}")
    return answer.stderr + answer.stdout


@contextmanager
def java_messages_kept() -> Iterator[IO[bytes]]:
    """Yield a file for Java's output; its last lines are printed if the block raises anything but a TieoutError."""
    with tempfile.TemporaryFile() as messages:
        try:
            yield messages
        except TieoutError:
            raise
        except Exception:
            messages.seek(0)
            last = messages.read().decode(errors="replace").splitlines()[-_MESSAGES_SHOWN:]
            print(*("the last lines that Java printed:", *last), sep="\n  ", file=sys.stderr)
            raise


def archive_name(java_version_text: str, spark_home: Path) -> str:
    """Return the name of the class archive for this Java version and this installation of Spark."""
    jars = spark_home / "jars"
    changed = jars.stat().st_mtime_ns if jars.is_dir() else 0
    return f"java-classes-{hashlib.sha256(f'{java_version_text} {jars} {changed}'.encode()).hexdigest()[:16]}.jsa"


def major_version(version_text: str) -> int | None:
    """Return the major version in the output of `java -version`, or None if it has none.

    >>> major_version('openjdk version "17.0.15" 2025-04-15'), major_version('java version "1.8.0_392"')
    (17, 8)
    """
    found = _VERSION.search(version_text)
    return int(found[1]) if found else None


def _java() -> str:
    home = settings.java_home()
    if home is not None:
        java = home / "bin" / "java"
        if not java.is_file():
            raise JavaError(f"JAVA_HOME is {home}, but there is no {java}; {_ADVICE}")
        return str(java)
    found = shutil.which("java")
    if found is None:
        raise JavaError(f"Java was not found, and Spark needs it; {_ADVICE}")
    return found
