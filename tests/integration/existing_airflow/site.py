"""An Airflow that was there before Tieout: its environment, its processes, and the wheel installed into it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scripts.bootstrap import installer_environment
from tools.stack import processes
from tools.stack.api import Api
from tools.stack.processes import MARK, Process

from tieout.testing.postgres import free_port

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ROOT = Path(__file__).resolve().parents[3]
UV = ROOT / ".tieout" / "tools" / "bin" / "uv"
PATIENCE_SECONDS = 600.0
PARTS = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}
MASTER = '{"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}'


@dataclass
class Site:
    """One Airflow in `home`, of the packages in `requirements/airflow/<version>.txt`."""

    home: Path
    version: str
    airflow_database: str
    store_url: str
    port: int = field(default_factory=free_port)
    token: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def dags(self) -> Path:
        """Airflow's folder of DAGs."""
        return self.home / "airflow" / "dags"

    @property
    def address(self) -> str:
        """Where its pages and its REST API are."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api(self) -> Api:
        """Its REST API."""
        return Api(self.address, token=self.token)

    def sign_in(self) -> None:
        """Get a token, without which Airflow 3.1 answers nobody, also where all are administrators.

        Source: Airflow 3.1, "Simple auth manager token API": `GET /auth/token`.
        """
        with _DIRECT.open(f"{self.address}/auth/token", timeout=60) as answer:
            self.token = json.load(answer)["access_token"]

    def page(self, path: str) -> str:
        """Return a page's HTML."""
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.address}{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        with _DIRECT.open(request, timeout=60) as answer:
            return str(answer.read().decode())

    def environment(self) -> dict[str, str]:
        """Return the environment of Airflow's processes: nothing in it leads to the checkout."""
        inherited = ("HOME", "LANG", "JAVA_HOME", "TZ")
        address = self.address
        return {
            **{name: os.environ[name] for name in inherited if name in os.environ},
            "PATH": f"{self.home / 'venv' / 'bin'}{os.pathsep}{os.defpath}",
            MARK: str(self.home),
            "AIRFLOW_HOME": str(self.home / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
            "AIRFLOW__API_AUTH__JWT_SECRET": "a-secret-of-the-tests-that-is-long-enough-for-its-purpose-of-64-bytes",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": address,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "30",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": self.airflow_database.replace(
                "postgresql://", "postgresql+psycopg2://", 1
            ),
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }

    def tieout_environment(self) -> dict[str, str]:
        """Return the environment with what Tieout needs on top of Airflow's."""
        return {
            **self.environment(),
            "TIEOUT_DATABASE_URL": self.store_url,
            "TIEOUT_HOME": str(self.home / "tieout"),
        }

    def install_airflow(self) -> None:
        """Make the environment and install Airflow alone."""
        with self._timed("installing Airflow"):
            make = (
                [str(UV), "venv", "--python", sys.executable]
                if UV.exists()
                else [sys.executable, "-m", "venv"]
            )
            self._must([*make, str(self.home / "venv")])
            self._install("-r", str(ROOT / "requirements" / "airflow" / f"{self.version}.txt"))
            self.dags.mkdir(parents=True)

    def install_tieout(self, wheel: Path) -> None:
        """Install the wheel beside Airflow, whose version must stay."""
        pinned = (ROOT / "requirements" / "airflow" / f"{self.version}.txt").read_text().splitlines()
        airflow = next(line for line in pinned if line.startswith("apache-airflow=="))
        with self._timed("installing Tieout"):
            self._install(airflow, f"{wheel}[airflow]")

    def run(
        self, *words: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in the site's folder."""
        program, *rest = words
        command = [str(self.home / "venv" / "bin" / program), *rest]
        given = dict(environment or self.tieout_environment())
        return subprocess.run(command, cwd=self.home, env=given, capture_output=True, text=True, check=False)

    def ran(self, *words: str) -> str:
        """Run a program that must end well, and return what it printed."""
        done = self.run(*words)
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run Airflow's processes, but for a triggerer, which nothing needs, and wait until they report themselves."""
        started: list[Process] = []
        try:
            for name, words in PARTS.items():
                command = [str(self.home / "venv" / "bin" / "airflow"), *words]
                log = self.home / "logs" / f"{name}.log"
                started.append(processes.start(name, command, self.tieout_environment(), log))
            with self._timed("starting Airflow"):
                self.wait("Airflow's parts to be healthy", lambda: set(self.api.unhealthy()) <= {"triggerer"})
                self.sign_in()
            yield
        finally:
            processes.stop(started, mark=str(self.home), timeout=10.0)

    @staticmethod
    def wait(what: str, is_so: object) -> None:
        """Wait until `is_so()` holds.

        Raises:
            AssertionError: where ten minutes are not enough.
        """
        assert callable(is_so)
        end = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < end, f"waited {PATIENCE_SECONDS:.0f} s for {what}"
            time.sleep(0.5)

    def judge(self, pipeline: str, start: str) -> tuple[str, str]:
        """Have one window judged by a backfill, and return the run's id and final state."""
        with self._timed("judging a window"):
            self.api.patch(f"/dags/{pipeline}", {"is_paused": False})
            self.api.backfill(pipeline, start, reprocess_behavior="none")
            self.wait("a run to begin", lambda: self.api.runs(pipeline))
            run_id = str(self.api.runs(pipeline)[0]["dag_run_id"])
            self.wait("the run to end", lambda: self.api.state(pipeline, run_id) in ("success", "failed"))
        return run_id, self.api.state(pipeline, run_id)

    def output(self) -> str:
        """Return the seconds of each step as JSON."""
        return json.dumps(
            {"airflow": self.version, **{key: round(value) for key, value in self.seconds.items()}}
        )

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - began

    def _install(self, *words: str) -> None:
        python = str(self.home / "venv" / "bin" / "python")
        installer = (
            [str(UV), "pip", "install", "--python", python]
            if UV.exists()
            else [python, "-m", "pip", "install"]
        )
        self._must([*installer, *words])

    @staticmethod
    def _must(command: list[str]) -> None:
        done = subprocess.run(
            command, env=installer_environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
