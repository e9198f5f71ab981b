"""CORRUPTED_VALUE, _KEY, _HEADER, _TIMESTAMP: the identity is equal, what it carries is not."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.engine.classes.rule import MessageRule, Need
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Identity, Ledger, Locus


def _differs(later: str, earlier: str, content: str) -> Column:
    """Return whether the later side holds a hash that the earlier side, where it has any, never had."""
    known = F.size(f"{earlier}_{content}") > 0
    return known & (F.size(F.array_except(f"{later}_{content}", f"{earlier}_{content}")) > 0)


_TELLING: Final = (Identity.MESSAGE_ID, Identity.POSITION)
"""Identities that tell equal payloads apart; else nobody knows which of them an effect's key or header belongs to."""


def _rule(name: BreakClass, content: str, identities: tuple[Identity, ...] = tuple(Identity)) -> MessageRule:
    """Return the rule that compares one kind of content on its way from producer over log to output."""

    def is_kept() -> Column:
        """Return whether the log is to have what was sent, not a time that the broker stamped."""
        return ~F.col("is_log_append") if content == "record_timestamp" else F.lit(True)

    def in_broker(_scope: Scope) -> Column:
        return is_kept() & _differs("logged", "sent", content)

    def in_output(_scope: Scope) -> Column:
        is_sent = is_kept() & (F.size(f"sent_{content}") > 0)
        return F.when(is_sent, _differs("output", "sent", content)).otherwise(
            _differs("output", "logged", content)
        )

    def holds(scope: Scope) -> Column:
        return (F.col("attempts") > 0) & (in_broker(scope) | in_output(scope))

    def locus(scope: Scope) -> Column:
        has_log = F.size(f"logged_{content}") > 0
        return (
            F.when(in_broker(scope), Locus.PRODUCER_TO_BROKER.value)
            .when(has_log, Locus.CONSUMER_OR_SINK.value)
            .otherwise(Locus.UNKNOWN.value)
        )

    effects = tuple(Need(ledger, (content,)) for ledger in (Ledger.DELIVERED, Ledger.READ, Ledger.LOG))
    return MessageRule(name, holds, locus, needs=effects, identities=identities)


CORRUPTED_VALUE = _rule(BreakClass.CORRUPTED_VALUE, "payload_hash")
CORRUPTED_KEY = _rule(BreakClass.CORRUPTED_KEY, "key_hash", _TELLING)
CORRUPTED_HEADER = _rule(BreakClass.CORRUPTED_HEADER, "header_hash", _TELLING)
CORRUPTED_TIMESTAMP = _rule(BreakClass.CORRUPTED_TIMESTAMP, "record_timestamp", _TELLING)
