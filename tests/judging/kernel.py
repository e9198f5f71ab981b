"""Judges histories with the SQL of the rounds alone, without Spark, and returns statements in the oracle's shape.

Histories that share all but their rows are judged in one bucket, marked as in `tests.engine.marking`; by default each
is judged by itself, as a run does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from tests.engine.histories import History
from tests.engine.marking import (
    MARK,
    batches,
    coverage_for,
    marked_window,
    narrowed,
    number_of,
    rows_together,
    unmarked,
)

from tieout.engine.evidence import Evidence
from tieout.engine.judging.breaks import BREAK_COLUMNS, ORDER
from tieout.engine.judging.bucket import Limits, Program, appended, connected, prepared, program, run
from tieout.engine.judging.terms import naive, terms_of
from tieout.engine.ledger import SCHEMAS
from tieout.engine.reconciling import assembled
from tieout.engine.scope import Scope
from tieout.engine.statement.coverage import with_partitions_shown
from tieout.engine.statement.numbers import HANDED_OUT, numbers_of, suspected
from tieout.model import Ledger
from tieout.verdicts import severity_of_break

_ARROW: Final = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us"),
    "array<struct<topic:string,partition:int>>": pa.list_(
        pa.struct([("topic", pa.string()), ("partition", pa.int32())])
    ),
}
PROGRAM: Final = program((*HANDED_OUT, "proven_breaks"))
_OF_ALL: Final = frozenset({"latency", "incidents", "breaks_total", "breaks_truncated"})
"""Keys of a statement that are not split by history."""
LIMITS: Final = Limits(memory_bytes=1 << 30, threads=1)


def kernel_statement(history: History, limits: Limits = LIMITS, steps: Program = PROGRAM) -> dict[str, Any]:
    """Return the statement of one history, with its `breaks` as they stand in `breaks.jsonl`."""
    return scope_statement(scope_of(history, history.rows, history.present), history.rows, limits, steps)


def scope_statement(
    scope: Scope,
    rows: Mapping[Ledger, list[dict[str, Any]]],
    limits: Limits = LIMITS,
    steps: Program = PROGRAM,
) -> dict[str, Any]:
    """Return the statement of these rows under a scope of `scope_of`."""
    tables, breaks = judged(scope, rows, limits, steps)
    return _statement(scope, tables, breaks)


def kernel_lines(history: History) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the statement of one history, and its breaks as lines of `breaks.jsonl`, in their order."""
    statement = kernel_statement(history)
    breaks = sorted(
        statement.pop("breaks"), key=lambda row: [(row[name] is not None, row[name]) for name in ORDER]
    )
    return statement, [
        {name: row[name] for name in BREAK_COLUMNS} | {"evidence": _without_nulls(row["evidence"])}
        for row in breaks
    ]


def _without_nulls(value: Any) -> Any:
    """Return a value without the keys whose values are null, however deep they lie."""
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def kernel_statements(
    histories: Sequence[History], limits: Limits = LIMITS, steps: Program = PROGRAM
) -> list[dict[str, Any]]:
    """Return the statement of each history; those that share all but their rows are judged in one bucket."""
    found: dict[int, dict[str, Any]] = {}
    for batch in batches(histories):
        found.update(zip(batch.places, _together(batch.histories, limits, steps), strict=True))
    return [found[place] for place in range(len(histories))]


def is_of_one_topic_each(history: History) -> bool:
    """Return whether no topic of the history was created anew under its name."""
    ids: dict[Any, set[Any]] = {}
    for rows in history.rows.values():
        for row in rows:
            if row.get("topic") is not None and row.get("topic_id") is not None:
                ids.setdefault(row["topic"], set()).add(row["topic_id"])
    return all(len(found) < 2 for found in ids.values())


