"""Ids that stand in two ledgers but for how they are written: their forms, and more than a bucket keeps of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from random import Random

import duckdb
from tests.engine.histories import START, load_cases
from tests.judging.kernel import judged, scope_of
from tests.oracle.forms import form_of

from tieout.engine import judging
from tieout.model import Ledger

SENT = 12_000
FORMS = (Path(judging.__file__).parent / "rounds" / "macros" / "87_forms.sql").read_text()
NAMES = (
    "12",
    "+012.0",
    "1,234",
    "1.234.567",
    "1.000",
    "1,234.00",
    "1.0000005E7",
    "2.5e0",
    "1e99",
    "a%20b",
    "%ff",
    '["12"]',
    "a\0",
    "100%",
    "9007199254740993",
    "1234567890123456789",
    "1234567890123456800",
    "1,234,567,890,123,456,789",
    "1.2345678901234567e18",
    f"{'9' * 38}",
    f"{'9' * 39}",
)


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


def test_forms_are_those_of_the_independent_check() -> None:
    """Of names that people meet, and of ones made of the same characters by chance."""
    chance = Random(91)  # noqa: S311 - repeatable, not secret
    by_chance = ["".join(chance.choices("0129.,eE+-% abFC3", k=chance.randint(0, 9))) for _ in range(3_000)]
    numbers = [str(chance.randrange(10 ** chance.randint(14, 40))) for _ in range(1_000)]
    names = [*NAMES, *by_chance, *numbers]
    with duckdb.connect() as connection:
        connection.execute(FORMS)
        found = connection.execute(
            "SELECT name, form_of(name) FROM (SELECT unnest($names) AS name)", {"names": names}
        ).fetchall()

    assert dict(found) == {name: form_of(name) for name in names}
