"""The statement: per topic partition what was sent, what became of it, and that it all adds up.

Docs: docs/reference/taxonomy.md, section 5; shape: docs/reference/contract.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.multiplicity import expected_effects, fans_out, missing_effects
from tieout.engine.scope import Scope
from tieout.engine.undecided import Undecided
from tieout.model import OFFSET_STATES, BreakClass


@dataclass(frozen=True)
class Numbers:
    """What is counted of a window, whichever way: what the statement says beside contract and evidence.

    `incidents` are those that the statement keeps.
    """

    partitions: list[dict[str, Any]]
    classes: dict[str, int]
    flags: dict[str, int]
    unconfirmed: dict[str, int]
    undecided: Undecided
    latency: dict[str, Any]
    incidents: list[dict[str, Any]]
    breaks_total: int


ROW_COUNTS: Final = (
    "attempts",
    "acked_attempts",
    "failed_attempts",
    "unknown_attempts",
    "messages",
    "resends",
)
ACCEPTANCES: Final = ("accepted", "unproven", "failed")
DISPOSITION_COUNTS: Final = (
    "delivered", "filtered", "dead_lettered", "compacted", "lost", "in_flight", "unverifiable",
)  # fmt: skip
EFFECT_COUNTS: Final = (
    "effects",
    "first_effects",
    "further_effects",
    "phantom_effects",
    "unverifiable_effects",
)
FAN_OUT_COUNTS: Final = ("expected_effects", "met_effects", "missing_effects")
"""Where the contract declares a fan-out: the effects that the window's accepted messages must have, have, and lack."""
POSSIBLE_EFFECTS: Final = "possible_effects"
"""The uncertain rows of messages that may have an effect too many; it stands only where there are some."""
COUNTS: Final = (*ROW_COUNTS, *ACCEPTANCES, *DISPOSITION_COUNTS, *EFFECT_COUNTS)


def partition_counts(scope: Scope, messages: DataFrame) -> DataFrame:
    """Return one row per topic partition with every count of `COUNTS`, over the messages that touch the window."""
    touches = F.col("is_owned") | (F.col("attempts_in") > 0) | (F.col("effect_rows_in") > 0)
    counted = messages.filter(touches).groupBy("topic", "partition").agg(*_counts(scope))
    if scope.beside is None:
        return counted
    both = counted.unionByName(scope.beside.sums.counts, allowMissingColumns=True)
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counted.columns[2:]]
    return both.groupBy("topic", "partition").agg(*sums)


def _counts(scope: Scope) -> list[Column]:
    owned, accepted = F.col("is_owned"), F.col("acceptance") == "accepted"
    counts: dict[str, Column] = {
        "attempts": F.sum("attempts_in"),
        "acked_attempts": F.sum("acked_in"),
        "failed_attempts": F.sum("failed_in"),
        "unknown_attempts": F.sum("unknown_in"),
        "messages": F.count_if(owned),
        "resends": F.sum(F.col("attempts_in") - F.col("is_owned").cast("bigint")),
    }
    for name in ACCEPTANCES:
        counts[name] = F.count_if(owned & (F.col("acceptance") == name))
    for name in DISPOSITION_COUNTS:
        counts[name] = F.count_if(owned & (F.col("disposition") == name))
    starts_here = _first_effects(scope)
    own = F.when(accepted, F.col("effect_rows_in")).otherwise(0)
    is_phantom = F.col("class").isin(BreakClass.PHANTOM_UNKNOWN.value) | (F.col("acceptance") == "failed")
    phantom = F.when(F.coalesce(is_phantom, F.lit(False)), F.col("effect_rows_in")).otherwise(0)
    counts["effects"] = F.sum("effect_rows_in")
    counts["first_effects"] = F.sum(F.coalesce(starts_here, F.lit(0)))
    counts["further_effects"] = F.sum(F.coalesce(own - F.coalesce(starts_here, F.lit(0)), F.lit(0)))
    counts["phantom_effects"] = F.sum(phantom)
    counts["unverifiable_effects"] = F.sum(F.col("effect_rows_in") - F.coalesce(own, F.lit(0)) - phantom)
    is_doubtful = owned & F.array_contains("flags", "POSSIBLE_DUPLICATE")
    counts[POSSIBLE_EFFECTS] = F.sum(F.when(is_doubtful, F.col("possible_effects") + F.col("strays")))
    if fans_out(scope):
        values = (expected_effects(scope), F.col("first_rows"), missing_effects(scope))
        for name, value in zip(FAN_OUT_COUNTS, values, strict=True):
            counts[name] = F.sum(F.when(owned & accepted, value))
    return [F.coalesce(column, F.lit(0)).cast("bigint").alias(name) for name, column in counts.items()]


