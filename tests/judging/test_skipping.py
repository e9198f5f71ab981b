"""Statements that find nothing but empty tables are left out, views of few rows are tables: nothing is different."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from tests.engine.histories import load_cases
from tests.engine.marking import Batch, batches, marked_window, rows_together
from tests.judging import kernel
from tests.judging.kernel import PROGRAM, is_of_one_topic_each, scope_of
from tools.nothing import FILE, empty_tables

from tieout.engine.judging.bucket import Program
from tieout.engine.judging.canonical import TABLES
from tieout.engine.judging.skipping import steps_of

EVERY = 20 if os.environ.get("TIEOUT_GOLDEN") == "all" else 40
"""Of how many buckets of golden histories one is tried: of fewer where `make fuzz` sets TIEOUT_GOLDEN."""
BATCHES = batches([case for case in load_cases() if is_of_one_topic_each(case)])[::EVERY]
STEPS = steps_of(PROGRAM, frozenset({*TABLES, "deleted_topics"}))


def every_statement(connection: duckdb.DuckDBPyConnection, steps: Program) -> None:
    """Run the files of a program with nothing left out."""
    for _, text in steps:
        connection.execute(text)


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: str(batch.histories[0]))
def test_what_is_left_out_would_have_found_nothing(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tables and breaks are handed out where every statement runs."""
    first, (rows, present) = batch.histories[0], rows_together(batch.histories)
    window = marked_window(first.window, len(batch.histories))
    scope = replace(scope_of(first, rows, present), window=window)
    found = in_order(*kernel.judged(scope, rows))

    monkeypatch.setattr(kernel, "run", every_statement)

    assert found == in_order(*kernel.judged(scope, rows))


def in_order(tables: dict[str, list[dict[str, Any]]], breaks: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the rows of tables and the breaks as text, in an order of their own.

    A break's number only identifies it in its bucket: it is drawn in any order.
    """
    breaks = [{name: value for name, value in row.items() if name != "number"} for row in breaks]
    return {name: sorted(map(str, rows)) for name, rows in {**tables, "breaks": breaks}.items()}


def test_the_rounds_make_of_nothing_what_the_file_says() -> None:
    """Else `python -m tools.nothing` has to be run."""
    assert FILE.read_text(encoding="utf-8") == empty_tables()


def test_of_an_empty_window_hardly_anything_is_planned() -> None:
    """Nothing is asked for but what has rows of its own; a window's ranges of offsets are rows as well."""
    always = [
        step for step in STEPS if step.instead is None and not step.text.strip().startswith("CREATE MACRO")
    ]
    of_variables = [step.file for step in STEPS if "variables" in step.reads]

    assert len(STEPS) > 600
    assert len([step for step in always if step.text.split()[0] not in ("DROP", "TRUNCATE")]) < 30
    assert {"counts/20_judged_ranges.sql"} <= set(of_variables)


def test_a_statement_of_an_unknown_kind_is_refused() -> None:
    """Nobody would know what it fills: a table that it filled would look empty."""
    with pytest.raises(ValueError, match="expected a statement of a known kind, found 'COPY a FROM b'"):
        steps_of((("x.sql", "COPY a FROM b;\n"),), frozenset({"a"}))
