"""Scores: each way of being wrong costs precision or recall, and none goes unnoticed."""

from __future__ import annotations

from typing import Any

import pytest

from tieout.simulation.score_report import score_page, score_text
from tieout.simulation.scoring import Score, score

Row = dict[str, Any]
STATEMENT: Row = {"verdict": "BROKEN", "classes": {}, "flags": {}, "partitions": []}
SUMMARY: Row = {
    "verdict": "BROKEN", "classes": {}, "flags": {}, "dispositions": {}, "messages": 0, "faults": {"x": 2}, "breaks": 2,
    "seed": 1,
}  # fmt: skip


def broken(name: str, **fields: Any) -> Row:
    """Return a break of a message, as truth and run have them."""
    return {
        "class": name, "flags": [], "message_id": "m1", "topic": "t", "partition": 0, "offset": 5, "locus": "broker",
        "cause": "unknown", "admissible": [], **fields,
    }  # fmt: skip


def scored(truth: list[Row], found: list[Row]) -> Score:
    """Return the score of breaks whose statement is right."""
    return score(truth, found, SUMMARY, STATEMENT)


TRUTH = [
    broken("LOST", cause="retention overrun", flags=["EXPIRED"]),
    broken("LOST", message_id="m2"),
    broken("SKIPPED", message_id=None, offset=7),
]


def test_what_is_the_same_is_perfect() -> None:
    """Whatever the order."""
    result = scored(TRUTH, TRUTH[::-1])

    assert result.is_passed
    assert score_text(result).endswith("passed\n")
    assert result.causes.lines["retention overrun"].matched == 1


@pytest.mark.parametrize(
    ("found", "section", "name", "precision", "recall"),
    [
        (TRUTH[1:], "class", "LOST", 1, 0.5),
        ([*TRUTH, broken("LOST", message_id="m3")], "class", "LOST", 2 / 3, 1),
        ([*TRUTH, TRUTH[2]], "class", "SKIPPED", 0.5, 1),
        ([*TRUTH[:2], TRUTH[2] | {"offset": 8}], "class", "SKIPPED", 0, 0),
        ([broken("LATE", cause="retention overrun", flags=["EXPIRED"]), *TRUTH[1:]], "class", "LATE", 0, 1),
        ([TRUTH[0] | {"flags": []}, *TRUTH[1:]], "flag", "EXPIRED", 1, 0),
        ([TRUTH[0], TRUTH[1] | {"locus": "sink"}, TRUTH[2]], "locus", "sink", 0, 1),
        ([TRUTH[0] | {"cause": "compaction"}, *TRUTH[1:]], "cause", "compaction", 0, 1),
        ([TRUTH[0], TRUTH[1] | {"cause": "compaction"}, TRUTH[2]], "cause", "compaction", 0, 1),
    ],
)
def test_what_differs_is_not_passed(
    found: list[Row], section: str, name: str, precision: float, recall: float
) -> None:
    """A break missed, invented, doubled, misplaced, misnamed, or explained wrongly."""
    result = scored(TRUTH, found)
    part = next(part for part in result.sections if part.title == section)

    assert not result.is_passed
    assert part.lines[name].precision == pytest.approx(precision)
    assert part.lines[name].recall == pytest.approx(recall)
    assert "NOT PASSED" in score_text(result)
    assert "expected" in score_text(result)


def test_a_cause_may_be_left_open() -> None:
    """That costs recall and no precision; whether the true one was listed is told."""
    open_ones = [
        TRUTH[0] | {"cause": "unknown", "admissible": ["compaction", "retention overrun"]},
        *TRUTH[1:],
    ]

    result = scored(TRUTH, open_ones)

    line = result.causes.lines["retention overrun"]
    assert (line.truth, line.found, line.recall, line.precision) == (1, 0, 0, 1)
    assert (result.abstained, result.listed) == (1, 1)
    assert result.is_passed


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ({"verdict": "KEPT"}, "statement, verdict: expected BROKEN, found KEPT"),
        ({"classes": {"DELIVERED": 9}}, "statement, classes DELIVERED: expected 0, found 9"),
        ({"flags": {"LATE": 1}}, "statement, flags LATE: expected 0, found 1"),
        ({"partitions": [{"messages": 1, "unexplained": 0}]}, "statement, sum messages: expected 0, found 1"),
        (
            {"partitions": [{"messages": 0, "unexplained": 2}]},
            "statement, sum unexplained: expected 0, found 2",
        ),
    ],
)
def test_the_statement_is_held_against_the_truth_as_well(statement: Row, expected: str) -> None:
    """Its counts also tell of messages that are no break."""
    result = score(TRUTH, TRUTH, SUMMARY, STATEMENT | statement)

    assert not result.is_passed
    assert expected in score_text(result)


def test_only_what_is_perfect_reads_1() -> None:
    """Rounding makes no miss invisible."""
    truth = [broken("LOST", message_id=f"m{number}") for number in range(20_000)]

    result = scored(truth, truth[1:])

    assert "0.9999" in score_text(result)
    assert "| LOST | 20000 | 19999 | 19999 | 1.0000 | 0.9999 |" in score_page(
        result, SUMMARY | {"messages": 1}, {}
    )
