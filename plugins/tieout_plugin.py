"""Registers Tieout's plugin in an Airflow that has the sources on its path, but no installed package to find it by."""

from __future__ import annotations

from tieout.airflow_plugin import is_announced

if not is_announced():
    from tieout.airflow_plugin import TieoutPlugin  # noqa: F401 - Airflow looks for it here
