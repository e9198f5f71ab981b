"""Two levels: what the first proves to be in order is never matched.

The first level reads each side once and compares fingerprints. Where both sides agree, every message has one send, one
effect at the same position with the same content, and is DELIVERED; its counts are sums. Where they do not, the rules
are put to what is left over, beside which the quiet messages stand as sums. Where too much is left, the window is
matched in full. Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tieout.contracts import Contract
from tieout.engine.comparing import SIDES, Compared, compare
from tieout.engine.evidence import Evidence
from tieout.engine.fingerprint import Side
from tieout.engine.keys import POSITION
from tieout.engine.ledger import SCHEMAS
from tieout.engine.quiet import Quiet, Sums
from tieout.engine.reading import OpenLedger
from tieout.engine.rest import Rest, rest_of
from tieout.engine.scope import Scope
from tieout.engine.settled import has_doubts, quiet_of, sums_of
from tieout.engine.sources.source import is_of_spark
from tieout.model import SMALL_BYTES, Identity, Ledger, Window

JUDGED: Final = frozenset({Ledger.PRODUCED, Ledger.DELIVERED, Ledger.COMMITTED})
"""The ledgers that the first level understands; with any other declared, windows are matched in full."""


@dataclass(frozen=True)
class Settled:
    """A window in which every message was delivered once and in order, and what they add up to."""

    scope: Scope
    sums: Sums


def is_eligible(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    """Return whether the first level can judge the contract's windows, given the columns that each source has.

    Both sides must show positions: they make buckets that are close in time, and tell whether anything stands twice.
    Where keys have an order, a row of the output must show the key and the id of its message.
    """
    if not set(contract.ledgers) <= JUDGED or not {Ledger.PRODUCED, Ledger.DELIVERED} <= set(present):
        return False
    is_one_each = contract.multiplicity.kind != "one_to_many" and contract.id_scope == "global"
    sent, arrived = present[Ledger.PRODUCED], present[Ledger.DELIVERED]
    shows_order = "key_hash" not in sent or sent & {"key_hash", "message_id"} <= arrived
    return (
        contract.identity in (Identity.MESSAGE_ID, Identity.POSITION)
        and is_one_each
        and shows_order
        and {*POSITION, "attempted_at", "outcome"} <= sent
        and {*POSITION, "processed_at"} <= arrived
        and not any("topic_id" in columns for columns in present.values())
    )


def settled_window(
    contract: Contract,
    window: Window,
    opened: Mapping[Ledger, OpenLedger],
    progress: Callable[[str], None],
) -> Settled | Scope | None:
    """Return the window settled, or a scope for the rules, or None where nothing was done.

    The scope's rows are what is left of the window, with the rest of its messages `beside` them, or all rows. Small
    windows are matched at once: there the first level costs more than it saves. Columnar files are read again where
    they have to be; what had to be parsed is parsed once and kept.
    """
    present = {ledger: known.found.present for ledger, known in opened.items() if known.found is not None}
    if set(present) != set(contract.ledgers) or not is_eligible(contract, present):
        return None
    if sum(opened[ledger].reading.size for ledger in SIDES) <= SMALL_BYTES:
        return None
    evidence = {
        ledger: known.kept()
        for ledger, known in opened.items()
        if ledger not in SIDES or not known.is_left_alone
    }
    progress("comparing the sides' fingerprints")
    produced, delivered = (_side(opened[ledger], evidence.get(ledger)) for ledger in SIDES)
    found = None
    try:
        compared = compare(contract, window, produced, delivered)
        told = {
            ledger: opened[ledger].told(compared.counts[ledger]) for ledger in SIDES if ledger not in evidence
        }
        read = evidence | told
        scope = Scope(contract, window, {ledger: read[ledger] for ledger in opened})
        found = settled(scope, compared, progress)
        if isinstance(found, Scope):
            progress(f"leaving out all but {found.size} rows, which are matched")
    except Exception as error:
        # What does not read is found, named and left out where the ledgers are kept.
        if not is_of_spark(error):
            raise
    return found or Scope(
        contract, window, {ledger: evidence.get(ledger) or known.kept() for ledger, known in opened.items()}
    )


def _side(opened: OpenLedger, kept: Evidence | None) -> Side:
    """Return a ledger for the first level: as it was kept, else as it lies in its source."""
    if kept is not None:
        return Side(kept.rows, kept.present, {})
    if opened.found is None:
        raise ValueError(f"the ledger {opened.request.ledger} has no rows to compare")
    return Side(opened.found.rows, opened.found.present, opened.counted)


def settled(scope: Scope, compared: Compared, progress: Callable[[str], None]) -> Settled | Scope | None:
    """Return the window settled where nothing speaks against it, else what is left of it; None where that is much."""
    rest = rest_of(scope, compared, progress)
    if rest is None:
        return None
    progress("adding up the quiet messages")
    if rest.rows is None and not has_doubts(scope):
        return Settled(scope, sums_of(compared, rest))
    return left_over(scope, rest, quiet_of(scope, compared, rest))


def left_over(scope: Scope, rest: Rest, quiet: Quiet) -> Scope:
    """Return the scope of what is left of a window, with its quiet messages beside it."""
    spark = scope.rows(Ledger.PRODUCED).sparkSession
    rows = rest.rows or {ledger: spark.createDataFrame([], SCHEMAS[ledger]) for ledger in SIDES}
    evidence = {
        ledger: replace(found, rows=rows[ledger]) if ledger in rows else found
        for ledger, found in scope.evidence.items()
    }
    size = sum(found.rows.count() for found in evidence.values())
    return replace(scope, evidence=evidence, beside=quiet, size=size)
