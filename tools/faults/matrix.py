"""One cell of the matrix: a run disturbed at a moment, the store right after, and the final result."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import psycopg2
from psycopg2 import sql

from tieout.errors import StoreError
from tieout.store import Store
from tools.faults import holding
from tools.faults.killing import APPLICATION, Stack
from tools.faults.orders import PIPELINE, WINDOW
from tools.faults.receiver import Receiver
from tools.stack.api import ENDED, Api, ApiError
from tools.stack.errors import StackError
from tools.stack.results import stored_rows

TIMEOUT_SECONDS = 900.0
HEARTBEAT_SECONDS = 60
"""Airflow's heartbeat timeout in the matrix."""
_UPKEEP = "tieout_upkeep"
_TABLES = ("run", "alert", "life", "life_event", "act", "replay")


@dataclass(frozen=True)
class Moment:
    """A point of a run: the running task, what it is doing, and the possible victims."""

    name: str
    task: str
    meaning: str
    victims: tuple[str, ...]
    table: str | None = None
    """The table whose lock blocks the task's transaction, if the moment is reached that way."""


MOMENTS = (
    Moment(
        "window",
        "window",
        "the window is being fixed, nothing is done yet",
        ("scheduler", "task", "postgres"),
    ),
    Moment(
        "judging",
        "reconcile",
        "Spark's driver is at work",
        ("scheduler", "task", "driver", "postgres", "disk"),
    ),
    Moment(
        "publishing",
        "reconcile",
        "the run is written, and not committed",
        ("scheduler", "task", "driver", "postgres", "connection"),
        "tieout.incident",
    ),
    Moment(
        "checking",
        "check",
        "verdict and checks are written, the alerts and the commit are not",
        ("scheduler", "task", "postgres", "connection"),
        "tieout.alert",
    ),
    Moment(
        "telling",
        "alert",
        "the receiver has taken an alert, and has not answered",
        ("scheduler", "task", "postgres", "receiver"),
    ),
    Moment("ending", "verdict", "all is told, the run is about to end", ("scheduler", "task", "postgres")),
)


@dataclass(frozen=True)
class Cell:
    """The victim, the moment and the results; `acts` counts manual steps."""

    moment: Moment
    victim: str
    was_hit: bool
    store_after_kill: str
    acts: int
    seconds: float
    verdict: str
    are_rows_equal: bool
    lost: int
    doubled: int
    repeated: int
    """Requests that repeated the key of an alert that the receiver had accepted."""
    also_told: int
    """Alerts about the fault itself: a run without a verdict."""
    run_at: str
    """The start of the command that ran it."""
    tried_at: str
    """When it ended, in UTC, as the page shows it."""

    @property
    def is_sound(self) -> bool:
        """Whether the store was consistent, the verdict the same, and each alert delivered once."""
        is_whole = self.store_after_kill in ("as before", "as after")
        return self.was_hit and is_whole and self.are_rows_equal and self.lost == self.doubled == 0


@dataclass(frozen=True)
class Undisturbed:
    """The results of an undisturbed run, and the keys of its alerts."""

    rows: dict[str, Any]
    verdict: str
    alerts: frozenset[str]


