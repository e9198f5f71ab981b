"""What the log lacks, or has too much, next to the offsets that a window judges: told alike by both levels.

Most messages are clean, so that the rules see few of the log's rows and learn of the others by their counts alone.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession
from tests.agreement.test_two_levels import D, L, P, Rows, _left
from tests.agreement.test_two_levels_traps import UNSTAMPED, _history
from tests.engine.histories import GRACE_END, WINDOW
from tests.engine.judging import scope_together, statements_of

from tieout.engine.prematch.fingerprint import Widths
from tieout.engine.session import suited_to

COUNT = 120
AHEAD = 40
"""The offset of the record that is stamped long after the window."""


def _messages(*, since: timedelta = timedelta(0), end: int = COUNT) -> Rows:
    """Return messages a second apart, and their records, each sent and delivered at once."""
    common = [
        {
            "message_id": f"m{n}", "topic": "t", "partition": 0, "offset": n,
            "payload_hash": f"h{n}", "key_hash": "k",
        }
        for n in range(COUNT)
    ]  # fmt: skip
    at = [WINDOW.start + since + timedelta(seconds=n) for n in range(COUNT)]
    bounds = {"log_start_offset": 0, "end_offset": end, "observed_at": GRACE_END, "cleanup_policy": "delete"}
    return {
        P: [row | {"attempted_at": at[n], "outcome": "acked"} for n, row in enumerate(common)],
        L: [
            row | {"record_timestamp": at[n], "broker_producer_id": -1} | bounds
            for n, row in enumerate(common)
        ],
        D: [
            row | {"processed_at": at[n], "consumer_id": "c", "generation": 1} for n, row in enumerate(common)
        ],
    }


def _stamped_ahead(end: int = COUNT) -> Rows:
    rows = _messages(end=end)
    rows[L][AHEAD]["record_timestamp"] = WINDOW.end + timedelta(hours=500)
    return rows


def _unsent() -> Rows:
    rows = _stamped_ahead(COUNT + 1)
    last = rows[L][-1]
    rows[L].append(last | {"message_id": "x", "offset": COUNT, "payload_hash": "h-x"})
    return rows


def _without(rows: Rows, *offsets: int) -> Rows:
    """Return the rows without all that the messages at the offsets left."""
    return {ledger: [row for row in found if row["offset"] not in offsets] for ledger, found in rows.items()}


def _across_the_start(*offsets: int) -> Rows:
    """Return messages of which the first twenty came before the window, without those at the offsets."""
    return _without(_messages(since=-timedelta(seconds=20)), *offsets)


def _late(*offsets: int) -> Rows:
    """Return messages of which the last thirty came after the window, one of them with a stamp of it.

    Without those at the offsets.
    """
    rows = _messages(since=WINDOW.end - WINDOW.start - timedelta(seconds=COUNT - 30))
    rows[L][COUNT - 10]["record_timestamp"] = rows[L][5]["record_timestamp"]
    return _without(rows, *offsets)


@pytest.mark.parametrize(
    ("rows", "verdict", "gap"),
    [
        (_stamped_ahead(), "KEPT", None),
        (_unsent(), "UNKNOWN", "1 records in the log that nobody sent"),
        (_without(_stamped_ahead(), 80, 81), "UNKNOWN", "2 offsets without a record"),
        (_without(_stamped_ahead(COUNT + 3), 80), "UNKNOWN", "4 offsets without a record"),
        (_across_the_start(), "KEPT", None),
        (_across_the_start(18, 19, 20), "UNKNOWN", "3 offsets without a record"),
        (_across_the_start(10), "KEPT", None),
        (_late(), "KEPT", None),
        (_late(100, COUNT - 9), "UNKNOWN", "2 offsets without a record"),
        (_late(115), "KEPT", None),
    ],
    ids=[
        "stamped ahead",
        "unsent behind it",
        "holes behind it",
        "and up to the end",
        "whole",
        "holes at the start",
        "a hole before",
        "an old stamp among later ones",
        "holes in front of it and behind it",
        "a hole among later ones",
    ],
)
def test_what_lies_next_to_the_judged_offsets(
    spark: SparkSession, rows: Rows, verdict: str, gap: str | None
) -> None:
    """It is found as by judging every row, and most rows are judged by nobody."""
    history = _history(rows, {"guarantee": "at_least_once"}, UNSTAMPED)
    with suited_to(spark, is_small=True):
        left = _left(spark, [history], Widths())
        assert left is not None
        assert left[1].rows is None or left[1].rows[L].count() < COUNT / 2
        found = statements_of(left[0], [history])
        whole = statements_of(scope_together(spark, [history]), [history])

    assert found == whole
    assert found[0]["verdict"] == verdict
    gaps = [told["gap"] for told in found[0]["coverage"].values() if told["gap"]]
    assert [text.partition(": ")[2][: len(gap or "")] for text in gaps] == ([] if gap is None else [gap])
