"""Four hops after three others on a running stack: one hop that is judged late, one that fails, one that never runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.stack.api import ENDED, Api, ApiError
from tools.stack.examples import RECEIVER

from tieout.contracts.times import format_time
from tieout.model import Window
from tieout.store import Run, Store

BEFORE = ("late_hop", "failing_hop", "idle_hop")
AFTER = {"waits": "late_hop", "after_failing": "failing_hop", "after_idle": "idle_hop"}
LENGTH = timedelta(minutes=2)
HASTE = timedelta(minutes=4)
"""How long after the contracts are written the hops whose predecessor never comes wait; the stack starts meanwhile."""
_FOLDER = "chain"
_GRACE = timedelta(seconds=10)
_PATIENCE_SECONDS = 900.0
_LOOK_EVERY_SECONDS = 1.0
_CONTRACT = """\
version: 1
pipeline: {name}
guarantee: at_least_once
group: loader
{after}schedule: "*/2 * * * *"
active: {{from: {start}, until: {end}}}
max_latency: 10s
grace: 10s
evidence_timeout: {timeout}s
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: {folder}/sent.jsonl}}
    columns: {{outcome: "'acked'"}}
    coverage: declared
  delivered:
    source: {{kind: files, format: jsonl, path: {folder}/{delivered}}}
    columns: {{outcome: "'ok'"}}
    coverage: declared
alerts:
  - {{to: webhook, connection: {receiver}, at: warning}}
"""


@dataclass(frozen=True)
class Chain:
    """What all hops judge, and until when those whose predecessor never comes wait."""

    window: Window
    hasty: datetime


def prepare(folder: Path, now: datetime) -> Chain:
    """Write the contracts and their evidence: the first and the last of three messages arrive at each hop.

    The window has two minutes and ended some minutes ago.
    """
    (folder / _FOLDER).mkdir()
    start = now.replace(minute=now.minute - now.minute % 2, second=0, microsecond=0) - 4 * LENGTH
    chain = Chain(Window(start, start + LENGTH), now + HASTE)
    times = {name: format_time(start + timedelta(seconds=30 * n)) for n, name in enumerate("abc")}
    sent = [{"message_id": name, "attempted_at": at} for name, at in times.items()]
    done = [{"message_id": name, "processed_at": at} for name, at in times.items() if name != "b"]
    for name, rows in (("sent", sent), ("done", done)):
        (folder / _FOLDER / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in (*BEFORE, *AFTER):
        until = chain.hasty if name.startswith("after_") else now + timedelta(hours=2)
        before = AFTER.get(name)
        text = _CONTRACT.format(
            name=name,
            after=f"after: {before}\n" if before else "",
            start=format_time(chain.window.start),
            end=format_time(chain.window.end),
            timeout=int((until - chain.window.end - _GRACE).total_seconds()),
            folder=_FOLDER,
            # Its evidence never comes, so that it can be failed while it waits.
            delivered="nothing.jsonl" if name == "failing_hop" else "done.jsonl",
            receiver=RECEIVER,
        )
        (folder / f"{name}.yml").write_text(text)
    return chain


@dataclass(frozen=True)
class Hops:
    """The pipelines on a running stack, and the window they judge."""

    api: Api
    store: Store
    window: Window

    def ask(self, pipeline: str) -> None:
        """Unpause a pipeline and ask for its window."""
        self.api.patch(f"/dags/{pipeline}", {"is_paused": False})
        self.eventually(lambda: self._is_taken(pipeline))

    def _is_taken(self, pipeline: str) -> bool:
        try:
            self.api.backfill(pipeline, self.window.start.isoformat())
        except ApiError as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    def run(self, pipeline: str) -> dict[str, Any]:
        """Return Airflow's run of the pipeline."""
        self.eventually(lambda: bool(self.api.runs(pipeline)))
        (found,) = self.api.runs(pipeline)
        return found

    def is_waiting(self, pipeline: str) -> bool:
        """Return whether the run's task `window` has left its worker and waits."""
        tasks = self.api.tasks(pipeline, self.run(pipeline)["dag_run_id"])
        return [task["state"] for task in tasks if task["task_id"] == "window"] == ["deferred"]

    def fail(self, pipeline: str) -> None:
        """Have the run fail, as one whose worker cannot be helped does."""
        run_id = quote(self.run(pipeline)["dag_run_id"], safe="")
        self.api.patch(f"/dags/{pipeline}/dagRuns/{run_id}", {"state": "failed"})

    def has_ended(self, pipeline: str) -> bool:
        """Return whether the run is over."""
        return self.run(pipeline)["state"] in ENDED

    def given(self, pipeline: str) -> dict[str, Any]:
        """Return what the task `window` handed on."""
        run_id = quote(self.run(pipeline)["dag_run_id"], safe="")
        path = f"/dags/{pipeline}/dagRuns/{run_id}/taskInstances/window/xcomEntries/return_value"
        found = self.api.get(f"{path}?deserialize=false")["value"]
        reported: dict[str, Any] = json.loads(found) if isinstance(found, str) else found
        return reported

    def judged(self, pipeline: str) -> Run | None:
        """Return the window's current, checked run."""
        found = self.store.current_run(pipeline, self.window.start, self.window.end)
        return found if found is not None and found.checked_at is not None else None

    def origin(self, pipeline: str) -> str:
        """Return in words where the hop's one incident happened."""
        run = self.judged(pipeline)
        assert run is not None
        (origin,) = self.store.origins(pipeline, [run.run_id]).values()
        return origin.words

    def eventually(self, look: Callable[[], bool]) -> None:
        """Look until it is so, for a quarter of an hour at most."""
        ends = time.monotonic() + _PATIENCE_SECONDS
        while not look():
            assert time.monotonic() < ends, self.api.runs()
            time.sleep(_LOOK_EVERY_SECONDS)
