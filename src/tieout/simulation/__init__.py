"""A pipeline that runs on paper: ledgers with chosen faults in them, and the truth about each, to score the engine by.

Faults are mechanisms (a consumer crashes between processing and committing), never edits of what the engine is
expected to say, so that the truth is what was done. No Spark here. Docs: docs/reference/simulation.md.
"""
