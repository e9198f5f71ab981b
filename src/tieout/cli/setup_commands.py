"""The commands that install Tieout into an existing Airflow. Docs: docs/how-to/install-into-airflow.md."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from tieout import settings
from tieout.cli.dag_files import write_dag_files
from tieout.cli.doctor import Finding, examined
from tieout.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from tieout.cli.commands import Surroundings

SetupCommand = Callable[[argparse.Namespace, "Surroundings"], ExitCode]


def airflow(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Write the DAG files, then check everything else that a run needs."""
    for line in write_dag_files(arguments.folder.absolute()):
        print(line, file=around.out)
    return _examine(around, is_json=False)


def doctor(arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Check everything that a run needs; anything missing is an error."""
    return _examine(around, is_json=arguments.json)


def migrate(_arguments: argparse.Namespace, around: Surroundings) -> ExitCode:
    """Apply the migrations that the result store lacks."""
    from tieout.store import Store  # noqa: PLC0415 - brings PostgreSQL's driver

    applied = Store(settings.required_database_url(), application_name="tieout migrate").migrate()
    print(f"{len(applied)} migrations applied", file=around.out)
    return ExitCode.KEPT


def _examine(around: Surroundings, *, is_json: bool) -> ExitCode:
    findings: list[Finding] = []
    for finding in examined(around.progress):
        findings.append(finding)
        if not is_json:
            print(finding.line(), file=around.out, flush=True)
    if is_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2), file=around.out)
    return ExitCode.KEPT if all(finding.is_there for finding in findings) else ExitCode.ERROR


SETUP_COMMANDS: Final[Mapping[str, SetupCommand]] = {
    "airflow": airflow,
    "doctor": doctor,
    "migrate": migrate,
}
