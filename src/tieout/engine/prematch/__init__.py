"""Prematch: what agrees on all sides is told clean by a comparison of fingerprints, and no rule has to look at it."""
