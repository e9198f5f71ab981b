"""The engine: evidence in, a statement and its breaks out, on Spark with native functions only."""
