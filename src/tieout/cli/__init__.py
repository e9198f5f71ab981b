"""The command line: one window at a time, with neither Airflow nor PostgreSQL.

Docs: docs/reference/contract.md, "The command line, and what it prints".
"""
