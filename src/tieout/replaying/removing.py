"""SQL that removes an output's surplus rows: all but the first of each message named.

It names messages, not rows, and always keeps the first row. So running it again, or after somebody else removed the
rows, removes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tieout.contracts import Contract, ReplayOutput
from tieout.model import Identity
from tieout.replaying.choosing import Removal

_MESSAGES_PER_STATEMENT: Final = 500
"""How many messages one statement names."""


def reason_without_sql(contract: Contract) -> str | None:
    """Return why no SQL can be written, or None where it can."""
    if contract.identity is not Identity.MESSAGE_ID:
        return f"rows are told apart by {contract.identity}, which SQL of this plan cannot name"
    if contract.replay is None or contract.replay.output is None:
        return "the contract's replay.output does not name the output's table and columns"
    return None


def removal_sql(output: ReplayOutput, removals: Iterable[Removal]) -> str:
    """Return PostgreSQL statements, in one transaction, that keep the first row of each message and remove the others.

    The first is the one with the lowest value of the column `order`.
    """
    ids = sorted({str(removal.message_id) for removal in removals if removal.message_id is not None})
    statements = [_statement(output, part) for part in _parts(ids)]
    return "\n".join(
        [
            f"-- Removes all but the first row of {len(ids)} messages of {output.table}; again, it changes nothing.",
            "BEGIN;",
            "SET LOCAL standard_conforming_strings = on;",
            *statements,
            "COMMIT;",
            "",
        ]
    )


def _statement(output: ReplayOutput, ids: list[str]) -> str:
    table = ".".join(f'"{part}"' for part in output.table.split("."))
    named = ",\n    ".join(_literal(one) for one in ids)
    # Names are checked by the contract's model, values are quoted by `_literal`.
    return (
        "WITH copies AS (\n"  # noqa: S608 - a file for people to read and run
        "  SELECT tableoid AS place, ctid AS line,\n"
        f'    row_number() OVER (PARTITION BY "{output.identity}" ORDER BY "{output.order}", tableoid, ctid) AS copy\n'
        f'  FROM {table} WHERE "{output.identity}"::text IN (\n    {named})\n'
        ")\n"
        f"DELETE FROM {table} WHERE (tableoid, ctid) IN (SELECT place, line FROM copies WHERE copy > 1);"
    )


def _parts(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _MESSAGES_PER_STATEMENT):
        yield ids[start : start + _MESSAGES_PER_STATEMENT]


def _literal(text: str) -> str:
    """Return a string literal; zero bytes, which PostgreSQL's text never holds, match nothing.

    >>> print(_literal("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''").replace("\x00", "\N{REPLACEMENT CHARACTER}") + "'"
