"""Repairing what a run found: lost messages to produce again, doubled rows to remove, and who has to approve it.

Pure: breaks and bodies in, a plan out. Docs: docs/how-to/replay-lost-messages.md.
"""

from __future__ import annotations

from tieout.replaying.choosing import MOST_MESSAGES, Chosen, LostMessage, Refusal, Removal, choose
from tieout.replaying.planning import UNREADABLE, Body, Plan, Record, plan_of

__all__ = [
    "MOST_MESSAGES",
    "UNREADABLE",
    "Body",
    "Chosen",
    "LostMessage",
    "Plan",
    "Record",
    "Refusal",
    "Removal",
    "choose",
    "plan_of",
]
