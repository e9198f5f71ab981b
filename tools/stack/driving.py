"""Drives Airflow through its API: a backfill for each example's window, and waiting for its end."""

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
from tools.stack.console import print_line
from tools.stack.errors import StackError
from tools.stack.examples import Example, Stage, apply_stage
from tools.stack.state import Started

TIMEOUT_SECONDS = 1800.0
_POLL_SECONDS = 3.0
_REPORT_SECONDS = 10.0
_SIGNS = {"success": "✓", "failed": "✗", "upstream_failed": "·", "running": "…", "up_for_retry": "↻"}


@dataclass(frozen=True)
class PipelineResult:
    """The result of a pipeline's run: the state of Airflow's run, and the stored run or None."""

    dag_run_state: str
    run: Run | None


@dataclass
class _Job:
    """One example's progress through its stages."""

    example: Example
    stage: int = -1
    waiting: dict[str, str | None] = field(default_factory=dict)
    """Pipelines whose run is awaited, with the end of the run's previous try."""
    blocked: list[str] = field(default_factory=list)
    """Pipelines whose backfill Airflow does not accept yet: a DAG has one at a time."""

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
    results: dict[tuple[str, str], PipelineResult] = field(default_factory=dict)
    runs: dict[tuple[str, datetime], dict[str, Any]] = field(default_factory=dict)
    """Airflow's runs by DAG and window start at the last poll, which serves all pipelines."""

    @classmethod
    def of(cls, started: Started) -> Driver:
        """Return a driver of a stack that was started."""
        return cls(Api(started.address), Store(started.database_url))

    def judge(self, chosen: Sequence[Example]) -> None:
        """Judge every example's window, once per stage of its evidence.

        Raises:
            StackError: if it has not ended after half an hour.
        """
        # The example with the most stages takes longest, so it starts first.
        jobs = [_Job(example) for example in sorted(chosen, key=lambda example: -len(example.stages))]
        for job in jobs:
            for contract in job.example.contracts:
                self.api.patch(f"/dags/{quote(contract.pipeline)}", {"is_paused": False})
        began = reported = time.monotonic()
        while not all(job.is_done for job in jobs):
            self._poll()
            for job in jobs:
                self._advance(job)
            if time.monotonic() - began > TIMEOUT_SECONDS:
                raise StackError(f"no end after {TIMEOUT_SECONDS:.0f} s: {self._state(jobs)}")
            if time.monotonic() - reported > _REPORT_SECONDS:
                reported = time.monotonic()
                print_line(f"    … {reported - began:.0f} s: {self._state(jobs)}")
            time.sleep(_POLL_SECONDS)

    def result(self, pipeline: str, stage: str) -> PipelineResult:
        """Return the result of a pipeline at a stage of its example's evidence."""
        return self.results[pipeline, stage]

    def _advance(self, job: _Job) -> None:
        """Advance a job as far as possible now."""
        for pipeline in list(job.waiting):
            run = self.runs.get((pipeline, job.example.window.start))
            if run is not None and run["state"] in ENDED and run["end_date"] != job.waiting[pipeline]:
                del job.waiting[pipeline]
                self._note(job, pipeline, run["state"])
        if not job.waiting and not job.blocked and not job.is_done:
            job.stage += 1
            apply_stage(job.current, job.example.folder)
            job.blocked = [expected.contract.pipeline for expected in job.current.expected]
        for pipeline in list(job.blocked):
            run = self.runs.get((pipeline, job.example.window.start))
            if self._backfill(pipeline, job.example.window):
                job.blocked.remove(pipeline)
                job.waiting[pipeline] = None if run is None else run["end_date"]

    def _note(self, job: _Job, pipeline: str, state: str) -> None:
        window = job.example.window
        run = self.store.current_run(pipeline, window.start, window.end)
        self.results[pipeline, job.current.name] = PipelineResult(state, run)
        verdict = "no result" if run is None else (run.final_verdict or "unchecked")
        stage = f" ({job.current.name})" if len(job.example.stages) > 1 else ""
        print_line(f"  {_SIGNS[state]} {pipeline}{stage}: {verdict}")

    def _backfill(self, pipeline: str, window: Window) -> bool:
        """Request the run of one window, even if it ran before; return False if Airflow is not ready."""
        try:
            self.api.backfill(pipeline, window.start.isoformat())
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    def _poll(self) -> None:
        runs = [run for run in self.api.runs() if run["data_interval_start"]]
        self.runs = {(run["dag_id"], datetime.fromisoformat(run["data_interval_start"])): run for run in runs}

    def _state(self, jobs: Iterable[_Job]) -> str:
        """Return the state of all unfinished work in one line."""
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
