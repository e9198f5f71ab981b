"""Judges golden and random histories with Spark's plans, as each would be judged alone, many in one Spark run.

Names and ids of a history are marked as its own (tests/engine/judging.py). What an id is made from loses the mark
before it is hashed, so every `break_id` and `incident_id` is the one that the history has alone. What one run asks of
all its messages at once is asked of each history by itself: suspicions, clocks, latency, incidents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engine.histories import History
from tests.engine.judging import (
    MARK,
    NO_TOPIC,
    NOW,
    Batch,
    batches,
    doubting,
    narrowed,
    number_of,
    numbered,
    scope_of,
    scope_together,
    suspected_of,
)

from tieout.engine import attempts, breaks, clocks, effects, pairing, reconciling
from tieout.engine.balance import balanced
from tieout.engine.classes.key_order import orders_keys
from tieout.engine.classes.reordered import undecided_across_partitions
from tieout.engine.classifying import classified
from tieout.engine.coverage import with_partitions_shown
from tieout.engine.incarnations import told_apart
from tieout.engine.keys import row_digest
from tieout.engine.matching import Matched, matched
from tieout.engine.materialising import materialised
from tieout.engine.multiplicity import fans_out
from tieout.engine.ranges import with_range_coverage
from tieout.engine.reconciling import assembled, breaks_of, reconciled
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.engine.staging import break_lines
from tieout.engine.statement import Numbers, partition_counts, partition_rows
from tieout.engine.summaries import counts_of, latencies, tallied, told_latency
from tieout.engine.suspicions import suspecting
from tieout.engine.undecided import orders_undecided
from tieout.model import Ledger

_NOWHERE: Final = rf'"topic\\*":\\*"~\d+~{NO_TOPIC}\\*"'
"""A topic that stands for none, also in JSON inside of JSON: in the history's own there is no such field."""
_UNMARKING: Final = rf"(,\\*{_NOWHERE}|\\*{_NOWHERE},?|~\d+~)"
_OF_INCIDENT: Final = ("incident_id", "class", "locus", "cause", "topic", "partition", "severity")


Judged = Iterator[tuple[int, dict[str, Any]]]
"""Of each history its place and its statement, with its `breaks`."""


def judge_alone(spark: SparkSession, histories: Sequence[History]) -> Judged:
    """Yield what a run of its own says of each history: one task judges it with SQL, as it judges small windows."""
    for place, history in enumerate(histories):
        yield place, _judged_alone(spark, history)


def _judged_alone(spark: SparkSession, history: History) -> dict[str, Any]:
    with suited_to(spark, is_small=True, rows=1):
        scope = scope_of(spark, history, history.rows, history.present)
        one = reconciled(scope, run_id="snapshot", now=NOW)
        return one.statement | {"breaks": list(break_lines(one.breaks))}


def judge_together(spark: SparkSession, histories: Sequence[History]) -> Judged:
    """Yield what is said of each history where those that can be judged together are.

    A history is judged alone where a message that names a topic lost it to an effect that names none.
    """
    for batch in batches(histories):
        statements = _of_batch(spark, batch)
        for place, history, statement in zip(batch.places, batch.histories, statements, strict=True):
            yield place, _judged_alone(spark, history) if _is_misplaced(statement) else statement


def _is_misplaced(statement: Mapping[str, Any]) -> bool:
    """Return whether messages that were sent have no topic: in a shared run a row without one has a topic, too."""
    counted = [row["messages"] + row["attempts"] for row in statement["partitions"] if row["topic"] is None]
    proved = [one["evidence"] for one in statement["breaks"] if one["topic"] is None and one["message_id"]]
    return any(counted) or any("produced" in evidence for evidence in proved)


def _of_batch(spark: SparkSession, batch: Batch) -> list[dict[str, Any]]:
    with suited_to(spark, is_small=True, rows=1):
        scope = with_range_coverage(told_apart(scope_together(spark, batch.histories)))
        return _statements(scope, batch.histories)


def _statements(scope: Scope, histories: Sequence[History]) -> list[dict[str, Any]]:
    """Return the whole statement of each history of a scope that holds them together, with its `breaks`."""
    with _as_if_alone() as apart:
        found = matched(scope)
        messages = materialised(classified(scope, found.messages))
        suspected = suspected_of(scope, histories, messages)
        scope = doubting(scope, suspected)
        kept = materialised(breaks_of(scope, messages, found))
        balance = None
        if found.log is not None and found.bounds is not None:
            balance = balanced(scope, found.log, found.keyed[Ledger.LOG], found.bounds, messages).collect()
        counts = partition_counts(scope, messages).collect()
        partitions = partition_rows(counts, balance, fans_out=fans_out(scope))
        tally = tallied(scope, numbered(messages), numbered(kept), "number").collect()
        took = {int(row["number"]): row for row in latencies(numbered(messages), "number").collect()}
        lines = list(break_lines(kept))
        open_orders = undecided_across_partitions(scope, messages).collect() if orders_keys(scope) else []
    statements = []
    for number, history in enumerate(histories):
        own = _ordered(_unmarked([row for row in partitions if number_of(row["topic"]) == number]))
        own_lines = [line for line in lines if number_of(line["break_id"]) == number]
        own_breaks = sorted(map(_unmarked_break, own_lines), key=_in_file)
        classes, flags, unconfirmed = counts_of(row for row in tally if int(row["number"]) == number)
        suspicions = replace(suspected[number], limits=apart.get(number, ()))
        own_scope = with_partitions_shown(suspecting(narrowed(scope, history, number), suspicions), own)
        numbers = Numbers(
            partitions=own,
            classes=classes,
            flags=flags,
            unconfirmed=unconfirmed,
            undecided=orders_undecided(row for row in open_orders if number_of(row["topic"]) == number),
            latency=told_latency(took.get(number)),
            incidents=_incidents(own_breaks),
            breaks_total=len(own_breaks),
        )
        statements.append(_unmarked(assembled(own_scope, numbers)) | {"breaks": own_breaks})
    return statements


