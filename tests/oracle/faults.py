"""What can go wrong in the simulated pipeline, and how likely."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Faults:
    """How likely each thing goes wrong, drawn once a history so that most histories have few kinds of fault."""

    retried_in_the_log: float
    unknown: float
    failed: float
    failed_but_written: float
    resent: float
    reused_id: float
    lost_by_the_broker: float
    overwritten: float
    corrupted_in_the_log: float
    aborted: float
    unresolved: float
    skipped: float
    late: float
    doubled: float
    uncertain: float
    failed_effect: float
    corrupted_effect: float
    phantom: float
    set_aside: float
    staged: float
    stops_early: float
    commits_ahead: float
    commits_back: float
    reads_uncommitted: float
    expired: float
    partial: float


def draw_faults(rng: Random) -> Faults:
    """Return faults of which about one in four is switched on at all."""
    names = list(Faults.__dataclass_fields__)
    return Faults(**{name: rng.choice((0.15, 0.4)) if rng.random() < 0.25 else 0.0 for name in names})
