"""What a class rule is: a name, when it holds, where the break lies, and the evidence it cannot do without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.engine.scope import Scope
from tieout.model import BreakClass, Identity, Ledger, Locus


@dataclass(frozen=True)
class Need:
    """A ledger, or columns of it, without which a class is not judged."""

    ledger: Ledger
    columns: tuple[str, ...] = ()

    def is_met(self, scope: Scope) -> bool:
        """Return whether the contract declares the ledger and its source has the columns."""
        return scope.has(self.ledger, *self.columns)

    def __str__(self) -> str:
        """Return the ledger, with its columns where some are asked for."""
        return self.ledger.value + (f": {', '.join(self.columns)}" if self.columns else "")


def nowhere(_scope: Scope) -> Column:
    """Return no locus: the class is no break."""
    return F.lit(None).cast("string")


def at(locus: Locus) -> Callable[[Scope], Column]:
    """Return a rule's locus that does not depend on the evidence."""
    return lambda _scope: F.lit(locus.value)


@dataclass(frozen=True)
class MessageRule:
    """A class that a message has or has not, decided from its row alone.

    `holds` gives a column that is true, false or null (not); `needs` lists alternatives, any one of which is enough.
    `identities` are those by which rows can be told apart well enough.
    """

    name: BreakClass
    holds: Callable[[Scope], Column]
    locus: Callable[[Scope], Column] = nowhere
    needs: tuple[Need, ...] = ()
    identities: tuple[Identity, ...] = tuple(Identity)

    def missing(self, scope: Scope) -> str | None:
        """Return what the rule lacks, or None where it can be judged."""
        if scope.contract.identity not in self.identities:
            return f"identity: {' or '.join(self.identities)}"
        if not self.needs or any(need.is_met(scope) for need in self.needs):
            return None
        return " or ".join(str(need) for need in self.needs)
