"""Identity `content`: which effect belongs to which attempt where only the payload tells (taxonomy section 1)."""

from __future__ import annotations

from datetime import timedelta

from tests.oracle.history import Row, undated_last
from tests.oracle.messages import Message, Unmatched


def pair_by_content(
    messages: list[Message], effects: list[Row], skew: timedelta
) -> list[tuple[Row, Unmatched]]:
    """Give each effect the earliest unpaired row of its payload attempted before it; return those without one.

    Acked rows come first, leftovers take unknown rows, then failed ones. An effect for which every fitting row is
    taken already is one more effect of the latest of them: a duplicate, not a phantom.
    """
    unmatched: list[tuple[Row, Unmatched]] = []
    leftovers = sorted(effects, key=lambda row: undated_last(row.get("processed_at")))
    for outcome in ("acked", "unknown", "failed"):
        still: list[Row] = []
        for effect in leftovers:
            free = [
                message
                for message in _fitting(messages, effect, skew)
                if not message.effects and message.outcome == outcome
            ]
            if free:
                free[0].effects.append(effect)
            else:
                still.append(effect)
        leftovers = still
    for effect in leftovers:
        taken = _fitting(messages, effect, skew)
        if taken:
            taken[-1].effects.append(effect)
        else:
            why = Unmatched.AMBIGUOUS if effect.get("payload_hash") is None else Unmatched.UNATTEMPTED
            unmatched.append((effect, why))
    return unmatched


def _fitting(messages: list[Message], effect: Row, skew: timedelta) -> list[Message]:
    """Return the messages of the effect's payload attempted before it, the earliest first."""
    payload, at = effect.get("payload_hash"), effect.get("processed_at")
    if payload is None:
        return []
    same = [message for message in messages if payload in message.values("payload_hash")]
    before = [
        message
        for message in same
        if at is None or (message.began_at is not None and message.began_at <= at + skew)
    ]
    return sorted(before, key=lambda message: undated_last(message.began_at))
