"""The store tells where it could not do what, and never how it was to log in."""

from __future__ import annotations

import socket
import time
import traceback
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.store.examples import run_id

from tieout.errors import StoreError
from tieout.store import Store
from tieout.store.connecting import Database

_SECRET = "s3cr3t"  # noqa: S105 - looked for in messages


def _refused_with(url: str, act: Callable[[Store], object] = lambda store: store.run(run_id(1))) -> str:
    """Return the message of the error, after looking for the password everywhere a log could show it."""
    store = Store(url)
    with pytest.raises(StoreError) as caught:
        act(store)
    shown = "".join(traceback.format_exception(caught.value))
    assert _SECRET not in shown
    return str(caught.value)


def test_making_a_store_does_not_connect() -> None:
    """A store of an unreachable server can be made, passed on and shown."""
    store = Store(f"postgresql://u:{_SECRET}@127.0.0.1:1/results")

    assert repr(store) == "Store(127.0.0.1:1/results)"
    assert _SECRET not in repr(vars(store))


def test_an_unreachable_server_is_named() -> None:
    """Host, port, database, the reason, and what to look at."""
    message = _refused_with(f"postgresql://u:{_SECRET}@127.0.0.1:1/results")

    assert message.startswith("127.0.0.1:1/results: expected a PostgreSQL that accepts connections, found: ")
    assert "Connection refused" in message
    assert "TIEOUT_DATABASE_URL" in message


def test_a_wrong_password_is_not_repeated(store_url: str) -> None:
    """The server's refusal is passed on, the password is not."""
    before, after = store_url.split("@")
    message = _refused_with(f"{before.rsplit(':', 1)[0]}:{_SECRET}@{after}")

    assert "password authentication failed" in message


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{_SECRET}@more@host/db",
        f"postgresql://u:12/{_SECRET}@host/db",
        f"postgresql://u:{_SECRET}/x@host/db",
        f"postgresql://u:x@[{_SECRET}/db",
        f"postgresql//{_SECRET}",
        "",
    ],
)
def test_a_url_that_cannot_be_read_is_not_shown(url: str) -> None:
    """What libpq says about it would quote a piece of the password."""
    assert "write reserved characters in the user and the password as %-escapes" in _refused_with(url)


def test_a_server_that_accepts_and_stays_silent_is_given_up() -> None:
    """The time to connect is bounded; here the URL shortens it from 10 s to 2 s."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()

        message = _refused_with(f"postgresql://u:{_SECRET}@127.0.0.1:{port}/db?connect_timeout=2")

    assert "timeout expired" in message
    assert time.monotonic() - began < 6


def test_a_store_that_was_not_migrated_says_so(empty_url: str) -> None:
    """Instead of a missing table, the message names what to do."""
    assert "migrate the store first" in _refused_with(empty_url)


def test_a_statement_that_takes_too_long_is_given_up(store_url: str) -> None:
    """No call waits for ever, and the message says that trying again is safe."""
    with (
        pytest.raises(StoreError, match=r"gave up waiting: .*statement timeout; nothing was stored"),
        Database(store_url).transaction(statement_timeout=timedelta(milliseconds=100)) as cursor,
    ):
        cursor.execute("SELECT pg_sleep(30)")


def test_a_session_is_bounded_and_known_by_name(store_url: str) -> None:
    """Waiting is limited on the server too, and an administrator sees whose session it is."""
    names = (
        "statement_timeout",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
        "TimeZone",
        "application_name",
    )

    with Database(store_url, "tieout checks").transaction() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (list(names),))
        settings = {row["name"]: row["setting"] for row in cursor.fetchall()}
        sent = cursor.connection.info.dsn_parameters

    assert settings == {
        "statement_timeout": "120000",
        "lock_timeout": "30000",
        "idle_in_transaction_session_timeout": "600000",
        "TimeZone": "UTC",
        "application_name": "tieout checks",
    }
    assert (sent["connect_timeout"], sent["keepalives"], sent["keepalives_idle"]) == ("10", "1", "30")


def test_reads_with_strange_arguments_find_nothing(store: Store) -> None:
    """A name that PostgreSQL could not hold is a name of nothing."""
    assert store.runs_of("a\x00b\ud800") == ()
    assert store.run(run_id(1)) is None
