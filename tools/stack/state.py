"""State that outlives a command: processes, addresses, keys; each file is written atomically."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.stack.errors import StackError
from tools.stack.layout import Layout
from tools.stack.processes import MARK, Process


@dataclass(frozen=True)
class Started:
    """The stack that runs (or ran) on a home: Airflow's port, the database of the results, and the processes."""

    port: int
    database_url: str
    processes: tuple[Process, ...]

    @property
    def address(self) -> str:
        """The address of Airflow's page and API."""
        return f"http://127.0.0.1:{self.port}"


def save_started(layout: Layout, started: Started) -> None:
    """Save the started processes, so that another command can stop them."""
    _write(layout.processes, json.dumps(asdict(started), indent=1))


def load_started(layout: Layout) -> Started | None:
    """Return the saved state of the stack here, or None."""
    try:
        document = json.loads(layout.processes.read_text())
    except FileNotFoundError:
        return None
    processes = tuple(Process(**process) for process in document["processes"])
    return Started(document["port"], document["database_url"], processes)


def running(layout: Layout) -> Started:
    """Return the saved state of the stack here.

    Raises:
        StackError: if there is none.
    """
    started = load_started(layout)
    if started is None:
        raise StackError(f"{layout.home}: expected a running stack, found none; start it first")
    return started


def save_environment(layout: Layout, environment: Mapping[str, str]) -> None:
    """Write Airflow's environment for a shell, without variables that the shell already has.

    Also without the mark: processes started in that shell are not the stack's to stop.
    """
    variables = {
        name: value for name, value in environment.items() if os.environ.get(name) != value and name != MARK
    }
    _write(
        layout.environment,
        "".join(f"export {name}={shlex.quote(value)}\n" for name, value in sorted(variables.items())),
    )


def running_environment(layout: Layout) -> dict[str, str]:
    """Return the environment of the Airflow started here, on top of this process's own.

    Raises:
        StackError: if there is none.
    """
    try:
        assignments = shlex.split(layout.environment.read_text())
    except FileNotFoundError:
        raise StackError(
            f"{layout.environment}: expected a stack's environment, found none; start it first"
        ) from None
    variables = dict(assignment.split("=", 1) for assignment in assignments if assignment != "export")
    return {**os.environ, **variables, MARK: str(layout.home)}


def clear_started(layout: Layout) -> None:
    """Record that nothing runs here any more."""
    layout.processes.unlink(missing_ok=True)


def shared_secrets(layout: Layout) -> dict[str, str]:
    """Return the keys that Airflow's processes share, generated once per home."""
    stored: dict[str, str] = json.loads(layout.secrets.read_text()) if layout.secrets.exists() else {}
    made = {
        "fernet": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "jwt": secrets.token_urlsafe(48),
        "session": secrets.token_urlsafe(48),
        **stored,
    }
    if made != stored:
        _write(layout.secrets, json.dumps(made))
    return made


@contextmanager
def lock(layout: Layout) -> Iterator[None]:
    """Lock this home against other commands while this one starts, uses or stops it.

    Raises:
        StackError: if another command works on it.
    """
    layout.home.mkdir(parents=True, exist_ok=True)
    with layout.lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise StackError(
                f"{layout.home} is in use by process {holder}: wait for it, or stop it, then try again"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
