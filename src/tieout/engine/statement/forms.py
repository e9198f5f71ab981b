"""Forms of hashes: whether hashes that differ may be of the same content, in another encoding.

Hashes in hex and in base64, or in upper and in lower case, differ in every message and show no corruption.
Docs: docs/reference/taxonomy.md, section 8, 2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.scope import Scope
from tieout.model import BreakClass, Ledger

HASHES: Final = {
    BreakClass.CORRUPTED_VALUE.value: "payload_hash",
    BreakClass.CORRUPTED_KEY.value: "key_hash",
    BreakClass.CORRUPTED_HEADER.value: "header_hash",
}
"""The classes that compare hashes, with the column of the hash."""
_PAIRS: Final = (
    (Ledger.PRODUCED, Ledger.LOG),
    (Ledger.PRODUCED, Ledger.DELIVERED),
    (Ledger.PRODUCED, Ledger.READ),
    (Ledger.LOG, Ledger.DELIVERED),
    (Ledger.LOG, Ledger.READ),
)
_LONGEST: Final = 60


@dataclass(frozen=True)
class Forms:
    """The lengths, cases and alphabets of one topic's hashes in one ledger, with an example.

    `has_plus` and `has_minus` say which of base64's two alphabets shows: `+/` or `-_`.
    """

    lengths: frozenset[int]
    has_lower: bool
    has_upper: bool
    has_hex: bool
    has_other: bool
    has_plus: bool
    has_minus: bool
    example: str

    def joined(self, other: Forms) -> Forms:
        """Return the forms of both sets of hashes."""
        return Forms(
            self.lengths | other.lengths,
            self.has_lower or other.has_lower,
            self.has_upper or other.has_upper,
            self.has_hex or other.has_hex,
            self.has_other or other.has_other,
            self.has_plus or other.has_plus,
            self.has_minus or other.has_minus,
            min(self.example, other.example),
        )

    def differ_from(self, other: Forms) -> bool:
        """Return whether the sets can have no hash in common: by length, by case, or by alphabet."""
        cases = {(self.has_lower, self.has_upper), (other.has_lower, other.has_upper)}
        signs = {(self.has_plus, self.has_minus), (other.has_plus, other.has_minus)}
        one_each = {(True, False), (False, True)}
        is_of_other_alphabet = any(
            one.has_hex and not one.has_other and not two.has_hex
            for one, two in ((self, other), (other, self))
        )
        is_of_other_case = one_each in (cases, signs)
        return not self.lengths & other.lengths or is_of_other_case or is_of_other_alphabet


ByTopic = Mapping[str | None, Forms]
"""The forms of a ledger's hashes by topic."""


@dataclass(frozen=True)
class Spelled:
    """How ledgers write the hashes that a class compares."""

    name: str
    forms: Mapping[Ledger, ByTopic]


@dataclass(frozen=True)
class Reshaped:
    """A class that compares hashes of two forms: its topics, and the `note` for `ledger`, the second one."""

    name: str
    ledger: Ledger
    topics: frozenset[str | None]
    note: str


def reshaped(spelled: Spelled, topics: Collection[str | None]) -> list[Reshaped]:
    """Return where hashes of two forms are compared: everywhere, or in one of the topics.

    Rows that name no topic may be of any.
    """
    differing_forms = []
    for one, other in _PAIRS:
        here, there = spelled.forms.get(one, {}), spelled.forms.get(other, {})
        everywhere = _differing(here.values(), there.values())
        if everywhere is not None:
            note = _note(spelled.name, one, *everywhere)
            differing_forms.append(Reshaped(spelled.name, other, frozenset(topics), note))
            continue
        for topic in sorted({*here} & {*there} - {None}, key=str):
            sides = ([side[name] for name in (topic, None) if name in side] for side in (here, there))
            differing = _differing(*sides)
            if differing is not None:
                note = _note(spelled.name, one, *differing)
                differing_forms.append(Reshaped(spelled.name, other, frozenset({topic}), note))
    return differing_forms


def _differing(here: Collection[Forms], there: Collection[Forms]) -> tuple[Forms, Forms] | None:
    if not here or not there:
        return None
    one, other = reduce(Forms.joined, here), reduce(Forms.joined, there)
    return (one, other) if one.differ_from(other) else None


def _note(name: str, ledger: Ledger, one: Forms, other: Forms) -> str:
    return (
        f"its {HASHES[name]} is written in another form than that of {ledger}: {_short(other.example)} here, "
        f"{_short(one.example)} there; whether {name} is true is not known"
    )


def clean_forms(scope: Scope, ledger: Ledger, name: str) -> dict[str | None, Forms]:
    """Return by topic the forms of a hash in the clean rows of a ledger, which takes a read of them."""
    if scope.clean is None or ledger not in scope.clean.rows:
        return {}
    rows = scope.clean.rows[ledger].select("topic", F.col(name).alias("value"))
    gathered = scope.clean.computed(_gathered(rows.filter(F.col("value").isNotNull())))
    return {row["topic"]: forms_in(row.asDict()) for row in gathered.collect()}


def forms_in(row: Mapping[str, Any]) -> Forms:
    """Return the forms in a row of `hash_forms`."""
    fields = {name: row[name] for name in Forms.__dataclass_fields__}
    return Forms(**fields | {"lengths": frozenset(row["lengths"])})


def _gathered(values: DataFrame) -> DataFrame:
    value = F.col("value")
    is_hex: Column = value.rlike("^[0-9A-Fa-f]+$")
    return values.groupBy("topic").agg(
        F.collect_set(F.length(value)).alias("lengths"),
        F.bool_or(value != F.upper(value)).alias("has_lower"),
        F.bool_or(value != F.lower(value)).alias("has_upper"),
        F.bool_or(is_hex).alias("has_hex"),
        F.bool_or(~is_hex).alias("has_other"),
        F.bool_or(value.rlike("[+/]")).alias("has_plus"),
        F.bool_or(value.rlike("[-_]")).alias("has_minus"),
        F.min(value).alias("example"),
    )


def _short(text: str) -> str:
    return f"'{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}'"
