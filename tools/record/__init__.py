"""Records the examples: a real broker, real clients, real faults, and the recorder's own knowledge of them.

Nothing here imports Tieout: the truth of an example must not come from the software that it tests.
"""
