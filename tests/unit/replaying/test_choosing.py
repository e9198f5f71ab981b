"""What of a run's breaks is repaired, and what is refused: a false repair is worse than none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.replaying.breaks import STATEMENT, doubled, lost

from tieout.contracts import Contract
from tieout.replaying import choose, choosing

Make = Callable[..., Contract]


def test_a_lost_message_is_wanted_with_its_hash(make: Make) -> None:
    """Its body is looked for by id and payload hash; positions decide the order."""
    chosen = choose([lost(7), lost(3)], STATEMENT, make())

    assert [(one.message_id, one.payload_hash, one.offset) for one in chosen.lost] == [
        ("m-3", "h-3", 3),
        ("m-7", "h-7", 7),
    ]
    assert chosen.refusals == ()


def test_all_output_rows_but_the_first_are_surplus(make: Make) -> None:
    """The first effect is the one that counts."""
    (removal,) = choose([doubled(1, copies=3)], STATEMENT, make()).removals

    assert [row["processed_at"][-3:] for row in removal.rows] == ["01Z", "02Z"]


def test_breaks_that_no_replay_repairs_are_counted(make: Make) -> None:
    """And those of another incident are not."""
    breaks = [lost(1, **{"class": "LATE"}), lost(2, incident_id="i-2"), lost(3)]

    chosen = choose(breaks, STATEMENT, make(), incident_id="i-1")

    assert ([one.message_id for one in chosen.lost], chosen.others) == (["m-3"], 1)


_TWO_HASHES = {
    "produced": [{"payload_hash": "x", "topic": "orders"}, {"payload_hash": "y", "topic": "orders"}]
}


@pytest.mark.parametrize(
    ("found", "contract", "statement", "expected"),
    [
        (lost(1, flags=["partial"]), {}, {}, "some of its effects are there"),
        (lost(1), {"guarantee": "at_most_once"}, {}, "at most once is promised"),
        (lost(1), {}, {"unconfirmed": {"LOST": 2}}, "could not confirm 2 of its LOST breaks"),
        (
            lost(1),
            {"replay": {"output": {"table": "t", "identity": "i", "order": "o"}}},
            {},
            "hashes, not bodies",
        ),
        (lost(1), {"replay": None}, {}, "hashes, not bodies"),
        (lost(1, evidence=_TWO_HASHES), {}, {}, "2 different payload hashes"),
        (lost(1), {"multiplicity": {"kind": "many_to_one"}}, {}, "many_to_one"),
        (lost(1), {"id_scope": "session"}, {}, "not exactly one session"),
        (lost(1, message_id=None), {}, {}, "no id"),
        (lost(1, offset=None), {"identity": "position"}, {}, "no position"),
        (doubled(1), {}, {"unconfirmed": {"OUTPUT_DUPLICATE": 1}}, "could not confirm"),
        (doubled(1, copies=1), {}, {}, "found 1"),
        (doubled(1, evidence=None), {}, {}, "found 0"),
        (
            doubled(1, evidence={"delivered": [{"payload_hash": "x"}, {"payload_hash": "y"}]}),
            {},
            {},
            "differ in content",
        ),
    ],
)
def test_what_might_do_harm_is_refused_with_its_reason(
    make: Make, found: dict[str, Any], contract: dict[str, Any], statement: dict[str, Any], expected: str
) -> None:
    """Nothing of it is planned."""
    chosen = choose([found], {**STATEMENT, **statement}, make(**contract))

    assert (chosen.lost, chosen.removals) == ((), ())
    assert expected in chosen.refusals[0].reason


def test_what_was_replayed_is_not_planned_again(make: Make) -> None:
    """Unless the attempt is raised, which gives other keys."""
    contract = make()
    (first,) = choose([lost(1)], STATEMENT, contract).lost

    def done(_keys: list[str]) -> dict[str, str]:
        return {first.key: "yesterday by plan p"}

    again = choose([lost(1)], STATEMENT, contract, find_done=done)
    once_more = choose([lost(1)], STATEMENT, contract, attempt=2, find_done=done)

    assert again.lost == ()
    assert again.refusals[0].is_done
    assert "yesterday by plan p" in again.refusals[0].reason
    assert len(once_more.lost) == 1


def test_a_plan_is_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is named, not forgotten."""
    monkeypatch.setattr(choosing, "MOST_MESSAGES", 2)

    chosen = choose([lost(number) for number in range(3)], STATEMENT, make())

    assert len(chosen.lost) == 2
    assert "the plan is full" in chosen.refusals[0].reason


def test_the_same_break_has_the_same_key_in_every_run(make: Make) -> None:
    """So that a second plan from a later run of the window knows what the first repaired."""
    contract = make()

    first, second = (choose([lost(1)], {**STATEMENT, "run_id": run}, contract).lost[0] for run in "ab")
    (removal,) = choose([doubled(1)], STATEMENT, contract).removals

    assert first.key == second.key
    assert removal.key != first.key
