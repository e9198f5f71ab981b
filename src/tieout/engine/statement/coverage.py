"""Whether each declared ledger covers what the window needs, and which classes the evidence cannot judge.

Docs: docs/reference/taxonomy.md, section 1 (Coverage).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tieout.engine.evidence import EARLIEST_PLAUSIBLE, LedgerCoverage
from tieout.engine.keys import PLACE
from tieout.engine.known_contents import SHOWING
from tieout.engine.ledger import TIME_COLUMN
from tieout.engine.scope import Scope
from tieout.engine.statement.needs import (
    MESSAGE_CLASSES,
    NON_MESSAGE_NEEDS,
    OUT_OF_RANGE_NEEDS,
    Need,
    missing_for_message,
    missing_of,
)
from tieout.engine.topic_generations import name_of
from tieout.model import SET_ASIDE_AND_DELIVERED, BreakClass, Identity, Ledger

_DATED: Final = frozenset({Ledger.PRODUCED, Ledger.DELIVERED, Ledger.READ})


def coverage_of(scope: Scope) -> dict[str, dict[str, Any]]:
    """Return the statement's `coverage`: per declared ledger whether it covers, how far, and from what it was read."""
    stated = {}
    for ledger, evidence in scope.evidence.items():
        coverage, gap = evidence.coverage, coverage_gap(scope, ledger)
        stated[ledger.value] = {
            "covers": gap is None,
            "gap": gap,
            "covers_from": _iso(coverage.covers_from),
            "complete_until": _iso(coverage.complete_until),
            "stated_by": coverage.stated_by,
            "rows": coverage.rows,
            "unparsed": coverage.unparsed,
            "undated": coverage.undated,
            "digests": list(coverage.digests),
            **({"is_share_group": True} if coverage.is_share_group else {}),
            "notes": [*scope.suspicions.notes.get(ledger, ()), *coverage.notes],
        }
    return stated


def with_partitions_shown(
    scope: Scope, partitions: Sequence[dict[str, Any]], unaccounted: Sequence[Mapping[str, Any]]
) -> Scope:
    """Return the scope; the coverage of `produced` and `log` has what they lack of each other's partitions.

    `partitions` are the statement's, `unaccounted` the rows of the rounds' table of that name.
    Where the log has records that nobody sent, `produced` lacks their sends or a producer, whatever claims that it is
    complete. Where offsets have no record, the log lacks some. The log does not cover a partition without records and
    bounds to which a send of the window was or may have been written. It need not show what a recreated topic held
    before.
    """
    scope = scope.with_lacking(Ledger.PRODUCED, _sentences_of(unaccounted, "unsent", _UNSENT))
    scope = scope.with_lacking(Ledger.LOG, _sentences_of(unaccounted, "unshown", _UNSHOWN))
    return _with_log_partitions(scope, partitions)


_WRITTEN: Final = ("accepted", "unproven", "acked_attempts", "unknown_attempts")
"""Counts that show that a partition had or may have had a record: messages of the window, and sends of older ones."""
_UNSENT: Final = "{} records in the log that nobody sent: sends are missing, or a producer is"
_UNSHOWN: Final = "{} offsets without a record, in the window or next to it: the log's evidence lacks some"
_SUPPOSED: Final = (
    "{} offsets without a record count as transaction markers, of which none was read: a record that is missing there "
    "is not seen (the sources kafka_segments and kafka_dump_log read markers)"
)


def _sentences_of(unaccounted: Sequence[Mapping[str, Any]], name: str, sentence: str) -> list[str]:
    """Return the sentence with the count of that name, for each partition of the log that has one, in order."""
    counts = [(row["topic"] or "", row["partition"] or 0, row[name]) for row in unaccounted if row[name]]
    return [f"{topic}-{partition}: {sentence.format(count)}" for topic, partition, count in sorted(counts)]


def _with_log_partitions(scope: Scope, partitions: Sequence[dict[str, Any]]) -> Scope:
    log = scope.evidence.get(Ledger.LOG)
    if log is None or scope.window.offsets or (log.coverage.rows and not scope.has(Ledger.LOG, *PLACE)):
        return scope
    topics = {row["topic"] for row in partitions if row["offsets"] is not None and row["topic"] is not None}
    recreated = {name_of(topic) for topic in topics if name_of(topic) != topic}
    unshown = [row for row in partitions if any(row[name] for name in _WRITTEN) and row["offsets"] is None]
    named = [row for row in unshown if row["topic"] is not None and row["partition"] is not None]
    lacking = [
        f"{row['topic']}-{row['partition']}: the log shows nothing of this partition"
        for row in named
        if name_of(row["topic"]) not in recreated
    ]
    if unshown and not log.coverage.rows:
        lacking.append("the log shows nothing")
    return scope.with_lacking(Ledger.LOG, lacking)


