"""A first contract from samples: what is guessed, why, and what never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.contracts import Contract, KafkaSource, load_contract
from tieout.contracts.drafting import Draft, draft
from tieout.contracts.guessing import ColumnSample, LedgerSample
from tieout.model import Guarantee, Ledger

IDS = ColumnSample("id", "text", ("a", "b"))


def of(*columns: ColumnSample, form: str = "jsonl", rows: int = 2) -> LedgerSample:
    """Return a sample of the columns."""
    paths = {"jdbc": "warehouse:analytics.orders", "kafka": "events:orders"}
    return LedgerSample(form, paths.get(form, "x.jsonl"), columns, rows)


def drafted(
    tmp_path: Path, produced: LedgerSample, delivered: LedgerSample, group: str | None = None
) -> tuple[Draft, Contract]:
    """Return the draft, and the contract that it is."""
    samples = {Ledger.PRODUCED: produced, Ledger.DELIVERED: delivered}
    made = draft("orders", Guarantee.AT_LEAST_ONCE, group, samples)
    (tmp_path / "orders.yml").write_text(made.text)
    return made, load_contract(tmp_path / "orders.yml")


@pytest.mark.parametrize(
    ("kind", "value", "expression", "why"),
    [
        ("integer", "1763632800", "timestamp_seconds(sent)", "seconds since 1970"),
        ("integer", "1763632800000", "timestamp_millis(sent)", "milliseconds since 1970"),
        ("text", "1763632800000", "timestamp_millis(cast(sent as bigint))", "milliseconds since 1970"),
        ("integer", "1763632800000000", "timestamp_micros(sent)", "microseconds since 1970"),
        ("integer", "1763632800000000000", "timestamp_micros(sent div 1000)", "nanoseconds since 1970"),
        ("text", "20261120100001", "to_timestamp(sent, 'yyyyMMddHHmmss')", "WITHOUT A ZONE"),
        (
            "integer",
            "20261120100001",
            "to_timestamp(cast(sent as string), 'yyyyMMddHHmmss')",
            "calendar time",
        ),
        ("text", "20261120100001250", "to_timestamp(sent, 'yyyyMMddHHmmssSSS')", "calendar time"),
        ("integer", "9999999999", "timestamp_seconds(sent)", "seconds since 1970"),
        ("integer", "9999999999999", "timestamp_millis(sent)", "milliseconds since 1970"),
        ("text", "2026-11-20T10:00:00Z", "sent", "ISO 8601, with their zone"),
        ("text", "2026-11-20 10:00:00", "to_timestamp(sent)", "WITHOUT A ZONE"),
        ("time", "2026-11-20T10:00:00", "sent", "times in the source"),
    ],
)
def test_the_unit_of_a_time_follows_from_its_size(
    tmp_path: Path, kind: str, value: str, expression: str, why: str
) -> None:
    """And said, because a wrong unit would put every message into another window."""
    made, contract = drafted(tmp_path, of(IDS, ColumnSample("sent", kind, (value, value))), of(IDS))

    assert contract.ledgers[Ledger.PRODUCED].columns["attempted_at"] == expression
    assert why in made.text


@pytest.mark.parametrize(
    "values",
    [
        ("7", "8"),
        ("1763632800", "1763632800000"),
        ("soon", "later"),
        ("20261120", "20261121"),
        ("20261320100001", "20261120100001"),
        ("20261120100001", "20261120100001250"),
        ("10000000000", "10000000001"),
        ("20000000000000", "99999999999999"),
    ],
)
def test_what_does_not_fit_is_no_time(tmp_path: Path, values: tuple[str, str]) -> None:
    """A name alone is not enough; what is missing is named."""
    made, contract = drafted(tmp_path, of(IDS, ColumnSample("sent", "text", values)), of(IDS))

    assert "attempted_at" not in contract.ledgers[Ledger.PRODUCED].columns
    assert "produced: attempted_at was not found" in made.open_questions


@pytest.mark.parametrize("kind", ["text", "time"])
def test_day_alone_is_no_time(tmp_path: Path, kind: str) -> None:
    """It puts no message into a window of hours, be it text or a column of dates."""
    days = ColumnSample("sent", kind, ("2026-11-20", "2026-11-21"))
    made, contract = drafted(tmp_path, of(IDS, days), of(IDS))

    assert "attempted_at" not in contract.ledgers[Ledger.PRODUCED].columns
    assert "produced: attempted_at was not found" in made.open_questions


@pytest.mark.parametrize("name", ["written_us", "writtenAt", "ts_us", "loaded_ts", "created_time"])
def test_a_times_name_may_end_in_its_unit(tmp_path: Path, name: str) -> None:
    """What it is in is told by the values, as without one."""
    times = ColumnSample(name, "integer", ("1763632800000000", "1763632800000001"))
    _, contract = drafted(tmp_path, of(IDS), of(IDS, times))

    assert contract.ledgers[Ledger.DELIVERED].columns["processed_at"] == f"timestamp_micros({name})"


def _col(name: str, *values: str, kind: str = "text") -> ColumnSample:
    return ColumnSample(name, kind, values)


@pytest.mark.parametrize(
    ("sent", "arrived", "expected"),
    [
        (
            _col("event_id", "o-1", "o-2"),
            [_col("uuid", "x-1", "x-2"), _col("event_ref", "o-1", "o-2")],
            "event_ref",
        ),
        (_col("event_id", "o-1", "o-2"), [_col("event_id", "o-8"), _col("parent", "o-1")], "event_id"),
        (_col("id", "1", "2"), [_col("id", "1", "2"), _col("order_id", "1", "2")], None),
        (_col("id", "1", "2"), [_col("id", "8", "9"), _col("order_id", "1", "2", kind="integer")], None),
        (_col("id", "1", "2"), [_col("id", "1", "2"), _col("customer_id", "1", "77")], "id"),
        (_col("id", "1", "2"), [_col("id", "1", "2"), _col("topic", "1", "2")], "id"),
        (_col("id", "o-1"), [_col("id", "o-1"), _col("copied_from", "o-1")], "id"),
        (_col("order_id", "1", "2"), [_col("order_id", "9"), _col("customer_id", "1")], "order_id"),
        (_col("id", "1"), [_col("message_id", "1"), _col("customer_id", "1")], "message_id"),
    ],
)
def test_an_id_by_its_name_must_not_be_the_outputs_own_key(
    tmp_path: Path, sent: ColumnSample, arrived: list[ColumnSample], expected: str | None
) -> None:
    """Values that `produced` has say more than a name; whole numbers are alike by chance, and leave it open."""
    made, contract = drafted(tmp_path, of(sent), of(*arrived))

    assert contract.ledgers[Ledger.DELIVERED].columns.get("message_id") == expected
    reported = [one for one in made.open_questions if one.startswith("delivered: message_id: NOT GUESSED")]
    assert bool(reported) == (expected is None)
    assert all("id and order_id have values" in one for one in reported)
    assert all(one.removeprefix("delivered: ") in made.text for one in reported)


@pytest.mark.parametrize("form", ["jdbc", "delta", "iceberg"])
def test_coverage_is_never_guessed(tmp_path: Path, form: str) -> None:
    """Rows cannot show that none is missing: none is written, whatever the source, and the reader is told."""
    made, contract = drafted(tmp_path, of(IDS), of(IDS, form=form))

    assert all(ledger.coverage is None for ledger in contract.ledgers.values())
    assert "verdict is UNKNOWN at best" in made.text
    assert "#   coverage: {complete_until: now()}" in made.text
    assert made.open_questions[:2] == (
        "produced: coverage, which is never guessed",
        "delivered: coverage, which is never guessed",
    )


def test_files_without_a_row_are_named(tmp_path: Path) -> None:
    """An empty file and one of another format: a missing column is not what is wrong with them."""
    expected = "produced: no row was found in x.jsonl, so no column was guessed; is it jsonl, and not empty?"

    empty, _ = drafted(tmp_path, of(rows=0), of(IDS))
    full, _ = drafted(tmp_path, of(IDS), of(IDS))

    assert expected in empty.open_questions
    assert not any("no row" in question for question in full.open_questions)


def test_an_outcome_claims_only_what_is_stated(tmp_path: Path) -> None:
    """Only words for an acknowledgement are one: `sent` is not, and neither is a source without an outcome."""
    values = ("OK", "SENT", "TIMEOUT", "ERROR")
    _, stated = drafted(tmp_path, of(IDS, ColumnSample("status", "text", values)), of(IDS))
    made, silent = drafted(tmp_path, of(IDS), of(IDS))

    assert stated.ledgers[Ledger.PRODUCED].columns["outcome"] == (
        "case when lower(status) in ('ok') then 'acked' when lower(status) in ('error') then 'failed' "
        "else 'unknown' end"
    )
    assert "outcome" not in silent.ledgers[Ledger.PRODUCED].columns
    assert "produced: outcome was not found" in made.open_questions


def test_names_of_ones_own_are_found_where_there_is_one_alone(tmp_path: Path) -> None:
    """A reference that differs in every row, and the only column of times; of two, neither is taken."""
    ref, at = ("p-1", "p-2"), ("2026-11-20T10:00:00Z", "2026-11-20T10:00:05Z")
    sent = of(ColumnSample("payment_ref", "text", ref), ColumnSample("initiated", "text", at))
    booked = of(ColumnSample("payment_ref", "text", ref), ColumnSample("booked_at", "text", at))
    made, contract = drafted(tmp_path, sent, booked)
    columns = {ledger: spec.columns for ledger, spec in contract.ledgers.items()}
    assert columns[Ledger.PRODUCED] == {"message_id": "payment_ref", "attempted_at": "initiated"}
    assert columns[Ledger.DELIVERED] == {"message_id": "payment_ref", "processed_at": "booked_at"}
    assert "the only …_ref whose sampled values are all different" in made.text
    assert "the only column of times; ISO 8601" in made.text

    two = of(*booked.columns, ColumnSample("value_date", "text", at), ColumnSample("order_no", "text", ref))
    _, contract = drafted(tmp_path, two, two)
    assert not {"message_id", "attempted_at"} & set(contract.ledgers[Ledger.PRODUCED].columns)


def test_an_id_is_known_by_its_values_too(tmp_path: Path) -> None:
    """A column of another name that holds the ids of what was sent is the id there."""
    sent = of(ColumnSample("orderId", "text", ("o-1", "o-2")))
    made, contract = drafted(tmp_path, sent, of(ColumnSample("order no", "text", ("o-2", "o-9"))))

    assert contract.ledgers[Ledger.DELIVERED].columns["message_id"] == "`order no`"
    assert "1 of its sampled values stand in produced.orderId" in made.text


@pytest.mark.parametrize(
    ("produced", "delivered", "identity", "is_open"),
    [
        (("id",), ("id",), "message_id", False),
        (("topic", "partition", "offset"), ("topic", "partition", "offset"), "position", False),
        (("payload_hash",), ("payload_hash",), "content", False),
        (("id",), ("topic", "partition", "offset"), "message_id", True),
    ],
)
def test_identity_is_what_both_sides_have(
    tmp_path: Path, produced: tuple[str, ...], delivered: tuple[str, ...], identity: str, is_open: bool
) -> None:
    """Where nothing is on both sides, that is the first open question."""
    sides = [of(*[ColumnSample(name, "text", (f"{n}", f"{n + 7}")) for n, name in enumerate(names)])
             for names in (produced, delivered)]  # fmt: skip

    made, contract = drafted(tmp_path, sides[0], sides[1])

    assert contract.identity.value == identity
    assert made.open_questions[0].startswith("identity: NOT GUESSED") is is_open


def test_a_group_is_taken_from_the_rows_only_where_they_agree(tmp_path: Path) -> None:
    """Rows that name another group are set aside, so a wrong one would hide them all."""
    one = of(IDS, ColumnSample("group_id", "text", ("g", "g")))
    two = of(IDS, ColumnSample("group_id", "text", ("g", "h")))

    assert drafted(tmp_path, of(IDS), one)[1].group == "g"
    assert "NOT GUESSED: the pipeline's name" in drafted(tmp_path, of(IDS), two)[0].text
    assert drafted(tmp_path, of(IDS), one, "mine")[1].group == "mine"


def test_a_topic_needs_no_coverage_and_is_read_by_expressions(tmp_path: Path) -> None:
    """Its fields are in the value, and its end is known when the run begins."""
    field = ColumnSample("id", "text", ("a", "b"), "get_json_object(string(value), '$.id')")
    sent = ColumnSample(
        "at", "text", ("1763632800000", "1763632800001"), "get_json_object(string(value), '$.at')"
    )
    stamped, value = ColumnSample("source_timestamp", "time", ("",)), ColumnSample("value", "text", ())
    topic = of(field, sent, stamped, value, form="kafka")

    made, contract = drafted(tmp_path, of(IDS), topic)

    spec = contract.ledgers[Ledger.DELIVERED]
    assert spec.source == KafkaSource(connection="events", topic="orders")
    assert spec.columns["message_id"] == "get_json_object(string(value), '$.id')"
    assert spec.columns["processed_at"] == "source_timestamp"
    assert "payload_hash: sha2(value, 256)" in made.text
    assert made.open_questions[0] == "produced: coverage, which is never guessed"
    assert not any(question.startswith("delivered: coverage") for question in made.open_questions)


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    """A column's name or value can end neither its comment nor its scalar."""
    name = 'id": x\n  evil: "`y`'
    evil = ColumnSample(name, "text", ("a", "b"))
    status = ColumnSample("status", "text", ("ok", "x'\n# y"))

    _, contract = drafted(tmp_path, of(IDS, status), of(evil, ColumnSample("z\nw", "text", ("1",))))

    assert contract.ledgers[Ledger.DELIVERED].columns["message_id"] == f"`{name.replace('`', '``')}`"
    assert set(contract.ledgers) == {Ledger.PRODUCED, Ledger.DELIVERED}
