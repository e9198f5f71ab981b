"""Two small windows of a pipeline, backfilled on a running stack in every way there is, and the rows they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scripts.stack.api import Api, ApiError

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
    source: {{kind: files, format: jsonl, path: judged_again/sent.jsonl}}
    columns: {{outcome: "'acked'"}}
    coverage: declared
  delivered:
    source: {{kind: files, format: jsonl, path: judged_again/done.jsonl}}
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


@dataclass
class Backfills:
    """The pipeline on a running stack."""

    api: Api
    store: Store

    def create(self, behavior: str, **more: object) -> int:
        """Ask for both windows over REST, again while Airflow still closes an earlier backfill; return its id."""
        body = {
            "dag_id": PIPELINE,
            "from_date": STARTS[0].isoformat(),
            "to_date": STARTS[-1].isoformat(),
            "reprocess_behavior": behavior,
            "max_active_runs": 2,
            "run_backwards": False,
            "dag_run_conf": {},
            **more,
        }
        return int(self._eventually(lambda: self._taken("/backfills", body))["id"])

    def wait(self, results: int) -> None:
        """Wait until the store has that many checked runs or more, and none of Airflow's runs is at work."""
        self._eventually(lambda: len(self.checked()) >= results and not self.active())

    def checked(self) -> list[str]:
        """Return the ids of the checked runs of both windows."""
        return [run.run_id for run in self.store.runs_of(PIPELINE) if run.checked_at]

    def active(self) -> list[str]:
        """Return the states of the runs that have not ended."""
        return [run["state"] for run in self.api.runs(PIPELINE) if run["state"] not in ("success", "failed")]

    def rows(self) -> list[dict[str, Any]]:
        """Return everything that the current runs left in the store, without the labels of the run."""
        found = []
        for start in STARTS:
            run = self.store.current_run(PIPELINE, start, start + LENGTH)
            assert run is not None
            labels = ("run_id", "generated_at")
            found.append(
                {
                    "statement": {key: value for key, value in run.statement.items() if key not in labels},
                    "final": run.final_verdict,
                    "incidents": self.store.incidents(run.run_id),
                    "breaks": self.store.breaks(run.run_id),
                    "checks": self.store.checks(run.run_id),
                }
            )
        return found

    def _taken(self, path: str, body: object) -> Any:
        try:
            return self.api.post(path, body)
        except ApiError as error:
            if error.status in (404, 409):
                return None
            raise

    def _eventually(self, look: Any) -> Any:
        ends = time.monotonic() + _PATIENCE_SECONDS
        while not (found := look()):
            assert time.monotonic() < ends, self.api.runs(PIPELINE)
            time.sleep(1.0)
        return found


def by_command_line(environment: dict[str, str], behavior: str) -> None:
    """Ask for both windows with Airflow's own command."""
    words = [
        "backfill",
        "create",
        "--dag-id",
        PIPELINE,
        "--reprocess-behavior",
        behavior,
        "--max-active-runs",
        "2",
    ]
    words += ["--from-date", STARTS[0].isoformat(), "--to-date", STARTS[-1].isoformat()]
    command = [sys.executable, "-m", "airflow", *words]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def environment_of(pids: Iterable[int]) -> dict[str, str]:
    """Return the environment of the stack, which an operator's shell would have; a renamed process shows none."""
    for pid in pids:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        found = dict(pair.decode().split("=", 1) for pair in pairs if b"=" in pair)
        if "AIRFLOW_HOME" in found:
            return found
    raise AssertionError("none of the stack's processes shows its environment")
