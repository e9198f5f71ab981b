"""The pages: what the store holds, for people, inside Airflow's user interface or beside it.

Everything is rendered here from the store, escaped and without anything from elsewhere. Who asks and what they
may see is Airflow's to say: an `Access` is handed in, so that nothing here knows Airflow.
"""

from __future__ import annotations

from tieout.web.access import Access
from tieout.web.app import create_app

__all__ = ["Access", "create_app"]
