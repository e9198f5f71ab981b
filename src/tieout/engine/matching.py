"""Match: tie every row of every ledger to its message, and gather each message into one row.

Docs: docs/reference/taxonomy.md, section 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.engine import events
from tieout.engine.asserting import overruled
from tieout.engine.attempts import attempts_of, contested_ids_of
from tieout.engine.claims import owners_of, read_claims, record_claims, sent_claims
from tieout.engine.contents import sent_by_content
from tieout.engine.contested import contested_positions_of
from tieout.engine.dispositions import disposed, with_first_records
from tieout.engine.early import with_strays, with_strays_told
from tieout.engine.effects import (
    consumer_rows_of,
    reused_ids_of,
    set_aside_rows_of,
    with_first_reads,
    with_message_keys,
    with_record_keys,
)
from tieout.engine.known_contents import SHOWING
from tieout.engine.log_facts import superseding_of, with_log_coverage
from tieout.engine.materialising import materialised
from tieout.engine.messages import gathered
from tieout.engine.multiplicity import fans_out, with_effect_rounds
from tieout.engine.pairing import (
    met_early,
    with_content_keys,
    with_later_equals,
    with_set_aside_keys,
    with_unsent_keys,
)
from tieout.engine.placing import placed
from tieout.engine.positions import commits_of, doubtful_progress_of, epochs_of, held_back, progress_of
from tieout.engine.records import bounds_of, data_records_of, log_rows_of
from tieout.engine.scope import Scope
from tieout.model import Identity, Ledger

_ASIDE = {
    Ledger.FILTERED: events.FILTERED,
    Ledger.DEAD_LETTERS: events.DEAD_LETTER,
    Ledger.STAGED: events.STAGED,
}


@dataclass(frozen=True)
class Matched:
    """The evidence with every row tied to a message: what rules, statement and proof are made from.

    `keyed` holds per ledger its rows with `key`; `messages` one row a message with its disposition. `reads` have the
    keys of what lies at their positions, which by content are not those of the messages that they are effects of.
    """

    messages: DataFrame
    keyed: Mapping[Ledger, DataFrame]
    log: DataFrame | None
    bounds: DataFrame | None
    commits: DataFrame | None
    progress: DataFrame
    reads: DataFrame | None = None


def matched(scope: Scope) -> Matched:
    """Return the scope's evidence matched: keys first, then one row a message, then its disposition."""
    log, bounds = log_of(scope)
    records = None if log is None or bounds is None else data_records_of(scope, log, bounds)
    attempts, records, reused = _sent(scope, records)
    keyed: dict[Ledger, DataFrame] = {Ledger.PRODUCED: attempts}
    if records is not None:
        keyed[Ledger.LOG] = records
    keyed |= _others(scope, attempts, records, reused)
    at_position = keyed
    of_others = overruled(scope, attempts, records, keyed.get(Ledger.READ))
    has_strays = False
    if scope.contract.identity == Identity.CONTENT:
        keyed = _paired(scope, keyed)
    else:
        effects = keyed[scope.effect_ledger]
        keyed[scope.effect_ledger], has_strays = with_strays(scope, effects, attempts)
    if fans_out(scope):
        keyed[Ledger.DELIVERED] = materialised(with_effect_rounds(scope, keyed[Ledger.DELIVERED]))
    messages = gathered(scope, _events(scope, keyed, at_position, bounds))
    if scope.has(Ledger.PRODUCED, "transaction_id"):
        messages = materialised(messages)
    messages = materialised(placed(scope, messages, of_others))
    commits, epochs = commits_of(scope), epochs_of(scope, log, bounds)
    held = None if commits is None else held_back(commits, "committed_offset", epochs, last=0)
    reads = None if scope.effect_ledger == Ledger.READ else keyed.get(Ledger.READ)
    may_lack_position = scope.evidence[scope.effect_ledger].may_lack_position
    progress = progress_of(
        messages, keyed[scope.effect_ledger], reads, held, epochs, may_lack_position=may_lack_position
    )
    if scope.beside is not None:
        progress = progress.unionByName(scope.beside.progress)
    superseding = doubts = None
    if records is not None and bounds is not None:
        superseding = superseding_of(scope, records, attempts, bounds)
    if superseding is not None and Ledger.READ in keyed:
        doubts = doubtful_progress_of(keyed[Ledger.READ], epochs)
        doubts = None if doubts.isEmpty() else doubts
    judged = disposed(
        scope,
        with_strays_told(messages, has_any=has_strays),
        bounds,
        superseding,
        held,
        progress,
        doubts,
        may_share_ids=reused is not None,
    )
    judged = with_first_records(scope, judged, attempts, records, bounds)
    return Matched(judged, keyed, log, bounds, commits, progress, at_position.get(Ledger.READ))


def log_of(scope: Scope) -> tuple[DataFrame | None, DataFrame | None]:
    """Return the log's rows, one a position, and its bounds; both None where no log is declared."""
    rows = log_rows_of(scope)
    if rows is None:
        return None, None
    return materialised(rows), materialised(bounds_of(scope))


def _sent(scope: Scope, records: DataFrame | None) -> tuple[DataFrame, DataFrame | None, DataFrame | None]:
    """Return the attempts and the log's data records with the keys of their messages, and what has several messages.

    The last are the reused ids or, under `identity: position`, the contested positions.
    """
    if scope.contract.identity == Identity.CONTENT:
        attempts, records = sent_by_content(scope, records)
        return materialised(attempts), records, None
    by_position = scope.contract.identity == Identity.POSITION
    contested = contested_positions_of(scope, records) if by_position else contested_ids_of(scope)
    attempts = materialised(attempts_of(scope, records, contested))
    reused = contested if by_position else reused_ids_of(scope, attempts, contested)
    if records is not None:
        records = materialised(with_record_keys(scope, records, attempts, reused))
    return attempts, records, reused


