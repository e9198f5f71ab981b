"""Prematch: takes the clean messages out of a large window, so that the rules judge the remainder only.

1. `comparing` reads both sides once, and the log where one is declared, and adds up fingerprints per bucket of offsets.
   Where they agree, each message has one send, one record and one effect, all with the same position and content.
   Such a message is clean if it is also in time, its id occurs nowhere else, and its whole transaction is clean.
2. `bucket_scan` reads the buckets that differ again, and compares them position by position.
3. `remainder` collects the rows that are not clean, and the clean ones next to them that the rules need.
4. `clean_facts` adds up the clean messages: the statement counts them without a rule having read them.

If too much remains, the rules judge all rows. Output without positions is compared by id instead: see `by_id`.
Docs: docs/explanation/prematch.md.
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
from tieout.engine.prematch.by_id import pairs_of, scope_of_remaining_ids, shows_ids_alone, unclean_ids
from tieout.engine.prematch.clean_facts import clean_of
from tieout.engine.prematch.comparing import COMPARED_LEDGERS, SIDES, Compared, compare, counted
from tieout.engine.prematch.fingerprint import LedgerRows
from tieout.engine.prematch.log_bounds import bounds_of, compacts, statements_of
from tieout.engine.prematch.remainder import MAX_SHARE, Remainder, remainder_of, with_ends
from tieout.engine.reading import OpenLedger, kept_evidence
from tieout.engine.scope import Scope
from tieout.engine.sources.source import is_of_spark, name_of_failure
from tieout.engine.topic_generations import with_topic_generations
from tieout.model import SMALL_BYTES, Identity, Ledger, Window

JUDGED: Final = frozenset({Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED})
"""The ledgers that prematch understands; if the contract declares any other, windows are judged in full."""


def is_eligible(contract: Contract, present: Mapping[Ledger, frozenset[str]]) -> bool:
    """Return whether prematch can compare the contract's windows by position, given the columns of each source.

    Both sides must have positions: these make buckets of rows that are close in time, and show what occurs twice.
    Where keys have an order, an output row must have the key and the id of its message. A log must have what identifies
    messages. Beside a log, the output may not name leaders: the group did not pass for good what a leader lost.
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
    """Return whether prematch can compare the contract's windows by id, which takes global ids."""
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
    """Return a scope for the rules, or None where the window is not prematched.

    Its rows are the window's remainder, and `clean` describes the other messages, or all rows. Small windows are not
    prematched: the comparison would cost more than it saves. Large columnar files are read again where needed; other
    sources are parsed once and kept.
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
        if ledger not in COMPARED_LEDGERS or not known.is_rescanned
    }
    progress(
        "comparing the sides' fingerprints" if has_positions else "holding both sides together, id by id"
    )
    sides = {
        ledger: _ledger_rows(opened[ledger], evidence.get(ledger))
        for ledger in COMPARED_LEDGERS
        if ledger in opened
    }
    remaining = None
    try:
        compared = compare(contract, window, sides) if has_positions else None
        counts = (
            {ledger: counted(side) for ledger, side in sides.items()} if compared is None else compared.counts
        )
        not_kept = {
            ledger: opened[ledger].scanned(counts[ledger]) for ledger in sides if ledger not in evidence
        }
        scope = Scope(contract, window, kept_evidence(contract, opened, evidence | not_kept))
        remaining = (
            remainder_scope_by_id(scope, progress)
            if compared is None
            else remainder_scope_by_position(scope, compared, progress)
        )
        if remaining is not None:
            progress(f"leaving out all but {remaining.size} rows, which are judged")
    except Exception as error:
        # `OpenLedger.kept` finds the inputs that cannot be read, names them and leaves them out.
        if not is_of_spark(error):
            raise
        progress(f"the comparison failed ({name_of_failure(error)}): judging every row instead")
    return remaining or Scope(contract, window, kept_evidence(contract, opened, evidence))


def _ledger_rows(opened: OpenLedger, kept: Evidence | None) -> LedgerRows:
    """Return a ledger for prematch: its kept rows, or else those of its source."""
    if kept is not None:
        return LedgerRows(kept.rows, kept.present, {})
    if opened.found is None:
        raise ValueError(f"the ledger {opened.request.ledger} has no rows to compare")
    return LedgerRows(opened.found.rows, opened.found.present, opened.counted)


def remainder_scope_by_id(scope: Scope, progress: Callable[[str], None]) -> Scope | None:
    """Return the scope of the window's remainder, compared by id; None where too much remains.

    Also None where a position does not belong to one message for good, as in `remainder_scope_by_position`.
    """
    bounds = materialised(bounds_of(scope)) if Ledger.LOG in scope.evidence else None
    if not _has_stable_positions(scope, bounds):
        return None
    limit = MAX_SHARE * max(scope.evidence[ledger].coverage.rows for ledger in SIDES)
    pairs = pairs_of(scope)
    progress("looking for what else is left to the rules")
    unclean = unclean_ids(scope, pairs, limit)
    return None if unclean is None else scope_of_remaining_ids(scope, pairs, unclean, bounds, limit)


def remainder_scope_by_position(
    scope: Scope, compared: Compared, progress: Callable[[str], None]
) -> Scope | None:
    """Return the scope of the window's remainder, compared by position; None where too much remains.

    Also None where a position does not belong to one message for good: where a topic was recreated, or the log is
    compacted or has records that not every reader gets.
    """
    bounds = materialised(bounds_of(scope)) if Ledger.LOG in scope.evidence else None
    if not _has_stable_positions(scope, bounds):
        return None
    remainder = remainder_of(scope, compared, progress)
    if remainder is None:
        return None
    progress("adding up the clean messages")
    return scope_of_remainder(scope, compared, remainder, bounds)


def _has_stable_positions(scope: Scope, bounds: DataFrame | None) -> bool:
    """Return whether each position belongs to one message for good, and every reader gets its record.

    That is not so where a topic was recreated, the log is compacted or has records that are not stable yet, or a key
    that has an order lies in several partitions.
    """
    if with_topic_generations(scope) is not scope or _crosses_partitions(scope):
        return False
    if bounds is None:
        return True
    is_cut = F.col("first_unstable") <= F.col("last_offset")
    return not compacts(scope, bounds) and bounds.filter(is_cut).isEmpty()


def _crosses_partitions(scope: Scope) -> bool:
    """Return whether sends and log show a key that has an order in several partitions of a topic."""
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
    # By a hash: two keys with the same hash can only look like one key that lies in both their partitions.
    of_key = placed.groupBy(F.xxhash64("topic", "order_key").alias("key_hash"))
    ends = of_key.agg(F.min("partition").alias("low"), F.max("partition").alias("high"))
    return not ends.filter(F.col("low") < F.col("high")).isEmpty()


def scope_of_remainder(
    scope: Scope, compared: Compared, remainder: Remainder, bounds: DataFrame | None
) -> Scope:
    """Return the scope of a window's remainder, and its clean messages."""
    remainder = with_ends(scope, compared, remainder)
    spark = scope.rows(Ledger.PRODUCED).sparkSession
    empty = {ledger: no_rows(spark, SCHEMAS[ledger]) for ledger in compared_ledgers(scope)}
    rows = dict(remainder.rows or empty)
    clean = clean_of(scope, compared, remainder, rows, bounds)
    if Ledger.LOG in rows:
        rows[Ledger.LOG] = materialised(rows[Ledger.LOG].unionByName(statements_of(scope)))
    return scope.with_remainder(rows, clean)