def _first_effects(scope: Scope) -> Column:
    """Return how many first effects of an accepted message lie in the window; null where nobody attempted it."""
    accepted = F.col("acceptance") == "accepted"
    if fans_out(scope):
        return F.when(accepted, F.col("first_rows_in"))
    is_there = (F.col("effect_rows") > 0) & scope.holds_message(F.col("first_effect_at"))
    return (accepted & is_there).cast("bigint")


def partition_rows(
    counted: Iterable[Any], balance: Iterable[Any] | None, *, fans_out: bool
) -> list[dict[str, Any]]:
    """Return the statement's `partitions`, ordered, with the offset balance where the log is declared.

    Rows are asked for their columns by name.
    """
    rows: dict[tuple[Any, Any], dict[str, Any]] = {}
    names = (*COUNTS, *(FAN_OUT_COUNTS if fans_out else ()))
    for row in counted:
        place = (row["topic"], row["partition"])
        rows[place] = {"topic": place[0], "partition": place[1], **{name: row[name] for name in names}}
        if row[POSSIBLE_EFFECTS]:
            rows[place][POSSIBLE_EFFECTS] = row[POSSIBLE_EFFECTS]
    for row in balance or ():
        place = (row["topic"], row["partition"])
        empty = {"topic": place[0], "partition": place[1], **dict.fromkeys(names, 0)}
        entry = rows.setdefault(place, empty)
        states = {name: row[name] for name in (*OFFSET_STATES, "unexplained")}
        entry["offsets"] = {"from": row["from"], "to": row["to"], **states}
        entry["unexplained"] = row["unexplained"]
    for entry in rows.values():
        entry.setdefault("offsets", None)
        entry.setdefault("unexplained", 0)
    return [
        rows[place]
        for place in sorted(rows, key=lambda p: (p[0] is None, p[0] or "", p[1] is None, p[1] or 0))
    ]


def identity_errors(partitions: list[dict[str, Any]]) -> list[str]:
    """Return each of section 5's identities that a partition's numbers violate, in words; empty where all hold.

    >>> identity_errors([])
    []
    """
    errors = []
    for row in partitions:
        for left, terms in _IDENTITIES.items():
            if left not in row:
                continue
            total = sum(row[term] for term in terms)
            if row[left] != total:
                errors.append(
                    f"{row['topic']}-{row['partition']}: {left} = {row[left]}, but {' + '.join(terms)} = {total}"
                )
        errors += _offset_errors(row)
        errors += [
            f"{row['topic']}-{row['partition']}: {name} = {row[name]} is negative"
            for name in COUNTS
            if row[name] < 0
        ]
    return errors


def _offset_errors(row: Mapping[str, Any]) -> list[str]:
    offsets = row["offsets"]
    if offsets is None:
        return []
    width = offsets["to"] - offsets["from"]
    stated = sum(offsets[name] for name in OFFSET_STATES) + row["unexplained"]
    if width == stated:
        return []
    return [f"{row['topic']}-{row['partition']}: {width} offsets, but their states add up to {stated}"]


_IDENTITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "attempts": ("acked_attempts", "failed_attempts", "unknown_attempts"),
    "messages": ("accepted", "unproven", "failed"),
    "accepted": DISPOSITION_COUNTS,
    "effects": ("first_effects", "further_effects", "phantom_effects", "unverifiable_effects"),
    "expected_effects": ("met_effects", "missing_effects"),
}
