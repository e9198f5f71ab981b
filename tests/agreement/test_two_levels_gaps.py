"""What the log lacks, or has too much, next to the offsets that a window judges: found alike by both levels.

Most messages are clean, so that the rules see few of the log's rows and learn of the others by their counts alone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import SparkSession
from tests.agreement.test_two_levels import D, L, P, Rows, _remaining
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


CASES: Final[dict[str, tuple[Rows, str, str | None]]] = {
    "stamped ahead": (_stamped_ahead(), "KEPT", None),
    "unsent behind it": (_unsent(), "UNKNOWN", "1 records in the log that nobody sent"),
    "holes behind it": (_without(_stamped_ahead(), 80, 81), "UNKNOWN", "2 offsets without a record"),
    "and up to the end": (_without(_stamped_ahead(COUNT + 3), 80), "UNKNOWN", "4 offsets without a record"),
    "across the start": (_across_the_start(), "KEPT", None),
    "holes at the start": (_across_the_start(18, 19, 20), "UNKNOWN", "3 offsets without a record"),
    "a hole before": (_across_the_start(10), "KEPT", None),
    "an old stamp among later ones": (_late(), "KEPT", None),
    "holes in front of it and behind it": (_late(100, COUNT - 9), "UNKNOWN", "2 offsets without a record"),
    "a hole among later ones": (_late(115), "KEPT", None),
}


def test_what_lies_next_to_the_judged_offsets(spark: SparkSession) -> None:
    """It is found as by judging every row, and most rows are judged by nobody."""
    histories = [_history(rows, {"guarantee": "at_least_once"}, UNSTAMPED) for rows, *_ in CASES.values()]
    with suited_to(spark, is_small=True):
        remaining = _remaining(spark, histories, Widths())
        assert remaining is not None
        assert remaining[1].rows is not None
        assert remaining[1].rows[L].count() < COUNT * len(CASES) / 2
        found = statements_of(remaining[0], histories)
        whole = statements_of(scope_together(spark, histories), histories)

    for (name, (_, verdict, gap)), first, second in zip(CASES.items(), found, whole, strict=True):
        assert first == second, name
        assert first["verdict"] == verdict, name
        gaps = [bounds["gap"] for bounds in first["coverage"].values() if bounds["gap"]]
        assert [text.partition(": ")[2][: len(gap or "")] for text in gaps] == ([gap] if gap else []), name
