"""One window's history judged: everything above put together, in the shape of statement.json."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.oracle.balance import has_unsent_records, lacks_records, partitions_of
from tests.oracle.conflicts import names_given_twice
from tests.oracle.fates import Fates
from tests.oracle.findings import LEGAL, NO_BREAK, Finding, message_findings
from tests.oracle.history import History, OracleCoverage, Position, Row, undated_last
from tests.oracle.key_order import untold
from tests.oracle.matching import match
from tests.oracle.meeting import Doubted
from tests.oracle.nameless import topics_of_possible_losses
from tests.oracle.ordering import consumer_reorders, output_reorders, producer_reorders, skipped
from tests.oracle.phantoms import phantom_findings
from tests.oracle.position_findings import (
    commit_ahead,
    commit_regressions,
    commits_out_of_range,
    identity_conflicts,
    stale_commits,
    torn_transactions,
    truncations,
)
from tests.oracle.positions import disagreements
from tests.oracle.ranges import gaps, intersections
from tests.oracle.spelling import topics_of_spellings
from tests.oracle.topic_generations import by_topic_generation, deleted
from tests.oracle.unjudged import not_judged
from tests.oracle.verdict import ratios, verdict_of

from tieout.contracts import Contract
from tieout.model import BreakClass, Ledger, Window

ALL_CLASSES = frozenset(BreakClass)
FIRST_CLASSES = frozenset(
    {
        BreakClass.LOST,
        BreakClass.IN_FLIGHT,
        BreakClass.RECOVERED,
        BreakClass.DELIVERED,
        BreakClass.NOT_SENT,
        BreakClass.LATE,
        BreakClass.LOG_DUPLICATE,
        BreakClass.OUTPUT_DUPLICATE,
        BreakClass.CORRUPTED_VALUE,
        BreakClass.PHANTOM_UNKNOWN,
        BreakClass.PHANTOM_ABORTED,
        BreakClass.COMMIT_AHEAD,
        BreakClass.COMMIT_REGRESSION,
        BreakClass.COMPACTED,
        BreakClass.FILTERED,
        BreakClass.DEAD_LETTERED,
        BreakClass.UNVERIFIABLE,
    }
)
"""The classes that #2 asks for; the others come with later issues."""


def judge_history(
    contract: Contract,
    window: Window,
    ledgers: dict[Ledger, list[Row]],
    coverage: dict[Ledger, OracleCoverage],
    present: dict[Ledger, frozenset[str]] | None = None,
    *,
    only: frozenset[BreakClass] = ALL_CLASSES,
) -> dict[str, Any]:
    """Return the window's statement and its breaks.

    Args:
        contract: what is promised; of its ledgers only the names are looked at.
        window: the window to judge.
        ledgers: canonical rows with aware times; a ledger without a key is absent.
        coverage: how far each ledger is complete; a ledger without a key covers nothing.
        present: the columns that each source has; None says all of them.
        only: the classes to judge; everything else is as if it did not exist.
    """
    judged = only | NO_BREAK | LEGAL | {BreakClass.LOST, BreakClass.IN_FLIGHT, BreakClass.UNVERIFIABLE}
    gone = deleted(ledgers, contract.clock_skew)
    history = History(contract, window, *by_topic_generation(ledgers, coverage), present, gone)
    fates = Fates(history, match(history))
    ahead = commit_ahead(fates)
    findings = [
        finding
        for finding in _findings(fates, judged, ahead)
        if history.holds(finding.time, finding.window_at)
    ]
    partitions = partitions_of(fates, judged)
    verdict, reasons = verdict_of(
        history,
        findings,
        partitions,
        untold_orders=untold(fates),
        given_twice=names_given_twice(history, fates.matched.messages),
        doubted=_doubted(fates, findings, ahead[2]),
        lacking=_lacking(fates),
        early=_has_early_effects(fates),
    )
    totals: Counter[str] = Counter()
    for numbers in partitions:
        totals.update({name: value for name, value in numbers.items() if isinstance(value, int)})
    return {
        "pipeline": contract.pipeline,
        "group": contract.group,
        "guarantee": str(contract.guarantee),
        "identity": str(contract.identity),
        "verdict": str(verdict),
        "reasons": reasons,
        "not_judged": not_judged(history),
        "partitions": partitions,
        "classes": dict(sorted(Counter(str(finding.primary) for finding in findings).items())),
        "flags": _flags(findings),
        "budgets": ratios(findings, totals),
        "breaks": _breaks(findings),
    }


def _doubted(fates: Fates, findings: list[Finding], jumped: list[Position]) -> Doubted:
    """Return the topics in which losses, and in which phantoms, may be none."""
    losses, phantoms = topics_of_spellings(fates)
    nameless = topics_of_possible_losses(fates.history, findings, jumped)
    return Doubted(losses | nameless, phantoms)


def _has_early_effects(fates: Fates) -> bool:
    """Return whether the window has effects of messages that were sent after it."""
    history = fates.history
    return not history.window.offsets and any(
        message.has_early_effect
        and not history.holds(message.began_at, fates.first_position(message))
        and history.in_window(min(undated_last(row.get("processed_at")) for row in message.effects))
        for message in fates.matched.messages
    )


def _lacking(fates: Fates) -> frozenset[Ledger]:
    """Return the ledgers that the log shows to lack rows (133, 134)."""
    if not fates.history.has(Ledger.LOG):
        return frozenset()
    found = {Ledger.PRODUCED: has_unsent_records(fates), Ledger.LOG: lacks_records(fates)}
    return frozenset(ledger for ledger, is_lacking in found.items() if is_lacking)


def _findings(
    fates: Fates, judged: frozenset[BreakClass], ahead_of: tuple[list[Finding], set[int], list[Position]]
) -> list[Finding]:
    ahead, overtaken, _ = ahead_of
    of_messages = message_findings(fates, judged)
    for message, finding in zip(fates.matched.messages, of_messages, strict=True):
        if id(message) in overtaken and BreakClass.COMMIT_AHEAD in judged:
            finding.also.add(str(BreakClass.COMMIT_AHEAD))
    non_message_rows = [
        *ahead,
        *commit_regressions(fates),
        *intersections(fates),
        *gaps(fates),
        *disagreements(fates),
        *commits_out_of_range(fates),
        *stale_commits(fates),
        *identity_conflicts(fates),
        *truncations(fates),
        *torn_transactions(fates),
        *producer_reorders(fates),
        *consumer_reorders(fates),
        *output_reorders(fates),
        *skipped(fates),
    ]
    phantoms = [finding for finding in phantom_findings(fates) if finding.primary in judged]
    return of_messages + phantoms + [finding for finding in non_message_rows if finding.primary in judged]


def _flags(findings: list[Finding]) -> dict[str, int]:
    without = {str(name) for name in NO_BREAK}
    counts = Counter(name for finding in findings for name in finding.names - without)
    return dict(sorted(counts.items()))


def _breaks(findings: list[Finding]) -> list[dict[str, Any]]:
    rows = [
        {
            "class": str(finding.primary),
            "flags": sorted(finding.also),
            "message_id": finding.message_id,
            "topic": finding.topic,
            "partition": finding.partition,
            "offset": finding.offset,
            "locus": str(finding.locus),
        }
        for finding in findings
        if finding.is_break
    ]
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])
