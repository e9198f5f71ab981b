"""The result store: runs, breaks, checks and the outbox of alerts, in PostgreSQL.

Each run is written in one transaction, so a reader sees all of it or none of it.
"""

from __future__ import annotations

from tieout.store.acts import Silence
from tieout.store.chains import EarlierIncident, Origin
from tieout.store.gaps import GapsTold, JudgedWindow, OpenGap
from tieout.store.life import EarlierWindow, HistoryEntry, Life, PipelineSummary, Resolution, State
from tieout.store.outbox import ClaimedAlert
from tieout.store.replays import Replay, Replayed, ReplayItem
from tieout.store.results import (
    CurrentStatement,
    PublishedRun,
    Run,
    RunOrigin,
    RunSummary,
    StoredBreak,
    StoredIncident,
)
from tieout.store.store import Store

__all__ = [
    "ClaimedAlert",
    "CurrentStatement",
    "EarlierIncident",
    "EarlierWindow",
    "GapsTold",
    "HistoryEntry",
    "JudgedWindow",
    "Life",
    "OpenGap",
    "Origin",
    "PipelineSummary",
    "PublishedRun",
    "Replay",
    "ReplayItem",
    "Replayed",
    "Resolution",
    "Run",
    "RunOrigin",
    "RunSummary",
    "Silence",
    "State",
    "Store",
    "StoredBreak",
    "StoredIncident",
]
