"""The engine: evidence in, a statement and its breaks out. Spark moves rows, SQL judges what is left of them.

`reading`, `sources`, `kafka`, `systems`   every ledger as rows of canonical columns, with what they cover
`prematch`                                 what agrees on all sides is clean, and counted; the rest is left
`judging`                                  one task puts the rules to what is left: SQL in rounds, run by DuckDB
`statement`                                counts, coverage and suspicions become a statement
`reconciling`                              the steps, in order
`tracing`                                  the same for a few messages, with their rows
"""
