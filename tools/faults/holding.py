"""Blocks a run in the middle of a step, so that it can be killed there.

A transaction is blocked by a lock on a table that it writes late: it waits with its first rows written and nothing
committed. A sender is blocked by a receiver that has accepted the alert and does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg2

from tools.faults.killing import APPLICATION, Stack
from tools.faults.receiver import Receiver

Reached = Callable[[], bool]


@contextmanager
def table(stack: Stack, url: str, name: str) -> Iterator[Reached]:
    """Lock a table against writes, and yield a function that returns whether a session waits for it.

    Args:
        stack: The stack.
        url: The database that the table is in.
        name: The table's name with its schema; it must be there.
    """
    session = psycopg2.connect(url, application_name=APPLICATION)
    try:
        with session.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {name} IN SHARE MODE")
        yield lambda: stack.is_waiting_for_lock(url)
    finally:
        with suppress(psycopg2.Error):  # PostgreSQL may be what was killed.
            session.close()


@contextmanager
def answer(receiver: Receiver) -> Iterator[Reached]:
    """Keep a sender waiting for its answer, and yield a function that returns whether one waits."""
    receiver.delay_next()
    try:
        yield receiver.is_holding.is_set
    finally:
        receiver.release()
