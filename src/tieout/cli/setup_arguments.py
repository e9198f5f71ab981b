"""The arguments of the commands that install Tieout into an existing Airflow."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from tieout.cli.paths import path


def _airflow(command: argparse.ArgumentParser) -> None:
    command.add_argument("act", metavar="init", choices=("init",), help="write the DAG files")
    command.add_argument("folder", metavar="DAGS_FOLDER", type=path, help="the folder of Airflow's DAGs")


def _doctor(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print the findings as JSON instead of text")


def _migrate(_command: argparse.ArgumentParser) -> None:
    """Add nothing: `migrate` takes no arguments."""


SETUP_ARGUMENTS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "airflow": ("Write the DAG files into an Airflow that is already there, and check its set-up.", _airflow),
    "doctor": ("Look at everything that a window judged by Airflow needs, and say what to do.", _doctor),
    "migrate": ("Bring the result store of TIEOUT_DATABASE_URL to this version's schema.", _migrate),
}
"""The purpose of each command, and the function that adds its arguments."""
