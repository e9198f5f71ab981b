"""Limits of JSON documents in a line of evidence: levels, spellings of one key, halves of surrogate pairs.

Spark's own limits are too high: an object with hundreds of levels becomes a type of the same depth, which overflows the
stack and ends Java. So such lines are found by their text, before they are parsed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

MOST_LEVELS: Final = 64
"""The most nested objects and arrays."""
MOST_SPELLINGS: Final = 8
"""The most spellings of one key, by capital letters, in one source: each is a column of Spark's."""
TOO_DEEP: Final = f"expected objects and arrays of at most {MOST_LEVELS} levels, found more"
HALF_SURROGATE: Final = "half of a surrogate pair is no character: two such texts would be read as one"
TOO_MANY: Final = f"expected a key in at most {MOST_SPELLINGS} spellings, found more"

# Anchored and possessive: each character is matched once.
_MANY_BRACKETS: Final = rf"^(?s)(?:[^\[{{]*+[\[{{]){{{MOST_LEVELS + 1}}}"
_ESCAPED: Final = r"(?s)\\."
_TEXTS: Final = r'"[^"]*+"'
_NO_BRACKETS: Final = r"[^\[\]{}]++"
_INNERMOST: Final = r"\{\}|\[\]"
_BACKSLASHES: Final = r"\\\\"
_SURROGATE_PAIR: Final = r"(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
_ANY_SURROGATE: Final = r"(?i)\\ud[89a-f][0-9a-f]{2}"


def is_deep(text: Column) -> Column:
    """Return whether a document has more than `MOST_LEVELS`; possibly also one whose brackets do not close.

    Only lines with many brackets are checked, by repeatedly removing the innermost pairs.
    """
    structure = F.regexp_replace(F.regexp_replace(text, _ESCAPED, ""), _TEXTS, "")
    brackets = F.regexp_replace(structure, _NO_BRACKETS, "")
    levels = F.sequence(F.lit(1), F.lit(MOST_LEVELS))
    remaining = F.aggregate(
        levels, brackets, lambda unmatched, _: F.regexp_replace(unmatched, _INNERMOST, "")
    )
    return F.when(text.rlike(_MANY_BRACKETS), remaining != "").otherwise(F.lit(False))


def has_half_surrogate(text: Column) -> Column:
    r"""Return whether the document has an escape such as `\ud800` without its other half.

    Java replaces each by the same question mark: ids that differ only in them would become equal.
    """
    without_pairs = F.regexp_replace(F.regexp_replace(text, _BACKSLASHES, ""), _SURROGATE_PAIR, "")
    has_surrogate = F.contains(text, F.lit("\\ud")) | F.contains(text, F.lit("\\uD"))
    return F.when(has_surrogate, without_pairs.rlike(_ANY_SURROGATE)).otherwise(F.lit(False))


def has_any_key(text: Column, names: Iterable[str]) -> Column:
    """Return whether the object has one of these exact keys, with or without escapes."""
    keys = F.json_object_keys(text)
    return F.coalesce(F.exists(keys, lambda key: key.isin(*names)), F.lit(False))


def bounded(fields: Iterable[StructField]) -> tuple[list[StructField], list[str]]:
    """Return the fields, for each name the first `MOST_SPELLINGS`, and the names of the others.

    >>> from pyspark.sql.types import StringType
    >>> spelled = ["id", "ID", *(f"{'k' * n}{'K' * (9 - n)}" for n in range(9))]
    >>> kept, more = bounded(StructField(name, StringType()) for name in spelled)
    >>> len(kept), more
    (10, ['kkkkkkkkK'])
    """
    spelled: dict[str, list[StructField]] = defaultdict(list)
    for field in fields:
        spelled[field.name.lower()].append(field)
    kept = [field for spellings in spelled.values() for field in spellings[:MOST_SPELLINGS]]
    return kept, [field.name for spellings in spelled.values() for field in spellings[MOST_SPELLINGS:]]
