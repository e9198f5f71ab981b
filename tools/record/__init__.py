"""Records the examples: a real broker, real clients, real faults, and what the recorder knew of them itself.

Nothing here imports Tieout: the truth that an example carries must not come from the software that it tests.
"""
