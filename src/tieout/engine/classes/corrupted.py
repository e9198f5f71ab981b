"""CORRUPTED_VALUE, _KEY, _HEADER, _TIMESTAMP: the identity is equal, what it carries is not.

Null is a value where it is known (`known_contents`). Where it may be one or another value, a difference is open: the
message is unverifiable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.engine.classes.rule import MessageRule, Need
from tieout.engine.known_contents import SIDES, bit_of
from tieout.engine.multiplicity import fans_out
from tieout.engine.scope import Scope
from tieout.model import BreakClass, Identity, Ledger, Locus

_TELLING: Final = (Identity.MESSAGE_ID, Identity.POSITION)
"""Identities that tell equal payloads apart; else nobody knows which of them an effect's key or header belongs to."""


@dataclass(frozen=True)
class _Content:
    """One kind of content, and what each side of a message shows of it."""

    name: str

    def values(self, side: str) -> Column:
        """Return the values that rows of the side have."""
        return F.col(f"{side}_{self.name}")

    def is_null(self, side: str) -> Column:
        """Return whether a row of the side is known to have none."""
        return self._has_bit(f"{side}_nulls")

    def is_lacking(self, side: str) -> Column:
        """Return whether a row of the side is of a file without the column."""
        return self._has_bit(f"{side}_lacking")

    def _has_bit(self, bits: str) -> Column:
        return F.col(bits).bitwiseAND(bit_of(self.name)) != 0

    def has_values(self, side: str) -> Column:
        return F.size(self.values(side)) > 0

    def is_known(self, side: str) -> Column:
        """Return whether the side says anything to hold others against; no header's hash says little of any hash."""
        if self.name == "header_hash":
            return self.has_values(side)
        return self.has_values(side) | self.is_null(side)

    def has_other_values(self, later: str, earlier: str) -> Column:
        """Return whether the later side has a value that the earlier one never had."""
        return F.size(F.array_except(self.values(later), self.values(earlier))) > 0

    def is_nulled(self, scope: Scope, later: str, earlier: str) -> Column:
        """Return whether the later side has none where the earlier one always had a value.

        The parts of a fan-out need not all carry what their message does.
        """
        is_nulled = self.is_null(later) & ~self.is_null(earlier) & self.has_values(earlier)
        return is_nulled & ~self._is_part(scope, later, earlier)

    def may_be_empty(self, scope: Scope, side: str, other: str) -> Column:
        """Return whether a null of the side may be an empty text, and the other side has an empty text's value."""
        known = [scope.evidence[ledger].empty for ledger in SIDES[side] if ledger in scope.evidence]
        empty = [F.lit(one[self.name]) for one in known if self.name in one]
        if not empty:
            return F.lit(False)
        return self.is_null(side) & F.arrays_overlap(self.values(other), F.array(*empty))

    def _is_part(self, scope: Scope, later: str, earlier: str) -> Column:
        """Return whether all nulls of the output are effects of a fan-out, beside one with the value that was sent."""
        if later != "output" or not fans_out(scope):
            return F.lit(False)
        has_value = F.arrays_overlap(F.col(f"part_{self.name}"), self.values(earlier))
        return has_value & ~self._has_bit("read_nulls")

    def differs(self, scope: Scope, later: str, earlier: str) -> Column:
        """Return whether the later side holds what the earlier side, where it says anything, never had."""
        is_other = self.has_other_values(later, earlier)
        is_open = self.is_lacking(earlier) | self.may_be_empty(scope, earlier, later)
        if self.name != "header_hash":
            is_nulled = self.is_nulled(scope, later, earlier)
            is_other |= is_nulled & ~self.may_be_empty(scope, later, earlier)
        return self.is_known(earlier) & ~is_open & is_other

    def is_open(self, scope: Scope, later: str, earlier: str) -> Column:
        """Return whether the sides may differ and may not.

        A file lacks the column, a null may stand for an empty text, or for the hash of no headers.
        """
        is_told = self.has_values(earlier) | self.is_null(earlier)
        is_other = self.has_other_values(later, earlier) | (self.is_null(later) & ~self.is_null(earlier))
        of_later = self.is_lacking(later) & is_told & ~self._is_part(scope, later, earlier)
        of_files = of_later | (self.is_lacking(earlier) & is_other)
        of_files |= self.is_nulled(scope, later, earlier) & self.may_be_empty(scope, later, earlier)
        of_files |= self.may_be_empty(scope, earlier, later) & self.has_other_values(later, earlier)
        if self.name != "header_hash":
            return of_files
        is_unsaid = self.is_null(earlier) & ~self.has_values(earlier) & self.has_values(later)
        return of_files | is_unsaid | self.is_nulled(scope, later, earlier)

    def is_kept(self) -> Column:
        """Return whether the log is to have what was sent, not a time that the broker stamped."""
        return ~F.col("is_log_append") if self.name == "record_timestamp" else F.lit(True)

    def in_broker(self, scope: Scope) -> Column:
        """Return whether the log differs from what was sent."""
        return self.is_kept() & self.differs(scope, "logged", "sent")

    def in_output(self, scope: Scope) -> Column:
        """Return whether the output differs from what was sent, or, where that is not known, from the log."""
        is_sent = self.is_kept() & self.is_known("sent")
        of_log = self.differs(scope, "output", "logged")
        return F.when(is_sent, self.differs(scope, "output", "sent")).otherwise(of_log)

    def is_unverifiable(self, scope: Scope) -> Column:
        """Return whether anything that was sent, logged or delivered may differ from the rest, and may not."""
        pairs = (("logged", "sent"), ("output", "sent"))
        of_sent = [self.is_kept() & self.is_open(scope, *pair) for pair in pairs]
        is_sent = self.is_kept() & self.is_known("sent")
        return reduce(Column.__or__, of_sent) | (~is_sent & self.is_open(scope, "output", "logged"))


