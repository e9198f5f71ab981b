"""From bodies to a plan, its words, its files, and the lines that Kafka's console producer reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.replaying.breaks import STATEMENT, doubled, lost

from tieout.contracts import Contract
from tieout.errors import UsageError
from tieout.model import Window
from tieout.replaying import Body, Plan, Record, choose, plan_of
from tieout.replaying.console_producer import line_of
from tieout.replaying.describing import Subject, destinations, escaped, markdown, notes_on
from tieout.replaying.folder import read_plan, require_removal_sql, write_console_lines, write_plan

Make = Callable[..., Contract]
WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
OUTPUT = {"value": "body", "output": {"table": "sink.orders", "identity": "order_id", "order": "loaded_at"}}


def planned(contract: Contract, *breaks: dict[str, object], body: Body | None = None) -> Plan:
    """Return the plan for breaks of which every lost message has the body."""
    chosen = choose(breaks, STATEMENT, contract)
    found = replace(body or Body(1, b"k", b'{"n": 1}'), is_verified=True)
    return plan_of(chosen, {one.key: found for one in chosen.lost})


def subject(contract: Contract) -> Subject:
    """Return what the plans of these tests are about."""
    return Subject(contract, WINDOW, "0b9f2f0e-0000-0000-0000-000000000000", None, "files")


def test_a_message_without_a_body_is_refused(make: Make) -> None:
    """And so is one whose source holds two that differ."""
    chosen = choose([lost(1), lost(2)], STATEMENT, make())

    plan = plan_of(chosen, {chosen.lost[1].key: Body(2, None, b"x")})

    assert plan.is_empty
    reasons = sorted(refusal.reason for refusal in plan.refusals)
    assert reasons[0].startswith("2 different bodies")
    assert reasons[1].startswith("no row with the payload hash of the evidence was found")


@pytest.mark.parametrize("content", [None, b"", b"text \xf0\x9f\x8c\x8d", b"\x00\xff", b"a\nb"])
def test_bytes_come_back_from_their_line(make: Make, content: bytes | None) -> None:
    """Whatever they are: a tombstone, nothing, text or none."""
    plan = planned(make(), lost(1), body=Body(1, content, content, (("h", None), ("trace", "1"))))

    (record,) = plan.records
    again = Record.from_json(record.to_json())

    assert again.body == record.body
    assert again.to_json() == record.to_json()


def test_a_body_that_no_hash_speaks_for_is_refused(make: Make) -> None:
    """A row that claims another's hash beside a body of its own is produced only where the contract says so."""
    contract = make()
    chosen = choose([lost(1), lost(2), lost(3)], STATEMENT, contract)
    bodies = {one.key: Body(1, None, b"x", is_verified=n == 0) for n, one in enumerate(chosen.lost)}

    refused, accepted = plan_of(chosen, bodies), plan_of(chosen, bodies, accepts_unverified=True)

    assert [record.message.key for record in refused.records] == [chosen.lost[0].key]
    assert {refusal.reason.partition(":")[0] for refusal in refused.refusals} == {
        "its payload hash is not computed from its body"
    }
    assert "sha2(body, 256)" in refused.refusals[0].reason
    assert notes_on(contract, refused) == ()
    assert len(accepted.records) == 3
    assert "2 of the 3 bodies are not verified" in notes_on(contract, accepted)[0]


@pytest.mark.parametrize(
    ("replay", "place"),
    [
        ({"value": "body"}, "topic t-{}"),
        ({"value": "body", "to": {"connection": "k", "topic": "*"}}, "topic t-{}"),
        ({"value": "body", "to": {"connection": "k", "topic": "again"}}, "topic again, of topic t-{}"),
        ({"value": "body", "to": {"connection": "p", "table": "outbox"}}, "table outbox, of topic t-{}"),
    ],
)
def test_a_plan_counts_every_message_by_where_it_goes(
    make: Make, tmp_path: Path, replay: dict[str, Any], place: str
) -> None:
    """The list of messages is a sample; the counts are of all, so one stray topic among thousands is seen."""
    contract = make(replay={**replay, "output": OUTPUT["output"]})
    breaks = [lost(n, topic=f"t-{n % 3 if n else 9}") for n in range(400)] + [
        doubled(n) for n in range(500, 507)
    ]
    plan = planned(contract, *breaks)

    places = destinations(plan, contract)

    assert places == [
        *sorted(("produce again", place.format(n), 133) for n in (0, 1, 2)),
        ("remove surplus rows", "table sink.orders", 7),
        ("produce again", place.format(9), 1),
    ]
    text = markdown(plan, subject(contract))
    assert all(f"| {act} | {escaped(where)} | **{count}** |" in text for act, where, count in places)
    folder = Path(write_plan(plan, subject(contract), text, tmp_path)["folder"])
    written = json.loads((folder / "plan.json").read_text())
    assert sum(one["messages"] for one in written["destinations"]) == 407


