"""What Airflow shows of Tieout among its providers, and the links that its tasks have.

Airflow finds it by the wheel's entry point `apache_airflow_provider`.
"""

from __future__ import annotations

from typing import Any


def provider_info() -> dict[str, Any]:
    """Return the metadata in the form of Airflow's `provider_info.schema.json`."""
    return {
        "package-name": "tieout",
        "name": "Tieout",
        "description": "Delivery reconciliation for streaming pipelines: every message produced, accounted for.",
        "operators": [
            {"integration-name": "Tieout", "python-modules": ["tieout.orchestration.operators"]},
        ],
        "extra-links": [
            "tieout.orchestration.page_links.WindowLink",
            "tieout.orchestration.page_links.IncidentLink",
        ],
    }
