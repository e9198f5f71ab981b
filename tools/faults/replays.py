"""A replay that is rejected, and one that is approved, killed twice, and still writes each row to the table once.

This module plays the table's consumer: it writes the replayed rows to the output before the window is judged again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg2
from psycopg2.extensions import ISOLATION_LEVEL_AUTOCOMMIT

from tieout.store.results import Run
from tools.faults import holding
from tools.faults.killing import APPLICATION
from tools.faults.matrix import Disturbed, this_minute
from tools.faults.orders import LOST, OUTBOX, PIPELINE, TABLE, WINDOW, deliver
from tools.stack.api import ENDED, ApiError

_DAG = "tieout_replay"
_LEDGER = "tieout_replayed"
_THINKING_SECONDS = 5.0
ANSWERS = REJECT, APPROVE = ("Reject", "Approve")


@dataclass(frozen=True)
class Replayed:
    """The result of one replay: Airflow's run, the table's rows, and the breaks."""

    answer: str
    killed: str
    planned: int
    rows: tuple[int, ...]
    """The number of rows of the table after each kill, and at the end."""
    keys: int
    """The number of distinct messages among them."""
    state: str
    resolved: int
    verdict: str
    is_sound: bool
    run_at: str
    """The start of the command that ran it."""
    tried_at: str
    """When it ended, in UTC, as the page shows it."""


class Replays:
    """Replays of one pipeline's lost messages on a running stack."""

    def __init__(self, disturbed: Disturbed) -> None:
        self._on, self._api, self._store = disturbed, disturbed.api, disturbed.store
        self._url = disturbed.stack.started.database_url.rsplit("/", 1)[0] + f"/{OUTBOX}"

    def rejected(self) -> Replayed:
        """Plan a replay and reject it: nothing is written, and the run does not fail."""
        self._provide_outbox()
        self._on.empty()
        self._on.judge()
        judged = self._current()
        run = self._planned(judged)
        self._answer(run, REJECT)
        state = self._ended(run)
        rows, keys = self._rows()
        after = self._current()
        is_sound = state == "success" and rows == 0 and after.run_id == judged.run_id
        return Replayed(
            REJECT,
            "nothing",
            LOST,
            (rows,),
            keys,
            state,
            0,
            str(after.final_verdict),
            is_sound,
            self._on.run_at,
            this_minute(),
        )

    def killed_and_approved(self) -> Replayed:
        """Approve, kill the task in the table's transaction, then between it and the ledger; the third try ends it."""
        judged = self._current()
        run = self._planned(judged)
        rows = []
        with holding.table(self._on.stack, self._url, TABLE) as is_reached:
            self._answer(run, APPROVE)
            self._on.wait(is_reached, every=0.1)
            self._on.stack.kill("task", _DAG)
        rows.append(self._rows()[0])
        with holding.table(
            self._on.stack, self._on.stack.started.database_url, "tieout.replay"
        ) as is_reached:
            self._on.wait(is_reached, every=0.1)
            rows.append(self._rows()[0])
            self._consume()
            self._on.stack.kill("task", _DAG)
        state = self._ended(run)
        self._on.wait(lambda: self._current().run_id != judged.run_id and self._is_checked())
        after = self._current()
        row_count, keys = self._rows()
        rows.append(row_count)
        lives = [self._store.break_life(each.break_id) for each in self._store.breaks(judged.run_id, 100)]
        resolved = sum(life is not None and life.resolution == "replayed" for life in lives)
        is_sound = rows == [0, LOST, LOST] and keys == LOST and resolved == LOST and state == "success"
        return Replayed(
            APPROVE,
            "task, in the table's transaction; task, between that and the ledger",
            LOST,
            tuple(rows),
            keys,
            state,
            resolved,
            str(after.final_verdict),
            is_sound,
            self._on.run_at,
            this_minute(),
        )

    def _provide_outbox(self) -> None:
        """Create the database and the table, and Airflow's connection to it."""
        server = self._on.stack.started.database_url
        with closing(psycopg2.connect(server)) as session:
            session.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
            session.cursor().execute(f"CREATE DATABASE {OUTBOX}")
        with closing(psycopg2.connect(self._url)) as session, session:
            session.cursor().execute(
                f"CREATE TABLE {TABLE} (idempotence_key text, message_id text, topic text, partition int, key bytea, "
                f"value bytea, headers jsonb, replayed_at timestamptz DEFAULT now()); CREATE TABLE {_LEDGER} "
                "(idempotence_key text PRIMARY KEY, plan_id text, replayed_at timestamptz DEFAULT now())"
            )
        parts = urlsplit(self._url)
        self._api.post(
            "/connections",
            {
                "connection_id": OUTBOX,
                "conn_type": "postgres",
                "host": parts.hostname,
                "port": parts.port,
                "login": parts.username,
                "password": parts.password,
                "schema": OUTBOX,
            },
        )

    def _planned(self, judged: Run) -> str:
        """Trigger the replay's DAG, and return its run once the plan waits for approval.

        Triggered on the command line: nobody may approve their own run, and the API without logins has one user.
        """
        run = f"replay__{uuid.uuid4()}"
        conf = json.dumps({"run_id": judged.run_id})
        command = [sys.executable, "-m", "airflow", "dags", "trigger", _DAG, "--run-id", run, "--conf", conf]
        subprocess.run(command, env=self._on.stack.environment, check=True, stdout=subprocess.DEVNULL)
        self._on.wait(lambda: self._task_state(run, "approve") == "awaiting_input")
        return run

    def _answer(self, run: str, option: str) -> None:
        """Answer some seconds after the question: immediately, Airflow has not yet stored that it asked."""
        time.sleep(_THINKING_SECONDS)
        place = f"/dags/{_DAG}/dagRuns/{quote(run, safe='')}/taskInstances/approve/-1/hitlDetails"
        self._api.patch(place, {"chosen_options": [option], "params_input": {}})

    def _task_state(self, run: str, task: str) -> str | None:
        states = {row["task_id"]: row["state"] for row in self._api.tasks(_DAG, run)}
        return states.get(task)

    def _ended(self, run: str) -> str:
        states: list[str] = []

        def is_ended() -> bool:
            states.append(self._api.state(_DAG, run))
            return states[-1] in ENDED

        self._on.wait(is_ended)
        return states[-1]

    def _current(self) -> Run:
        run = self._store.current_run(PIPELINE, WINDOW.start, WINDOW.end)
        if run is None:
            raise ApiError("GET", PIPELINE, 404, "expected the window to be judged, found no run of it")
        return run

    def _is_checked(self) -> bool:
        return self._current().final_verdict is not None

    def _rows(self) -> tuple[int, int]:
        """Return the number of rows in the table, and of distinct messages."""
        keys = [key for (key, *_) in self._replayed()]
        return len(keys), len(set(keys))

    def _consume(self) -> None:
        """Act as the table's consumer: write the effects of its rows to the output."""
        now = datetime.now(UTC)
        deliver(self._on.stack.layout.examples, {message_id: now for (_, message_id, *_) in self._replayed()})

    def _replayed(self) -> list[tuple[Any, ...]]:
        """Return key and message of every row of the table."""
        with (
            closing(psycopg2.connect(self._url, application_name=APPLICATION)) as session,
            session.cursor() as cursor,
        ):
            cursor.execute(f"TABLE {TABLE}")
            return list(cursor.fetchall())
