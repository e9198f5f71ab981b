"""Statements and breaks of thousands of histories, kept in files, against which any engine can be held.

`drawing` has the histories, `keeping` the files, `comparing` the differences in words; none of them knows Spark.
`together` and `recorded` judge with the engine. `python -m tests.snapshots --help` says what can be asked.
"""
