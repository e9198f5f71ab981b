"""Names the ledgers that cannot cover a window yet, in seconds and without Spark.

An empty answer proves nothing: the engine says what the ledgers cover, and no verdict depends on this package
(docs/reference/readiness.md).
"""

from __future__ import annotations

from tieout.readiness.ledgers import incomplete_ledgers

__all__ = ["incomplete_ledgers"]
