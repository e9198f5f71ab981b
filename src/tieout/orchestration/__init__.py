"""Airflow: one DAG per contract, its tasks and timetable, and the maintenance DAGs."""
