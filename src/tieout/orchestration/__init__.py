"""Airflow: one DAG a contract, its tasks, its timetable, and the upkeep that runs beside them."""
