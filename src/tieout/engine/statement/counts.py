"""The counts of a statement: per topic partition what was sent, its dispositions, and the identities they obey.

Docs: docs/reference/taxonomy.md, section 5; shape: docs/reference/contract.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tieout.engine.statement.undecided import Undecided
from tieout.model import OFFSET_STATES


@dataclass(frozen=True)
class Numbers:
    """The counts of a window: the statement without contract and evidence.

    `unaccounted` are the rows of `counts/35_unaccounted.sql`. `incidents` are those that the statement keeps.
    """

    partitions: list[dict[str, Any]]
    unaccounted: Sequence[Mapping[str, Any]]
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
"""With a fan-out: how many effects the window's accepted messages must have, do have, and lack."""
POSSIBLE_EFFECTS: Final = "possible_effects"
"""The uncertain rows of messages that may have an effect too many; left out where it is zero."""
COUNTS: Final = (*ROW_COUNTS, *ACCEPTANCES, *DISPOSITION_COUNTS, *EFFECT_COUNTS)


def partition_rows(
    counted: Iterable[Any], balance: Iterable[Any] | None, *, fans_out: bool
) -> list[dict[str, Any]]:
    """Return the statement's `partitions`, ordered, with the offset balance where the log is declared.

    Rows give their columns by name.
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
        sparse = {"is_sparse": True} if row["is_sparse"] else {}
        entry["offsets"] = {"from": row["from"], "to": row["to"], **sparse, **states}
        entry["unexplained"] = row["unexplained"]
    for entry in rows.values():
        entry.setdefault("offsets", None)
        entry.setdefault("unexplained", 0)
    return [
        rows[place]
        for place in sorted(rows, key=lambda p: (p[0] is None, p[0] or "", p[1] is None, p[1] or 0))
    ]


def identity_errors(partitions: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each identity of section 5 that a partition's numbers violate.

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
    if offsets is None or offsets.get("is_sparse"):
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
