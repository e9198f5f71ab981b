"""Reaching the Kafka of other people, with what Airflow's connection holds.

Airflow's Kafka connection holds the settings of librdkafka, which Airflow's provider hands them to; many people have
those of the Java client at hand. Either is put into the words of the client that needs them: the Java client inside
Spark reads topics, librdkafka does what Airflow's tasks do. Most settings have the same name in both; secrets and
certificates do not.
"""

from __future__ import annotations

from tieout.brokers.java import client_settings
from tieout.brokers.librdkafka import library_settings
from tieout.brokers.secrets import without_secrets

__all__ = ["client_settings", "library_settings", "without_secrets"]
