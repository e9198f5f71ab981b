"""Finds values that an expression compares with a word, and that differ from it only in capital letters or blanks.

`if(status = 'ok', 'ok', 'failed')` makes a failure of `OK`, and `event = 'send'` leaves out `SEND`: the message counts
as lost, or is not judged. Neither the contract nor the row is known to be wrong, so such a row is faulty. An expression
that names both spellings, or changes the value before the comparison, has said what it means.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tieout.engine.sources.named_columns import NAMED_PATH, QUOTED_TEXT, paths_in, paths_of
from tieout.engine.sources.value_faults import SHOWN_TEXT

_WORD: Final = r"'[^'\\]*'(?!')"
_WORDS: Final = rf"{_WORD}(?:\s*,\s*{_WORD})*"
_EQUAL: Final = r"(?:<=>|<>|!=|==?|IS\s+(?:NOT\s+)?DISTINCT\s+FROM\b)"
_COMPUTED: Final = r"(?<![\w.`])(?<![|+*/%&^~-])(?<![|+*/%&^~-]\s)"
"""Not behind an operator, whose result is compared then, and not within a name."""
_COMPARED: Final = re.compile(
    rf"{_COMPUTED}(?P<path>{NAMED_PATH})\s*(?:{_EQUAL}\s*(?P<one>{_WORD})|(?:NOT\s+)?IN\s*\(\s*(?P<some>{_WORDS})\s*\))|"
    rf"(?P<first>{_WORD})\s*{_EQUAL}\s*(?P<other>{NAMED_PATH})(?!\s*[|+*/%&^~.(-])|"
    rf"\bCASE\s+(?P<cases>{NAMED_PATH})(?P<whens>\s+WHEN\s.*?)\bEND\b",
    re.IGNORECASE | re.DOTALL,
)
_WHEN: Final = re.compile(rf"\bWHEN\s+({_WORD})\s+THEN\b", re.IGNORECASE)
_NULL_TEST: Final = re.compile(rf"({NAMED_PATH})\s+IS\s+(?:NOT\s+)?NULL\b", re.IGNORECASE)
_BLANKS: Final = " \t\r\n\u00a0"
_EXPECTED: Final = "{}: expected {} as the contract writes it, found '"
_ADVICE: Final = (
    "', which differs in capital letters or blanks alone: name both words, such as {} in ('{}', '"
)


def fault_of_spelling(source: DataFrame, text: str, names: Collection[str], place: str) -> Column | None:
    """Return why a row is faulty whose text is a word of the expression in another spelling; None without such words.

    `names` are the source's columns, `place` is what the fault begins with.
    """
    words_of = words_by_path(text, names)
    types = source.select(*map(F.expr, words_of)).schema.fields if words_of else []
    faults = []
    for (path, words), field in zip(words_of.items(), types, strict=True):
        if isinstance(field.dataType, StringType):
            value = F.expr(path)
            plain = value.cast("string")  # without a collation, by which the expression itself compares
            folded = F.lower(F.btrim(plain, F.lit(_BLANKS)))
            known_words = sorted({word.strip(_BLANKS).lower() for word in words})
            is_other = ~value.isin(words) & folded.isin(known_words)
            found = F.substring(plain, 1, SHOWN_TEXT)
            expected = _EXPECTED.format(place, " or ".join(f"'{word}'" for word in words))
            advice = _ADVICE.format(path, words[0])
            reason = F.concat(F.lit(expected), found, F.lit(advice), found, F.lit("')"))
            faults.append(F.when(is_other, reason))
    return F.coalesce(*faults) if faults else None


def words_by_path(text: str, names: Collection[str]) -> dict[str, list[str]]:
    """Return the words that an expression compares each of the source's columns with, or each field of one.

    A column that the expression uses in another way, too, is left out: that may be how it reads other spellings.

    >>> words_by_path("if(st = 'ok' or 'fine' = st, 'ok', 'failed')", ["st"])
    {'st': ['fine', 'ok']}
    >>> words_by_path("case e when 'ack' then 'acked' when 'nack' then 'failed' end", ["e"])
    {'e': ['ack', 'nack']}
    >>> words_by_path("lower(st) = 'ok' and e not in ('a', 'b') and e is not null", ["st", "e"])
    {'e': ['a', 'b']}
    >>> words_by_path("st = 'ok' or st like 'OK%' or a || b = 'x'", ["st", "a", "b"])
    {}
    """
    compared: dict[str, list[str]] = defaultdict(list)
    uses: dict[str, int] = defaultdict(int)
    for path, words in _comparisons(text):
        if paths_in(path, names):
            compared[path.lower()] += words
            uses[path.lower()] += 1
    for found in _NULL_TEST.finditer(text):
        uses[found[1].lower()] += 1
    all_uses = [path.lower() for path in paths_of(text)]
    return {
        path: sorted(set(words))
        for path, words in sorted(compared.items())
        if words and uses[path] >= all_uses.count(path)
    }


def _comparisons(text: str) -> Iterator[tuple[str, list[str]]]:
    for found in _COMPARED.finditer(text):
        if found["cases"] is not None:
            yield found["cases"], _texts(_WHEN.findall(found["whens"]))
        elif found["path"] is not None:
            yield found["path"], _texts(QUOTED_TEXT.findall(found["one"] or found["some"]))
        else:
            yield found["other"], _texts([found["first"]])


def _texts(words: Collection[str]) -> list[str]:
    return [word[1:-1] for word in words]
