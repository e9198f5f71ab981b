"""Creates `.venv` with the pinned requirements and Tieout itself; run by the machine's own Python.

Standard library only: on a bare machine there is nothing else. A finished installation leaves a stamp, so
that the next call takes no time; one that was interrupted leaves a marker and is begun anew.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STATE = ROOT / ".tieout"
LOG = STATE / "logs" / "install.log"
TOOLS = STATE / "tools"
MARKER = ".tieout-installing"
REQUIREMENTS = {"runtime": ("runtime", "build"), "dev": ("runtime", "build", "dev")}
PYTHON_NEEDED = (3, 11)
# Not sys.executable: that may be the one in an activated .venv, and .venv may have to be deleted.
INTERPRETER = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")
JAVA_NEEDED = 17
HEARTBEAT_SECONDS = 10.0
UNREACHABLE = re.compile(
    r"dns error|error sending request|failed to (fetch|connect)|connection (refused|reset|error)"
    r"|network is unreachable|name resolution|no matching distribution found for uv|max retries exceeded"
    r"|newconnectionerror|timed out",
    re.IGNORECASE,
)


class BootstrapError(Exception):
    """The machine lacks something; the message is one line with the remedy."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Install the requirements of `profile` and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", choices=sorted(REQUIREMENTS))
    profile = parser.parse_args(arguments).profile
    try:
        check_python(sys.version_info[:2], sys.executable)
        check_java(os.environ)
        with lock(STATE / "bootstrap.lock"):
            install(profile)
    except BootstrapError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the next call begins the installation anew", file=sys.stderr)
        return 130
    return 0


def check_python(version_found: tuple[int, ...], executable: str) -> None:
    """Refuse an interpreter of another version than the pinned requirements are for.

    Raises:
        BootstrapError: if `version_found` is not Python 3.11.
    """
    if tuple(version_found) != PYTHON_NEEDED:
        needed, version = (".".join(map(str, numbers)) for numbers in (PYTHON_NEEDED, version_found))
        raise BootstrapError(
            f"Python {needed} is needed, found {version} at {executable}: install python{needed}, "
            f"or name one with `make PYTHON=/path/to/python{needed} …`"
        )


def check_java(environment: Mapping[str, str]) -> None:
    """Refuse a machine without a Java that Spark 4 runs on.

    Raises:
        BootstrapError: if no `java` is found, or one older than 17.
    """
    java_home = environment.get("JAVA_HOME")
    java = (
        shutil.which(f"{java_home}/bin/java")
        if java_home
        else shutil.which("java", path=environment.get("PATH"))
    )
    needed = f"Java {JAVA_NEEDED} or newer is needed for Spark"
    remedy = "install it (Debian: apt install openjdk-17-jre-headless), or set JAVA_HOME to one"
    if java is None:
        raise BootstrapError(
            f"{needed}, found none in {f'JAVA_HOME={java_home}' if java_home else 'PATH'}: {remedy}"
        )
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = java_version(answer)
    if version is None or version < JAVA_NEEDED:
        found = answer.splitlines()[0] if answer.strip() else "no version"
        raise BootstrapError(f"{needed}, found {found} at {java}: {remedy}")


