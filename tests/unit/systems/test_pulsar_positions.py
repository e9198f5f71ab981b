"""Pulsar's positions as numbers, its ledgers and its cursors: what was recorded, and what cannot be."""

from __future__ import annotations

import pytest
from tests.pulsar import ANSWERS, STATISTICS

from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.pulsar_positions import (
    Ledgers,
    cursor_in,
    cursors_in,
    ledgers_in,
    packed,
    shown_position,
    stats_in,
)
from tieout.pulsar import SavedAnswers

_STATISTICS = stats_in(SavedAnswers(ANSWERS, "").get(STATISTICS).body)
_LARGEST = ((1 << 31) - 1, (1 << 20) - 1, (1 << 12) - 1)


def test_positions_keep_their_order_as_numbers() -> None:
    """The next of a batch, the next entry, the next ledger; and the number says what it was made of."""
    places = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 2, 3), _LARGEST]
    numbers = [packed(*place) for place in places]

    assert numbers == sorted(set(numbers))
    assert [shown_position(number) for number in numbers] == [":".join(map(str, place)) for place in places]
    assert numbers[-1] < 1 << 63


@pytest.mark.parametrize("place", [(1 << 31, 0, 0), (0, 1 << 20, 0), (0, 0, 1 << 12), (0, -1, 0), (-1, 0, 0)])
def test_a_position_beyond_its_bits_is_refused(place: tuple[int, int, int]) -> None:
    """It is never wrapped: it would be another position."""
    with pytest.raises(FormatError, match="expected a ledger below"):
        packed(*place)


def test_the_ledger_that_is_written_to_has_what_was_confirmed() -> None:
    """The statistics say no entry of it."""
    ledgers = ledgers_in(_STATISTICS)

    assert ledgers == Ledgers(((5, 8), (15, 9)), (15, 8))
    assert [*ledgers.newest][8:10] == [(15, 0), (5, 7)]
    assert (shown_position(ledgers.first), shown_position(ledgers.end)) == ("5:0:0", "15:9:0")


def test_behind_the_last_entry_of_a_closed_ledger_is_the_next_ledger() -> None:
    """So the end of a topic and a cursor at the end are one position, wherever the broker says they are."""
    ledgers = Ledgers(((5, 3), (9, 0)), (5, 2))

    assert ledgers.end == ledgers.after((5, 2)) == ledgers.after((9, -1)) == packed(9, 0)
    assert ledgers.after((3, 8)) == ledgers.first, "a ledger that was deleted"
    assert ledgers.after((7, 0)) == packed(9, 0), "one that was between them"


def test_a_cursor_says_up_to_where_and_which_entries_beyond() -> None:
    """Ranges are open at their beginning, as written; each bracket is read."""
    assert cursor_in(cursors_in(_STATISTICS)["loader"]).ranges == (((5, 1), (5, 3)), ((5, 4), (5, 5)))
    reported = {"markDeletePosition": "5:-1", "individuallyDeletedMessages": "[[5:2..6:4),(7:-1..8:0]]"}

    found = cursor_in(reported)

    assert (found.mark_delete, found.ranges) == ((5, -1), (((5, 1), (6, 3)), ((7, -1), (8, 0))))


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({}, "lastConfirmedEntry: expected ledger:entry"),
        ({"lastConfirmedEntry": "5:1"}, "expected ledgers"),
        ({"lastConfirmedEntry": "5:1", "ledgers": []}, "expected ledgers"),
        ({"lastConfirmedEntry": "5:1", "ledgers": [{"ledgerId": "5", "entries": 1}]}, "ledgerId"),
        ({"lastConfirmedEntry": "5:1", "ledgers": [{"ledgerId": 5, "entries": True}]}, "entries"),
        ({"lastConfirmedEntry": "5:1", "ledgers": [{"ledgerId": 5, "entries": 1}] * 2}, "rising ids"),
        (
            {"lastConfirmedEntry": "5:1048575", "ledgers": [{"ledgerId": 5, "entries": 0}]},
            "expected fewer than",
        ),
        ({"lastConfirmedEntry": "5:x", "ledgers": [{"ledgerId": 5, "entries": 1}]}, "lastConfirmedEntry"),
    ],
)
def test_statistics_that_are_none_are_refused(expected: dict[str, object], said: str) -> None:
    """By what is missing."""
    with pytest.raises(FormatError, match=said):
        ledgers_in(expected)


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (None, "expected a cursor's fields"),
        ({"individuallyDeletedMessages": "[]"}, "markDeletePosition"),
        ({"markDeletePosition": "5:0"}, "individuallyDeletedMessages"),
        ({"markDeletePosition": "5:0", "individuallyDeletedMessages": "[(5:1..5:3]"[:9]}, "expected ranges"),
        ({"markDeletePosition": "5:0", "individuallyDeletedMessages": "[(5:3..5:1]]"}, "expected ranges"),
        (
            {"markDeletePosition": "5:0", "individuallyDeletedMessages": "[(5:1..5:3], more]"},
            "expected ranges",
        ),
    ],
)
def test_a_cursor_that_cannot_be_read_whole_is_refused(expected: object, said: str) -> None:
    """A range that is passed over would be messages that count as not acknowledged."""
    with pytest.raises(FormatError, match=said):
        cursor_in(expected)
