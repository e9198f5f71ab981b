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
