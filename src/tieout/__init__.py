"""Delivery reconciliation for streaming pipelines: every message produced, accounted for."""

__version__ = "0.1.0"
