"""An Airflow of the tests' own: home folder, plugins and DAGs, set before Airflow is imported first."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(tempfile.mkdtemp(prefix="tieout-airflow-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

if "airflow" in sys.modules:
    raise RuntimeError("Airflow was imported before its tests could give it a home folder of their own")

os.environ.update(
    {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }
)

CONTRACT = """\
version: 1
pipeline: {pipeline}
description: A pipeline of the tests.
owner: testers
guarantee: exactly_once
group: loader
schedule: "0 * * * *"
{more}
ledgers:
  produced:
    source: {{kind: files, format: jsonl, path: produced.jsonl}}
    coverage: declared
  delivered:
    source: {{kind: files, format: jsonl, path: delivered.jsonl}}
    coverage: declared
alerts:
  - {{to: webhook, connection: on_call, at: warning}}
"""


def write_contract(folder: Path, pipeline: str, more: str = "") -> Path:
    """Write a valid contract, with further lines, and return its file."""
    file = folder / f"{pipeline}.yml"
    file.write_text(CONTRACT.format(pipeline=pipeline, more=more))
    return file
