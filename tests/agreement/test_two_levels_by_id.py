"""What the first level leaves over has the statement of the whole window where the output shows no positions.

The histories are those of `test_two_levels.py`, without positions in the output, and some without any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.agreement.test_two_levels import (
    FAMILIES,
    FAMILY,
    NEEDED,
    SEED,
    SIZE,
    TOO_RICH,
    C,
    D,
    L,
    P,
    _bounds,
    _differences,
    _is_lasting,
    _some_twists,
    _twisted,
)
from tests.agreement.test_two_levels_traps import _history, _messages
from tests.engine.histories import GRACE_END
from tests.engine.judging import scope_together, statements_of
from tests.engine.marking import batches
from tests.oracle.history import OracleCoverage
from tests.oracle.random_histories import RANGES, RandomHistory, draw_setting, history_in

from tieout.engine.prematch import prematching
from tieout.engine.prematch.by_id import pairs_of, scope_of_remaining_ids, unclean_ids
from tieout.engine.prematch.fingerprint import Widths
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.model import Ledger

_OF_OUTPUT = frozenset({"partition", "offset"})
_OF_SENDS = frozenset({"partition", "offset", "intended_partition"})
_IDS = frozenset({"message_id"})
_WIDTHS = (Widths(), Widths(id_bits=10))
"""Among a thousand hashes, some of a few hundred ids have one in common."""


def _without(history: RandomHistory, hidden: dict[Ledger, frozenset[str]]) -> RandomHistory:
    """Return the history as its sources would show it without these columns."""
    present = {ledger: names - hidden.get(ledger, frozenset()) for ledger, names in history.present.items()}
    rows = {
        ledger: [{name: row[name] for name in row if name in present[ledger]} for row in found]
        for ledger, found in history.rows.items()
    }
    return replace(history, rows=rows, present=present)


def _histories() -> Iterator[RandomHistory]:
    orders = frozenset({"sequence", "key_hash"})
    in_transactions = {"transactional": True, "messages": (6, 12)}
    settings: tuple[tuple[tuple[Ledger, ...], dict[str, Any], frozenset[str]], ...] = (
        ((P, D), {"hidden": orders, "clock_skew": "1s"}, frozenset()),
        ((P, D, C), {"ordering": "partition", "messages": (16, 28)}, frozenset()),
        ((P, D, C), in_transactions, frozenset()),
        ((P, D), in_transactions | {"hidden": orders | {"transaction_state"}}, _OF_SENDS),
        ((P, D, C), {}, _OF_SENDS),
        ((P, L, D, C), {"messages": (16, 28), "clock_skew": "1s", "unstamped": (P,)}, frozenset()),
    )
    for number, (ledgers, terms, of_sends) in enumerate(settings):
        for member in range(SIZE // 2):
            name = f"{SEED}/by id/{number}/{member}"
            rng = Random(name)  # noqa: S311 - repeatable, not secret
            is_transactional = "transactional" in terms
            twists = _some_twists(rng, is_transactional=is_transactional, has_log=L in ledgers)
            history = _twisted(rng, twists, ledgers, terms, name)
            if _is_lasting(history):
                yield _without(history, {D: _OF_OUTPUT, P: of_sends})


def _faulty() -> Iterator[RandomHistory]:
    for number in range(FAMILIES // 2):
        rng = Random(f"{SEED}/by id/eligible/{number}")  # noqa: S311 - repeatable, not secret
        drawn = draw_setting(rng, is_wild=number % 3 == 2)
        terms = {name: value for name, value in drawn.terms.items() if name not in TOO_RICH}
        everything = OracleCoverage(None, GRACE_END, True, True)
        ledgers = ((P, D, C), (P, D), (P, L, D, C), (P, L, D))[number % 4]
        coverage = {ledger: drawn.coverage.get(ledger, everything) for ledger in ledgers}
        lacking = {ledger: names - NEEDED - _IDS for ledger, names in drawn.lacking.items()}
        lacking[C] = lacking.get(C, frozenset()) | RANGES
        setting = replace(drawn, terms=terms, ledgers=ledgers, coverage=coverage, absent=(), lacking=lacking)
        of_sends = _OF_SENDS if number % 2 and L not in ledgers else frozenset()
        for member in range(FAMILY):
            history = history_in(setting, rng, f"{SEED}/by id/eligible/{number}/{member}")
            if _is_lasting(history):
                yield _without(history, {D: _OF_OUTPUT, P: of_sends})


def _remaining(spark: SparkSession, histories: Sequence[RandomHistory], widths: Widths) -> Scope:
    scope = scope_together(spark, histories)
    present = {ledger: evidence.present for ledger, evidence in scope.evidence.items()}
    assert prematching.is_eligible_by_id(scope.contract, present)
    assert not prematching.is_eligible(scope.contract, present)
    pairs = pairs_of(scope, widths)
    unclean = unclean_ids(scope, pairs, float("inf"))
    assert unclean is not None
    found = scope_of_remaining_ids(scope, pairs, unclean, _bounds(scope))
    assert found is not None
    return found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("drawn", [_histories, _faulty], ids=["nearly clean", "faulty"])
def test_what_is_left_has_the_statement_of_the_whole(
    spark: SparkSession, drawn: Callable[[], Iterator[RandomHistory]]
) -> None:
    """Whatever the width of hashes: the same sums, classes, flags, breaks, incidents and proof."""
    histories = list(drawn())
    wrong, clean = {}, 0
    for batch, widths in zip(batches(histories), cycle(_WIDTHS), strict=False):
        with suited_to(spark, is_small=True):
            remaining = _remaining(spark, batch.histories, widths)
            found = statements_of(remaining, batch.histories)
            whole = statements_of(scope_together(spark, batch.histories), batch.histories)
            assert remaining.clean is not None
            clean += remaining.clean.rows[P].count()
        wrong |= {
            f"{history.name}, {widths}": _differences(one, other)
            for history, one, other in zip(batch.histories, found, whole, strict=True)
            if one != other
        }

    assert wrong == {}, f"{len(wrong)} of {len(histories)} histories differ"
    assert clean > (len(histories) if drawn is _histories else 0)


def test_a_nameless_effect_may_be_a_copy_of_a_quiet_message(spark: SparkSession) -> None:
    """What it holds, the message that is known by its id alone was sent with: nobody knows whose effect it is."""
    rows = _messages()
    rows[D].append(rows[D][3] | {"message_id": None})
    history = _without(_history(rows, {}), {D: _OF_OUTPUT})

    with suited_to(spark, is_small=True):
        remaining = _remaining(spark, [history], Widths())
        found = statements_of(remaining, [history])
        whole = statements_of(scope_together(spark, [history]), [history])

    assert found == whole
    assert remaining.rows(P).filter("offset = 3").isEmpty()
    assert whole[0]["verdict"] == "UNKNOWN"
