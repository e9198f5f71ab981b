"""The last use of each table of the rounds, so that a bucket's memory holds only tables that are still needed.

The rounds make a hundred tables, one after another. The tables that a file names are taken from its text, also through
views, macros and prepared statements, so that no list of them has to be maintained.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

_COMMENT: Final = re.compile(r"--[^\n]*")
_END: Final = re.compile(r";\s*\n")
MADE: Final = re.compile(r"\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?(TABLE|VIEW|MACRO)|(PREPARE))\s+(\w+)")
"""The kind of thing that a statement creates, or PREPARE, and its name."""
_WORD: Final = re.compile(r"\w+")
_READ: Final = ("VIEW", "MACRO")
_BEGINNING: Final = re.compile(r"'(\w+_)' \|\|")
"""The prefix of a name that a macro concatenates with its argument."""


def without_use(
    texts: Sequence[str], existing: Collection[str], handed_out: Collection[str]
) -> list[list[str]]:
    """Return for each SQL text, run in this order, the tables that no later one needs.

    `existing` are tables that exist before, `handed_out` tables and views that are read when all texts have run.

    >>> without_use(["CREATE TABLE b AS FROM a", "CREATE VIEW c AS FROM b", "CREATE TABLE d AS FROM c"], "a", "d")
    [['a'], [], ['b']]
    """
    statements = [parsed([text])[1] for text in texts]
    made, flat = parsed(texts)
    names = {*made, *existing}
    references = references_in(flat, names)
    last: dict[str, int] = {}
    for place, text in enumerate(statements):
        for one in text:
            match = MADE.match(one)
            if match is None or match[1] == "TABLE":
                last |= dict.fromkeys(reached(named(one, names), references), place)
    kept = set(reached(handed_out, references))
    ended: dict[int, list[str]] = defaultdict(list)
    for name in sorted(last.keys() - kept):
        if name in existing or made[name] == "TABLE":
            ended[last[name]].append(name)
    return [ended[place] for place in range(len(texts))]


def left_to(
    before: Sequence[str], after: Sequence[str], existing: Collection[str], handed_out: Collection[str]
) -> tuple[list[str], list[str]]:
    r"""Return what SQL texts that have run leave to later ones: tables, and the statements of views and macros.

    `existing` are tables that exist before all of them, `handed_out` tables and views that are read at the end.

    >>> left_to(["CREATE TABLE b AS FROM a;\nCREATE VIEW c AS FROM b"], ["CREATE TABLE d AS FROM c"], "a", "d")
    (['b'], ['CREATE VIEW c AS FROM b'])
    """
    made, statements = parsed(before)
    later, further = parsed(after)
    names = {*made, *later, *existing}
    references = references_in([*statements, *further], names)
    kept = set(reached({*handed_out, *(name for one in further for name in named(one, names))}, references))
    tables = [name for name in (*existing, *made) if name in kept and made.get(name, "TABLE") == "TABLE"]
    return tables, [
        one for one in statements if (match := MADE.match(one)) and match[1] in _READ and match[3] in kept
    ]


def parsed(texts: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the kind of each thing that the texts create, by name, and their statements."""
    statements = [one for text in texts for one in _END.split(_COMMENT.sub("", text))]
    return {match[3]: match[1] for one in statements if (match := MADE.match(one))}, statements


def references_in(statements: Sequence[str], names: Collection[str]) -> dict[str, set[str]]:
    """Return the names that each view, macro and prepared statement refers to."""
    return {
        match[3]: named(one, names) - {match[3]}
        for one in statements
        if (match := MADE.match(one)) and match[1] != "TABLE"
    }


def named(text: str, names: Collection[str]) -> set[str]:
    """Return the names that occur in a text, whole or by their prefix."""
    beginnings = tuple(_BEGINNING.findall(text))
    begun = {name for name in names if name.startswith(beginnings)} if beginnings else set()
    return begun | ({*_WORD.findall(text)} & set(names))


def reached(names: Collection[str], references: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield the names and all names that views, macros and prepared statements among them refer to."""
    seen, waiting = set(names), [*names]
    while waiting:
        name = waiting.pop()
        yield name
        further = set(references.get(name, ())) - seen
        seen |= further
        waiting += further
