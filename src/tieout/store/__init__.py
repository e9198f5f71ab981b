"""The result store: runs, breaks, checks and the outbox of alerts, in PostgreSQL.

Everything that a run leaves behind is written in one transaction, so that a reader sees all of it or none of
it.
"""

from __future__ import annotations

from tieout.store.gaps import GapsTold, JudgedWindow, OpenGap
from tieout.store.outbox import ClaimedAlert
from tieout.store.results import PublishedRun, Run, RunOrigin, RunSummary, StoredBreak, StoredIncident
from tieout.store.store import Store

__all__ = [
    "ClaimedAlert",
    "GapsTold",
    "JudgedWindow",
    "OpenGap",
    "PublishedRun",
    "Run",
    "RunOrigin",
    "RunSummary",
    "Store",
    "StoredBreak",
    "StoredIncident",
]
