"""Histories whose coverage their contract says, and parts of their evidence taken away (interpretations 130 to 132)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.engine.histories import GRACE_END, READ_AT
from tests.oracle.covering import said_coverage
from tests.oracle.history import OracleCoverage, Row
from tests.oracle.random_histories import RandomHistory, Setting, draw_setting, history_in

from tieout.contracts import CoverageSpec
from tieout.model import Ledger

WATERMARK = GRACE_END + timedelta(hours=1)
"""What watermark files hold."""
TIME_OF = {
    Ledger.PRODUCED: "attempted_at",
    Ledger.LOG: "record_timestamp",
    Ledger.DELIVERED: "processed_at",
    Ledger.READ: "processed_at",
    Ledger.COMMITTED: "committed_at",
}
FORMS: dict[str, Any] = {
    "declared": "declared",
    "time": {"complete_until": WATERMARK.isoformat()},
    "watermark": {"watermark_file": "extracted_at.txt"},
    "now": {"complete_until": "now()"},
    "own times": {},
    "nothing": None,
}
"""How contracts say how far a ledger is complete."""


@dataclass(frozen=True)
class Deletion:
    """A history, and the same without some of one ledger's rows: of which kind they are, and which they were."""

    kind: str
    ledger: Ledger
    form: str
    before: RandomHistory
    after: RandomHistory
    removed: tuple[Row, ...]

    def __str__(self) -> str:
        return f"{self.before.name}: {self.kind} of {self.ledger}, {self.form}"


def deletions(setting: Setting, rng: Random, name: str) -> Iterator[Deletion]:
    """Yield one history of the setting under one form of coverage, each time without another part."""
    whole = history_in(setting, rng, name)
    produced = numbered(rng, whole.rows[Ledger.PRODUCED], whole.present[Ledger.PRODUCED])
    whole = replace(whole, rows={**whole.rows, Ledger.PRODUCED: produced})
    form = rng.choice([one for one in FORMS if one != "nothing" or rng.random() < 0.2])
    before = said_in(rng, whole, form)
    for ledger, rows in before.rows.items():
        for kind, removed in _parts(rng, ledger, rows):
            if removed:
                yield Deletion(kind, ledger, form, before, without(before, ledger, removed), tuple(removed))


def without(
    history: RandomHistory, ledger: Ledger, removed: list[Row], *, is_stated: bool = False
) -> RandomHistory:
    """Return the history without these rows of a ledger, and with the coverage that the rest shows, or is stated."""
    gone = {id(row) for row in removed}
    rows = [row for row in history.rows[ledger] if id(row) not in gone]
    left = replace(history, rows={**history.rows, ledger: rows})
    return covered(left, stated=history.coverage if is_stated else {})


def covered(
    history: RandomHistory, *, stated: Mapping[Ledger, OracleCoverage] | None = None
) -> RandomHistory:
    """Return the history with the coverage that its contract says and its rows show.

    Where the contract only declares a ledger, that of `stated` stands for it.
    """
    coverage = {
        ledger: stated[ledger]
        if stated and ledger in stated and history.contract.ledgers[ledger].coverage == "declared"
        else said_coverage(
            history.contract, ledger, rows, window=history.window, read_at=READ_AT, watermark=WATERMARK
        )
        for ledger, rows in history.rows.items()
    }
    return replace(history, coverage=coverage)


def drawn(seed: int, count: int) -> Iterator[Deletion]:
    """Yield the deletions of `count` histories that depend on nothing but the seed."""
    for number in range(count):
        rng = Random(f"{seed}/{number}")  # noqa: S311 - repeatable, not secret
        yield from deletions(draw_setting(rng, is_wild=False), rng, f"{seed}/{number}")


def numbered(rng: Random, rows: list[Row], present: frozenset[str]) -> list[Row]:
    """Return sends of several producers, whose sessions count without gaps."""
    names = ["p1", "p2", "p3"][: rng.randint(1, 3)]
    of_message: dict[Any, str] = {}
    counted: Counter[Any] = Counter()
    numbered_rows = []
    for row in rows:
        name = of_message.setdefault(row.get("transaction_id") or row.get("message_id"), rng.choice(names))
        session = (name, row.get("producer_session"))
        numbered = row | {"producer_id": name, "sequence": counted[session]}
        numbered_rows.append({column: value for column, value in numbered.items() if column in present})
        counted[session] += 1
    return numbered_rows


def said_in(rng: Random, history: RandomHistory, form: str) -> RandomHistory:
    """Return the history under a contract that says its coverage in this form."""
    specs = {}
    for ledger, spec in history.contract.ledgers.items():
        said = FORMS[form]
        if form == "own times":
            said = {"complete_until": f"max({TIME_OF[ledger]})"} if ledger in TIME_OF else FORMS["watermark"]
        if isinstance(said, dict) and ledger is Ledger.PRODUCED:
            said = said | _of_producers(rng, history.rows[ledger])
        specs[ledger] = spec.model_copy(
            update={
                "coverage": CoverageSpec.model_validate_json(json.dumps(said))
                if isinstance(said, dict)
                else said
            }
        )
    return covered(replace(history, contract=history.contract.model_copy(update={"ledgers": specs})))


def _of_producers(rng: Random, rows: list[Row]) -> dict[str, Any]:
    names = sorted({row["producer_id"] for row in rows if row.get("producer_id")})
    said: dict[str, Any] = {"producers": names} if names and rng.random() < 0.8 else {}
    return said | ({"sequences": "gapless"} if rng.random() < 0.6 else {})


def _parts(rng: Random, ledger: Ledger, rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield parts of a ledger's rows: of one producer, session, partition; a head, middle, tail; one of its files."""
    for kind, column in (
        ("producer", "producer_id"),
        ("session", "producer_session"),
        ("partition", "partition"),
    ):
        values = sorted({row[column] for row in rows if row.get(column) is not None})
        if values and (ledger is Ledger.PRODUCED or kind == "partition"):
            value = rng.choice(values)
            yield kind, [row for row in rows if row.get(column) == value]
    ordered = sorted(rows, key=lambda row: order_in(ledger, row))
    for kind, (first, last) in _stretches(rng, len(ordered)).items():
        yield kind, ordered[first:last]
    yield "file", [row for row in rows if rng.random() < 0.4]
    yield "everything", list(rows)


def order_in(ledger: Ledger, row: Row) -> tuple[Any, ...]:
    """Return where a row stands in its ledger: a record at its position, anything else at its time."""
    if ledger is Ledger.LOG:
        return (row.get("topic") or "", row.get("partition") or 0, row.get("offset") or 0)
    time = row.get(TIME_OF.get(ledger, "at"))
    return (isinstance(time, datetime), time or READ_AT)


def _stretches(rng: Random, count: int) -> dict[str, tuple[int, int]]:
    if not count:
        return {}
    first, last = sorted((rng.randint(0, count), rng.randint(0, count)))
    return {
        "head": (0, rng.randint(1, count)),
        "middle": (first, last),
        "tail": (rng.randint(0, count - 1), count),
        "one row": (one := rng.randrange(count), one + 1),
    }
