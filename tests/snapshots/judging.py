"""Judges golden and random histories with the SQL of the rounds, each in a bucket of its own, two processes at a time.

Histories in which a topic was created anew are told apart by Spark first, as a run does, so they are judged by a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any, Final

from pyspark.sql import SparkSession
from tests.engine.connecting import connected_session
from tests.engine.histories import History
from tests.engine.judging import NOW, scope_of
from tests.judging.kernel import is_of_one_topic_each, kernel_statement

from tieout.engine.judging.breaks import BREAK_COLUMNS
from tieout.engine.reconciling import reconciled
from tieout.engine.session import suited_to
from tieout.engine.staging import break_lines
from tieout.model import POSITION_LEDGERS

_AT_ONCE: Final = 20

Judged = Iterator[tuple[int, dict[str, Any]]]
"""Of each history its place and its statement, with its `breaks`."""

_spark: Final = cache(connected_session)


def judge(histories: Sequence[History]) -> Judged:
    """Yield what a run of its own would say of each history."""
    plain = [place for place, history in enumerate(histories) if is_of_one_topic_each(history)]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("forkserver")) as pool:
        reported = pool.map(_by_sql, [histories[place] for place in plain], chunksize=_AT_ONCE)
        yield from zip(plain, reported, strict=True)
    for place in sorted({*range(len(histories))} - {*plain}):
        yield place, _by_spark(_spark(), histories[place])


def _by_sql(history: History) -> dict[str, Any]:
    """Return the statement of a history with its breaks as they stand in `breaks.jsonl`, in its order."""
    statement = kernel_statement(history)
    ledgers = [ledger.value for ledger in (*history.contract.ledgers, *POSITION_LEDGERS)]
    breaks = [_line(row, ledgers) for row in statement["breaks"]]
    return statement | {"breaks": sorted(breaks, key=_in_file)}


def _line(row: dict[str, Any], ledgers: Sequence[str]) -> dict[str, Any]:
    evidence = {name: rows for name, rows in row["evidence"].items() if name in ledgers and rows is not None}
    plain = {name: row[name] for name in BREAK_COLUMNS}
    return plain | {"positions": _known(row["positions"]), "evidence": _known(evidence)}


def _known(value: Any) -> Any:
    """Return the value without the nulls inside of it."""
    if isinstance(value, dict):
        return {name: _known(one) for name, one in value.items() if one is not None}
    return [_known(one) for one in value] if isinstance(value, list) else value


def _in_file(line: dict[str, Any]) -> tuple[Any, ...]:
    order = ("class", "topic", "partition", "offset", "break_id")
    return tuple((line[name] is not None, line[name] or 0) for name in order)


def _by_spark(spark: SparkSession, history: History) -> dict[str, Any]:
    with suited_to(spark, is_small=True, rows=1):
        scope = scope_of(spark, history, history.rows, history.present)
        one = reconciled(scope, run_id="snapshot", now=NOW)
        return one.statement | {"breaks": list(break_lines(one.breaks))}
