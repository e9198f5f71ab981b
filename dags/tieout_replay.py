"""Airflow reads this file: the DAG that replays lost messages, run by hand, after approval.

Written by `tieout airflow init`.
"""

from __future__ import annotations

from pathlib import Path

from tieout.orchestration.replay_dag import replay_dag
from tieout.settings import contract_folders

replay = replay_dag(contract_folders(Path(__file__).resolve().parent))
