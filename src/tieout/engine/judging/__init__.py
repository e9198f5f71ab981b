"""Judging one bucket of evidence with SQL, in DuckDB, without Spark.

`terms` has the SQL variables of contract, window and coverage; `bucket` loads the evidence, runs the SQL files of
`rounds/` in their order, and hands out their last tables. Docs: docs/explanation/architecture.md.
"""
