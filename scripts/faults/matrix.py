"""One cell of the matrix: a run disturbed at a step, what it left behind at once, and what came of it."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg2
from scripts.faults.killing import Stack
from scripts.stack.api import Api, ApiError
from scripts.stack.errors import StackError
from scripts.stack.examples import Example
from scripts.stack.receiver import received

from tieout.errors import StoreError
from tieout.store import Store

PATIENCE_SECONDS = 1200.0
STEPS = {
    "window": ("scheduler", "task", "postgres"),
    "reconcile": ("scheduler", "task", "driver", "postgres"),
    "check": ("scheduler", "task", "postgres"),
    "alert": ("scheduler", "task", "postgres"),
    "verdict": ("scheduler", "task", "postgres"),
}
"""Which victims there are to kill at each step of a run."""


@dataclass(frozen=True)
class Cell:
    """What was killed at which step, and what was found; `acts` counts what a person had to do."""

    step: str
    victim: str
    was_hit: bool
    store_after_kill: str
    acts: int
    seconds: float
    verdict: str
    rows: str
    alerts: str

    @property
    def is_sound(self) -> bool:
        """Whether the store was whole, the window judged alike, and each alert delivered."""
        return (
            self.was_hit
            and self.store_after_kill in ("as before", "as after")
            and self.rows == "equal"
            and self.alerts.startswith("all")
        )


@dataclass(frozen=True)
class Undisturbed:
    """What a run that nobody disturbs leaves behind."""

    rows: dict[str, Any]
    verdict: str
    alerts: int


class Disturbed:
    """The pipeline of one example on a running stack, judged from an empty store again and again."""

    def __init__(self, stack: Stack, example: Example) -> None:
        self.stack, self.example = stack, example
        self.pipeline = example.contracts[0].pipeline
        self.api, self.store = Api(stack.started.address), Store(stack.started.database_url)

    def undisturbed(self) -> Undisturbed:
        """Run once without any fault."""
        self._empty()
        self._begin()
        self._end()
        run = self._run()
        if run is None:
            raise StackError(
                f"{self.pipeline}: expected a verdict of a run that nobody disturbed, found none"
            )
        return Undisturbed(
            self._rows() or {}, str(run.final_verdict), len(received(self.stack.layout.alerts))
        )

    def cell(self, step: str, victim: str, expected: Undisturbed) -> Cell:
        """Kill a victim when a step begins, see to it that its processes run again, and wait for the end."""
        self._empty()
        began = time.monotonic()
        self._begin()
        self._await(lambda: self.stack.running_step(self.pipeline) == step, every=0.02)
        was_hit = self.stack.kill(victim, self.pipeline, step)
        time.sleep(2.0)
        self.stack.restore()
        left = self._left(expected)
        acts = 0
        self._end()
        while self._run() is None and acts < 3:
            acts += 1
            self._begin()
            self._end()
        run = self._run()
        return Cell(
            step,
            victim,
            was_hit,
            left,
            acts,
            time.monotonic() - began,
            str(run.final_verdict) if run else "none",
            "equal" if self._rows() == expected.rows else "differ",
            self._alerts(expected),
        )

    def _empty(self) -> None:
        """Forget every result and every alert."""
        with closing(psycopg2.connect(self.stack.started.database_url)) as session, session:
            session.cursor().execute("DELETE FROM tieout.run; DELETE FROM tieout.alert")
        self.stack.layout.alerts.unlink(missing_ok=True)

    def _begin(self) -> None:
        start = self.example.window.start.isoformat()
        body = {"dag_id": self.pipeline, "from_date": start, "to_date": start, "max_active_runs": 1}
        body |= {"reprocess_behavior": "completed", "run_backwards": False, "dag_run_conf": {}}
        self._await(lambda: self._taken(body))
        self._await(lambda: self._states() - {"success", "failed"})

    def _end(self) -> None:
        self._await(lambda: self._states() <= {"success", "failed"})

    def _states(self) -> set[str]:
        return {run["state"] for run in self.api.runs(self.pipeline)}

    def _taken(self, body: object) -> bool:
        try:
            self.api.post("/backfills", body)
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    def _run(self) -> Any:
        """Return the window's checked run, or None."""
        window = self.example.window
        run = self.store.current_run(self.pipeline, window.start, window.end)
        return run if run is not None and run.final_verdict is not None else None

    def _left(self, expected: Undisturbed) -> str:
        """Return how the store looks right after the kill: nothing of the run, all that is published, or neither."""
        rows = self._rows()
        if rows is None:
            return "as before"
        judged = {key: value for key, value in expected.rows.items() if key not in ("final", "checks")}
        is_whole = all(rows[key] == value for key, value in judged.items())
        is_checked = rows["final"] is not None and rows["checks"] == expected.rows["checks"]
        return "as after" if is_whole and (is_checked or not rows["checks"]) else "TORN"

    def _rows(self) -> dict[str, Any] | None:
        window = self.example.window
        run = self.store.current_run(self.pipeline, window.start, window.end)
        if run is None:
            return None
        labels = ("run_id", "generated_at")
        return {
            "statement": {key: value for key, value in run.statement.items() if key not in labels},
            "final": run.final_verdict,
            "incidents": self.store.incidents(run.run_id, limit=100_000),
            "breaks": self.store.breaks(run.run_id, limit=100_000),
            "checks": self.store.checks(run.run_id),
        }

    def _alerts(self, expected: Undisturbed) -> str:
        """Return whether each alert about the verdict arrived, and which came more than once or are of the fault."""
        self._await(lambda: self.store.pending_alerts() == 0 or self._deliver())
        keys = Counter(one["headers"]["idempotency-key"] for one in received(self.stack.layout.alerts))
        kinds = Counter(one["body"]["kind"] for one in received(self.stack.layout.alerts))
        verdicts = kinds["verdict"] + kinds["disagreement"] + kinds["warnings"]
        told = "all" if verdicts >= expected.alerts else f"{verdicts} of {expected.alerts}"
        twice = sum(count - 1 for count in keys.values())
        failed = f", {kinds['run_failed']} about the failed run" if kinds["run_failed"] else ""
        return f"{told}{failed}, {twice} sent twice"

    def _deliver(self) -> bool:
        """Have the upkeep send what waits; its own schedule does so every five minutes."""
        self.api.patch("/dags/tieout_upkeep", {"is_paused": False})
        return False

    def _await(self, look: Any, every: float = 1.0) -> None:
        ends = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                if look():
                    return
            except (StackError, StoreError):
                self.stack.restore()
            if time.monotonic() > ends:
                raise StackError(f"{self.pipeline}: nothing more happens: {self._states()}")
            time.sleep(every)
