"""Two levels: what the first proves to be in order is never matched.

The first level reads each side, and the log where one is declared, once, and compares fingerprints. Where all agree,
every message has one send, one record and one effect at the same position with the same content, and is DELIVERED; its
counts are sums. Where they do not, the rules are put to what is left over, beside which the quiet messages stand as
sums. Where too much is left, the window is matched in full. An output without positions is held against its sends id by
id instead, as `by_id` has it. Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.by_id import doubts, left_by_id, odd_ids, pairs_of, quiet_by_id, shows_ids_alone
from tieout.engine.classes.key_order import crosses_partitions
from tieout.engine.comparing import COMPARED_LEDGERS, SIDES, Compared, compare, counted
from tieout.engine.evidence import Evidence
from tieout.engine.fingerprint import Side
from tieout.engine.incarnations import told_apart
from tieout.engine.keys import POSITION
from tieout.engine.ledger import SCHEMAS
from tieout.engine.log_facts import compacts
from tieout.engine.materialising import materialised, no_rows
from tieout.engine.quiet import Sums
from tieout.engine.reading import OpenLedger
from tieout.engine.records import bounds_of, statements_of
from tieout.engine.rest import MOST, Rest, rest_of, with_ends
from tieout.engine.scope import Scope
from tieout.engine.settled import has_doubts, quiet_balance, quiet_of, sums_of
from tieout.engine.sources.source import is_of_spark, name_of_failure
from tieout.model import SMALL_BYTES, Identity, Ledger, Window

JUDGED: Final = frozenset({Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED})
"""The ledgers that the first level understands; with any other declared, windows are matched in full."""


@dataclass(frozen=True)
class Settled:
    """A window in which every message was delivered once and in order, and what they add up to.

    `balance` is that of the log's offsets, None where no log is declared.
    """

    scope: Scope
    sums: Sums
    balance: DataFrame | None


def is_eligible(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    """Return whether the first level can judge the contract's windows by position, given the columns of each source.

    Both sides must show positions: they make buckets that are close in time, and tell whether anything stands twice.
    Where keys have an order, a row of the output must show the key and the id of its message. A log must show what
    messages are known by; and an output beside it may not name leaders, for what they lost was not passed for good.
    """
    if not _is_understood(contract, present):
        return False
    sent, arrived = present[Ledger.PRODUCED], present[Ledger.DELIVERED]
    shows_order = "key_hash" not in sent or sent & {"key_hash", "message_id"} <= arrived
    return (
        contract.identity in (Identity.MESSAGE_ID, Identity.POSITION)
        and shows_order
        and {*POSITION, "attempted_at", "outcome"} <= sent
        and {*POSITION, "processed_at"} <= arrived
        and (Ledger.LOG not in present or _is_eligible_log(contract, present))
    )


def is_eligible_by_id(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    """Return whether the first level can judge the contract's windows id by id, where ids are global."""
    is_understood = _is_understood(contract, present)
    return is_understood and contract.identity is Identity.MESSAGE_ID and shows_ids_alone(present)