def this_minute() -> str:
    """Return the time in UTC, to the minute."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M")


class Disturbed:
    """The pipeline on a running stack, judged repeatedly from an empty store."""

    def __init__(self, stack: Stack, receiver: Receiver) -> None:
        self.stack, self.receiver = stack, receiver
        self.api, self.store = Api(stack.started.address), Store(stack.started.database_url)
        self.run_at = this_minute()
        self._dag_run: str | None = None

    def undisturbed(self) -> Undisturbed:
        """Run once without any fault."""
        self.empty()
        self.judge()
        rows = self._rows()
        if rows is None or rows["final"] is None:
            raise StackError(f"{PIPELINE}: expected a verdict of a run that nobody disturbed, found none")
        self._deliver_alerts()
        return Undisturbed(rows, str(rows["final"]), frozenset(self.receiver.keys()))

    def judge(self) -> None:
        """Start judging the window, and wait for the end of Airflow's run."""
        self._begin()
        self._end()

    def cell(self, moment: Moment, victim: str, expected: Undisturbed) -> Cell:
        """Kill a victim at a moment, restart its processes, and wait for the end."""
        self.empty()
        began = time.monotonic()
        with self._blocked(moment, victim) as is_reached:
            self._begin()
            was_hit = self._is_reached_in_time(is_reached) and self._hit(victim)
            time.sleep(1.0)
        self._repair(victim)
        store_state = self._store_state(expected)
        acts = 0
        self._end()
        while not self._is_judged() and acts < 3:
            acts += 1
            self.judge()
        if victim == "receiver":
            was_hit = bool(self.receiver.tries)
            self.receiver.is_down = False
        self._deliver_alerts()
        rows, taken = self._rows(), self.receiver.keys()
        return Cell(
            moment=moment,
            victim=victim,
            was_hit=was_hit,
            store_after_kill=store_state,
            acts=acts,
            seconds=time.monotonic() - began,
            verdict=str(rows["final"]) if rows else "none",
            are_rows_equal=rows == expected.rows,
            lost=len(expected.alerts - set(taken)),
            doubled=self._doubled(),
            repeated=sum(taken.values()) - len(taken),
            also_told=len(set(taken) - expected.alerts),
            run_at=self.run_at,
            tried_at=this_minute(),
        )

    def _is_reached_in_time(self, is_reached: Callable[[], bool]) -> bool:
        """Wait for a moment and return whether it was reached before the run ended."""
        reached: list[bool] = []

        def is_done() -> bool:
            reached.append(is_reached())
            return reached[-1] or not self.stack.is_at_work(PIPELINE)

        self.wait(is_done, every=0.05)
        return reached[-1]

    def _hit(self, victim: str) -> bool:
        """Kill a victim and return whether it existed; the receiver is down from the start."""
        return victim == "receiver" or self.stack.kill(victim, PIPELINE)

    def _blocked(self, moment: Moment, victim: str) -> AbstractContextManager[Callable[[], bool]]:
        """Return the context that blocks the run at the moment; it yields a test for being there."""
        if victim == "receiver":
            self.receiver.is_down = True
        elif moment.task == "alert":
            return holding.answer(self.receiver)
        if moment.table:
            return holding.table(self.stack, self.stack.started.database_url, moment.table)
        if moment.name == "judging":
            return nullcontext(lambda: bool(self.stack.driver()))
        return nullcontext(lambda: self.stack.running_step(PIPELINE) == moment.task)

    def _repair(self, victim: str) -> None:
        """Restart dead processes; a full disk stays full until the task has failed on it."""
        if victim == "disk":
            self.wait(lambda: self.stack.running_step(PIPELINE) is None)
            self.stack.free_disk()
        self.stack.restore()

    def empty(self) -> None:
        """Delete every result of the pipeline and every alert."""
        url = self.stack.started.database_url
        with (
            closing(psycopg2.connect(url, application_name=APPLICATION)) as session,
            session,
            session.cursor() as cursor,
        ):
            for table in _TABLES:
                query = sql.SQL("DELETE FROM {} WHERE pipeline = %s")
                cursor.execute(query.format(sql.Identifier("tieout", table)), (PIPELINE,))
        self.receiver.forget()

    def _begin(self) -> None:
        """Start judging the window, in the existing run if there is one; waits until Airflow is up."""
        self.wait(self._judging_started)
        self.wait(lambda: self._state() not in ENDED, every=0.2)

    def _judging_started(self) -> bool:
        place = f"/dags/{quote(PIPELINE)}/dagRuns"
        try:
            if self._dag_run is None:
                conf = {"window_start": WINDOW.start.isoformat(), "window_end": WINDOW.end.isoformat()}
                self._dag_run = self.api.post(place, {"logical_date": None, "conf": conf})["dag_run_id"]
            else:
                self.api.post(f"{place}/{quote(self._dag_run, safe='')}/clear", {"dry_run": False})
        except ApiError as error:
            if error.status < 500:
                raise
            return False
        return True

    def _end(self) -> None:
        """Wait for the end of Airflow's run; processes that die later of the fault are restarted too."""

        def is_done() -> bool:
            self.stack.restore()
            return self._state() in ENDED

        self.wait(is_done)

    def _state(self) -> str:
        return self.api.state(PIPELINE, str(self._dag_run))

    def _is_judged(self) -> bool:
        rows = self._rows()
        return rows is not None and rows["final"] is not None

    def _store_state(self, expected: Undisturbed) -> str:
        """Return the store's state right after the kill: nothing of the run, all that is published, or neither."""
        rows = self._rows()
        if rows is None:
            return "as before"
        judged = {key: value for key, value in expected.rows.items() if key not in ("final", "checks")}
        is_whole = all(rows[key] == value for key, value in judged.items())
        is_checked = rows["final"] is not None and rows["checks"] == expected.rows["checks"]
        is_unchecked = rows["final"] is None and not rows["checks"]
        return "as after" if is_whole and (is_checked or is_unchecked) else "TORN"

    def _rows(self) -> dict[str, Any] | None:
        """Return the contents of the window's current run without its labels, or None without a run."""
        rows: dict[str, Any] | None = self._store_answer(lambda: stored_rows(self.store, PIPELINE, WINDOW))
        return rows

    def _doubled(self) -> int:
        """Return the number of duplicate alerts: equal news under different keys."""
        counts = Counter((str(alert["kind"]), str(alert["text"])) for alert in self._unique())
        return sum(counts.values()) - len(counts)

    def _unique(self) -> list[dict[str, Any]]:
        return list({str(alert["key"]): alert for alert in list(self.receiver.taken)}.values())

    def _deliver_alerts(self) -> None:
        """Let the upkeep send pending alerts, with pauses and leases of up to five minutes ended early."""
        if self.store.pending_alerts(PIPELINE):
            self.api.patch(f"/dags/{_UPKEEP}", {"is_paused": False})
            self.wait(self._is_delivered, every=3.0)
            self.api.patch(f"/dags/{_UPKEEP}", {"is_paused": True})

    def _is_delivered(self) -> bool:
        if self.store.pending_alerts(PIPELINE) == 0:
            return True
        url = self.stack.started.database_url
        with closing(psycopg2.connect(url, application_name=APPLICATION)) as session, session:
            session.cursor().execute(
                "UPDATE tieout.alert SET next_attempt_at = now(), "
                "leased_until = CASE WHEN leased_until IS NULL THEN NULL ELSE now() END "
                "WHERE status IN ('pending', 'sending')"
            )
        if not any(run["state"] in ("queued", "running") for run in self.api.runs(_UPKEEP)):
            self.api.post(f"/dags/{_UPKEEP}/dagRuns", {"logical_date": None, "conf": {}})
        return False

    def _store_answer(self, query: Callable[[], Any]) -> Any:
        """Return the store's answer, with retries while PostgreSQL starts."""
        answers: list[Any] = []

        def is_answered() -> bool:
            answers.append(query())
            return True

        self.wait(is_answered)
        return answers[-1]

    def wait(self, is_done: Callable[[], bool], every: float = 1.0) -> None:
        """Poll until the condition holds; after an error, dead processes are restarted.

        Raises:
            StackError: if no task of Airflow's makes progress for 15 minutes.
        """
        ends, progress = time.monotonic() + TIMEOUT_SECONDS, self.stack.progress()
        while True:
            try:
                if is_done():
                    return
            except (StackError, StoreError) as error:
                if isinstance(error, ApiError) and error.status < 500:
                    raise
                self.stack.restore()
            if time.monotonic() > ends and (current := self.stack.progress()) != progress:
                ends, progress = time.monotonic() + TIMEOUT_SECONDS, current
            if time.monotonic() > ends:
                raise StackError(f"{PIPELINE}: nothing more happens; see {self.stack.layout.logs}")
            time.sleep(every)