def _others(
    scope: Scope, attempts: DataFrame, records: DataFrame | None, reused: DataFrame | None
) -> dict[Ledger, DataFrame]:
    """Return the consumer's ledgers with the keys of their messages, given the keyed attempts and records."""
    keyed = {}
    claims = [sent_claims(scope, attempts.filter(F.col("outcome") != "failed"))]
    if records is not None:
        claims.append(record_claims(records))
    owners = owners_of(scope, claims)
    # What a read shows at a position says whose an output row of that position is, so reads come first.
    for ledger in (Ledger.READ, Ledger.DELIVERED):
        if ledger in scope.evidence:
            rows = with_message_keys(scope, consumer_rows_of(scope, ledger), owners, reused)
            if ledger == scope.effect_ledger == Ledger.READ:
                rows = with_first_reads(scope, rows)
            keyed[ledger] = materialised(rows)
        if ledger == Ledger.READ and ledger in keyed:
            owners = owners_of(scope, [*claims, read_claims(scope, keyed[ledger], attempts)])
    for ledger in _ASIDE:
        if ledger in scope.evidence:
            keyed[ledger] = materialised(
                with_message_keys(scope, set_aside_rows_of(scope, ledger), owners, reused)
            )
    return keyed


def _paired(scope: Scope, at_position: Mapping[Ledger, DataFrame]) -> dict[Ledger, DataFrame]:
    """Return the keyed ledgers with effects, and what was set aside, keyed by payload instead of position.

    Attempts say whether a row that no attempt is left for may be theirs all the same: see `pairing.met_early`.
    """
    keyed, attempts = dict(at_position), at_position[Ledger.PRODUCED]
    effects = materialised(with_content_keys(scope, keyed[scope.effect_ledger], attempts))
    unserved = effects.filter("is_unserved").select("payload_hash")
    left, accounting = attempts, effects.filter(F.col("effect_state").isin("ok", "unknown"))
    waiting = attempts
    for state in ("ok", "unknown", "none"):
        for ledger in (Ledger.DEAD_LETTERS, Ledger.FILTERED):
            if not (scope.has(ledger, "transaction_state") or (state == "ok" and ledger in scope.evidence)):
                continue
            left = materialised(_without(left, accounting)) if state != "ok" else _without(left, accounting)
            rows, is_asked = keyed[ledger], F.col("effect_state") == state
            told = materialised(with_set_aside_keys(rows.filter(is_asked), left))
            if state == "ok":
                unserved = unserved.unionByName(told.filter("is_unserved").select("payload_hash"))
            accounting = told.drop("is_unserved")
            keyed[ledger] = materialised(rows.filter(~is_asked).unionByName(accounting))
        if state == "ok":
            waiting = _without(left, accounting)
    if unserved.isEmpty():
        keyed[scope.effect_ledger] = effects.drop("is_unserved")
        return keyed
    is_open = F.col("payload_hash").isNotNull() & (F.col("standing") != "failed")
    waiting = materialised(waiting.filter(is_open))
    keyed[scope.effect_ledger] = materialised(with_later_equals(effects, waiting))
    keyed[Ledger.PRODUCED] = materialised(met_early(attempts, waiting, unserved))
    return keyed


def _without(attempts: DataFrame, accounted: DataFrame) -> DataFrame:
    return attempts.join(accounted.select("key").distinct(), "key", how="left_anti")


def _events(
    scope: Scope,
    keyed: Mapping[Ledger, DataFrame],
    at_position: Mapping[Ledger, DataFrame],
    bounds: DataFrame | None,
) -> dict[str, DataFrame]:
    """Return the rows of all ledgers as events of their messages, by kind.

    A read is an event of the message at its position, even where, by content, it is an effect of another; by content
    one of what nobody sent there is an event of whatever else has its payload.
    """
    known: dict[Ledger, DataFrame] = {
        ledger: rows if ledger is Ledger.PRODUCED else scope.with_known_contents(ledger, rows)
        for ledger, rows in keyed.items()
        if ledger in SHOWING
    }
    attempts = known[Ledger.PRODUCED].withColumn("done_at", F.coalesce("completed_at", "attempted_at"))
    covered = with_log_coverage(scope, attempts, bounds).withColumnRenamed("is_covered", "is_log_covered")
    found = {events.ATTEMPT: events.attempt_events(scope, covered)}
    if Ledger.LOG in keyed:
        found[events.RECORD] = events.record_events(known[Ledger.LOG])
    if scope.contract.identity == Identity.CONTENT:
        found[events.EFFECT] = events.consumer_events(known[scope.effect_ledger], events.EFFECT)
    elif Ledger.DELIVERED in keyed:
        found[events.EFFECT] = events.consumer_events(known[Ledger.DELIVERED], events.EFFECT)
    if Ledger.READ in keyed:
        read = scope.with_known_contents(Ledger.READ, at_position[Ledger.READ])
        if scope.contract.identity == Identity.CONTENT:
            read = with_unsent_keys(read, attempts)
        read = read.withColumn("done_at", F.col("processed_at"))
        covered = with_log_coverage(scope, read, bounds).withColumnRenamed("is_covered", "is_log_covered")
        found[events.READ] = events.consumer_events(covered.drop("done_at"), events.READ)
    aside = {kind: keyed[ledger] for ledger, kind in _ASIDE.items() if ledger in keyed}
    return found | {kind: events.aside_events(scope, rows, kind) for kind, rows in aside.items()}
