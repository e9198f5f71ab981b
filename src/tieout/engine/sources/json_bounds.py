"""What of a JSON document is more than a line of evidence may have: levels, spellings of one key, halves of characters.

Spark's own bounds are no bounds of a run's: an object of some hundred levels becomes a type of as many, which overflows
the stack of whoever looks at it, and that ends Java. So such lines are told apart by their text, before a parser has
them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

MOST_LEVELS: Final = 64
"""How many objects and arrays may lie within each other."""
MOST_SPELLINGS: Final = 8
"""In how many spellings, by capital letters, a key may stand in one source: each is a column of Spark's."""
TOO_DEEP: Final = f"expected objects and arrays of at most {MOST_LEVELS} levels, found more"
HALF: Final = "half of a surrogate pair is no character: two such texts would be read as one"
TOO_MANY: Final = f"expected a key in at most {MOST_SPELLINGS} spellings, found more"

# Anchored, and never given back: each character is looked at once.
_MANY_BRACKETS: Final = rf"^(?s)(?:[^\[{{]*+[\[{{]){{{MOST_LEVELS + 1}}}"
_ESCAPED: Final = r"(?s)\\."
_TEXTS: Final = r'"[^"]*+"'
_NO_BRACKETS: Final = r"[^\[\]{}]++"
_INNERMOST: Final = r"\{\}|\[\]"
_BACKSLASHES: Final = r"\\\\"
_PAIR: Final = r"(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
_ANY_HALF: Final = r"(?i)\\ud[89a-f][0-9a-f]{2}"


def is_deep(text: Column) -> Column:
    """Return whether a document has more than `MOST_LEVELS`; one whose brackets do not close may be said to.

    Few lines have as many brackets as that, and only their levels are counted, by taking the innermost away in turn.
    """
    plain = F.regexp_replace(F.regexp_replace(text, _ESCAPED, ""), _TEXTS, "")
    brackets = F.regexp_replace(plain, _NO_BRACKETS, "")
    levels = F.sequence(F.lit(1), F.lit(MOST_LEVELS))
    left = F.aggregate(levels, brackets, lambda found, _: F.regexp_replace(found, _INNERMOST, ""))
    return F.when(text.rlike(_MANY_BRACKETS), left != "").otherwise(F.lit(False))


def has_half(text: Column) -> Column:
    r"""Return whether the document has an escape such as `\ud800` without its other half.

    Java writes each of these as the same question mark: ids that differ in them alone would be one.
    """
    pairs = F.regexp_replace(F.regexp_replace(text, _BACKSLASHES, ""), _PAIR, "")
    is_there = F.contains(text, F.lit("\\ud")) | F.contains(text, F.lit("\\uD"))
    return F.when(is_there, pairs.rlike(_ANY_HALF)).otherwise(F.lit(False))


def has_any_key(text: Column, names: Iterable[str]) -> Column:
    """Return whether the object has one of these very keys, however they are escaped."""
    keys = F.json_object_keys(text)
    return F.coalesce(F.exists(keys, lambda key: key.isin(*names)), F.lit(False))


def bounded(fields: Iterable[StructField]) -> tuple[list[StructField], list[str]]:
    """Return the fields, of each name the first `MOST_SPELLINGS`, and the names of the others.

    >>> from pyspark.sql.types import StringType
    >>> spelled = ["id", "ID", *(f"{'k' * n}{'K' * (9 - n)}" for n in range(9))]
    >>> kept, more = bounded(StructField(name, StringType()) for name in spelled)
    >>> len(kept), more
    (10, ['kkkkkkkkK'])
    """
    spelled: dict[str, list[StructField]] = defaultdict(list)
    for field in fields:
        spelled[field.name.lower()].append(field)
    kept = [field for alike in spelled.values() for field in alike[:MOST_SPELLINGS]]
    return kept, [field.name for alike in spelled.values() for field in alike[MOST_SPELLINGS:]]
