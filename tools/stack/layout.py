"""The folder of the stack's files: by default `.tieout/stack` of the checkout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_HOME = ROOT / ".tieout" / "stack"


@dataclass(frozen=True)
class Layout:
    """The files below one home folder; two homes never share anything."""

    home: Path

    @property
    def postgres(self) -> Path:
        """The data folder of the embedded PostgreSQL."""
        return self.home / "postgres"

    @property
    def airflow(self) -> Path:
        """Airflow's home folder."""
        return self.home / "airflow"

    @property
    def logs(self) -> Path:
        """The output of the processes, one file each."""
        return self.home / "logs"

    @property
    def processes(self) -> Path:
        """The processes that were started here and may still run."""
        return self.home / "processes.json"

    @property
    def secrets(self) -> Path:
        """The keys that Airflow's processes share."""
        return self.home / "secrets.json"

    @property
    def environment(self) -> Path:
        """Airflow's environment as a shell reads it, so that its command line can be used: `. airflow.env`."""
        return self.home / "airflow.env"

    @property
    def lock(self) -> Path:
        """Locked by the command that works on this home."""
        return self.home / "lock"

    @property
    def examples(self) -> Path:
        """The working copies of the examples, whose evidence grows during the demonstration."""
        return self.home / "examples"

    @property
    def alerts(self) -> Path:
        """The alerts that the receiver got, one JSON object per line."""
        return self.home / "alerts.jsonl"

    @property
    def statements(self) -> Path:
        """The statements written by the runs: `<pipeline>/<window start>/`."""
        return self.home / "statements"