def _rule(name: BreakClass, content: str, identities: tuple[Identity, ...] = tuple(Identity)) -> MessageRule:
    """Return the rule that compares one kind of content on its way from producer over log to output."""
    one = _Content(content)

    def holds(scope: Scope) -> Column:
        return (F.col("attempts") > 0) & (one.in_broker(scope) | one.in_output(scope))

    def locus(scope: Scope) -> Column:
        return (
            F.when(one.in_broker(scope), Locus.PRODUCER_TO_BROKER.value)
            .when(one.is_known("logged"), Locus.CONSUMER_OR_SINK.value)
            .otherwise(Locus.UNKNOWN.value)
        )

    effects = tuple(Need(ledger, (content,)) for ledger in (Ledger.DELIVERED, Ledger.READ, Ledger.LOG))
    return MessageRule(name, holds, locus, needs=effects, identities=identities)


CORRUPTED_VALUE = _rule(BreakClass.CORRUPTED_VALUE, "payload_hash")
CORRUPTED_KEY = _rule(BreakClass.CORRUPTED_KEY, "key_hash", _TELLING)
CORRUPTED_HEADER = _rule(BreakClass.CORRUPTED_HEADER, "header_hash", _TELLING)
CORRUPTED_TIMESTAMP = _rule(BreakClass.CORRUPTED_TIMESTAMP, "record_timestamp", _TELLING)
_RULES: Final = {
    "payload_hash": CORRUPTED_VALUE,
    "key_hash": CORRUPTED_KEY,
    "header_hash": CORRUPTED_HEADER,
    "record_timestamp": CORRUPTED_TIMESTAMP,
}


def is_content_open(scope: Scope) -> Column:
    """Return whether what a message carries cannot be told to be right or wrong, in any content that is judged."""
    judged = [_Content(name) for name, rule in _RULES.items() if rule.missing(scope) is None]
    found = [one.is_unverifiable(scope) for one in judged]
    return (F.col("attempts") > 0) & reduce(Column.__or__, found, F.lit(False))
