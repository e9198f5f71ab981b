"""The fields of a connection to a Kafka cluster, as Airflow's form shows them: those that `connection_fields` reads."""

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
KAFKA_FIELDS: Final[dict[str, Any]] = {
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
"""Those that the form has beside Airflow's own, by their names in the extra."""
