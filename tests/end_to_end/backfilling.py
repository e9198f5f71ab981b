"""Two small windows of a pipeline, backfilled on a running stack in every way there is, and the rows they leave."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.stack.api import ENDED, Api, ApiError
from tools.stack.results import stored_rows

from tieout.model import Window
from tieout.store import Store

PIPELINE = "judged_again"
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
LENGTH = timedelta(minutes=2)
STARTS = (TEN, TEN + LENGTH)
_PATIENCE_SECONDS = 900.0
_CONTRACT = f"""\
version: 1
pipeline: {PIPELINE}
guarantee: at_least_once
group: loader
schedule: "*/2 * * * *"
active: {{from: 2026-11-20T10:00:00Z, until: 2026-11-20T10:04:00Z}}
max_latency: 10s
grace: 10s
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: {PIPELINE}/sent.jsonl}}
    columns: {{outcome: "'acked'"}}
    coverage: declared
  delivered:
    source: {{kind: files, format: jsonl, path: {PIPELINE}/done.jsonl}}
    columns: {{outcome: "'ok'"}}
    coverage: declared
"""


def prepare(folder: Path) -> None:
    """Write the contract and its evidence: everything delivered in the first window, one of two lost in the second."""
    (folder / PIPELINE).mkdir()
    minutes = {"a": 0, "b": 1, "c": 2, "d": 3}
    sent = [
        {"message_id": name, "attempted_at": str(TEN + timedelta(minutes=n))} for name, n in minutes.items()
    ]
    done = [{"message_id": one["message_id"], "processed_at": one["attempted_at"]} for one in sent[:3]]
    for name, rows in (("sent", sent), ("done", done)):
        (folder / PIPELINE / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / f"{PIPELINE}.yml").write_text(_CONTRACT)


@dataclass(frozen=True)
class Backfills:
    """The pipeline on a running stack."""

    api: Api
    store: Store

    def over_rest(self, behavior: str, starts: tuple[datetime, ...] = STARTS, **more: object) -> int:
        """Ask for windows over REST and return the backfill's id; until Airflow knows the DAG, ask again."""
        first, last = starts[0].isoformat(), starts[-1].isoformat()
        terms = {"reprocess_behavior": behavior, "max_active_runs": 2, **more}
        found: list[int] = []

        def is_taken() -> bool:
            try:
                found.append(self.api.backfill(PIPELINE, first, last, **terms))
            except ApiError as error:
                if error.status not in (404, 409):
                    raise
            return bool(found)

        self._eventually(is_taken)
        return found[-1]

    def cancel(self, backfill: int) -> None:
        """Cancel a backfill, unless Airflow, which looks every half minute, knows already that it is completed."""
        try:
            self.api.put(f"/backfills/{backfill}/cancel", {})
        except ApiError as error:
            if error.status != 409 or "already completed" not in str(error):
                raise

    def latest(self) -> int:
        """Return the id of the latest backfill."""
        found = self.api.get(f"/backfills?dag_id={PIPELINE}&limit=100")["backfills"]
        return max(int(one["id"]) for one in found)

    def wait(self, results: int) -> None:
        """Wait until the store has that many checked runs or more, and none of Airflow's runs is at work."""
        self._eventually(lambda: len(self.published()) >= results and not self.active())

    def published(self) -> list[datetime]:
        """Return the starts of the windows that were judged and checked, as they were published."""
        runs = sorted(self.store.runs_of(PIPELINE), key=lambda run: run.published_at)
        return [run.window.start for run in runs if run.checked_at]

    def active(self) -> list[str]:
        """Return the states of the runs that have not ended."""
        return [run["state"] for run in self.api.runs(PIPELINE) if run["state"] not in ENDED]

    def clear_cancelled(self) -> None:
        """Clear every run, as one might after a cancelled backfill; such runs stay queued, and are set to failed."""
        for run in self.api.runs(PIPELINE):
            place = f"/dags/{PIPELINE}/dagRuns/{quote(run['dag_run_id'], safe='')}"
            self.api.post(f"{place}/clear", {"dry_run": False})
            self.api.patch(place, {"state": "failed"})

    def rows(self) -> list[dict[str, Any]]:
        """Return everything that the current runs left in the store, without the labels of the run."""
        found = [stored_rows(self.store, PIPELINE, Window(start, start + LENGTH)) for start in STARTS]
        assert None not in found, STARTS
        return [rows for rows in found if rows is not None]

    def _eventually(self, look: Callable[[], bool]) -> None:
        ends = time.monotonic() + _PATIENCE_SECONDS
        while not look():
            assert time.monotonic() < ends, self.api.runs(PIPELINE)
            time.sleep(0.5)


def by_command_line(environment: Mapping[str, str], behavior: str, start: datetime) -> None:
    """Ask for a window with Airflow's own command, in the environment that the stack wrote for a shell."""
    dates = ("--from-date", start.isoformat(), "--to-date", start.isoformat())
    words = ("--dag-id", PIPELINE, "--reprocess-behavior", behavior, "--max-active-runs", "1", *dates)
    command = [sys.executable, "-m", "airflow", "backfill", "create", *words]
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
