"""Airflow reads this file: the DAGs that send waiting alerts, judge PENDING windows again, and look for missing ones.

Written by `tieout airflow init`.
"""

from __future__ import annotations

from pathlib import Path

from tieout.orchestration.housekeeping import gap_audit_dag, upkeep_dag
from tieout.settings import contract_folders

FOLDERS = contract_folders(Path(__file__).resolve().parent)

upkeep = upkeep_dag(FOLDERS)
gap_audit = gap_audit_dag(FOLDERS)
