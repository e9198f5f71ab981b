"""Replays in a real PostgreSQL: each message once, also where the process is killed half-way."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from psycopg2.extensions import parse_dsn
from tests.store.examples import (
    CONTRACT,
    ORIGIN,
    command,
    incident,
    one_break,
    query,
    rows,
    run_id,
    statement,
)

from tieout.contracts import ReplayOutput
from tieout.errors import StoreError
from tieout.replaying import Body, LostMessage, Record, Removal
from tieout.replaying.removing import removal_sql
from tieout.store import Replay, ReplayItem, Store
from tieout.store.replay_target import insert_once, target_database

RECORDS = 450
"""More than two pages."""

_REPLAYER = """
import sys
from tests.store.test_replays import inserted
inserted(sys.argv[1])
"""

_PAUSE = """
CREATE FUNCTION public.pause() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN IF new.message_id = 'm-300' THEN PERFORM pg_sleep(120); END IF; RETURN new; END $$;
CREATE TRIGGER pause BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION public.pause()
"""


def records() -> list[Record]:
    """Return records of every kind of body."""
    bodies = [Body(1, b"k", b"v"), Body(1, None, None), Body(1, b"\x00\xff", b"", (("h", "1"),))]
    return [
        Record(
            LostMessage(f"key-{n}", f"b-{n}", f"m-{n}", None, "orders", n % 3, n, None),
            bodies[n % len(bodies)],
        )
        for n in range(RECORDS)
    ]


def inserted(url: str, table: str = "outbox") -> int:
    """Insert the records into a table of the database behind the URL."""
    return insert_once(target_database("warehouse", parse_dsn(url)), table, "plan-1", records())


def test_a_message_is_inserted_once_however_often_it_is_tried(empty_url: str) -> None:
    """Also where whoever publishes from the table deletes its rows."""
    assert inserted(empty_url) == RECORDS
    assert inserted(empty_url) == 0
    query(empty_url, "DELETE FROM outbox")

    assert inserted(empty_url) == 0
    assert query(empty_url, "SELECT count(*) AS n FROM outbox") == [{"n": 0}]


def test_bodies_arrive_as_they_were(empty_url: str) -> None:
    """Bytes, tombstones, headers, and the order of the plan."""
    query(empty_url, "CREATE SCHEMA replays")
    inserted(empty_url, "replays.outbox")

    rows = query(empty_url, "SELECT * FROM replays.outbox ORDER BY ctid LIMIT 3")

    found = [(r["message_id"], r["key"] and bytes(r["key"]), r["value"], r["headers"]) for r in rows]
    found = [(i, k, None if v is None else bytes(v), h) for i, k, v, h in found]
    assert found == [
        ("m-0", b"k", b"v", []),
        ("m-1", None, None, []),
        ("m-2", b"\x00\xff", b"", [["h", "1"]]),
    ]


def test_a_replay_killed_half_way_has_done_nothing_and_the_next_does_all(empty_url: str) -> None:
    """Rows and keys are one transaction; kill -9 in its middle, then twice more, is once."""
    insert_once(target_database("warehouse", parse_dsn(empty_url)), "outbox", "plan-0", [])
    query(empty_url, _PAUSE)
    process = subprocess.Popen([sys.executable, "-c", _REPLAYER, empty_url])
    try:
        _await_sleeper(empty_url, is_there=True)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
    _await_sleeper(empty_url, is_there=False)
    assert query(empty_url, "SELECT count(*) AS n FROM outbox") == [{"n": 0}]

    query(empty_url, "DROP FUNCTION public.pause() CASCADE")
    assert [inserted(empty_url), inserted(empty_url)] == [RECORDS, 0]
    counted = "SELECT count(*) AS n, count(DISTINCT idempotence_key) AS keys FROM outbox"
    assert query(empty_url, counted) == [{"n": RECORDS, "keys": RECORDS}]


def test_a_table_of_another_shape_is_an_error_that_names_the_connection(empty_url: str) -> None:
    """And nothing is remembered as replayed."""
    query(empty_url, "CREATE TABLE outbox (id integer)")

    with pytest.raises(StoreError, match=r"nothing was stored.*does not exist"):
        inserted(empty_url)

    assert query(empty_url, "SELECT to_regclass('tieout_replayed') AS found") == [{"found": None}]


def test_a_role_that_may_not_create_tables_uses_those_made_for_it(
    empty_url: str, postgres_url: str, request: pytest.FixtureRequest
) -> None:
    """An administrator makes them, and grants no more than reading and writing."""
    inserted(empty_url)
    query(empty_url, "DELETE FROM outbox; DELETE FROM tieout_replayed")
    query(empty_url, "CREATE ROLE replay_limited LOGIN PASSWORD 'limited'")
    request.addfinalizer(lambda: command(postgres_url, "DROP ROLE replay_limited"))
    request.addfinalizer(lambda: query(empty_url, "DROP OWNED BY replay_limited"))
    query(empty_url, "GRANT SELECT, INSERT ON outbox, tieout_replayed TO replay_limited")

    place = empty_url.split("@")[1]

    assert inserted(f"postgresql://replay_limited:limited@{place}") == RECORDS


def test_a_target_out_of_reach_is_reported_by_its_connection(empty_url: str) -> None:
    """TIEOUT_DATABASE_URL has nothing to do with it, and the password does not show."""
    parts = {**parse_dsn(empty_url), "port": "1", "password": "hush"}

    with pytest.raises(StoreError, match="of the connection warehouse belong to it") as caught:
        insert_once(target_database("warehouse", parts), "outbox", "plan-1", records())

    assert "hush" not in str(caught.value)


def test_the_ledger_of_replays_takes_a_key_once(store: Store, store_url: str) -> None:
    """A second plan with some of the same breaks adds the others; who asks is told which plan did it."""
    items = [ReplayItem(f"k{n}", f"b-{n}", "produce", f"m-{n}") for n in range(3)]

    new = [
        store.record_replay(_replay("plan-1"), items[:2]),
        store.record_replay(_replay("plan-1"), items[:2]),
        store.record_replay(_replay("plan-2"), items),
    ]

    assert new == [2, 0, 1]
    found = store.replayed(["k0", "k2", "k9"])
    assert {key: done.plan_id for key, done in found.items()} == {"k0": "plan-1", "k2": "plan-2"}
    assert store.replayed_breaks(["b-0", "b-2", "b-9"]) == 2
    assert query(store_url, "SELECT approved_by FROM tieout.replay WHERE plan_id = 'plan-1'") == [
        {"approved_by": "ann"}
    ]


@pytest.mark.parametrize(
    ("after", "resolution"),
    [
        ([], "replayed"),
        ([one_break(1, **{"class": "LATE", "flags": [], "severity": "warning"})], "replayed"),
        ([one_break(1)], None),
    ],
    ids=["gone", "late", "still lost"],
)
def test_a_break_that_went_after_its_replay_was_resolved_by_it(
    store: Store, store_url: str, after: list[dict[str, Any]], resolution: str | None
) -> None:
    """And one that stays lost is still open: a replay is no proof of an effect."""
    store.publish(statement(1, breaks_total=1), [one_break(1)], CONTRACT, ORIGIN)
    store.record_replay(_replay("plan-1"), [ReplayItem("k1", "break-1", "produce", "m-1")])
    query(store_url, "UPDATE tieout.replay SET executed_at = '2026-11-20T12:00:02Z'")

    found = [incident("incident-1", len(after)) | {"class": one["class"]} for one in after]
    store.publish(statement(3, breaks_total=len(after), incidents=found), after, CONTRACT, ORIGIN)

    lives = [row for row in rows(store_url, "life") if row["kind"] == "break"]
    assert [row["resolution"] for row in lives] == [resolution]


NASTY = ["m-1", "it's", 'back\\slash"', "'; DROP TABLE sink.orders; --"]


def test_removing_surplus_rows_keeps_the_first_of_each_named_message(empty_url: str) -> None:
    """Running it again removes nothing, other messages are not touched, and an id is only ever text."""
    query(empty_url, "CREATE SCHEMA sink")
    query(
        empty_url, "CREATE TABLE sink.orders (order_id text, loaded_at integer) PARTITION BY LIST (loaded_at)"
    )
    for place in (1, 2, 3):
        query(empty_url, f"CREATE TABLE sink.part_{place} PARTITION OF sink.orders FOR VALUES IN ({place})")
    for one in [*NASTY, "other"]:
        query(empty_url, "INSERT INTO sink.orders VALUES (%s, 2), (%s, 1), (%s, 3), (%s, 3)", (one,) * 4)
    removals = [Removal(f"k-{one}", f"b-{one}", one, ()) for one in NASTY]
    statements = removal_sql(
        ReplayOutput(table="sink.orders", identity="order_id", order="loaded_at"), removals
    )

    for _ in range(2):
        query(empty_url, statements.replace("%", "%%"))
        left = query(empty_url, "SELECT order_id, array_agg(loaded_at) AS at FROM sink.orders GROUP BY 1")
        found = {row["order_id"]: sorted(row["at"]) for row in left}
        assert found == {**{one: [1] for one in NASTY}, "other": [1, 2, 3, 3]}


def _replay(plan_id: str) -> Replay:
    return Replay(
        plan_id=plan_id,
        run_id=run_id(1),
        pipeline="orders",
        group="loader",
        incident_id=None,
        target="files",
        digest="d",
        approved_by="ann",
        dag_run_id="manual__1",
    )


def _await_sleeper(url: str, *, is_there: bool, seconds: float = 120) -> None:
    sleeping = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
    deadline = time.monotonic() + seconds
    while bool(query(url, sleeping)) != is_there:
        assert time.monotonic() < deadline, f"the sleeper is {'not there' if is_there else 'still there'}"
        time.sleep(0.05)
