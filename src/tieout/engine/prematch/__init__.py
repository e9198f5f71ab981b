"""Prematch: fingerprints show which messages are clean, so that rules read the remainder only. See `prematching`."""