def test_more_places_than_a_page_holds_are_summed(make: Make) -> None:
    """Whoever writes evidence names topics, ten thousand of them perhaps; the words stay bounded, the sum whole."""
    contract = make()
    plan = planned(contract, *(lost(n, topic=f"{'<x>|' * 60}{n}") for n in range(3_000)))

    text = markdown(plan, subject(contract))

    assert "2980 more places, all in plan.json | **2980** |" in text
    assert len(text) < 15_000
    assert len(destinations(plan, contract)) == 3_000


def test_the_words_name_who_may_approve(make: Make) -> None:
    """An approver who reads the plan sees whether they may."""
    assert "| may approve | nobody |" in markdown(planned(make(), lost(1)), subject(make()))
    named = make(replay={"value": "body", "approvers": ["ann", "id:7"]})
    assert r"| may approve | ann, id\:7 |" in markdown(planned(named, lost(1)), subject(named))


def test_the_words_of_a_plan_are_bounded_and_escaped(make: Make) -> None:
    """An id cannot bring a table, a link, a script or a line of its own, and no body is shown."""
    evil = "<script>alert(1)</script>|[x](javascript:1)\n# **big**"
    breaks = [lost(n, message_id=f"{evil}{n}" + "x" * 5000) for n in range(500)]
    contract = make(ordering="partition")

    plan = planned(contract, *breaks, body=Body(1, b"the key", b"the secret body"))
    text = markdown(plan, subject(contract), notes_on(contract, plan))

    assert len(text) < 15_000
    assert "<" not in text.replace("<br>", "")
    assert "](javascript" not in text
    assert "secret" not in text
    assert "the key" not in text
    assert "and 480 more" in text
    assert "order within each partition is promised" in text
    assert plan.digest in text


def test_what_is_approved_is_what_is_executed(make: Make, tmp_path: Path) -> None:
    """A record changed in the files afterwards is noticed, and so is a removal that was slipped in."""
    contract = make()
    plan = planned(contract, lost(1), doubled(2))
    written = write_plan(plan, subject(contract), "words", tmp_path)
    folder = Path(written["folder"])

    records, removals = read_plan(folder, written["digest"])
    assert [record.message.message_id for record in records] == ["m-1"]
    assert [removal.message_id for removal in removals] == ["m-2"]

    for name in ("records.jsonl", "removals.jsonl"):
        before = (folder / name).read_text()
        (folder / name).write_text(before + before.replace("b-", "c-").replace('"key": "', '"key": "0'))
        with pytest.raises(UsageError, match="changed since"):
            read_plan(folder, written["digest"])
        (folder / name).write_text(before)
    (folder / "removals.jsonl").write_text(before.replace('"m-2"', '"m-3"'))
    with pytest.raises(UsageError, match="changed since"):
        read_plan(folder, written["digest"])
    for damaged in ("[1]\n", "null\n", "{}\n", '{"key": 1', "\n"):
        (folder / "records.jsonl").write_text(damaged)
        with pytest.raises(UsageError, match="missing or damaged"):
            read_plan(folder, written["digest"])
    (folder / "records.jsonl").unlink()
    with pytest.raises(UsageError, match="missing or damaged"):
        read_plan(folder, written["digest"])


