"""Judges one scope's rows in several buckets, without Spark: what shares a partition or a tie stays together.

Spark cuts by 64 slots of partitions; here each partition and each tie stands for itself, so that there are as many ways
to cut as the rows allow.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.judging.kernel import LIMITS, arrow_of

from tieout.engine.judging.bucket import appended, connected, prepared, run
from tieout.engine.judging.cutting import Tie, ties_of
from tieout.engine.judging.stages import SHARED, left, stages, take
from tieout.engine.judging.terms import terms_of
from tieout.engine.scope import Scope
from tieout.engine.statement.numbers import HANDED_OUT
from tieout.model import Identity, Ledger

Rows = Mapping[Ledger, Sequence[Mapping[str, Any]]]
STAGES = stages(HANDED_OUT, "proven_breaks")


def buckets_of(scope: Scope, rows: Rows, count: int) -> list[dict[Ledger, list[Mapping[str, Any]]]]:
    """Return the rows of each of `count` buckets."""
    ties = ties_of(scope, has_nameless=has_nameless(scope, rows))
    parents: dict[Any, Any] = {}

    def root(node: Any) -> Any:
        parents.setdefault(node, node)
        while parents[node] != node:
            node = parents[node]
        return node

    for ledger, found in rows.items():
        for row in found:
            nodes = [root(node) for node in _nodes(ties, ledger, row)]
            for node in nodes[1:]:
                parents[root(node)] = root(nodes[0])
    buckets: list[dict[Ledger, list[Mapping[str, Any]]]] = [
        {ledger: [] for ledger in rows} for _ in range(count)
    ]
    for ledger, found in rows.items():
        for row in found:
            nodes = list(_nodes(ties, ledger, row))
            if ledger is Ledger.ASSIGNED:
                for bucket in buckets:
                    bucket[ledger].append(row)
            else:
                number = zlib.crc32(repr(root(nodes[0])).encode()) % count if nodes else 0
                buckets[number][ledger].append(row)
    return buckets


def has_nameless(scope: Scope, rows: Rows) -> bool:
    """Return whether some row that shows a payload shows no id."""
    ledgers = (Ledger.LOG, Ledger.READ, Ledger.DELIVERED)
    return scope.contract.identity is Identity.POSITION or any(
        row.get("message_id") is None and row.get("payload_hash") is not None
        for ledger in ledgers
        for row in rows.get(ledger, ())
    )


def judged_in(
    scope: Scope, buckets: Sequence[Rows]
) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return the small tables that the buckets hand out together, and their breaks."""
    first, second, last = STAGES
    halves: list[list[tuple[str, bytes]]] = []
    for bucket in buckets:
        with connected(LIMITS) as connection:
            prepared(connection, terms_of(scope))
            for ledger, rows in bucket.items():
                appended(connection, f"evidence_{ledger.value}", arrow_of(ledger, rows))
            run(connection, first.steps)
            halves.append([*left(connection, first.leaves)])
    shared = [piece for half in halves for piece in half if piece[0] in SHARED]
    counted: list[tuple[str, bytes]] = []
    breaks: list[dict[str, Any]] = []
    for half in halves:
        with connected(LIMITS) as connection:
            prepared(connection, terms_of(scope))
            take(connection, [*[one for one in half if one[0] not in SHARED], *shared])
            run(connection, second.steps)
            breaks += connection.table("proven_breaks").to_arrow_table().to_pylist()
            counted += left(connection, second.leaves)
    with connected(LIMITS) as connection:
        prepared(connection, terms_of(scope))
        take(connection, counted)
        run(connection, last.steps)
        tables = {name: connection.table(name).to_arrow_table().to_pylist() for name in HANDED_OUT}
    return tables, breaks


def _nodes(ties: Mapping[str, Sequence[Tie]], ledger: Ledger, row: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a row's partition and its ties."""
    if row.get("topic") is not None and row.get("partition") is not None:
        yield ("place", row["topic"], row["partition"])
    for tie in ties.get(f"evidence_{ledger.value}", ()):
        if row.get(tie.columns[-1]) is not None and not (
            tie.of_nameless and row.get("message_id") is not None
        ):
            yield (tie.kind, *(row.get(name) for name in tie.columns))
