"""The verdict: section 6's table, read from the findings and the counts."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from math import inf
from typing import Any

from tests.oracle.findings import Finding
from tests.oracle.history import BEGINNING, History
from tests.oracle.meeting import Doubted, Unmet, unmet
from tests.oracle.queues import is_queue

from tieout.model import Guarantee, Identity, Ledger, Verdict

_BREAKS_EVERY_GUARANTEE = {
    "PHANTOM_UNKNOWN",
    "PHANTOM_ABORTED",
    "PHANTOM_UNCOMMITTED",
    "CORRUPTED_VALUE",
    "CORRUPTED_KEY",
    "CORRUPTED_HEADER",
    "CORRUPTED_TIMESTAMP",
}
_BREAKS_MORE = {
    Guarantee.AT_MOST_ONCE: {"OUTPUT_DUPLICATE", "COMMIT_REGRESSION"},
    Guarantee.AT_LEAST_ONCE: {
        "LOST",
        "TORN_TRANSACTION",
        "COMMIT_AHEAD",
        "LOG_IDENTITY_CONFLICT",
        "LOG_TRUNCATION",
    },
    Guarantee.EXACTLY_ONCE: {
        "LOST",
        "TORN_TRANSACTION",
        "OUTPUT_DUPLICATE",
        "COMMIT_AHEAD",
        "LOG_IDENTITY_CONFLICT",
        "LOG_TRUNCATION",
    },
}
_NOT_OF_SHARE_GROUPS = {"LOST", "COMMIT_AHEAD", "SKIPPED"}
_REORDERS = {"REORDER_PRODUCER", "REORDER_CONSUMER", "REORDER_OUTPUT"}


def verdict_of(
    history: History,
    findings: list[Finding],
    partitions: list[dict[str, Any]],
    *,
    untold_orders: int,
    given_twice: int,
    doubted: Doubted,
    early: bool,
    lacking: frozenset[Ledger] = frozenset(),
) -> tuple[Verdict, list[str]]:
    """Return the verdict and what speaks for it, by code: `LOST`, `late_ratio`, `coverage:log`, ….

    `early` says whether effects of the window are of messages that were sent after it;
    `doubted` are the topics in which losses or phantoms may be none;
    `lacking` are ledgers that the others show not to have everything.
    """
    totals: Counter[str] = Counter()
    for numbers in partitions:
        totals.update({name: value for name, value in numbers.items() if isinstance(value, int)})
    spelled = unmet(history, doubted)
    failing = _failing(history, findings, spelled)
    if "LOST" in breaking_classes(history):  # also where its class is that of a phantom in another window
        lost = [numbers["topic"] for numbers in partitions if numbers["lost"]]
        failing += [("LOST", not _is_doubted(history, spelled, "LOST", topic)) for topic in lost]
    exceeded = _exceeded(history, findings, totals)
    certain = _exceeded(history, *_without_doubted(history, spelled, findings, partitions, totals))
    broken = sorted({name for name, is_confirmed in failing if is_confirmed}) + certain
    if broken:
        return Verdict.BROKEN, broken
    doubts = sorted({f"unconfirmed:{name}" for name, is_confirmed in failing if not is_confirmed})
    doubts += [f"unconfirmed:{name}" for name in exceeded]
    doubts += ["ids"] if spelled.ids else []
    doubts += ["early effects"] if early else []
    doubts += ["order of keys"] if untold_orders and history.contract.ordering == "key" else []
    by_position = history.contract.identity is Identity.POSITION
    hidden = "LOG_IDENTITY_CONFLICT" if by_position else "LOST"
    doubts += ["names"] if given_twice and hidden in breaking_classes(history) else []
    doubts += [f"coverage:{ledger}" for ledger in history.uncovered]
    if not _log_shows_each(history, partitions):
        lacking |= {Ledger.LOG}
    doubts += [f"coverage:{ledger}" for ledger in sorted(lacking - set(history.uncovered))]
    doubts += _doubts(history, findings, partitions, totals)
    if doubts:
        return Verdict.UNKNOWN, doubts
    if totals["in_flight"] or any("IN_FLIGHT" in finding.names for finding in findings):
        return Verdict.PENDING, ["in_flight"]
    return Verdict.KEPT, []


def _is_doubted(history: History, spelled: Unmet, name: str, topic: str | None) -> bool:
    """Return whether a break of the class may be none: ids that never meet, or a queue read as if it were a log."""
    is_share_group = getattr(history.coverage.get(Ledger.COMMITTED), "is_share_group", False)
    if name in _NOT_OF_SHARE_GROUPS and is_share_group and not is_queue(history.contract):
        return True
    return spelled.doubts(name, topic)


def _without_doubted(
    history: History,
    spelled: Unmet,
    findings: list[Finding],
    partitions: list[dict[str, Any]],
    totals: Counter[str],
) -> tuple[list[Finding], Counter[str]]:
    """Return what budgets are certainly made of."""
    left = Counter(totals)
    for numbers in partitions:
        if _is_doubted(history, spelled, "LOST", numbers["topic"]):
            left["lost"] -= numbers["lost"]
    kept = [
        finding
        for finding in findings
        if "OVERDUE" not in finding.names or not spelled.doubts("LOST", finding.topic)
    ]
    return kept, left


def _log_shows_each(history: History, partitions: list[dict[str, Any]]) -> bool:
    """Return whether a declared log shows something of each partition that may hold sends of the window (89)."""
    if not history.has(Ledger.LOG) or history.window.offsets:
        return True
    rows = history.rows(Ledger.LOG)
    if rows and not all(history.has_column(Ledger.LOG, name) for name in ("topic", "partition")):
        return True
    shown = set(history.bounds)
    anew = {topic.partition("@")[0] for topic, _ in shown if "@" in topic}
    for numbers in partitions:
        topic, partition = numbers["topic"], numbers["partition"]
        written = sum(
            numbers[name] for name in ("accepted", "unproven", "acked_attempts", "unknown_attempts")
        )
        if not written or (topic, partition) in shown:
            continue
        if topic is None or partition is None:
            if not rows:
                return False
        elif topic.partition("@")[0] not in anew:
            return False
    return True


def breaking_classes(history: History) -> set[str]:
    """Return the classes and flags that break the contract's guarantee and ordering."""
    contract = history.contract
    breaking = _BREAKS_EVERY_GUARANTEE | _BREAKS_MORE[contract.guarantee]
    if contract.ordering != "none":
        breaking |= _REORDERS
    if contract.ordering == "key":
        breaking |= {"MISROUTED"}
    return breaking