@contextmanager
def _as_if_alone() -> Iterator[dict[int, tuple[str, ...]]]:
    """Have ids made without marks, and clocks looked at per history; yields what is found of these, by number."""
    apart: dict[int, tuple[str, ...]] = {}

    def own_clocks(
        scope: Scope, of_messages: DataFrame, messages: DataFrame, found: Matched
    ) -> tuple[DataFrame, tuple[str, ...]]:
        return _with_own_clocks(scope, of_messages, messages, found, apart)

    with (
        patch.object(breaks, "_digest", lambda value: _hashed(F.to_json(value), 32)),
        patch.object(attempts, "row_digest", _row_digest),
        patch.object(effects, "row_digest", _row_digest),
        patch.object(pairing, "row_digest", _row_digest),
        patch.object(reconciling, "with_clocks_apart", own_clocks),
    ):
        yield apart


def _row_digest(columns: Any) -> Column:
    """Return `row_digest` of what the row says without marks, behind its mark."""
    with patch.object(F, "sha2", lambda text, _bits: _hashed(text, 64)):
        return row_digest(columns)


_SHA2: Final = F.sha2


def _hashed(text: Column, digits: int) -> Column:
    """Return the mark of a text, and the first digits of the hash of the text without marks."""
    plain = F.regexp_replace(text, _UNMARKING, "")
    return F.concat(F.regexp_extract(text, r"~\d+~", 0), F.substring(_SHA2(plain, 256), 1, digits))


def _with_own_clocks(
    scope: Scope,
    of_messages: DataFrame,
    messages: DataFrame,
    found: Matched,
    apart: dict[int, tuple[str, ...]],
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return breaks as `with_clocks_apart` does, each held against the clocks of its own history."""
    known = numbered(of_messages)
    comparing = known.filter(F.col("cause").isin(*clocks._COMPARING)).select("number").distinct().collect()
    if not comparing or not clocks.offsets_shown(scope, messages, found):
        return of_messages, ()
    keyed = {ledger: rows.withColumn("number", _number_of_key()) for ledger, rows in found.keyed.items()}
    opened = [known]
    for number in sorted(int(row["number"]) for row in comparing):
        is_own = F.col("number") == str(number)
        theirs = replace(found, keyed={ledger: rows.filter(is_own) for ledger, rows in keyed.items()})
        broken, told = clocks.with_clocks_apart(
            scope, known.filter(is_own), numbered(messages).filter(is_own), theirs
        )
        if told:
            apart[number] = told
            opened = [opened[0].filter(~is_own), *opened[1:], broken]
    whole = opened[0]
    for one in opened[1:]:
        whole = whole.unionByName(one)
    return materialised(whole.drop("number")), ()


def _number_of_key() -> Column:
    return F.regexp_extract("key", MARK.pattern, 1)


def _incidents(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what `incidents_of` says of one history's breaks."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for one in found:
        groups.setdefault(tuple(one[name] for name in _OF_INCIDENT), []).append(one["offset"])
    incidents = []
    for shared, offsets in groups.items():
        *own, severity = shared
        placed = [offset for offset in offsets if offset is not None]
        told = dict(zip(_OF_INCIDENT, own, strict=False))
        told |= {
            "first_position": min(placed, default=None),
            "last_position": max(placed, default=None),
            "breaks": len(offsets),
            "severity": severity,
        }
        incidents.append(told)
    return sorted(incidents, key=lambda one: (-one["breaks"], one["incident_id"]))


def _in_file(line: Mapping[str, Any]) -> tuple[Any, ...]:
    order = ("class", "topic", "partition", "offset", "break_id")
    return tuple((line[name] is not None, line[name] or 0) for name in order)


def _ordered(partitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
        topic, partition = row["topic"], row["partition"]
        return topic is None, topic or "", partition is None, partition or 0

    return sorted(partitions, key=place)


def _unmarked(value: Any, *, is_nested: bool = False) -> Any:
    """Return the value as the history alone has it: without marks, and null where a row named no topic.

    Inside of a break nulls are left out.
    """
    if isinstance(value, list):
        return [_unmarked(one, is_nested=is_nested) for one in value]
    if isinstance(value, dict):
        plain = {
            key: None if key == "topic" and _is_nowhere(one) else _unmarked(one, is_nested=is_nested)
            for key, one in value.items()
        }
        return {key: one for key, one in plain.items() if not is_nested or one is not None}
    return MARK.sub("", value) if isinstance(value, str) else value


def _unmarked_break(line: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = _unmarked(
        {key: line[key] for key in line if not isinstance(line[key], dict | list)}
    )
    nested = {key: _unmarked(line[key], is_nested=True) for key in line if key not in plain}
    return {key: plain[key] if key in plain else nested[key] for key in line}


def _is_nowhere(topic: Any) -> bool:
    return isinstance(topic, str) and MARK.sub("", topic) == NO_TOPIC and topic != NO_TOPIC