def judged(
    scope: Scope,
    rows: Mapping[Ledger, Iterable[Mapping[str, Any]]],
    limits: Limits = LIMITS,
    steps: Program = PROGRAM,
) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return the small tables that the rounds hand out, and the breaks."""
    with connected(limits) as connection:
        prepared(connection, terms_of(scope))
        for ledger, found in rows.items():
            appended(connection, f"evidence_{ledger.value}", arrow_of(ledger, found))
        run(connection, steps)
        tables = {name: connection.table(name).to_arrow_table().to_pylist() for name in HANDED_OUT}
        breaks = connection.table("proven_breaks").to_arrow_table().to_pylist()
    return tables, breaks


def scope_of(
    history: History, rows: Mapping[Ledger, list[dict[str, Any]]], present: Mapping[Ledger, frozenset[str]]
) -> Scope:
    """Return the scope of a history without its rows, for which nothing here asks Spark."""
    evidence = {
        ledger: Evidence(
            ledger=ledger,
            rows=cast(DataFrame, None),
            present=present.get(ledger, frozenset()),
            coverage=coverage_for(ledger, history.coverage.get(ledger), rows.get(ledger, [])),
        )
        for ledger in history.contract.ledgers
    }
    return Scope(history.contract, history.window, evidence)


def arrow_of(ledger: Ledger, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return canonical rows as Arrow, times in UTC without their zone."""
    fields = [pa.field(one.name, _ARROW[one.dataType.simpleString()]) for one in SCHEMAS[ledger]]
    plain = [
        {name: naive(value) if isinstance(value, datetime) else value for name, value in row.items()}
        for row in rows
    ]
    return pa.Table.from_pylist(plain, schema=pa.schema(fields))


def _together(histories: Sequence[History], limits: Limits, steps: Program) -> list[dict[str, Any]]:
    first, (marked, present) = histories[0], rows_together(histories)
    scope = scope_of(first, marked, present)
    scope = replace(scope, window=marked_window(first.window, len(histories)))
    tables, breaks = judged(scope, marked, limits, steps)
    return statements_by_history(scope, histories, tables, breaks, [None] * len(histories))


def statements_by_history(
    scope: Scope,
    histories: Sequence[History],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    breaks: Sequence[dict[str, Any]],
    clean: Sequence[Any],
) -> list[dict[str, Any]]:
    """Return the statement of each of the histories that a scope holds together, with its own clean messages."""
    statements = []
    for number, history in enumerate(histories):
        own: dict[str, Any] = {
            name: [_plain(row) for row in rows if number_of(row.get("topic")) == number]
            for name, rows in tables.items()
        }
        own |= {name: tables[name] for name in ("latency", "cause_limits", "breaks_total")}
        own |= {"incidents": [], "comparing": []}
        own["common_hashes"] = [
            {"ledger": row["ledger"]} | {side: _named(row[side]) for side in ("sent_topic", "shown_topic")}
            for row in tables["common_hashes"]
            if number_of(row["sent_topic"]) == number
        ]
        its = [unmarked(row) for row in breaks if number_of(_place_of(row)) == number]
        own_breaks = sorted(its, key=lambda row: str(row["break_id"]))
        own_scope = replace(narrowed(scope, history, number), clean=clean[number])
        statement = _statement(own_scope, own, own_breaks)
        statements.append({name: value for name, value in statement.items() if name not in _OF_ALL})
    return statements


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with every name as its history has it."""
    plain = {name: MARK.sub("", value) if isinstance(value, str) else value for name, value in row.items()}
    return plain | unmarked({"topic": row["topic"]})


def _named(topic: str | None) -> str | None:
    named: str | None = unmarked({"topic": topic})["topic"]
    return named


def _place_of(row: Mapping[str, Any]) -> str | None:
    return row["message_id"] or row["topic"] or next((at["topic"] for at in row["positions"] or ()), None)


def _statement(
    scope: Scope, tables: Mapping[str, list[dict[str, Any]]], breaks: list[dict[str, Any]]
) -> dict[str, Any]:
    scope = suspected(scope, tables)
    numbers = numbers_of(scope, tables)
    scope = with_partitions_shown(scope, numbers.partitions, numbers.unaccounted)
    statement = assembled(scope, numbers)
    for row in breaks:
        row["severity"] = severity_of_break(scope.contract, row["class"], row["flags"])
    return statement | {"breaks": [json.loads(json.dumps(row, default=_written)) for row in breaks]}


def _written(value: Any) -> str:
    """Return a time as Spark writes it into JSON."""
    return f"{value.isoformat(timespec='milliseconds')}Z" if isinstance(value, datetime) else str(value)
