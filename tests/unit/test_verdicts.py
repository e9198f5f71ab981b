"""The reasons of a verdict, as people read them."""

from __future__ import annotations

from tests.unit.linting.contracts import contract

from tieout.model import Verdict
from tieout.verdicts import judge


def test_a_reason_says_what_was_found_and_what_must_be() -> None:
    """What was observed comes first, then what it would have to be: never the two as if both were found."""
    statement = {
        "classes": {"UNVERIFIABLE": 20},
        "flags": {},
        "unconfirmed": {},
        "partitions": [],
        "coverage": {"produced": {"covers": False, "gap": "absent: sent.jsonl: no such file"}},
        "identity_errors": ["effects: 3 are not 2 and 2"],
    }

    judged = judge(contract({}), statement)

    assert judged.verdict is Verdict.UNKNOWN
    assert judged.reasons == (
        "coverage_produced: absent: sent.jsonl: no such file, must cover the window",
        "unverifiable: 20 messages, effects or offsets, none allowed",
        "identities: effects: 3 are not 2 and 2, every sum must add up",
    )


def _of_losses(lost: int, unconfirmed: int, limit: float) -> tuple[Verdict, tuple[str, ...]]:
    partition = dict.fromkeys(
        (
            "first_effects",
            "further_effects",
            "in_flight",
            "unexplained",
            "unverifiable",
            "unverifiable_effects",
        ),
        0,
    )
    statement = {
        "classes": {"LOST": lost},
        "flags": {"LOST": lost},
        "unconfirmed": {"LOST": unconfirmed},
        "partitions": [partition | {"lost": lost, "accepted": 100, "offsets": None}],
        "coverage": {},
        "identity_errors": [],
    }
    judged = judge(contract({}, "at_most_once", budgets={"loss_ratio": limit}), statement)
    return judged.verdict, judged.reasons


def test_what_is_not_confirmed_is_in_no_budget() -> None:
    """It leaves open whether the budget is kept, where all of it together would exceed it."""
    assert _of_losses(10, 0, 0.05) == (Verdict.BROKEN, ("loss_ratio: 0.1, at most 0.05",))
    assert _of_losses(10, 4, 0.05)[0] is Verdict.BROKEN
    assert _of_losses(10, 6, 0.05) == (
        Verdict.UNKNOWN,
        ("loss_ratio_unconfirmed: 6 where the evidence does not cover, at most 0.05",),
    )
    assert _of_losses(4, 4, 0.05) == (Verdict.KEPT, ())
