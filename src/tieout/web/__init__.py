"""The pages: the content of the store for people, inside Airflow's user interface or standalone.

Everything is rendered here from the store, escaped and without remote content. Airflow decides about users and their
rights: it passes in an `Access`, so this package does not depend on Airflow.
"""

from __future__ import annotations

from tieout.web.access import Access
from tieout.web.app import create_app

__all__ = ["Access", "create_app"]
