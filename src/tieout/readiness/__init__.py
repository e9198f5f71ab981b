"""Whether a window's evidence can be complete yet: looked at before Spark starts, in seconds and without it.

A look can only say that a ledger does *not* reach far enough. That none is lacking proves nothing; what the ledgers
cover is the engine's to say, and a verdict never depends on what is said here (docs/reference/readiness.md).
"""

from __future__ import annotations

from tieout.readiness.looking import lacking

__all__ = ["lacking"]
