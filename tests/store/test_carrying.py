"""What of a break proves that a hop only carried it on: equal marks; whatever is in doubt has none."""

from __future__ import annotations

from typing import Any

import pytest

from tieout.store.carrying import Carrying, Mark

FIRST = Carrying.of({})
LATER = Carrying.of({"after": {"pipeline": "enrich"}})
SENT = {"message_id": "m", "payload_hash": "M"}


def effect(payload: str | None = "X", offset: int | None = None, **more: Any) -> dict[str, Any]:
    """Return a row of the output; what is null is left out, as in the evidence of a break."""
    row = {"message_id": "m", "payload_hash": payload, "outcome": "ok", **more}
    if offset is not None:
        row |= {"topic": "on", "partition": 0, "offset": offset}
    return {key: value for key, value in row.items() if value is not None}


def mark(name: str, *effects: dict[str, Any], flags: tuple[str, ...] = (), **evidence: Any) -> Mark:
    """Return the mark of a break of message m at a hop that comes after another."""
    rows = {"produced": [SENT], "delivered": list(effects), **evidence}
    found = LATER.mark_of({"class": name, "flags": list(flags), "message_id": "m", "evidence": rows})
    assert found is not None
    return found


SPOILT = mark("CORRUPTED_VALUE", effect())
TWICE = mark("OUTPUT_DUPLICATE", effect("M"), effect("M"), flags=("inherited",))


def test_what_is_carried_on_has_one_mark() -> None:
    """What was left by a hop is what came to the next one."""
    assert SPOILT.output == SPOILT.earlier_output
    assert TWICE.output == TWICE.earlier_output
    assert (
        len({SPOILT.output, TWICE.output, mark("PHANTOM_UNKNOWN", effect()).output, mark("LOST").output}) == 4
    )


@pytest.mark.parametrize(
    "found",
    [
        mark("CORRUPTED_VALUE", effect("other")),
        mark("CORRUPTED_VALUE", effect(), effect(), flags=("inherited",)),
        mark("CORRUPTED_VALUE", effect(key_hash="k"), flags=("CORRUPTED_KEY",)),
        mark("CORRUPTED_KEY", effect(key_hash="k")),
        mark("PHANTOM_UNKNOWN", effect()),
    ],
)
def test_another_content_number_or_kind_is_another_mark(found: Mark) -> None:
    """It is not the same as a value that was corrupted into X, once."""
    assert found.earlier_output is not None
    assert found.earlier_output != SPOILT.output


@pytest.mark.parametrize(
    "found",
    [
        mark("CORRUPTED_VALUE", effect(), flags=("REDELIVERY",)),
        mark("CORRUPTED_VALUE", effect(), flags=("MISROUTED",)),
        mark("CORRUPTED_VALUE", effect("M")),
        mark("CORRUPTED_VALUE", effect(None)),
        mark("CORRUPTED_VALUE", effect(), effect()),
        mark("CORRUPTED_VALUE", effect(offset=1), effect(offset=1)),
        mark("OUTPUT_DUPLICATE", effect(offset=1), effect()),
        mark("LOG_DUPLICATE", effect("M")),
        mark(
            "LOG_DUPLICATE", effect("M"), log=[effect(offset=1), effect(offset=2, transaction_state="open")]
        ),
        mark("LOG_DUPLICATE", effect("M"), log=[effect(offset=number) for number in range(20)]),
    ],
)
def test_what_a_hop_may_have_done_itself_did_not_come(found: Mark) -> None:
    """Another flag, an effect that is as it was sent or shows nothing, copies that may be of one record."""
    assert found.earlier_output is None


@pytest.mark.parametrize(
    "effects",
    [
        [],
        [effect()] * 20,
        [effect(), effect(outcome="unknown")],
        [effect(), effect(transaction_state="open")],
        [effect(), effect(transaction_state="aborted")],
    ],
)
def test_an_output_that_is_not_wholly_shown_has_no_mark(effects: list[dict[str, Any]]) -> None:
    """Nobody knows what the next hop read."""
    assert mark("CORRUPTED_VALUE", *effects) == Mark(None, None)


def test_late_effects_and_what_the_log_has_twice_are_no_doubt() -> None:
    """Neither is a thing that this hop did to the message."""
    assert mark("CORRUPTED_VALUE", effect(), flags=("LATE", "LOG_DUPLICATE")).earlier_output == SPOILT.output
    assert (
        mark("LOG_DUPLICATE", effect("M"), log=[effect(offset=1), effect(offset=2)]).earlier_output
        == TWICE.output
    )


def test_only_ids_of_one_message_each_are_compared() -> None:
    """And only of the classes that a later hop may have."""
    found = {"class": "LOST", "flags": [], "message_id": "m", "evidence": {}}

    assert FIRST.mark_of(found) is not None
    assert Carrying.of({"identity": "content"}).mark_of(found) is None
    assert FIRST.mark_of({**found, "class": "COMMIT_AHEAD"}) is None
    assert FIRST.mark_of({**found, "message_id": None}) is None


def test_what_the_store_keeps_of_an_incident() -> None:
    """Everything or nothing: null where something is not known, empty where nothing proves it."""
    renamed = Carrying.of({"after": {"pipeline": "enrich", "id": "(.+)/x"}})
    lost, other = Mark("l", "b"), Mark("l2", None)

    assert LATER.kept("LOST", [lost, Mark("l2", "b2")]) == ("{l,l2}", None)
    assert renamed.kept("LOST", [lost, Mark("l2", "b2")]) == ("{l,l2}", "{b,b2}")
    assert renamed.kept("LOST", [lost, other]) == ("{l,l2}", "{}")
    assert LATER.kept("CORRUPTED_VALUE", [lost, other]) == ("{l,l2}", "{}")
    assert LATER.kept("CORRUPTED_VALUE", [lost, Mark(None, None)]) == (None, None)
    assert LATER.kept("LOG_DUPLICATE", [Mark(None, "b")]) == ("{}", "{b}")
