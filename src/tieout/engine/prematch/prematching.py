"""Prematch: what a comparison of fingerprints proves to be in order, no rule has to look at.

Each side is read once, and the log where one is declared, and fingerprints are compared. Where all agree, every message
has one send, one record and one effect at the same position with the same content: it is clean. The rules are put to
what is left, beside which the clean messages stand as sums. Where much is left, they are put to all. An output without
positions is held against its sends id by id instead, as `by_id` has it. Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.evidence import Evidence
from tieout.engine.joining import small_side
from tieout.engine.keys import PLACE, POSITION
from tieout.engine.ledger import SCHEMAS
from tieout.engine.materialising import materialised, no_rows
from tieout.engine.prematch.bucket_scan import compared_ledgers
from tieout.engine.prematch.by_id import left_by_id, odd_ids, pairs_of, shows_ids_alone
from tieout.engine.prematch.clean_facts import clean_of
from tieout.engine.prematch.comparing import COMPARED_LEDGERS, SIDES, Compared, compare, counted
from tieout.engine.prematch.fingerprint import Side
from tieout.engine.prematch.log_bounds import bounds_of, compacts, statements_of
from tieout.engine.prematch.remainder import MOST, Remainder, remainder_of, with_ends
from tieout.engine.reading import OpenLedger
from tieout.engine.scope import Scope
from tieout.engine.sources.source import is_of_spark, name_of_failure
from tieout.engine.topic_generations import with_topic_generations
from tieout.model import SMALL_BYTES, Identity, Ledger, Window

JUDGED: Final = frozenset({Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED})
"""The ledgers that prematch understands; with any other declared, windows are judged in full."""


def is_eligible(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    """Return whether prematch can tell the contract's windows by position, given the columns of each source.

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
    """Return whether prematch can tell the contract's windows id by id, where ids are global."""
    is_understood = _is_understood(contract, present)
    return is_understood and contract.identity is Identity.MESSAGE_ID and shows_ids_alone(present)


