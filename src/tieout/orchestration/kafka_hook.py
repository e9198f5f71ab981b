"""The connection type of a Kafka cluster, so that Airflow has a form for one without its Kafka provider.

Airflow 3.2 and newer take the form from the provider's metadata. Airflow 3.1 uses the hook, and has no custom
fields: the settings go into the extra.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseHook

from tieout.brokers.form import KAFKA_FORM


class KafkaClusterHook(BaseHook):  # type: ignore[misc]  # airflow is untyped to us
    """Names the connection type `tieout_kafka`; Tieout's readers use the connection directly."""

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "kafka_default"
    conn_type = "tieout_kafka"
    hook_name = "Kafka (Tieout)"

    def get_conn(self) -> Any:
        """Raise: nothing connects through Airflow's hooks."""
        raise NotImplementedError("Tieout's readers take the connection by its name")

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return which fields the form hides, and how it names the others."""
        return {name.replace("-", "_"): value for name, value in KAFKA_FORM.items()}
