"""Fetches what a recording needs, then records: `python -m tools.record [NAME …]`, or `make record`.

Needs Python 3.11, Java 17 and Maven; the rest goes into `.tieout/`, which git ignores. Standard library only,
because it runs before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements" / "record.txt"
POM = Path(__file__).parent / "pom.xml"
VENV = ROOT / ".tieout" / "record" / "venv"
JARS = ROOT / ".tieout" / "kafka"
LOCK = ROOT / ".tieout" / "record.lock"


def main() -> int:
    """Prepare and record; return the recorder's exit code, or 2 if this machine lacks a program."""
    missing = prepared()
    if missing:
        print(f"make record {missing}", file=sys.stderr)
        return 2
    command = [str(VENV / "bin" / "python"), "-m", "tools.record.recorder", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def prepared() -> str | None:
    """Fetch the clients and the broker's jars if they are missing; return what is missing, as text.

    Waits for another process of this checkout that does the same.
    """
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if missing:
        return f"needs {' and '.join(missing)}: install a JDK 17 and Maven"
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    try:
        with LOCK.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _prepare(VENV, REQUIREMENTS, _install_packages)
            _prepare(JARS, POM, _fetch_jars)
    except subprocess.CalledProcessError as error:
        return f"cannot fetch what it needs: {error}"
    return None


def _prepare(folder: Path, pins: Path, fetch: Callable[[], None]) -> None:
    """Empty the folder and fetch again, unless it was filled from the same pins."""
    stamp = folder / "pins.sha256"
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    shutil.rmtree(folder, ignore_errors=True)
    fetch()
    stamp.write_text(digest)


def _install_packages() -> None:
    venv.create(VENV, with_pip=True)
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "-r", str(REQUIREMENTS)], check=True)


def _fetch_jars() -> None:
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={JARS}", "-DincludeScope=runtime"]
    subprocess.run(["mvn", "--quiet", "--batch-mode", "-f", str(POM), *goal], check=True)


if __name__ == "__main__":
    sys.exit(main())
