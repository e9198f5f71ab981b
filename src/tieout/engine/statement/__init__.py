"""From what was judged to the statement: counts, coverage, suspicions, and what proves a break."""