def _is_understood(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    is_one_each = contract.multiplicity.kind != "one_to_many" and contract.id_scope == "global"
    has_ranges = "first_offset" in present.get(Ledger.COMMITTED, ())
    return is_one_each and not has_ranges and set(contract.ledgers) <= JUDGED and set(SIDES) <= set(present)


def _is_eligible_log(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    logged = present[Ledger.LOG]
    shows_ids = contract.identity is Identity.POSITION or "message_id" in logged & present[Ledger.PRODUCED]
    is_of_any_leader = "leader_epoch" not in present[Ledger.DELIVERED]
    return {*POSITION, "record_timestamp"} <= logged and shows_ids and is_of_any_leader


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
    has_positions = is_eligible(contract, present)
    if window.offsets or set(present) != set(contract.ledgers):
        return None
    if not has_positions and not is_eligible_by_id(contract, present):
        return None
    if sum(opened[ledger].reading.size for ledger in SIDES) <= SMALL_BYTES:
        return None
    evidence = {
        ledger: known.kept()
        for ledger, known in opened.items()
        if ledger not in COMPARED_LEDGERS or not known.is_left_alone
    }
    progress(
        "comparing the sides' fingerprints" if has_positions else "holding both sides together, id by id"
    )
    sides = {
        ledger: _side(opened[ledger], evidence.get(ledger)) for ledger in COMPARED_LEDGERS if ledger in opened
    }
    found = None
    try:
        compared = compare(contract, window, sides) if has_positions else None
        counts = (
            {ledger: counted(side) for ledger, side in sides.items()} if compared is None else compared.counts
        )
        told = {ledger: opened[ledger].told(counts[ledger]) for ledger in sides if ledger not in evidence}
        read = evidence | told
        scope = Scope(contract, window, {ledger: read[ledger] for ledger in opened})
        found = settled_by_id(scope, progress) if compared is None else settled(scope, compared, progress)
        if isinstance(found, Scope):
            progress(f"leaving out all but {found.size} rows, which are matched")
    except Exception as error:
        # What does not read is found, named and left out where the ledgers are kept.
        if not is_of_spark(error):
            raise
        progress(f"the comparison failed ({name_of_failure(error)}): matching every row instead")
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


def settled_by_id(scope: Scope, progress: Callable[[str], None]) -> Settled | Scope | None:
    """Return the window settled where nothing speaks against it, else what is left of it; None where that is much.

    None as well where a position is not one message's for good, as in `settled`.
    """
    bounds = materialised(bounds_of(scope)) if Ledger.LOG in scope.evidence else None
    if not _is_for_good(scope, bounds):
        return None
    limit = MOST * max(scope.evidence[ledger].coverage.rows for ledger in SIDES)
    pairs = pairs_of(scope)
    progress("looking for what else is left to the rules")
    odd = odd_ids(scope, pairs, limit)
    if odd is None:
        return None
    if odd.isEmpty():
        progress("adding up the quiet messages")
        quiet = quiet_by_id(scope, pairs, bounds)
        if all(doubt.isEmpty() for doubt in doubts(scope, quiet, bounds)):
            return Settled(scope, quiet.sums, None if bounds is None else quiet_balance(scope, bounds))
    return left_by_id(scope, pairs, odd, bounds, limit)


def settled(scope: Scope, compared: Compared, progress: Callable[[str], None]) -> Settled | Scope | None:
    """Return the window settled where nothing speaks against it, else what is left of it.

    None where that is much, and where a position is not one message's for good: where a topic was created anew, or the
    log is compacted or has records that not every reader is given.
    """
    bounds = materialised(bounds_of(scope)) if Ledger.LOG in scope.evidence else None
    if not _is_for_good(scope, bounds):
        return None
    rest = rest_of(scope, compared, progress)
    if rest is None:
        return None
    progress("adding up the quiet messages")
    if rest.rows is None and not has_doubts(scope, bounds):
        return Settled(
            scope, sums_of(compared, rest), None if bounds is None else quiet_balance(scope, bounds)
        )
    return left_over(scope, compared, rest, bounds)


def _is_for_good(scope: Scope, bounds: DataFrame | None) -> bool:
    """Return whether a partition's log alone says where a message stands, for good and to every reader.

    Not where a topic was created anew, the log takes back or cuts off what it was given, or a key that has an order
    lies in several partitions.
    """
    if told_apart(scope) is not scope or crosses_partitions(scope):
        return False
    if bounds is None:
        return True
    is_cut = F.col("first_unstable") <= F.col("last_offset")
    return not compacts(scope, bounds) and bounds.filter(is_cut).isEmpty()


def left_over(scope: Scope, compared: Compared, rest: Rest, bounds: DataFrame | None) -> Scope:
    """Return the scope of what is left of a window, with its quiet messages beside it."""
    rest = with_ends(scope, compared, rest)
    quiet = quiet_of(scope, compared, rest, bounds)
    spark = scope.rows(Ledger.PRODUCED).sparkSession
    rows = dict(rest.rows or {ledger: no_rows(spark, SCHEMAS[ledger]) for ledger in SIDES})
    if Ledger.LOG in rows:
        rows[Ledger.LOG] = materialised(rows[Ledger.LOG].unionByName(statements_of(scope)))
    evidence = {
        ledger: replace(found, rows=rows[ledger]) if ledger in rows else found
        for ledger, found in scope.evidence.items()
    }
    size = sum(found.rows.count() for found in evidence.values())
    return replace(scope, evidence=evidence, beside=quiet, size=size)
