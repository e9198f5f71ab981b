"""The part of Airflow's REST API that the stack uses."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from tools.stack.errors import StackError

ENDED: Final = ("success", "failed")
"""The states of a run that has ended."""
# Everything is on this machine: a proxy named in the environment must not see it.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ApiError(StackError):
    """Airflow's API refused a request."""

    def __init__(self, method: str, path: str, status: int, detail: str) -> None:
        super().__init__(f"Airflow answered {method} {path} with {status}: {detail}")
        self.status = status


class UnreachableError(StackError):
    """Airflow's API does not answer."""


@dataclass(frozen=True)
class Api:
    """The API at an address such as `http://127.0.0.1:8080`; `token` authenticates, if Airflow requires it."""

    address: str
    timeout: float = 60.0
    tries: int = 3
    token: str | None = None

    def get(self, path: str) -> Any:
        """Return the answer to GET `path` (below `/api/v2`)."""
        return self._send("GET", path, None)

    def post(self, path: str, body: object) -> Any:
        """Return the answer to POST `path` with `body` as JSON."""
        return self._send("POST", path, body)

    def patch(self, path: str, body: object) -> Any:
        """Return the answer to PATCH `path` with `body` as JSON."""
        return self._send("PATCH", path, body)

    def put(self, path: str, body: object) -> Any:
        """Return the answer to PUT `path` with `body` as JSON."""
        return self._send("PUT", path, body)

    def backfill(self, pipeline: str, first: str, last: str | None = None, **terms: object) -> int:
        """Create a backfill of the windows that start from `first` to `last`, including windows that ran before.

        Times are ISO 8601; without `last` it is one window. `terms` override fields of the request. Returns the
        backfill's id. Source: Airflow, REST API, "Create Backfill".

        Raises:
            ApiError: if Airflow refuses; with 404 or 409 while it is not ready for this one.
        """
        body: dict[str, object] = {
            "dag_id": pipeline,
            "from_date": first,
            "to_date": last or first,
            "max_active_runs": 1,
            "reprocess_behavior": "completed",
            "run_backwards": False,
            "dag_run_conf": {},
        }
        return int(self.post("/backfills", body | terms)["id"])

    def unhealthy(self) -> tuple[str, ...]:
        """Return the components that are not healthy yet; all of them if Airflow does not answer."""
        try:
            health = replace(self, timeout=5.0, tries=1).get("/monitor/health")
        except (UnreachableError, ApiError, ValueError):
            return ("api-server", "scheduler", "dag-processor", "triggerer")
        names = {"scheduler": "scheduler", "dag_processor": "dag-processor", "triggerer": "triggerer"}
        return tuple(
            name for key, name in names.items() if (health.get(key) or {}).get("status") != "healthy"
        )

    def dag_ids(self) -> set[str]:
        """Return the DAGs that Airflow lists."""
        return {dag["dag_id"] for dag in self.get("/dags?limit=1000")["dags"]}

    def import_errors(self) -> tuple[str, ...]:
        """Return the errors of the DAG files, one text per file."""
        errors = self.get("/importErrors?limit=100")["import_errors"]
        return tuple(
            f"{error['filename']}: {error['stack_trace'].strip().splitlines()[-1]}" for error in errors
        )

    def runs(self, dag_id: str | None = None) -> list[dict[str, Any]]:
        """Return the latest runs of a DAG, or of all."""
        runs: list[dict[str, Any]] = self.get(f"/dags/{quote(dag_id or '~')}/dagRuns?limit=100")["dag_runs"]
        return runs

    def state(self, dag_id: str, run_id: str) -> str:
        """Return the state of a run."""
        return str(self.get(f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}")["state"])

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Return the task instances of a run."""
        path = f"/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}/taskInstances?limit=100"
        tasks: list[dict[str, Any]] = self.get(path)["task_instances"]
        return tasks

    def _send(self, method: str, path: str, body: object) -> Any:
        """Return the answer; a request that timed out is repeated, a POST never.

        Raises:
            ApiError: if Airflow refuses.
            StackError: if it does not answer.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.address}/api/v2{path}", data=data, headers=headers, method=method
        )
        for tries_left in reversed(range(1 if method == "POST" else self.tries)):
            try:
                with _DIRECT.open(request, timeout=self.timeout) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                detail = error.read().decode(errors="replace")[:500]
                raise ApiError(method, path, error.code, detail) from error
            except OSError as error:
                if not tries_left:
                    raise UnreachableError(f"Airflow at {self.address} does not answer: {error}") from error
        raise UnreachableError(f"Airflow at {self.address} was not asked")
