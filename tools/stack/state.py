"""What outlives the command that wrote it: processes, addresses, keys; each written whole or not at all."""

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
    """What runs (or ran) on a home: Airflow's port, the database of the results, and the processes."""

    port: int
    database_url: str
    processes: tuple[Process, ...]

    @property
    def address(self) -> str:
        """The address of Airflow's page and API."""
        return f"http://127.0.0.1:{self.port}"


def remember(layout: Layout, started: Started) -> None:
    """Write what was started, so that another command can stop it."""
    _write(layout.processes, json.dumps(asdict(started), indent=1))


def recall(layout: Layout) -> Started | None:
    """Return what was started here, or None."""
    try:
        known = json.loads(layout.processes.read_text())
    except FileNotFoundError:
        return None
    processes = tuple(Process(**process) for process in known["processes"])
    return Started(known["port"], known["database_url"], processes)


def recalled(layout: Layout) -> Started:
    """Return what was started here.

    Raises:
        StackError: where nothing was.
    """
    known = recall(layout)
    if known is None:
        raise StackError(f"{layout.home}: expected a running stack, found none; start it first")
    return known


def remember_environment(layout: Layout, environment: Mapping[str, str]) -> None:
    """Write Airflow's environment for a shell, less what the shell has anyway; none of the processes shows it.

    Less the mark, too: what somebody starts in that shell is not the stack's to stop.
    """
    ours = {
        name: value for name, value in environment.items() if os.environ.get(name) != value and name != MARK
    }
    _write(
        layout.environment,
        "".join(f"export {name}={shlex.quote(value)}\n" for name, value in sorted(ours.items())),
    )


def recalled_environment(layout: Layout) -> dict[str, str]:
    """Return the environment of the Airflow that was started here, on top of this process's own.

    Raises:
        StackError: where nothing was.
    """
    try:
        words = shlex.split(layout.environment.read_text())
    except FileNotFoundError:
        raise StackError(
            f"{layout.environment}: expected a stack's environment, found none; start it first"
        ) from None
    ours = dict(word.split("=", 1) for word in words if word != "export")
    return {**os.environ, **ours, MARK: str(layout.home)}


def forget(layout: Layout) -> None:
    """Note that nothing runs here any more."""
    layout.processes.unlink(missing_ok=True)


def shared_secrets(layout: Layout) -> dict[str, str]:
    """Return the keys that Airflow's processes share, made once for a home."""
    known: dict[str, str] = json.loads(layout.secrets.read_text()) if layout.secrets.exists() else {}
    made = {
        "fernet": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "jwt": secrets.token_urlsafe(48),
        "session": secrets.token_urlsafe(48),
        **known,
    }
    if made != known:
        _write(layout.secrets, json.dumps(made))
    return made


@contextmanager
def lock(layout: Layout) -> Iterator[None]:
    """Keep other commands away from this home while this one starts, uses or stops it.

    Raises:
        StackError: where another command is at work on it.
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
