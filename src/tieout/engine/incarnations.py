"""Topics that were deleted and created anew: one name, other records, and offsets that begin at 0 again.

Where the evidence shows more than one `topic_id` of a name, each is a topic of its own from here on, named `topic@id`:
positions, frontiers and bounds never cross. Docs: docs/reference/taxonomy.md, section 7, trap 8, and
docs/reference/interpretations.md, 76. Topic ids: KIP-516, "Topic Identifiers".
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.evidence import Evidence
from tieout.engine.materialising import materialised
from tieout.engine.scope import Scope

_OFFSETS: Final = ("offset", "committed_offset")
_NOTE: Final = (
    "a topic was created anew, and rows at its positions have no topic_id: whose positions is unknown"
)


def told_apart(scope: Scope) -> Scope:
    """Return the scope with every topic that was created anew under a name of its own; mostly the scope itself.

    A row that does not say of which of several topics it is has no position, and its ledger covers nothing: what only
    that position decides stays unverifiable.
    """
    told = [ledger for ledger in scope.evidence if scope.has(ledger, "topic", "topic_id")]
    if not told:
        return scope
    named = [scope.rows(ledger).select("topic", "topic_id").dropna().distinct() for ledger in told]
    ids = F.count_distinct("topic_id")
    again = reduce(DataFrame.unionByName, named).groupBy("topic").agg(ids.alias("ids")).filter("ids > 1")
    recreated = materialised(again.select(F.col("topic").alias("recreated")))
    if recreated.isEmpty():
        return scope
    evidence = {ledger: _named(found, recreated) for ledger, found in scope.evidence.items()}
    return replace(scope, evidence=evidence)


def _named(found: Evidence, recreated: DataFrame) -> Evidence:
    """Return the ledger's evidence with the topics' names of their own."""
    columns = found.rows.columns
    if "topic_id" not in columns:
        return found
    joined = found.rows.join(F.broadcast(recreated), F.col("topic") == F.col("recreated"), how="left")
    is_again, is_told = F.col("recreated").isNotNull(), F.col("topic_id").isNotNull()
    own_name = F.concat("topic", F.lit("@"), "topic_id")
    values: dict[str, Column] = {"topic": F.when(is_again & is_told, own_name).otherwise(F.col("topic"))}
    for name in _OFFSETS:
        if name in columns:
            values[name] = F.when(~is_again | is_told, F.col(name))
    is_placed = reduce(Column.__or__, [F.col(name).isNotNull() for name in _OFFSETS if name in columns])
    is_untold = not joined.filter(is_again & ~is_told & is_placed).isEmpty()
    rows = joined.select(*[values.get(name, F.col(name)).alias(name) for name in columns])
    if not is_untold:
        return replace(found, rows=rows)
    coverage = replace(found.coverage, complete_until=None, notes=(*found.coverage.notes, _NOTE))
    return replace(found, rows=rows, coverage=coverage, may_lack_position=True, may_lack_identity=True)