def _is_understood(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    is_one_each = contract.multiplicity.kind != "one_to_many" and contract.id_scope == "global"
    has_sets = {"first_offset", "is_individual"} & present.get(Ledger.COMMITTED, frozenset())
    is_sparse = "is_sparse" in present.get(Ledger.LOG, ())
    return (
        is_one_each
        and not (has_sets or is_sparse)
        and set(contract.ledgers) <= JUDGED
        and set(SIDES) <= set(present)
    )


def _is_eligible_log(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    logged = present[Ledger.LOG]
    shows_ids = contract.identity is Identity.POSITION or "message_id" in logged & present[Ledger.PRODUCED]
    is_of_any_leader = "leader_epoch" not in present[Ledger.DELIVERED]
    return {*POSITION, "record_timestamp"} <= logged and shows_ids and is_of_any_leader


def prematched(
    contract: Contract,
    window: Window,
    opened: Mapping[Ledger, OpenLedger],
    progress: Callable[[str], None],
) -> Scope | None:
    """Return a scope for the rules, or None where nothing was done.

    Its rows are what is left of the window, with the `clean` messages beside them, or all rows. Small windows are
    judged at once: there the comparison costs more than it saves. Columnar files are read again where they have to be;
    what had to be parsed is parsed once and kept.
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
        found = (
            left_by_ids(scope, progress) if compared is None else left_by_positions(scope, compared, progress)
        )
        if found is not None:
            progress(f"leaving out all but {found.size} rows, which are judged")
    except Exception as error:
        # What does not read is found, named and left out where the ledgers are kept.
        if not is_of_spark(error):
            raise
        progress(f"the comparison failed ({name_of_failure(error)}): judging every row instead")
    return found or Scope(
        contract, window, {ledger: evidence.get(ledger) or known.kept() for ledger, known in opened.items()}
    )


def _side(opened: OpenLedger, kept: Evidence | None) -> Side:
    """Return a ledger for prematch: as it was kept, else as it lies in its source."""
    if kept is not None:
        return Side(kept.rows, kept.present, {})
    if opened.found is None:
        raise ValueError(f"the ledger {opened.request.ledger} has no rows to compare")
    return Side(opened.found.rows, opened.found.present, opened.counted)


def left_by_ids(scope: Scope, progress: Callable[[str], None]) -> Scope | None:
    """Return the scope of what is left of the window, id by id; None where that is much.

    None as well where a position is not one message's for good, as in `left_by_positions`.
    """
    bounds = materialised(bounds_of(scope)) if Ledger.LOG in scope.evidence else None
    if not _is_for_good(scope, bounds):
        return None
    limit = MOST * max(scope.evidence[ledger].coverage.rows for ledger in SIDES)
    pairs = pairs_of(scope)
    progress("looking for what else is left to the rules")
    odd = odd_ids(scope, pairs, limit)
    return None if odd is None else left_by_id(scope, pairs, odd, bounds, limit)


def left_by_positions(scope: Scope, compared: Compared, progress: Callable[[str], None]) -> Scope | None:
    """Return the scope of what is left of the window, position by position; None where that is much.

    None as well where a position is not one message's for good: where a topic was created anew, or the log is compacted
    or has records that not every reader is given.
    """
    bounds = materialised(bounds_of(scope)) if Ledger.LOG in scope.evidence else None
    if not _is_for_good(scope, bounds):
        return None
    remainder = remainder_of(scope, compared, progress)
    if remainder is None:
        return None
    progress("adding up the clean messages")
    return left_over(scope, compared, remainder, bounds)


def _is_for_good(scope: Scope, bounds: DataFrame | None) -> bool:
    """Return whether a partition's log alone says where a message stands, for good and to every reader.

    Not where a topic was created anew, the log takes back or cuts off what it was given, or a key that has an order
    lies in several partitions.
    """
    if with_topic_generations(scope) is not scope or _crosses_partitions(scope):
        return False
    if bounds is None:
        return True
    is_cut = F.col("first_unstable") <= F.col("last_offset")
    return not compacts(scope, bounds) and bounds.filter(is_cut).isEmpty()


def _crosses_partitions(scope: Scope) -> bool:
    """Return whether a key that has an order was sent to several partitions of a topic, as sends and log show it."""
    if scope.contract.ordering != "key" or not scope.has(Ledger.PRODUCED, "key_hash", *POSITION):
        return False
    is_placed = F.coalesce(F.col("offset") >= 0, F.lit(False))
    sent = scope.rows(Ledger.PRODUCED).filter(F.col("key_hash").isNotNull())
    placed = sent.filter(is_placed).select(*PLACE, F.col("key_hash").alias("order_key"))
    if scope.has(Ledger.LOG, "message_id", *PLACE):
        unplaced = sent.filter(~is_placed & F.col("message_id").isNotNull()).select(
            F.col("message_id").alias("sent_id"), F.col("key_hash").alias("order_key")
        )
        is_same = F.col("message_id") == F.col("sent_id")
        logged = scope.rows(Ledger.LOG).join(small_side(materialised(unplaced)), is_same, how="inner")
        placed = placed.unionByName(logged.select(*PLACE, "order_key"))
    # By a hash: two keys of one hash can but look as if one lay in both their partitions.
    of_key = placed.groupBy(F.xxhash64("topic", "order_key").alias("key_hash"))
    ends = of_key.agg(F.min("partition").alias("low"), F.max("partition").alias("high"))
    return not ends.filter(F.col("low") < F.col("high")).isEmpty()


def left_over(scope: Scope, compared: Compared, remainder: Remainder, bounds: DataFrame | None) -> Scope:
    """Return the scope of what is left of a window, with its clean messages beside it."""
    remainder = with_ends(scope, compared, remainder)
    spark = scope.rows(Ledger.PRODUCED).sparkSession
    empty = {ledger: no_rows(spark, SCHEMAS[ledger]) for ledger in compared_ledgers(scope)}
    rows = dict(remainder.rows or empty)
    clean = clean_of(scope, compared, remainder, rows, bounds)
    if Ledger.LOG in rows:
        rows[Ledger.LOG] = materialised(rows[Ledger.LOG].unionByName(statements_of(scope)))
    return scope.left_with(rows, clean)