def coverage_gap(scope: Scope, ledger: Ledger) -> str | None:
    """Return why the ledger does not cover what the window needs, or None where it does.

    `produced` and `log` must cover the window, the consumer's ledgers the window and its grace.
    """
    coverage = scope.evidence[ledger].coverage
    end = scope.contract.needed_until(ledger, scope.window)
    unsound = _unsoundness(coverage) or _untimeliness(ledger, coverage)
    if unsound is not None:
        return unsound
    if coverage.complete_until is None:
        return "nothing says how far the ledger is complete"
    if coverage.complete_until < end:
        return f"complete until {_iso(coverage.complete_until)}, but {_iso(end)} is needed"
    if coverage.covers_from is not None and coverage.covers_from > scope.window.start:
        return f"begins at {_iso(coverage.covers_from)}, after the window's start"
    return coverage.lacking[0] if coverage.lacking else None


def _unsoundness(coverage: LedgerCoverage) -> str | None:
    if not coverage.is_present:
        return "absent: " + (coverage.notes[0] if coverage.notes else "no input was found")
    if not coverage.is_within_tolerance:
        return f"{coverage.unparsed} unreadable rows or inputs, more than tolerated"
    if coverage.silent:
        return f"declared producer {coverage.silent[0]} has no row in what was read"
    if coverage.has_sequence_gaps:
        return "a producer session's sequence has gaps"
    if coverage.doubled:
        return f"the same evidence twice: {coverage.doubled[0]}"
    return coverage.doubts[0] if coverage.doubts else None


def _untimeliness(ledger: Ledger, coverage: LedgerCoverage) -> str | None:
    if ledger in _DATED and coverage.undated:
        return f"{coverage.undated} rows without a time"
    if ledger in _DATED and coverage.unset:
        return (
            f"{coverage.unset} rows with a time before {EARLIEST_PLAUSIBLE.year}: an unset clock's, or seconds since "
            "1970 that were read as milliseconds (timestamp_seconds(cast(COLUMN as bigint)) reads them)"
        )
    if ledger in _DATED and coverage.ahead:
        named = " or completed_at" if ledger is Ledger.PRODUCED else ""
        return (
            f"{coverage.ahead} rows with {TIME_COLUMN[ledger]}{named} more than a day after they were read: a wrong "
            "clock's, a placeholder such as 9999-12-31, or digits such as 20261120100000 read as milliseconds "
            "(to_timestamp(COLUMN, 'yyyyMMddHHmmss') reads them)"
        )
    if coverage.reversed:
        return f"{coverage.reversed} rows with completed_at before attempted_at"
    return None


def not_judged_of(scope: Scope) -> list[dict[str, str]]:
    """Return the statement's `not_judged`: each class that the declared evidence cannot show, and what it needs."""
    missing = {name: missing_for_message(scope, name) for name in MESSAGE_CLASSES}
    missing |= {name: missing_of(scope, needs) for name, needs in NON_MESSAGE_NEEDS.items()}
    missing[BreakClass.LOST] = _missing_for_losses(scope)
    if scope.has(Ledger.COMMITTED, "taken_at"):
        missing[BreakClass.COMMIT_OUT_OF_RANGE] = missing_of(scope, OUT_OF_RANGE_NEEDS)
    if missing[BreakClass.COMMIT_GAP] is None:  # ranges are compared by their positions, whatever their times
        missing[BreakClass.COMMIT_REGRESSION] = None
    if scope.has(Ledger.READ, "partition", "offset"):
        missing[BreakClass.LOG_IDENTITY_CONFLICT] = None
    ordered = [Need(scope.reader_ledger, ("consumer_id", "generation", "processed_at"))]
    missing[BreakClass.REORDER_CONSUMER] = missing_of(scope, ordered)
    if scope.contract.ordering == "key":
        by_key = missing_of(scope, [Need(Ledger.PRODUCED, ("key_hash",))])
        for name in (BreakClass.REORDER_PRODUCER, BreakClass.REORDER_CONSUMER):
            missing[name] = missing[name] or by_key
    if scope.contract.is_queue:
        missing |= dict.fromkeys(_NOT_OF_QUEUES, "consumption: log")
    if scope.contract.identity == Identity.POSITION:
        missing[BreakClass.LOG_DUPLICATE] = "identity: message_id"
    if scope.contract.identity == Identity.CONTENT:
        missing[BreakClass.REORDER_OUTPUT] = "identity: message_id or position"
    return [{"class": name.value, "needs": needs} for name, needs in missing.items() if needs is not None]


