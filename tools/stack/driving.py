"""Driving Airflow through its API: a backfill for each example's window, and waiting for its end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tieout.model import Window
from tieout.store import Store
from tieout.store.results import Run
from tools.stack.api import ENDED, Api, ApiError
from tools.stack.console import say
from tools.stack.errors import StackError
from tools.stack.examples import Example, Stage, bring
from tools.stack.state import Started

PATIENCE_SECONDS = 1800.0
_LOOK_EVERY_SECONDS = 3.0
_TOLD_EVERY_SECONDS = 10.0
_SIGNS = {"success": "✓", "failed": "✗", "upstream_failed": "·", "running": "…", "up_for_retry": "↻"}


@dataclass(frozen=True)
class Found:
    """What a pipeline's run came to: the state of Airflow's run, and the stored run or None."""

    dag_run_state: str
    run: Run | None


@dataclass
class _Job:
    """One example's way through its stages."""

    example: Example
    stage: int = -1
    waiting: dict[str, str | None] = field(default_factory=dict)
    """Pipelines whose run is awaited, with the end of the run's former try."""
    blocked: list[str] = field(default_factory=list)
    """Pipelines whose backfill Airflow does not take yet: there is one at a time for a DAG."""

    @property
    def current(self) -> Stage:
        return self.example.stages[self.stage]

    @property
    def is_done(self) -> bool:
        return self.stage == len(self.example.stages) - 1 and not self.waiting and not self.blocked


@dataclass
class Driver:
    """Runs the examples through Airflow, all at the same time; each example's stages one after the other."""

    api: Api
    store: Store
    results: dict[tuple[str, str], Found] = field(default_factory=dict)
    runs: dict[tuple[str, datetime], dict[str, Any]] = field(default_factory=dict)
    """Airflow's runs by DAG and window start, as they were at the last look; one look serves all pipelines."""

    @classmethod
    def of(cls, started: Started) -> Driver:
        """Return a driver of a stack that was started."""
        return cls(Api(started.address), Store(started.database_url))

    def judge(self, chosen: Sequence[Example]) -> None:
        """Have every example's window judged, again for every stage of its evidence.

        Raises:
            StackError: where half an hour passes without an end.
        """
        # The example with the most stages is the longest way, so it begins.
        jobs = [_Job(example) for example in sorted(chosen, key=lambda one: -len(one.stages))]
        for job in jobs:
            for contract in job.example.contracts:
                self.api.patch(f"/dags/{quote(contract.pipeline)}", {"is_paused": False})
        began = told = time.monotonic()
        while not all(job.is_done for job in jobs):
            self._look()
            for job in jobs:
                self._advance(job)
            if time.monotonic() - began > PATIENCE_SECONDS:
                raise StackError(f"no end after {PATIENCE_SECONDS:.0f} s: {self._state(jobs)}")
            if time.monotonic() - told > _TOLD_EVERY_SECONDS:
                told = time.monotonic()
                say(f"    … {told - began:.0f} s: {self._state(jobs)}")
            time.sleep(_LOOK_EVERY_SECONDS)

    def found(self, pipeline: str, stage: str) -> Found:
        """Return what became of a pipeline at a stage of its example's evidence."""
        return self.results[pipeline, stage]

    def _advance(self, job: _Job) -> None:
        """Take a job as far as it goes at this moment."""
        for pipeline in list(job.waiting):
            run = self.runs.get((pipeline, job.example.window.start))
            if run is not None and run["state"] in ENDED and run["end_date"] != job.waiting[pipeline]:
                del job.waiting[pipeline]
                self._note(job, pipeline, run["state"])
        if not job.waiting and not job.blocked and not job.is_done:
            job.stage += 1
            bring(job.current, job.example.folder)
            job.blocked = [expected.contract.pipeline for expected in job.current.expected]
        for pipeline in list(job.blocked):
            run = self.runs.get((pipeline, job.example.window.start))
            if self._backfill(pipeline, job.example.window):
                job.blocked.remove(pipeline)
                job.waiting[pipeline] = None if run is None else run["end_date"]

    def _note(self, job: _Job, pipeline: str, state: str) -> None:
        window = job.example.window
        run = self.store.current_run(pipeline, window.start, window.end)
        self.results[pipeline, job.current.name] = Found(state, run)
        verdict = "no result" if run is None else (run.final_verdict or "unchecked")
        stage = f" ({job.current.name})" if len(job.example.stages) > 1 else ""
        say(f"  {_SIGNS[state]} {pipeline}{stage}: {verdict}")

    def _backfill(self, pipeline: str, window: Window) -> bool:
        """Ask for the run of one window, again if it ran before; return False where Airflow is not ready."""
        try:
            self.api.backfill(pipeline, window.start.isoformat())
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    def _look(self) -> None:
        found = [run for run in self.api.runs() if run["data_interval_start"]]
        self.runs = {
            (run["dag_id"], datetime.fromisoformat(run["data_interval_start"])): run for run in found
        }

    def _state(self, jobs: Iterable[_Job]) -> str:
        """Return in one line where everything stands that is not done."""
        parts = []
        for job in jobs:
            for pipeline in job.waiting:
                run = self.runs.get((pipeline, job.example.window.start))
                tasks = self.api.tasks(pipeline, run["dag_run_id"]) if run else []
                busy = [
                    task["task_id"]
                    for task in tasks
                    if task["state"] in ("running", "up_for_retry", "queued")
                ]
                parts.append(f"{pipeline} {busy[0] if busy else 'waits'}")
            parts += [f"{pipeline} waits for its next stage" for pipeline in job.blocked]
        return ", ".join(parts)
