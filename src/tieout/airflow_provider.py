"""What Airflow shows of Tieout among its providers: its tasks' links, and the form of a connection to Kafka.

Airflow finds it by the wheel's entry point `apache_airflow_provider`.
"""

from __future__ import annotations

from typing import Any

from tieout.brokers.form import KAFKA_FIELDS, KAFKA_FORM


def provider_info() -> dict[str, Any]:
    """Return the metadata in the form of Airflow's `provider_info.schema.json`."""
    return {
        "package-name": "tieout",
        "name": "Tieout",
        "description": "Delivery reconciliation for streaming pipelines: every message produced, accounted for.",
        "operators": [
            {"integration-name": "Tieout", "python-modules": ["tieout.orchestration.operators"]},
        ],
        "connection-types": [
            {
                "connection-type": "tieout_kafka",
                "hook-class-name": "tieout.orchestration.kafka_hook.KafkaClusterHook",
                "hook-name": "Kafka (Tieout)",
                "ui-field-behaviour": KAFKA_FORM,
                "conn-fields": KAFKA_FIELDS,
            }
        ],
        "extra-links": [
            "tieout.orchestration.page_links.WindowLink",
            "tieout.orchestration.page_links.IncidentLink",
        ],
    }
