"""One DAG for each contract in the folders of TIEOUT_CONTRACTS, or in `contracts` beside this file.

A contract that cannot be used gets a DAG that says so; the others are not affected.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import get_parsing_context

from tieout import settings
from tieout.orchestration.catalogue import entries
from tieout.orchestration.dag_factory import dag_for

ROOT = Path(__file__).resolve().parents[1]
APPLICATION = ROOT / "spark_apps" / "reconcile.py"
FOLDERS = [ROOT / folder for folder in settings.contract_folders()]

for entry in entries(FOLDERS, only=get_parsing_context().dag_id):
    dag = dag_for(entry, APPLICATION)
    globals()[dag.dag_id] = dag
