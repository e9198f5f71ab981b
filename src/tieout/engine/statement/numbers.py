"""The numbers of a statement from the small tables that buckets hand out: plain Python, on few rows.

The rounds count. Coverage, suspicions and wording are applied to the counts here, once for all buckets.
Docs: docs/reference/taxonomy.md, sections 3, 5 and 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from tieout.engine.evidence import NOTHING_SUSPECTED
from tieout.engine.scope import Scope
from tieout.engine.statement.counts import Numbers, partition_rows
from tieout.engine.statement.forms import HASHES, Forms, Spelled, clean_forms, forms_in, reshaped
from tieout.engine.statement.meetings import with_names_met
from tieout.engine.statement.needs import has_sound_ledgers
from tieout.engine.statement.ranges import lacking_of_ranges
from tieout.engine.statement.suspicions import Topics, suspecting, suspicions_in
from tieout.engine.statement.undecided import names_undecided, orders_undecided
from tieout.model import BreakClass, Ledger
from tieout.verdicts import severity_of_break

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

HANDED_OUT: Final = (
    "partition_counts", "balance", "unaccounted", "range_bounds", "tally", "topic_suspicions", "hash_forms",
    "common_hashes", "spellings", "undecided_orders", "given_twice", "latency", "incidents", "breaks_total",
    "cause_limits", "comparing",
)  # fmt: skip
"""The tables of few rows that a statement is made of."""
TRACED: Final = (
    "traced_total", "traced_messages", "traced_breaks", "traced_produced", "traced_log", "traced_read",
    "traced_delivered", "traced_filtered", "traced_dead_letters", "traced_staged",
)  # fmt: skip
"""The tables of few rows that a trace is made of."""
_NEVER_FLAGS: Final = (BreakClass.DELIVERED.value, BreakClass.RECOVERED.value, BreakClass.NOT_SENT.value)
_NOT_OF_QUEUES: Final = frozenset(
    {BreakClass.LOST.value, BreakClass.COMMIT_AHEAD.value, BreakClass.SKIPPED.value}
)
"""Classes about records that an ordered reader passed; a share group may still deliver them."""
_HASHED: Final = (Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.READ)


def suspected(scope: Scope, tables: Tables) -> Scope:
    """Return the scope with the suspicions that messages raise, and what the log lacks of the window's ranges."""
    if scope.window.offsets and Ledger.LOG in scope.evidence:
        scope = scope.with_lacking(Ledger.LOG, lacking_of_ranges(scope.window, tables["range_bounds"]))
    rows = with_names_met(scope, tables["topic_suspicions"], tables["common_hashes"])
    forms = _spelled(scope, rows, tables["hash_forms"])
    suspicions = suspicions_in(scope, rows, forms, tables["spellings"])
    if suspicions != NOTHING_SUSPECTED and scope.clean is not None:
        suspicions = suspicions_in(scope, rows, forms, tables["spellings"], scope.clean.topics())
    limits = tuple(row["sentence"] for row in tables["cause_limits"])
    if limits:
        suspicions = replace(suspicions, limits=limits)
    return suspecting(scope, suspicions)


def numbers_of(scope: Scope, tables: Tables) -> Numbers:
    """Return the numbers of a statement, given the scope of `suspected`."""
    balance = tables["balance"] if Ledger.LOG in scope.evidence else None
    classes, flags, unconfirmed = _counts_of(_confirmed(scope, tables["tally"]))
    return Numbers(
        partitions=partition_rows(tables["partition_counts"], balance, fans_out=scope.fans_out),
        unaccounted=tables["unaccounted"] if Ledger.LOG in scope.evidence else (),
        classes=classes,
        flags=flags,
        unconfirmed=unconfirmed,
        undecided=orders_undecided(tables["undecided_orders"]).joined(
            names_undecided(tables["given_twice"], scope.contract.identity)
        ),
        latency=_latency(tables["latency"]),
        incidents=_incidents(scope, tables["incidents"]),
        breaks_total=sum(row["breaks"] for row in tables["breaks_total"]),
    )


