"""Judging one bucket of evidence with SQL, in DuckDB, without Spark.

`terms` says what the SQL may ask of contract, window and coverage; `bucket` loads the evidence, runs the rounds of
`rounds/` in their order, and hands out their last tables. Docs: docs/explanation/architecture.md.
"""
