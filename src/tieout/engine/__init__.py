"""The engine: evidence in, a statement and its breaks out. Spark moves rows; SQL judges those that remain.

`reading`, `sources`, `kafka`, `systems`   every ledger as rows of canonical columns, with its coverage
`prematch`                                 messages that agree on all sides are clean, and counted; the others remain
`judging`                                  one task applies the rules to what remains: SQL in rounds, run by DuckDB
`statement`                                counts, coverage and suspicions become a statement
`reconciling`                              the steps, in order
`tracing`                                  the same for a few messages, with their rows
"""
