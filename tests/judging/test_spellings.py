"""Ids that stand in two ledgers but for how they are written, where there are more than a bucket keeps of them."""

from __future__ import annotations

from datetime import timedelta

from tests.engine.histories import START, load_cases
from tests.judging.kernel import judged, scope_of

from tieout.model import Ledger

SENT = 12_000


def test_of_many_ids_those_with_the_least_hashes_are_compared() -> None:
    """Each send is there as a number, among as many ids of nobody's: of what is compared, all are met."""
    case = next(case for case in load_cases() if case.name == "ids of which some are written in another form")
    send, effect = case.rows[Ledger.PRODUCED][0], case.rows[Ledger.DELIVERED][0]
    sends = [
        send | {"message_id": str(number), "offset": number, "payload_hash": None}
        for number in range(1, SENT)
    ]
    effects = [
        effect
        | {
            "message_id": name,
            "topic": "orders",
            "payload_hash": None,
            "processed_at": START + timedelta(minutes=3),
        }
        for number in range(1, SENT)
        for name in (f"{number}.0", f"x-{number}")
    ]
    commit = case.rows[Ledger.COMMITTED][0] | {"committed_offset": SENT}
    rows = {Ledger.PRODUCED: sends, Ledger.DELIVERED: effects, Ledger.COMMITTED: [commit]}

    tables, _ = judged(scope_of(case, rows, case.present), rows)

    (counts,) = tables["spellings"]
    assert counts["topic"] == "orders"
    assert 4_000 < counts["lost"] == counts["lost_met"] < 6_000
    assert 9_000 < counts["strange"] <= 10_000
    assert 4_000 < counts["strange_met"] == counts["lost_met"]
