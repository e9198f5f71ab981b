"""The text of `verify.sql`: plain DuckDB, which any later version of Tieout, or none, can run.

It loads the evidence, sets the variables of the run, runs the same rounds, and compares their tables with the statement
and the breaks in its folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any, Final

from tieout.engine.judging.bucket import Program, program
from tieout.engine.judging.canonical import TABLES
from tieout.engine.judging.terms import Terms, type_of
from tieout.engine.statement.numbers import HANDED_OUT

RULES: Final = "-- ==== the rules"
COMPARISON: Final = "-- ==== the comparison"
_HEAD: Final = """\
-- Judges the evidence in this folder again and compares the result with statement.json and breaks.parquet.
-- Run it in this folder with DuckDB {duckdb} or a later version that reads the same SQL: duckdb -bail < verify.sql
-- Its last result says how much was compared, and how much is the same.

"""


def verification(
    tables: Mapping[str, Sequence[str]], terms: Terms, deleted: Iterable[str], steps: Program, duckdb: str
) -> str:
    """Return the text of `verify.sql` for evidence in `evidence/<table>.parquet`, given the columns of each table.

    `duckdb` is the version that judged; the other arguments are its input.
    """
    parts = [_HEAD.format(duckdb=duckdb), "-- ==== the evidence\n"]
    parts += [_table(name) for name in TABLES]
    parts += [_loaded(name, tables[name]) for name in TABLES if name in tables]
    parts.append(
        f"CREATE TABLE deleted_topics AS SELECT unnest({literal([*deleted])}::VARCHAR[]) AS topic;\n"
    )
    parts.append("\n-- ==== the variables of the run\n")
    parts += [f"{_assignment(name, value)};\n" for name, value in terms.values.items()]
    return "".join(parts) + "\n" + rules(steps) + comparison()


def rules(steps: Program) -> str:
    """Return the part of the script with the rounds."""
    return RULES + "\n" + "".join(f"-- {name}\n{text.rstrip()}\n\n" for name, text in steps)


def comparison() -> str:
    """Return the last part of the script, the comparison."""
    text = (files("tieout.engine.bundle") / "comparison.sql").read_text(encoding="utf-8")
    return f"{COMPARISON}\n{text}"


def digest_of_rules(script: str) -> str | None:
    """Return the SHA-256 of the rules and the comparison of a script, None where it has none."""
    _, mark, text = script.partition(RULES + "\n")
    return hashlib.sha256(text.encode()).hexdigest() if mark else None


def rules_digest() -> str:
    """Return the `digest_of_rules` of a script that this version writes."""
    steps = program((*HANDED_OUT, "proven_breaks"))
    text = (rules(steps) + comparison()).removeprefix(RULES + "\n")
    return hashlib.sha256(text.encode()).hexdigest()


def literal(value: Any) -> str:
    """Return a value as SQL: text, number, flag, time in UTC without a zone, duration, list, struct or nothing.

    >>> literal({"topic": "it's", "offset": None})
    "{'topic': 'it''s', 'offset': NULL}"
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(name)}: {literal(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    match value:
        case None:
            text = "NULL"
        case bool():
            text = str(value).lower()
        case int():
            text = str(value)
        case datetime():
            text = f"TIMESTAMP '{value.isoformat(sep=' ', timespec='microseconds')}'"
        case timedelta():
            text = f"to_microseconds({value // timedelta(microseconds=1)})"
        case _:
            text = "'" + str(value).replace("'", "''") + "'"
    return text


def _assignment(name: str, value: Any) -> str:
    kind = type_of(name)
    is_map = kind.startswith("MAP") and value is not None
    return f"SET VARIABLE {name} = CAST({'MAP ' if is_map else ''}{literal(value)} AS {kind})"


def _table(name: str) -> str:
    columns = ", ".join(f'"{column}" {kind}' for column, kind in TABLES[name].items())
    return f"CREATE TABLE {name} ({columns});\n"


def _loaded(name: str, columns: Sequence[str]) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    return f"INSERT INTO {name} ({names}) SELECT {names} FROM 'evidence/{name}.parquet';\n"  # noqa: S608 - names of this package
