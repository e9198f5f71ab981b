"""The counts of every expectation, from the plans that the recorder gave to its producers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Plan = Sequence[Mapping[str, Any]]
_OUTCOMES = {"flush": "acked", "commit": "acked", "abort": "failed", "die": "failed"}
"""A transaction that its producer left open is aborted by the next session's start: the log says so."""


@dataclass(frozen=True)
class Sent:
    """Every attempt of the plans, as (message id, outcome including its transaction's)."""

    attempts: tuple[tuple[str, str], ...]

    @classmethod
    def by(cls, *plans: Plan) -> Sent:
        """Return the attempts of the plans, with outcomes including their transactions'."""
        return cls(
            tuple((id_, _OUTCOMES[part["end"]]) for plan in plans for part in plan for id_ in part["ids"])
        )

    @property
    def message_ids(self) -> set[str]:
        """Every id of which there was an attempt."""
        return {id_ for id_, _ in self.attempts}

    @property
    def accepted(self) -> set[str]:
        """The ids with an accepted attempt."""
        return {id_ for id_, outcome in self.attempts if outcome == "acked"}

    @property
    def not_sent(self) -> set[str]:
        """The ids all of whose attempts failed."""
        return self.message_ids - self.accepted

    def counts(
        self, *, lost: int = 0, in_flight: int = 0, further_effects: int = 0, after_window: int = 0
    ) -> dict[str, int]:
        """Return the statement's sums over all partitions; effects `after_window` are not the window's."""
        acked = sum(outcome == "acked" for _, outcome in self.attempts)
        delivered = len(self.accepted) - lost - in_flight
        return {
            "attempts": len(self.attempts),
            "acked_attempts": acked,
            "failed_attempts": len(self.attempts) - acked,
            "messages": len(self.message_ids),
            "resends": len(self.attempts) - len(self.message_ids),
            "accepted": len(self.accepted),
            "failed": len(self.not_sent),
            "delivered": delivered,
            "lost": lost,
            "in_flight": in_flight,
            "effects": delivered - after_window + further_effects,
            "first_effects": delivered - after_window,
            "further_effects": further_effects,
        }
