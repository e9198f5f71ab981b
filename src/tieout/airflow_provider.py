"""What Airflow shows of Tieout among its providers: its tasks' links, and the form of a connection to Kafka.

Airflow finds it by the wheel's entry point `apache_airflow_provider`.
"""

from __future__ import annotations

from typing import Any, Final

KAFKA_FORM: Final[dict[str, Any]] = {
    "hidden-fields": ["schema"],
    "relabeling": {
        "host": "Broker",
        "login": "SASL user",
        "password": "SASL password",
        "extra": "Further settings of librdkafka or of the Java client",
    },
    "placeholders": {
        "host": "a broker, where Bootstrap servers is empty",
        "port": "9092",
        "bootstrap.servers": "broker-1:9092,broker-2:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.ca.location": "/etc/ssl/kafka-ca.pem",
    },
}
"""How Airflow's form of a Kafka connection names its fields."""
_OPTIONAL: Final = {"type": ["string", "null"]}
_FIELDS: Final[dict[str, Any]] = {
    "bootstrap.servers": {
        "label": "Bootstrap servers",
        "schema": _OPTIONAL,
        "description": "The brokers to ask first, host:port, with commas.",
    },
    "security.protocol": {
        "label": "Security protocol",
        "schema": {**_OPTIONAL, "enum": ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", None]},
        "description": "How the brokers are reached; PLAINTEXT where it is empty.",
    },
    "sasl.mechanism": {
        "label": "SASL mechanism",
        "schema": {**_OPTIONAL, "enum": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", None]},
        "description": "How user and password are proved, with SASL_PLAINTEXT and SASL_SSL.",
    },
    "ssl.ca.location": {
        "label": "CA certificate",
        "schema": _OPTIONAL,
        "description": "PEM file of the authority that signed the brokers' certificates, where the worker sees it.",
    },
    "ssl.certificate.location": {
        "label": "Client certificate",
        "schema": _OPTIONAL,
        "description": "PEM file, where the brokers ask for one.",
    },
    "ssl.key.location": {
        "label": "Client key",
        "schema": _OPTIONAL,
        "description": "PEM file of the client certificate's key.",
    },
}


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
                "conn-fields": _FIELDS,
            }
        ],
        "extra-links": [
            "tieout.orchestration.page_links.WindowLink",
            "tieout.orchestration.page_links.IncidentLink",
        ],
    }