def _missing_for_losses(scope: Scope) -> str | None:
    """Return the evidence that a message without effect was accepted; of several effects, one proves the others."""
    proving = [Need(Ledger.PRODUCED, ("outcome",)), Need(Ledger.LOG)]
    if scope.effect_ledger is Ledger.DELIVERED:
        proving.append(Need(Ledger.READ))
    if scope.contract.multiplicity.kind != "one_to_one" or any(need.is_met(scope) for need in proving):
        return None
    return " or ".join(map(str, proving))


def limits_of(
    scope: Scope, flags: Mapping[str, int], unaccounted: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Return the limits of the verdict: sentences in the statement.

    They name what the contract's terms hide whatever the evidence, what was found that no class is for, and what clocks
    that stand apart or markers that were not read leave open; `flags` are the statement's, `unaccounted` the rows of
    the rounds' table of that name.
    """
    limits = []
    doubly = flags.get(SET_ASIDE_AND_DELIVERED, 0)
    if doubly:
        limits.append(
            f"{doubly} messages took effect and were filtered or dead-lettered as well, or were so twice: "
            f"flag {SET_ASIDE_AND_DELIVERED}"
        )
    if scope.contract.identity == Identity.CONTENT:
        limits.append(
            "identity: content: a loss that an equal duplicate cancels is invisible, and which of several "
            "equal messages was lost, late or doubled is not known"
        )
        if scope.sets_aside:
            limits.append(
                "identity: content: that a message took effect and was set aside as well is not seen"
            )
    limits += _limits_of_fan_out(scope)
    if scope.is_misread_queue:
        limits.append(
            f"{scope.contract.group} is a share group, or takes messages of a queue: they are acknowledged one by one, "
            "and one before others that were processed may still be given. LOST, COMMIT_AHEAD and SKIPPED are "
            "not confirmed; say `consumption: queue` and `redelivery` in the contract"
        )
    if scope.contract.after is not None:
        limits.append(
            f"one hop of a chain, after {scope.contract.after.pipeline}: a message that was lost there is lost here as "
            "well where produced has it. The pages and `tieout trace` tell where a message was lost"
        )
    supposed = _sentences_of(unaccounted, "supposed", _SUPPOSED)
    return [*limits, *supposed, *_unknown_contents(scope), *scope.suspicions.limits]


def _limits_of_fan_out(scope: Scope) -> Iterator[str]:
    multiplicity, produced = scope.contract.multiplicity, scope.evidence.get(Ledger.PRODUCED)
    if multiplicity.count is not None:
        yield "multiplicity.count: an effect in the place of another of its message is not seen"
    shows_keys = produced is None or "effect_key" in produced.present
    if multiplicity.effect_key is not None and not shows_keys:
        yield (
            "multiplicity.effect_key: produced has no effect_key, so of a message that has an effect no missing one is "
            "seen; map the key of the effect that each row of produced asks for, or declare count"
        )


def _unknown_contents(scope: Scope) -> Iterator[str]:
    """Yield a sentence per ledger and content column that others show: in how many of its rows it is unknown."""
    for ledger in (one for one in SHOWING if one in scope.evidence):
        coverage = scope.evidence[ledger].coverage
        for name, count in coverage.unknown:
            if any(scope.has(other, name) for other in SHOWING if other is not ledger):
                yield (
                    f"{ledger}: {name} is unknown in {count} of {coverage.rows} rows: there "
                    f"{_COMPARING[name]} is not judged"
                )


_COMPARING: Final[Mapping[str, BreakClass]] = {
    "payload_hash": BreakClass.CORRUPTED_VALUE,
    "key_hash": BreakClass.CORRUPTED_KEY,
    "header_hash": BreakClass.CORRUPTED_HEADER,
    "record_timestamp": BreakClass.CORRUPTED_TIMESTAMP,
}

_NOT_OF_QUEUES: Final = (
    BreakClass.SKIPPED,
    BreakClass.REORDER_CONSUMER,
    BreakClass.COMMIT_STALE,
    BreakClass.COMMIT_GAP,
)
"""Classes about readers that read in order."""


def _iso(time: Any) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")