def _counts_of(tally: Iterable[Row]) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return the counts of primary classes, of all classes and flags, and of those that ledgers do not cover."""
    classes: dict[str, int] = {}
    flags: dict[str, int] = {}
    unconfirmed: dict[str, int] = {}
    for row in tally:
        count = row["count"]
        classes[row["class"]] = classes.get(row["class"], 0) + count
        for name in row["held"]:
            if name in _NEVER_FLAGS:
                continue
            flags[name] = flags.get(name, 0) + count
            if name in row["doubtful"]:
                unconfirmed[name] = unconfirmed.get(name, 0) + count
    return dict(sorted(classes.items())), dict(sorted(flags.items())), dict(sorted(unconfirmed.items()))


def _spelled(scope: Scope, rows: Sequence[Row], forms: Iterable[Row]) -> list[Spelled]:
    """Return how the ledgers write the hashes of the classes that some row breaks.

    A clean message has the same hash in all ledgers: it can join two forms, but never split one. Clean rows, which
    take a pass over all messages, are read only where the other rows show two forms.
    """
    shown_forms = {(row["name"], Ledger(row["ledger"]), row["topic"]): forms_in(row) for row in forms}
    topics, found = [row["topic"] for row in rows], []
    for name in HASHES:
        if not any(row[name] for row in rows):
            continue
        shown = [ledger for ledger in _HASHED if scope.has(ledger, HASHES[name])]
        by_ledger = {
            ledger: {
                topic: one for (of, where, topic), one in shown_forms.items() if (of, where) == (name, ledger)
            }
            for ledger in shown
        }
        spelled = Spelled(name, by_ledger)
        if reshaped(spelled, topics):
            spelled = Spelled(name, {ledger: _with_clean(scope, spelled, ledger) for ledger in shown})
        found.append(spelled)
    return found


def _with_clean(scope: Scope, spelled: Spelled, ledger: Ledger) -> dict[str | None, Forms]:
    """Return the forms of a ledger's hashes, those of clean rows among them."""
    forms = dict(spelled.forms[ledger])
    for topic, one in clean_forms(scope, ledger, HASHES[spelled.name]).items():
        forms[topic] = one.joined(forms[topic]) if topic in forms else one
    return forms


def _confirmed(scope: Scope, tally: Iterable[Row]) -> Iterable[dict[str, Any]]:
    """Yield rows of the tally; `doubtful` includes what the evidence as a whole makes doubtful."""
    sound = {name.value for name in BreakClass if has_sound_ledgers(scope, name)}
    misread = _NOT_OF_QUEUES if scope.is_misread_queue else frozenset()
    for row in tally:
        held = set(row["held"])
        doubtful = held & (_doubted_in(scope.suspicions.doubted, row["topic"]) | misread)
        if row["is_non_message"] and not (row["is_covered"] and row["class"] in sound):
            doubtful = held
        yield {**row, "doubtful": doubtful | set(row["doubtful"])}


def _doubted_in(doubted: Mapping[str, Topics], topic: str | None) -> set[str]:
    return {name for name, topics in doubted.items() if topic in topics}


def _latency(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the statement's `latency`, in seconds, of the one row of microseconds."""
    row = rows[0]
    p50, p95, p99, greatest = (
        None if row[name] is None else row[name] / 1_000_000 for name in ("p50", "p95", "p99", "max")
    )
    latency = {
        "count": row["count"],
        "mean_s": mean_seconds(row["micros"], row["count"]),
        "p50_s": p50,
        "p95_s": p95,
        "p99_s": p99,
        "max_s": greatest,
    }
    return latency if row["sample"] is None else {**latency, "sample": row["sample"]}


def mean_seconds(micros: int | None, count: int) -> float | None:
    """Return the mean in seconds, rounded to microseconds, null without any.

    >>> mean_seconds(5, 2)
    3e-06
    """
    if micros is None:
        return None
    return float((Decimal(micros) / count / 1_000_000).quantize(Decimal("0.000001"), ROUND_HALF_UP))


def _incidents(scope: Scope, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the statement's incidents with their severity."""
    incidents = []
    for row in rows:
        flags = ["PHANTOM_ABORTED"] if row["is_aborted_effect"] else []
        incident = {key: value for key, value in row.items() if key != "is_aborted_effect"}
        incidents.append({**incident, "severity": severity_of_break(scope.contract, row["class"], flags)})
    return incidents
