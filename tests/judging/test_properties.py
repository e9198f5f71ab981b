"""What holds of the rounds on every history, whatever the right answer is.

The order of rows says nothing; windows take a stretch of time apart and lose nothing of it; one more break makes
nothing better; less evidence makes nothing KEPT. The oracle's own tests ask the same of it
(tests/oracle/test_oracle_properties.py). Histories that share contract and coverage are judged in one run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from tests.engine.histories import GRACE_END, START, TOPIC
from tests.judging.kernel import kernel_statements
from tests.oracle.history import OracleCoverage
from tests.oracle.random_histories import RandomHistory, Setting, history_in

from tieout.model import Ledger, Window

LEDGERS = (Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED)
FULL = OracleCoverage(None, GRACE_END, True, True)
SETTING = Setting(False, {"guarantee": "exactly_once"}, LEDGERS, dict.fromkeys(LEDGERS, FULL), (), {})
HISTORIES = [
    history_in(SETTING, Random(f"properties/{number}"), str(number))  # noqa: S311 - repeatable, not secret
    for number in range(40)
]
OF_THE_RUN = frozenset({"break_id", "incident_id", "message_key", "number"})
"""Columns of a break that are numbers of the run, or digests of marks."""
RANK = {"KEPT": 0, "PENDING": 1, "UNKNOWN": 2, "BROKEN": 3}
CUTS = (timedelta(0), timedelta(minutes=7), timedelta(minutes=31, microseconds=1), timedelta(hours=1))
LOST = {
    "message_id": "never",
    "payload_hash": "h-never",
    "producer_id": "p9",
    "producer_session": "s9",
    "topic": TOPIC,
    "attempted_at": START + timedelta(minutes=5),
    "outcome": "acked",
}
PHANTOM = {
    "message_id": "nobody",
    "payload_hash": "h-nobody",
    "topic": TOPIC,
    "processed_at": START + timedelta(minutes=5),
    "outcome": "ok",
}


@pytest.fixture(scope="module")
def changed_statements() -> list[tuple[dict[str, Any], ...]]:
    """Per history its statement as it is, with its rows shuffled, and with one more duplicate, phantom and loss."""
    return _judged_as([_as_it_is, _shuffled, _doubled, _with_phantom, _with_loss])


def test_order_says_nothing_and_one_more_break_makes_nothing_better(
    changed_statements: list[tuple[dict[str, Any], ...]],
) -> None:
    """A history is judged the same with its rows shuffled, and the same or worse with a break more.

    But for an effect that is the only one with an id: then no id of the output meets those of the sends, and a loss is
    confirmed no more.
    """
    tried: Counter[str] = Counter()
    for history, (before, shuffled, *worse) in zip(HISTORIES, changed_statements, strict=True):
        assert _plain(shuffled) == _plain(before), history.name
        assert not before["identity_errors"], history.name
        for after in worse:
            is_unmet = any("of its ids is in produced" in reason for reason in after["reasons"])
            least = min(RANK[before["verdict"]], RANK["UNKNOWN"] if is_unmet else RANK["BROKEN"])
            assert RANK[after["verdict"]] >= least, (history.name, after["reasons"])
        tried[before["verdict"]] += 1
    assert len(tried) > 2, tried


def test_windows_take_apart_and_lose_nothing(changed_statements: list[tuple[dict[str, Any], ...]]) -> None:
    """Windows that touch, judged in any order, have the breaks and the sums of the window that they make up."""
    whole = [before for before, *_ in changed_statements]
    pieces = []
    for since, until in reversed(list(pairwise(CUTS))):
        window = Window(START + since, START + until)
        pieces.append(kernel_statements([replace(one, window=window) for one in HISTORIES]))

    assert sum(len(statement["breaks"]) for statement in whole) > 20
    for history, together, *apart in zip(HISTORIES, whole, *pieces, strict=True):
        assert _sums(apart) == _sums([together]), history.name
        assert _breaks(apart) == _breaks([together]), history.name


@pytest.mark.parametrize(
    ("ledger", "left"),
    [
        (Ledger.PRODUCED, OracleCoverage(START + timedelta(minutes=30), GRACE_END, True, True)),
        (Ledger.DELIVERED, OracleCoverage(None, START + timedelta(minutes=30), True, True)),
        (Ledger.LOG, None),
        (Ledger.COMMITTED, None),
    ],
    ids=["begins late", "ends early", "no log", "no commits"],
)
def test_less_evidence_is_never_kept(ledger: Ledger, left: OracleCoverage | None) -> None:
    """A declared ledger that is cut with its rows, or not there, leaves a window BROKEN or UNKNOWN."""
    cut = [_cut(history, ledger, left) for history in HISTORIES]

    verdicts = {statement["verdict"] for statement in kernel_statements(cut)}

    assert verdicts <= {"BROKEN", "UNKNOWN"}
    assert "UNKNOWN" in verdicts


Change = Callable[[RandomHistory], RandomHistory]


def _judged_as(changes: Sequence[Change]) -> list[tuple[dict[str, Any], ...]]:
    """Return per history its statements after each of the changes, all of one run."""
    found = kernel_statements([change(history) for change in changes for history in HISTORIES])
    size = len(HISTORIES)
    return list(zip(*[found[start : start + size] for start in range(0, len(found), size)], strict=True))


def _as_it_is(history: RandomHistory) -> RandomHistory:
    return history


def _shuffled(history: RandomHistory) -> RandomHistory:
    rng = Random(history.name)  # noqa: S311 - repeatable, not secret
    rows = {ledger: rng.sample(found, len(found)) for ledger, found in history.rows.items()}
    return replace(history, rows=rows)


def _doubled(history: RandomHistory) -> RandomHistory:
    effects = [row for row in history.rows[Ledger.DELIVERED] if row["outcome"] == "ok"]
    return _with_rows(history, Ledger.DELIVERED, effects[:1])


def _with_phantom(history: RandomHistory) -> RandomHistory:
    return _with_rows(history, Ledger.DELIVERED, [PHANTOM])


def _with_loss(history: RandomHistory) -> RandomHistory:
    return _with_rows(history, Ledger.PRODUCED, [LOST])


def _with_rows(history: RandomHistory, ledger: Ledger, rows: list[dict[str, Any]]) -> RandomHistory:
    return replace(history, rows={**history.rows, ledger: [*history.rows[ledger], *rows]})


def _cut(history: RandomHistory, ledger: Ledger, left: OracleCoverage | None) -> RandomHistory:
    rows = {name: found for name, found in history.rows.items() if name != ledger}
    coverage = {name: covered for name, covered in history.coverage.items() if name != ledger}
    if left is None:
        return replace(history, rows=rows, coverage=coverage)
    time = {Ledger.PRODUCED: "attempted_at", Ledger.DELIVERED: "processed_at"}[ledger]
    since, until = left.covers_from or START - timedelta(days=9), left.complete_until or GRACE_END
    kept = [row for row in history.rows[ledger] if since <= row[time] <= until]
    return replace(history, rows={**rows, ledger: kept}, coverage={**coverage, ledger: left})


def _plain(statement: Mapping[str, Any]) -> Any:
    """Return the statement without `OF_THE_RUN`, marks, and the order of lists."""
    breaks = [
        {name: value for name, value in row.items() if name not in OF_THE_RUN} for row in statement["breaks"]
    ]
    text = re.sub(r"~\d+~", "", json.dumps({**statement, "breaks": breaks}, sort_keys=True, default=str))
    return _in_order(json.loads(text))


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_order(held) for name, held in value.items()}
    if isinstance(value, list):
        return sorted((_in_order(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def _sums(statements: Sequence[Mapping[str, Any]]) -> dict[Any, int]:
    """Return what the partitions of all statements add up to, the offset balance with it; zeros are left out."""
    totals: Counter[Any] = Counter()
    for statement in statements:
        for row in statement["partitions"]:
            place = (row["topic"], row["partition"])
            numbers = {
                name: count for name, count in row.items() if name not in ("topic", "partition", "offsets")
            }
            states = {("offsets", name): count for name, count in (row["offsets"] or {}).items()}
            totals.update({(place, name): count for name, count in (numbers | states).items()})
    ends = {("offsets", "from"), ("offsets", "to")}
    return {name: count for name, count in totals.items() if count and name[1] not in ends}


def _breaks(statements: Sequence[Mapping[str, Any]]) -> set[tuple[Any, ...]]:
    """Return each break by its lasting id, with what it says."""
    names = ("break_id", "class", "locus", "topic", "partition", "offset", "message_id")
    return {
        (*(row[name] for name in names), *sorted(row["flags"])) for one in statements for row in one["breaks"]
    }
