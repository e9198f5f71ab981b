"""The local stack: PostgreSQL, Airflow and a receiver of alerts, started and stopped for one checkout."""