def java_version(version_text: str) -> int | None:
    """Return the major version in the output of `java -version`, or None.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_402"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', version_text)
    return int(match.group(1)) if match else None


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Lock `path` for this process, after waiting for another installation in this checkout."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("  waiting for another installation in this checkout …", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install(profile: str) -> None:
    """Install the requirements of `profile` into `.venv`; return immediately if they are already installed."""
    stamp, current_digest = VENV / f".tieout-{profile}", digest(profile)
    if stamp.is_file() and stamp.read_text() == current_digest and (VENV / "bin" / "python").exists():
        return
    started = time.monotonic()
    if (VENV / MARKER).exists() or not works(VENV):
        shutil.rmtree(VENV, ignore_errors=True)
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    uv = find_uv()
    if not VENV.exists():
        make = [uv, "venv", "--python", INTERPRETER] if uv else [INTERPRETER, "-m", "venv"]
        run("creating .venv", [*make, str(VENV)])
    (VENV / MARKER).touch()
    pip = [uv, "pip", "install"] if uv else [str(VENV / "bin" / "python"), "-m", "pip", "install"]
    files = [argument for name in REQUIREMENTS[profile] for argument in ("-r", f"requirements/{name}.txt")]
    run("installing the pinned packages (about 1.5 GB on disk)", [*pip, "--require-hashes", *files])
    run("installing Tieout", [*pip, "--no-deps", "--no-build-isolation", "-e", "."])
    for other_profile, names in REQUIREMENTS.items():
        if set(names) <= set(REQUIREMENTS[profile]):
            (VENV / f".tieout-{other_profile}").write_text(digest(other_profile))
    (VENV / MARKER).unlink()
    print(f"  installed in {time.monotonic() - started:.0f} s", flush=True)


def digest(profile: str) -> str:
    """Return a digest of the installation of `profile`: requirement files, project file and Python."""
    content = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for name in (*(f"requirements/{name}.txt" for name in REQUIREMENTS[profile]), "pyproject.toml"):
        content.update((ROOT / name).read_bytes())
    return content.hexdigest()


def works(venv: Path) -> bool:
    """Return whether the Python of `venv` starts and has the needed version."""
    code = f"import sys; sys.exit(sys.version_info[:2] != {PYTHON_NEEDED})"
    try:
        return subprocess.run([str(venv / "bin" / "python"), "-c", code], check=False).returncode == 0
    except OSError:
        return False


def find_uv() -> str | None:
    """Return the path of a private `uv`, fetched if missing, or None: then pip is used.

    Raises:
        BootstrapError: if the package index cannot be reached, which would stop pip as well.
    """
    uv = TOOLS / "bin" / "uv"
    if uv.exists():
        return str(uv)
    draft = TOOLS.with_name("tools.new")
    shutil.rmtree(draft, ignore_errors=True)
    command = [
        INTERPRETER,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--require-hashes",
        "--target",
        str(draft),
    ]
    try:
        run("fetching the installer", [*command, "-r", "requirements/tools.txt"])
    except BootstrapError:
        if UNREACHABLE.search(LOG.read_text()):
            raise
        print("  uv cannot be had, pip does it (slower)", flush=True)
        return None
    shutil.rmtree(TOOLS, ignore_errors=True)
    draft.rename(TOOLS)
    return str(uv)


def run(title: str, command: Sequence[str]) -> None:
    """Run `command` with its output in the log, and print the elapsed time every ten seconds.

    Raises:
        BootstrapError: if it fails; with the last line of the log.
    """
    print(f"  {title} …", flush=True)
    started = time.monotonic()
    with LOG.open("a") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=installer_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            while True:
                try:
                    code = process.wait(HEARTBEAT_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    print(f"    … {time.monotonic() - started:.0f} s", flush=True)
        finally:
            process.kill()
    if code != 0:
        raise BootstrapError(failure(title, LOG.read_text()))


def failure(title: str, log: str) -> str:
    """Return the error line for a failed step, with advice if the log shows a network problem."""
    if UNREACHABLE.search(log):
        return (
            f"{title}: the package index cannot be reached: check the network, or name a mirror with "
            f"PIP_INDEX_URL, then run the same command again ({LOG.relative_to(ROOT)} has the details)"
        )
    lines = (line.strip() for line in reversed(log.splitlines()))
    last = next((line for line in lines if line and not line.startswith("hint:")), "no output")
    return f"{title} failed: {last} ({LOG.relative_to(ROOT)} has the details)"


def installer_environment() -> dict[str, str]:
    """Return the environment for uv and pip: pip's settings also apply to uv."""
    uv_names = {
        "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
        "PIP_EXTRA_INDEX_URL": "UV_INDEX",
        "PIP_CERT": "SSL_CERT_FILE",
    }
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    for pip_name, uv_name in uv_names.items():
        if pip_name in environment:
            environment.setdefault(uv_name, environment[pip_name])
    index = configured_index()
    if index:
        environment.setdefault("UV_DEFAULT_INDEX", index)
    environment.update(VIRTUAL_ENV=str(VENV), UV_HTTP_TIMEOUT="180", PIP_DISABLE_PIP_VERSION_CHECK="1")
    return environment


def configured_index() -> str | None:
    """Return the package index of pip's configuration files, or None."""
    command = [INTERPRETER, "-m", "pip", "config", "get", "global.index-url"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None if answer.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
