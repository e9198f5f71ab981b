"""Skips the statements of the rounds whose tables are all empty, and plans each view once where rows are few.

DuckDB plans a statement in two milliseconds, whatever its rows, and the rounds have five hundred statements. Few
windows have rows of every ledger, and with clean messages only, no rows are left. A table that a skipped statement
would make is created empty, with its columns in `rounds/nothing.sql`: `python -m tools.nothing` writes that file,
without tables that have rows even without evidence. A view is planned again by each statement that reads it: of few
rows it is a table instead, which takes a third off the time of a small bucket. Docs: DuckDB, "CREATE TABLE", "CREATE
VIEW".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from tieout.engine.judging.lifetimes import MADE, named, parsed, reached, references_in

NOTHING: Final = "nothing.sql"
VARIABLES: Final = "variables"
"""A pseudo table for the variables that a statement makes rows of: they are never known to be empty."""
_UNNESTED: Final = re.compile(r"\bunnest\(getvariable\(")
_FILLS: Final = re.compile(r"\s*(?:PREPARE\s+\w+\s+AS\s+)?INSERT\s+INTO\s+(\w+)")
_CHANGES: Final = re.compile(
    r"\s*(?:INSERT\s+INTO|UPDATE|TRUNCATE|CREATE(?:\s+OR\s+REPLACE)?\s+TABLE)\s+(\w+)"
)
_EXECUTES: Final = re.compile(r"\s*EXECUTE\s+(\w+)")
_ALWAYS: Final = ("CREATE MACRO", "PREPARE", "DROP", "TRUNCATE", "SET")
_VIEW: Final = re.compile(r"^CREATE VIEW (\w+)", re.MULTILINE)
_EMPTY: Final = re.compile(r"CREATE TABLE (\w+) (\(.*\));")


@dataclass(frozen=True)
class Step:
    """A statement of a file: it `fills` a table with rows if any of the tables that it `reads` has some.

    Where none has, `instead` is run; None where it runs always.
    """

    file: str
    text: str
    fills: str | None = None
    reads: frozenset[str] = frozenset()
    instead: str | None = None


@lru_cache(maxsize=8)
def with_tables(
    program: tuple[tuple[str, str], ...], existing: frozenset[str]
) -> tuple[tuple[str, str], ...]:
    r"""Return a program with its views as tables, but for those of which a later statement changes what they read.

    Such a view has other rows afterwards; `existing` are the tables that exist before.

    >>> with_tables((("x", "CREATE VIEW b AS FROM a;\nCREATE VIEW d AS FROM c;\nTRUNCATE c"),), frozenset("ac"))
    (('x', 'CREATE TABLE b AS FROM a;\nCREATE VIEW d AS FROM c;\nTRUNCATE c'),)
    >>> with_tables((("x", "CREATE VIEW b AS FROM a;\nCREATE OR REPLACE TABLE a AS FROM c"),), frozenset("ac"))[0][1]
    'CREATE VIEW b AS FROM a;\nCREATE OR REPLACE TABLE a AS FROM c'
    """
    made, statements = parsed([text for _, text in program])
    references = references_in(statements, {*made, *existing})
    targets = _targets(statements)
    last: dict[str, int] = {}
    for place, one in enumerate(statements):
        executed, changed = _EXECUTES.match(one), _CHANGES.match(one)
        if executed or changed:
            last[targets[executed[1]] if executed else changed[1]] = place  # type: ignore[index]
    steady = {
        match[3]
        for place, one in enumerate(statements)
        if (match := MADE.match(one)) and match[1] == "VIEW"
        if all(last.get(table, -1) < place for table in reached([match[3]], references))
    }
    return tuple(
        (
            file,
            _VIEW.sub(lambda found: f"CREATE {'TABLE' if found[1] in steady else 'VIEW'} {found[1]}", text),
        )
        for file, text in program
    )


@lru_cache(maxsize=8)
def steps_of(program: tuple[tuple[str, str], ...], existing: frozenset[str]) -> tuple[Step, ...]:
    r"""Return the statements of SQL files, by name with their text; `existing` are the tables that exist before.

    Cached for all buckets that a process judges with the same files.

    Raises:
        ValueError: for a statement of a kind that no round has yet.

    >>> files = (("a", "CREATE TABLE broken_places AS FROM b;\nINSERT INTO c FROM b"),)
    >>> steps = steps_of(files, frozenset({"b", "c"}))
    >>> [(step.fills, sorted(step.reads), step.instead) for step in steps]  # doctest: +ELLIPSIS
    [('broken_places', ['b'], 'CREATE OR REPLACE TABLE broken_places (...)'), ('c', ['b'], '')]
    """
    made, statements = parsed([text for _, text in program])
    names = {*made, *existing}
    references = references_in(statements, names)
    for one in filter(_UNNESTED.search, statements):
        if (match := MADE.match(one)) and match[1] != "TABLE":
            references[match[3]].add(VARIABLES)
    tables = {VARIABLES} | {name for name in names if made.get(name, "TABLE") == "TABLE"}
    targets = _targets(statements)
    return tuple(
        _step(file, one, names, references, tables, targets)
        for file, text in program
        for one in filter(str.strip, parsed([text])[1])
    )


def _targets(statements: Collection[str]) -> dict[str, str]:
    """Return the table that each prepared statement fills."""
    return {
        match[3]: _FILLS.match(one)[1]  # type: ignore[index]
        for one in statements
        if (match := MADE.match(one)) and match[2]
    }


def _step(
    file: str,
    text: str,
    names: Collection[str],
    references: Mapping[str, Collection[str]],
    tables: Set[str],
    targets: Mapping[str, str],
) -> Step:
    def reads(sql: str) -> frozenset[str]:
        found = named(sql, names) | ({VARIABLES} if _UNNESTED.search(sql) else set())
        return frozenset(reached(found, references)) & tables

    made, filled, executed = MADE.match(text), _FILLS.match(text), _EXECUTES.match(text)
    if made and made[1] in ("TABLE", "VIEW"):
        name, is_filled = made[3], made[1] == "TABLE" and " AS" in text
        sources = reads(text[made.end() :])
        columns = empty().get(name) if sources and (is_filled or made[1] == "VIEW") else None
        instead = columns and f"CREATE OR REPLACE TABLE {name} {columns}"
        return Step(file, text, name if is_filled else None, sources, instead)
    if executed:
        return Step(file, text, targets[executed[1]], reads(text), "")
    if filled and not made:
        return Step(file, text, filled[1], reads(text[filled.end() :]), "")
    if text.strip().startswith("UPDATE"):
        return Step(file, text, None, reads(text), "")
    if not text.strip().startswith(_ALWAYS):
        raise ValueError(f"{file}: expected a statement of a known kind, found {text.strip()[:60]!r}")
    return Step(file, text)


@cache
def empty() -> Mapping[str, str]:
    """Return the columns, with their types, of each table and view that the rounds leave empty without evidence."""
    text = (files("tieout.engine.judging") / "rounds" / NOTHING).read_text(encoding="utf-8")
    return dict(_EMPTY.findall(text))
