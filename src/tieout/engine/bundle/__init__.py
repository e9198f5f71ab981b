"""The audit bundle: one window with its evidence and the SQL that judged it, in a zip that DuckDB alone can verify.

`script`      the text of `verify.sql`: the input of one task, the rounds, and the comparison with the statement
`parts`       the files of a bundle, the evidence among them as Parquet, written by Spark
`packing`     the zip and its manifest of digests
`opening`     an untrusted zip, unpacked safely
`verifying`   whether counts, classes and break ids are the same, and where they differ

Docs: docs/how-to/keep-an-audit-bundle.md.
"""
