"""The statement on a terminal: complete, aligned, and safe to print."""

from __future__ import annotations

from typing import Any

from tieout.reporting.text import render_text

EXPECTED = """\
BROKEN  orders_to_warehouse
exactly_once, group orders-loader, 2026-11-20T10:00:00Z to 2026-11-20T11:00:00Z

Why
  lost: 3, none allowed

Balance
                      total  orders-0  orders-1
  attempts              208       104       104
    acked attempts      204       102       102
    failed attempts       2         1         1
    unknown attempts      2         1         1
  messages              204       102       102
    accepted            200       100       100
    unproven              2         1         1
    failed                2         1         1
  accepted              200       100       100
    delivered           197       100        97
    lost                  3         0         3
  effects               199       101        98
    first effects       197       100        97
    further effects       2         1         1
  log offsets           204       102       102
    control               4         2         2
    delivered           197       100        97
    lost                  3         0         3

Classes
  DELIVERED  197
  LOST         3

Flags
  LOST  3

Budgets
  late_ratio: 0, no limit declared

Latency from acknowledgement to first effect
  197 messages: mean 1.5 s

Incidents
  3 LOST in orders-1, positions 17 to 19; at: consumer; cause: commit before process

Not judged, by the ledger that would show it (statement.json names the columns)
  produced: REORDER_PRODUCER

Coverage
  produced: covers; complete until 2026-11-20T11:15:00Z; 208 rows, 0 unreadable
  delivered: covers; complete until 2026-11-20T11:15:00Z; 208 rows, 0 unreadable
    a.jsonl:7: torn line
"""


def test_the_text_says_everything_that_the_statement_says(statement: dict[str, Any]) -> None:
    """Verdict, reasons, balance, classes, flags, budgets, incidents, what was not judged, coverage."""
    assert render_text(statement) == EXPECTED


def test_a_sum_that_does_not_add_up_is_shown(statement: dict[str, Any]) -> None:
    """Opposite errors in two partitions do not cancel."""
    statement["partitions"][0]["delivered"] += 1
    statement["partitions"][1]["delivered"] -= 1

    assert "does not add up by      2" in render_text(statement)


def test_whose_word_it_is_that_a_ledger_is_complete_stands_beside_it(statement: dict[str, Any]) -> None:
    """That nothing is missing is somebody's word, and readers are told whose."""
    statement["coverage"]["produced"]["stated_by"] = "watermark file done.txt"

    found = render_text(statement)

    assert "complete until 2026-11-20T11:15:00Z (watermark file done.txt); 208 rows" in found


def test_a_ledger_that_does_not_cover_says_why(statement: dict[str, Any]) -> None:
    """The gap stands beside the ledger, in capitals."""
    statement["coverage"]["produced"] |= {"covers": False, "gap": "absent: no file", "complete_until": None}

    assert "produced: DOES NOT COVER: absent: no file; complete until unknown" in render_text(statement)


def test_many_partitions_are_added_up(statement: dict[str, Any]) -> None:
    """A terminal has no room for a hundred columns; the total stays, and the files with each are named."""
    statement["partitions"] = [statement["partitions"][0] | {"partition": n} for n in range(100)]

    text = render_text(statement)

    assert "attempts            10400\n" in text
    assert "100 partitions; statement.json and statement.html have each" in text


def test_an_empty_window_says_so(statement: dict[str, Any]) -> None:
    """No partition is not an empty table."""
    statement |= {"partitions": [], "incidents": [], "classes": {}, "flags": {}}

    assert "no attempts, effects or log positions in this window" in render_text(statement)


def test_hostile_ids_stay_on_their_line_and_short(statement: dict[str, Any]) -> None:
    """An id can neither move the cursor, nor forge a line, nor fill the screen."""
    hostile = "a\x1b[2J\nKEPT  forged\u202e" + "x" * 100_000
    statement["incidents"][0]["topic"] = hostile
    statement["coverage"]["produced"]["notes"] = [hostile] * 100
    statement["reasons"] = [hostile]
    statement["partitions"][0]["topic"] = hostile

    text = render_text(statement)

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not any(line.strip().startswith("KEPT") for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 320
    assert "and 95 more notes in statement.json" in text


def test_limits_are_reported_beside_what_is_not_judged(statement: dict[str, Any]) -> None:
    """What the contract's terms hide is part of the statement; an older one without limits is told all the same."""
    limit = "identity: content: a loss that an equal duplicate cancels is invisible"

    text = render_text(statement | {"limits": [limit]})

    assert f"Limits\n  {limit}\n" in text
    assert "Limits" not in render_text(statement | {"limits": []})