def _failing(history: History, findings: list[Finding], spelled: Unmet) -> list[tuple[str, bool]]:
    breaking = breaking_classes(history)
    return [
        (
            name,
            _is_confirmed(history, finding.shown_by.get(name, []))
            and not _is_doubted(history, spelled, name, finding.topic),
        )
        for finding in findings
        for name in finding.names & breaking
        if not (name == "COMMIT_REGRESSION" and "annotated" in finding.also)
    ]


def _is_confirmed(history: History, shown: list[tuple[Ledger, datetime | None]]) -> bool:
    """Return whether the ledgers that show the break cover the times of its rows (interpretation 45)."""
    return all(
        history.is_sound(ledger) if time is None else history.covers(ledger, time, time)
        for ledger, time in shown
        if time is None or time >= BEGINNING
    )


def _ratio(count: int, of: int) -> float:
    if not count:
        return 0.0
    return count / of if of else inf


def ratios(findings: list[Finding], totals: Counter[str]) -> dict[str, float]:
    """Return the three budget ratios over all partitions."""
    late = sum(1 for finding in findings for name in ("LATE", "OVERDUE") if name in finding.names)
    return {
        "loss_ratio": _ratio(totals["lost"], totals["accepted"] - totals["in_flight"]),
        "duplicate_ratio": _ratio(totals["further_effects"], totals["first_effects"]),
        "late_ratio": _ratio(late, totals["accepted"]),
    }


def _exceeded(history: History, findings: list[Finding], totals: Counter[str]) -> list[str]:
    budgets = history.contract.budgets
    return [
        name
        for name, ratio in ratios(findings, totals).items()
        if getattr(budgets, name) is not None and ratio > getattr(budgets, name)
    ]


def _doubts(
    history: History, findings: list[Finding], partitions: list[dict[str, Any]], totals: Counter[str]
) -> list[str]:
    doubts = []
    unverifiable = totals["unverifiable"] + totals["unverifiable_effects"]
    unverifiable += sum(numbers["offsets"]["unverifiable"] for numbers in partitions if numbers["offsets"])
    if unverifiable or any("UNVERIFIABLE" in finding.names for finding in findings):
        doubts.append("unverifiable")
    if totals["unexplained"]:
        doubts.append("unexplained")
    if _a_possible_duplicate_could_break(history, findings, totals):
        doubts.append("POSSIBLE_DUPLICATE")
    only_read = history.output is Ledger.READ and history.contract.effects != "read"
    if only_read and history.contract.guarantee is Guarantee.EXACTLY_ONCE:
        doubts.append("effects: read")
    return doubts


def _a_possible_duplicate_could_break(
    history: History, findings: list[Finding], totals: Counter[str]
) -> bool:
    possible = sum(finding.possible_effects for finding in findings if "POSSIBLE_DUPLICATE" in finding.names)
    if not possible:
        return False
    limit = history.contract.budgets.duplicate_ratio
    if history.contract.guarantee is not Guarantee.AT_LEAST_ONCE:
        return True
    return limit is not None and _ratio(totals["further_effects"] + possible, totals["first_effects"]) > limit
