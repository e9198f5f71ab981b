"""From the small tables that a bucket hands out to the numbers of a statement: plain Python, on few rows.

Rounds count; what coverage, suspicions and words make of the counts is decided here, once for all buckets.
Docs: docs/reference/taxonomy.md, sections 3, 5 and 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from tieout.engine.forms import HASHES, Forms, Spelled
from tieout.engine.meetings import with_hashes_met_in
from tieout.engine.multiplicity import fans_out
from tieout.engine.ranges import lacking_of_ranges
from tieout.engine.scope import Scope
from tieout.engine.statement import Numbers, partition_rows
from tieout.engine.summaries import counts_of, misread_classes, told_latency, told_standing
from tieout.engine.suspicions import Topics, suspecting, suspicions_in
from tieout.engine.undecided import orders_undecided
from tieout.model import Ledger
from tieout.verdicts import severities

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

HANDED_OUT: Final = (
    "partition_counts", "balance", "range_bounds", "tally", "topic_suspicions", "hash_forms", "common_hashes",
    "undecided_orders", "latency", "incidents", "breaks_total", "cause_limits",
)  # fmt: skip
"""The tables of few rows that a statement is made of."""


def suspected(scope: Scope, tables: Tables) -> Scope:
    """Return the scope with what the messages make doubtful, and what the log lacks of the window's ranges."""
    if scope.window.offsets and Ledger.LOG in scope.evidence:
        scope = scope.with_lacking(Ledger.LOG, lacking_of_ranges(scope.window, tables["range_bounds"]))
    rows = with_hashes_met_in(scope, tables["topic_suspicions"], tables["common_hashes"])
    forms = _spelled(scope, rows, tables["hash_forms"])
    found = suspicions_in(scope, rows, forms)
    limits = tuple(row["sentence"] for row in tables["cause_limits"])
    if limits:
        found = replace(found, limits=limits)
    return suspecting(scope, found)


def numbers_of(scope: Scope, tables: Tables) -> Numbers:
    """Return the numbers of a statement, given the scope of `suspected`."""
    balance = tables["balance"] if Ledger.LOG in scope.evidence else None
    classes, flags, unconfirmed = counts_of(_confirmed(scope, tables["tally"]))
    return Numbers(
        partitions=partition_rows(tables["partition_counts"], balance, fans_out=fans_out(scope)),
        classes=classes,
        flags=flags,
        unconfirmed=unconfirmed,
        undecided=orders_undecided(tables["undecided_orders"]),
        latency=_latency(tables["latency"]),
        incidents=_incidents(scope, tables["incidents"]),
        breaks_total=sum(row["breaks"] for row in tables["breaks_total"]),
    )


def _spelled(scope: Scope, rows: Iterable[Row], forms: Iterable[Row]) -> list[Spelled]:
    names = [name for name in HASHES if any(row[name] for row in rows)]
    found: dict[str, dict[Ledger, dict[str | None, Forms]]] = {name: {} for name in names}
    for row in forms:
        ledger = Ledger(row["ledger"])
        if row["name"] in found and scope.has(ledger, HASHES[row["name"]]):
            kept = {name: row[name] for name in Forms.__dataclass_fields__ if name != "lengths"}
            found[row["name"]].setdefault(ledger, {})[row["topic"]] = Forms(
                lengths=frozenset(row["lengths"]), **kept
            )
    return [Spelled(name, by_ledger) for name, by_ledger in found.items()]


def _confirmed(scope: Scope, tally: Iterable[Row]) -> Iterable[dict[str, Any]]:
    """Yield rows of the tally with what the evidence as a whole makes doubtful as well."""
    told, misread = told_standing(scope), misread_classes(scope)
    for row in tally:
        held = set(row["held"])
        doubtful = held & (_doubted_in(scope.suspicions.doubted, row["topic"]) | misread)
        if row["stands_alone"] and not (row["is_covered"] and row["class"] in told):
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
    micros = None if row["micros"] is None else Decimal(row["micros"])
    return told_latency({"count": row["count"], "micros": micros, "p": (p50, p95, p99), "max": greatest})


def _incidents(scope: Scope, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the statement's incidents with their severity: those with the flag PHANTOM_ABORTED have its class's."""
    loudness = {name: severity.value for name, severity in severities(scope.contract).items()}
    found = []
    for row in rows:
        name = "PHANTOM_ABORTED" if row["is_aborted_effect"] else row["class"]
        told = {key: value for key, value in row.items() if key != "is_aborted_effect"}
        found.append({**told, "severity": loudness.get(name)})
    return found
