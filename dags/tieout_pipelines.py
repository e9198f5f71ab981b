"""Airflow reads this file: one DAG for each contract in `contracts` beside it, or in the folders of TIEOUT_CONTRACTS.

A contract that cannot be used gets a DAG that says so; the others are not affected. Written by `tieout airflow init`.
"""

from __future__ import annotations

from pathlib import Path

from tieout.orchestration.dag_factory import pipeline_dags
from tieout.settings import contract_folders

globals().update(pipeline_dags(contract_folders(Path(__file__).resolve().parent)))
