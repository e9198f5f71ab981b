"""Writes the rounds' results for empty input as empty tables: `src/tieout/engine/judging/rounds/nothing.sql`.

`python -m tools.nothing` runs the rounds on empty tables. The file has the columns of every table and view that is
then empty; a table that has rows even then is left out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tieout.contracts import load_contract
from tieout.engine.judging.breaks import BREAKS
from tieout.engine.judging.bucket import ROUNDS, Limits, connected, prepared, program
from tieout.engine.judging.lifetimes import MADE, parsed
from tieout.engine.judging.skipping import NOTHING
from tieout.engine.judging.terms import terms_of
from tieout.engine.scope import Scope
from tieout.engine.statement.numbers import HANDED_OUT, TRACED
from tieout.model import Window

_ROOT: Final = Path(__file__).resolve().parents[1]
FILE: Final = _ROOT / "src/tieout/engine/judging/rounds" / NOTHING
_CONTRACT: Final = _ROOT / "examples/clean_transactional/contract.yml"
_HEAD: Final = """\
-- What the rounds make of nothing: each table and view that is empty where all that it asks for is, with its columns.
-- Written by `python -m tools.nothing`. A statement all of whose tables are empty is left out, and this run instead.
"""


def empty_tables() -> str:
    """Return the text of the file, one statement per line, in the order of the rounds."""
    files = program((*HANDED_OUT, *TRACED, BREAKS), (*ROUNDS, "trace"))
    _, statements = parsed([text for _, text in files])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    window = Window(start, start + timedelta(hours=1))
    lines = []
    with connected(Limits()) as connection:
        keywords = {
            keyword
            for (keyword,) in connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
        }
        prepared(connection, terms_of(Scope(load_contract(_CONTRACT), window, {})))
        for statement in filter(str.strip, statements):
            if statement.strip().startswith("DROP"):
                continue
            connection.execute(statement)
            match = MADE.match(statement)
            if not match or match[1] not in ("TABLE", "VIEW"):
                continue
            name = match[3]
            columns = connection.execute(f"DESCRIBE {name}").fetchall()
            if connection.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,):  # noqa: S608 - names of this package
                definitions = ", ".join(
                    f'"{column}" {kind}' if column in keywords else f"{column} {kind}"
                    for column, kind, *_ in columns
                )
                lines.append(f"CREATE TABLE {name} ({definitions});")
    return _HEAD + "\n".join(dict.fromkeys(lines)) + "\n"


if __name__ == "__main__":
    FILE.write_text(empty_tables(), encoding="utf-8")
