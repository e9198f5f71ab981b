"""What outlives a command, and that two commands do not get in each other's way."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tools.stack import services, state
from tools.stack.errors import StackError
from tools.stack.layout import ROOT, Layout
from tools.stack.processes import MARK, Process
from tools.stack.state import Started


def test_what_was_started_is_recalled_until_forgotten(tmp_path: Path) -> None:
    """Only its owner may read it: it holds the database's password."""
    layout = Layout(tmp_path)
    started = Started(8080, "postgresql://u:p@127.0.0.1/d", (Process("scheduler", 12, 345),))
    assert state.load_started(layout) is None

    state.save_started(layout, started)

    assert state.load_started(layout) == started
    assert stat.S_IMODE(layout.processes.stat().st_mode) == 0o600
    state.clear_started(layout)
    assert state.load_started(layout) is None


def test_secrets_are_made_once(tmp_path: Path) -> None:
    """Airflow could not read its own connections again with another key."""
    layout = Layout(tmp_path)

    assert state.shared_secrets(layout) == state.shared_secrets(layout)
    assert stat.S_IMODE(layout.secrets.stat().st_mode) == 0o600


def test_a_home_serves_one_command_at_a_time(tmp_path: Path) -> None:
    """The other is told whom to wait for."""
    code = (
        "import sys; from pathlib import Path; from tools.stack import layout, state\n"
        "with state.lock(layout.Layout(Path(sys.argv[1]))):\n    print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        with pytest.raises(StackError, match=f"in use by process {holder.pid}"), state.lock(Layout(tmp_path)):
            pass

        holder.kill()
    with state.lock(Layout(tmp_path)):
        assert (tmp_path / "lock").read_text() != str(holder.pid)


def test_the_same_home_gets_the_same_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bookmark keeps working; two homes differ."""
    monkeypatch.delenv("TIEOUT_PORT", raising=False)

    assert services.chosen_port(Layout(tmp_path)) == services.chosen_port(Layout(tmp_path))


@pytest.mark.parametrize("port", ["http", "0", "70000", "-1"])
def test_what_is_no_port_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    """Before anything is started."""
    monkeypatch.setenv("TIEOUT_PORT", port)

    with pytest.raises(StackError, match="TIEOUT_PORT: expected a number"):
        services.chosen_port(Layout(tmp_path))


def test_a_taken_port_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do."""
    import socket  # noqa: PLC0415 - for this test alone

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("TIEOUT_PORT", str(server.getsockname()[1]))

        with pytest.raises(StackError, match=r"is taken: stop what listens there, choose another"):
            services.chosen_port(Layout(tmp_path))


def test_the_environment_is_read_as_a_shell_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes, blanks and line breaks survive; what the shell has anyway is left out; nobody else may read it."""
    monkeypatch.setenv("KNOWN", "here")
    layout = Layout(tmp_path)
    ours = {"AIRFLOW_CONN_X": '{"host": "it\'s", "a": "b c"}', "TIEOUT_STACK": str(tmp_path), "KNOWN": "here"}

    state.save_environment(layout, ours)

    assert {name: state.running_environment(layout)[name] for name in ours} == ours
    assert "KNOWN" not in layout.environment.read_text()
    assert stat.S_IMODE(layout.environment.stat().st_mode) == 0o600
    command = ["sh", "-c", f'. {layout.environment} && printf %s "$AIRFLOW_CONN_X"']
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout == ours["AIRFLOW_CONN_X"]
    )


def test_a_shell_that_read_the_environment_is_not_stopped_with_the_stack(tmp_path: Path) -> None:
    """An editor, a query or `make down | tee` started there carries no mark; the stack's own programs do."""
    layout = Layout(tmp_path)

    state.save_environment(layout, {"AIRFLOW_HOME": "x", MARK: str(tmp_path)})

    assert MARK not in layout.environment.read_text()
    assert state.running_environment(layout)[MARK] == str(tmp_path)
