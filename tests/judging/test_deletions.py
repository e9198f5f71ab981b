"""The rounds on evidence of which parts were taken away: BROKEN and UNKNOWN never become KEPT if anybody misses them.

Every part of golden histories and drawn parts of random ones, under every form of coverage. Where the verdict turned to
KEPT, what is left says nothing of what is gone (`tests.oracle.missing`), but for the kind listed there as open;
the verdict of the rounds is the oracle's. Coverage itself is read by the engine in tests/agreement/test_deletions.

`TIEOUT_DELETIONS` says how many, `TIEOUT_RANDOM_SEED` of which histories: the same in each run, on any machine.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Final

import pytest
from tests.engine.histories import load_cases
from tests.engine.marking import batches
from tests.judging.kernel import is_of_one_topic_each, kernel_statement, kernel_statements
from tests.oracle import judge_history
from tests.oracle.deleting import FORMS, Deletion, deletions
from tests.oracle.golden_deletions import AS_WRITTEN, GOLDEN_FORMS, golden_deletions
from tests.oracle.missing import UNMARKED, missed_by
from tests.oracle.random_histories import RandomHistory, draw_setting

SEED: Final = os.environ.get("TIEOUT_RANDOM_SEED", "1")
COUNT: Final = int(os.environ.get("TIEOUT_DELETIONS", "1000"))
"""How many deletions each of the two tests below tries."""
BY_ROUNDS: Final = 1 / 5
"""The share of them that the rounds judge as well: as many buckets as that takes, the largest first."""
GOLDEN_KINDS: Final = {
    *("producer", "session", "consumer", "topic", "partition", "one row", "head", "tail", "middle", "file"),
    *("everything", "head, bounds read off", "tail, bounds read off"),
}
RANDOM_KINDS: Final = {
    *("producer", "session", "partition", "head", "middle", "tail", "one row", "file", "everything"),
}


class DeletionTally:
    """Counts of the deletions judged so far, and what was wrong."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.forms: Counter[str] = Counter()
        self.turned: Counter[str] = Counter()
        self.open: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.by_rounds = 0
        self._last: tuple[RandomHistory | None, str] = (None, "")

    def judge(self, one: Deletion) -> str:
        """Return the oracle's verdict on what is left, and note it where somebody should have missed what is gone."""
        if self._last[0] is not one.before:
            self._last = (one.before, _expected(one.before))
        before, after = self._last[1], _expected(one.after)
        self.kinds[one.kind] += 1
        self.forms[one.form] += 1
        if after == "KEPT" and before in ("BROKEN", "UNKNOWN"):
            self.turned[one.ledger.value] += 1
            missing = missed_by(one)
            # Two lines of one deletion may be of an open kind and of another: the other one is what counts.
            held = [who for who in missing if not who.startswith(UNMARKED)]
            self.open.update({who.partition(":")[0] for who in missing} if missing and not held else ())
            self.wrong += [f"{one}: {before} became KEPT, and {who}" for who in held]
            if one.form == "nothing":
                self.wrong.append(f"{one}: {before} became KEPT, and nobody says that anything is complete")
        return after

    def compare(self, found: list[tuple[Deletion, str]]) -> None:
        """Compare the rounds with the oracle on a share of the deletions, the largest buckets first."""
        histories = [one.after for one, _ in found]
        for batch in sorted(batches(histories), key=lambda batch: -len(batch.places)):
            statements = kernel_statements(batch.histories)
            for place, statement in zip(batch.places, statements, strict=True):
                one, expected = found[place]
                verdict = str(statement["verdict"])
                if verdict != expected:  # a difference in a bucket counts only if the history alone does
                    verdict = str(kernel_statement(one.after)["verdict"])
                if verdict != expected:
                    self.wrong.append(f"{one}: the oracle says {expected}, the rounds {verdict}")
            self.by_rounds += len(batch.places)
            if self.by_rounds >= BY_ROUNDS * len(found):
                return

    def __str__(self) -> str:
        return (
            f"{sum(self.kinds.values())} deletions, {self.by_rounds} of them by the rounds; turned: "
            f"{dict(self.turned)}; open: {dict(self.open)}"
        )


def _expected(history: RandomHistory) -> str:
    found = judge_history(history.contract, history.window, history.rows, history.coverage, history.present)
    return str(found["verdict"])


def _golden(seed: str) -> Iterator[Deletion]:
    """Yield the deletions of all golden histories, each under one form of coverage after the other."""
    cases = [case for case in load_cases() if is_of_one_topic_each(case)]
    assert len(cases) > 600
    turns = [(case, form) for case in cases for form in GOLDEN_FORMS]
    Random(seed).shuffle(turns)  # noqa: S311 - repeatable, not secret
    for case, form in turns:
        yield from golden_deletions(case, form)


def _random(seed: str) -> Iterator[Deletion]:
    """Yield deletions of families of random histories, one family after the other."""
    family = 0
    while True:
        family += 1
        setting = draw_setting(Random(f"{seed}/{family}"), is_wild=False)  # noqa: S311
        for member in range(20):
            name = f"{seed}/{family}/{member}"
            yield from deletions(setting, Random(name), name)  # noqa: S311


def _judged(found: Iterator[Deletion]) -> DeletionTally:
    """Judge `COUNT` deletions: all of them with the oracle, a share of them with the rounds."""
    tally = DeletionTally()
    tally.compare([(one, tally.judge(one)) for one in islice(found, COUNT)])
    print(tally)
    return tally


def test_the_open_kind_is_still_missed() -> None:
    """A removed record of a topic without markers; once somebody misses it, the kind goes, here and in the docs."""
    name = "an effect that shows an id alone, before its transaction was committed"
    case = next(case for case in load_cases() if case.name == name)

    tally = DeletionTally()
    for one in golden_deletions(case, AS_WRITTEN):
        tally.judge(one)

    assert tally.wrong == []
    assert tally.open[UNMARKED] > 0


@pytest.mark.timeout(0)
def test_no_part_of_a_golden_history_is_missed_by_what_is_left_and_kept() -> None:
    """Every part of every ledger of a golden history, under seven forms of coverage."""
    tally = _judged(_golden(SEED))

    assert tally.wrong == [], str(tally)
    assert set(tally.kinds) <= GOLDEN_KINDS
    assert len(tally.kinds) > 8
    assert set(tally.forms) == set(GOLDEN_FORMS)
    assert tally.by_rounds > 100
    assert sum(tally.turned.values()) > 0, "these deletions try nothing"


@pytest.mark.timeout(0)
def test_no_part_of_a_random_history_is_missed_by_what_is_left_and_kept() -> None:
    """Parts of each ledger of random histories, under six forms of coverage."""
    tally = _judged(_random(SEED))

    assert tally.wrong == [], str(tally)
    assert set(tally.kinds) == RANDOM_KINDS
    assert set(tally.forms) <= set(FORMS)
    assert tally.by_rounds > 100
    assert sum(tally.turned.values()) > 0, "these deletions try nothing"
