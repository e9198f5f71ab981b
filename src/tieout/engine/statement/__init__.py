"""The statement: counts, coverage, suspicions, and the rows that prove a break."""