def test_the_sql_is_that_of_the_approved_removals(make: Make, tmp_path: Path) -> None:
    """Nobody is handed SQL that was changed in the folder, or that another contract would give."""
    contract = make(replay=OUTPUT)
    plan = planned(contract, doubled(2))
    folder = Path(write_plan(plan, subject(contract), "words", tmp_path)["folder"])
    other = make(replay={"output": {"table": "others", "identity": "order_id", "order": "loaded_at"}})

    require_removal_sql(folder, plan.removals, contract)

    with pytest.raises(UsageError, match=r"remove\.sql: expected the SQL of the plan that was approved"):
        require_removal_sql(folder, plan.removals, other)
    (folder / "remove.sql").write_text("DROP TABLE orders;\n" + (folder / "remove.sql").read_text())
    with pytest.raises(UsageError, match="was changed since"):
        require_removal_sql(folder, plan.removals, contract)
    (folder / "remove.sql").unlink()
    with pytest.raises(UsageError, match="was changed since"):
        require_removal_sql(folder, plan.removals, contract)


def test_an_approver_sees_what_was_replayed_before(make: Make) -> None:
    """Another attempt has keys of its own, so what went out once goes out again; an approver knows that."""
    contract = make()
    plan = planned(contract, lost(1), lost(3), doubled(2))

    assert "3 of these 3 were replayed before" in markdown(
        plan, subject(contract), notes_on(contract, plan, 3)
    )
    assert "before" not in markdown(plan, subject(contract), notes_on(contract, plan))


def test_the_same_plan_lies_in_the_same_place(make: Make, tmp_path: Path) -> None:
    """Planning twice replaces the files, and leaves nothing else behind."""
    contract = make(replay=OUTPUT)
    plan = planned(contract, lost(1), doubled(2))

    first, second = (write_plan(plan, subject(contract), "words", tmp_path) for _ in range(2))

    assert first == second
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [first["plan_id"]]
    assert 'PARTITION BY "order_id"' in (Path(first["folder"]) / "remove.sql").read_text()


def test_without_the_outputs_columns_there_is_no_sql(make: Make, tmp_path: Path) -> None:
    """The file says why, and the rows are listed all the same."""
    contract = make()
    written = write_plan(planned(contract, doubled(2)), subject(contract), "words", tmp_path)

    folder = Path(written["folder"])

    assert "replay.output does not name" in (folder / "remove.sql").read_text()
    assert json.loads((folder / "removals.jsonl").read_text())["message_id"] == "m-2"


def test_a_line_for_the_console_producer_carries_key_headers_and_idempotence_key(make: Make) -> None:
    """Parted by tabs, as its options in the command say."""
    (record,) = planned(make(), lost(1), body=Body(1, b"k", b"a\tb", (("trace", "7"),))).records

    assert line_of(record) == f"tieout-idempotence-key:{record.message.key},trace:7\tk\ta\tb"


@pytest.mark.parametrize(
    "body",
    [
        Body(1, b"k", b"a\nb"),
        Body(1, b"a\tb", b"v"),
        Body(1, b"k", b"\xff"),
        Body(1, b"k", b"__tieout_null__"),
        Body(1, b"k", b"v", (("a:b", "c"),)),
        Body(1, b"k", b"v", (("a", "b,c:d"),)),
    ],
)
def test_what_a_line_cannot_hold_is_left_out_and_reported(make: Make, tmp_path: Path, body: Body) -> None:
    """Publishing something else in its place would corrupt the message."""
    plan = planned(make(), lost(1), body=body)

    reported = write_console_lines(plan.records, tmp_path)

    assert list(reported) == [""]
    assert "1 records do not fit into lines" in reported[""]


def test_every_topic_has_a_file_and_its_command(make: Make, tmp_path: Path) -> None:
    """A tombstone is the null marker that the command names."""
    plan = planned(make(), lost(1), lost(2, topic="it's"), body=Body(1, None, None))

    reported = write_console_lines(plan.records, tmp_path)

    assert sorted(reported) == ["produce-1.txt", "produce-2.txt"]
    assert r"--topic 'it'\''s'" in reported["produce-1.txt"]
    assert (tmp_path / "produce-2.txt").read_text().endswith("\t__tieout_null__\t__tieout_null__\n")
