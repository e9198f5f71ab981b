"""Evidence that is late is waited for without a worker, for a bounded time; what is there, or wrong, is not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest
from airflow.sdk.exceptions import AirflowRescheduleException, TaskDeferred
from tests.store.examples import ORIGIN, run_id, statement, store_named

from tieout.contracts import load_contract
from tieout.model import Verdict, Window
from tieout.orchestration import operators
from tieout.orchestration.operators import POLL_INTERVAL, WindowOperator
from tieout.readiness import incomplete_ledgers
from tieout.store import Store

WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
FILES = "{kind: files, format: jsonl, path: %s}"
Look = Callable[..., tuple[str, ...]]


@pytest.fixture
def look(contracts: Path) -> Look:
    """Looks at a contract whose ledgers are as given; `produced` and `delivered` are there unless they are."""
    (contracts / "there.jsonl").write_text("{}\n")

    def looked(**ledgers: str) -> tuple[str, ...]:
        there = f"{{source: {FILES % 'there.jsonl'}, coverage: declared}}"
        of = {"produced": there, "delivered": there, **ledgers}
        text = "".join(f"  {ledger}: {spec}\n" for ledger, spec in of.items())
        file = contracts / "orders.yml"
        file.write_text(
            "version: 1\npipeline: orders\nguarantee: exactly_once\ngroup: loader\ngrace: 15m\n"
            f"evidence_timeout: 30m\nledgers:\n{text}"
        )
        return incomplete_ledgers(load_contract(file), WINDOW)

    return looked


def ledger(path: str, coverage: str = "declared") -> str:
    """Return a ledger in files."""
    return f"{{source: {FILES % path}, coverage: {coverage}}}"


@pytest.mark.parametrize(
    ("text", "produced", "delivered"),
    [
        ("2026-11-20T11:15:00Z\n", None, None),
        (
            "2026-11-20T11:00:00Z",
            None,
            "complete until 2026-11-20T11:00:00Z as mark.txt says, but 2026-11-20T11:15:00Z",
        ),
        ("2026-11-20T10:59:59Z", "but 2026-11-20T11:00:00Z is needed", "is needed"),
        ("", "mark.txt holds no time", "mark.txt holds no time"),
        (None, "mark.txt cannot be read: No such file", "mark.txt cannot be read"),
    ],
)
def test_a_watermark_file_says_how_far_a_ledger_is(
    look: Look, contracts: Path, text: str | None, produced: str | None, delivered: str | None
) -> None:
    """The producer's side must reach over the window, the consumer's over its grace as well."""
    if text is not None:
        (contracts / "mark.txt").write_text(text)
    spec = ledger("there.jsonl", "{watermark_file: mark.txt}")

    found = look(produced=spec, delivered=spec)

    named_parts = [(name, part) for name, part in (("produced", produced), ("delivered", delivered)) if part]
    assert len(found) == len(named_parts)
    for reason, (name, part) in zip(found, named_parts, strict=True):
        assert reason.startswith(f"{name}: ")
        assert part in reason


def test_a_path_without_a_file_is_not_ready(look: Look, contracts: Path) -> None:
    """Nor is a folder in which nothing lies but what a job that still writes has set aside."""
    (contracts / "out" / "_temporary").mkdir(parents=True)
    (contracts / "out" / "_temporary" / "part-0").write_text("{}")
    specs = {"produced": ledger("sent-*.jsonl"), "delivered": ledger("out")}

    before = look(**specs)
    (contracts / "sent-1.jsonl").write_text("{}")
    (contracts / "out" / "part-0").write_text("{}")

    assert before == ("produced: no file at sent-*.jsonl", "delivered: no file at out")
    assert look(**specs) == ()
    assert look(produced=ledger("s3a://bucket/sent")) == ()


def test_a_table_is_ready_once_it_is_there(look: Look, contracts: Path) -> None:
    """One without rows as well: all it has is a folder that readers of plain files set aside."""
    table = "{source: {kind: files, format: delta, path: lake/orders}}"

    before = look(delivered=table)
    (contracts / "lake" / "orders" / "_delta_log").mkdir(parents=True)
    (contracts / "lake" / "orders" / "_delta_log" / "0.json").write_text("{}")

    assert before == ("delivered: no file at lake/orders",)
    assert look(delivered=table) == ()


def test_a_partition_without_its_folder_is_not_ready(look: Look, contracts: Path) -> None:
    """Where the contract says how many the topic has."""
    for number in (0, 2):
        (contracts / "kafka" / f"orders-{number}").mkdir(parents=True)
        (contracts / "kafka" / f"orders-{number}" / "0.log").write_text("")
    source = "kind: kafka_segments, path: kafka, topic: orders, taken_at: now"

    assert look(log=f"{{source: {{{source}, partitions: 4}}}}") == (
        "log: no folder of orders's partition 1, 3",
    )
    assert look(log=f"{{source: {{{source}}}}}") == ()


TABLE = "{source: {kind: jdbc, connection: warehouse, table: late.orders}, columns: {processed_at: %s}, coverage: %s}"


@pytest.mark.parametrize(
    ("latest", "column", "complete_until", "is_late"),
    [
        ("2026-11-20T11:14:59Z", "loaded_at", "max(processed_at)", True),
        ("2026-11-20T11:15:00Z", "loaded_at", "max(processed_at)", False),
        ("2026-11-20T11:14:59Z", "loaded_at", "now()", False),
        ("2026-11-20T11:14:59Z", "to_timestamp(loaded_at)", "max(processed_at)", False),
        ("2026-11-20T11:14:59Z", "no_such_column", "max(processed_at)", False),
        (None, "loaded_at", "max(processed_at)", False),
    ],
)
def test_a_tables_latest_time_is_looked_at(
    look: Look,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    latest: str | None,
    column: str,
    complete_until: str,
    is_late: bool,
) -> None:
    """What cannot be told cheaply, or is described wrongly, is left to the job, which says what is wrong."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", postgres_url)
    with closing(psycopg2.connect(postgres_url)) as session, session, session.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS late CASCADE; CREATE SCHEMA late")
        cursor.execute("CREATE TABLE late.orders (loaded_at timestamptz)")
        cursor.execute(
            "INSERT INTO late.orders SELECT %s::timestamptz WHERE %s IS NOT NULL", (latest, latest)
        )

    found = look(delivered=TABLE % (column, f"{{complete_until: {complete_until}}}"))

    late = "delivered: its latest row is of 2026-11-20T11:14:59Z, but 2026-11-20T11:15:00Z is needed"
    assert found == ((late,) if is_late else ())


def test_a_server_that_does_not_answer_is_waited_for(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may later; its password is not told. A connection that nobody defined is not waited for."""
    table = TABLE % ("loaded_at", "{complete_until: now()}")
    assert look(delivered=table) == ()

    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgresql://me:geheim@127.0.0.1:1/warehouse")
    (reason,) = look(delivered=table)

    assert reason.startswith("delivered: ledgers.delivered.source.connection: warehouse: ")
    assert "geheim" not in reason


@pytest.mark.parametrize("run_type", ["scheduled", "backfill", "manual"])
def test_a_run_waits_for_its_evidence_and_not_for_ever(
    look: Look, contracts: Path, monkeypatch: pytest.MonkeyPatch, run_type: str
) -> None:
    """It gives its worker back, looks again every two minutes, and goes on when the contract's time is over."""
    look(delivered=ledger("late.jsonl"))
    task = WindowOperator(task_id="window", contract=load_contract(contracts / "orders.yml"))
    run = SimpleNamespace(run_type=run_type, data_interval_start=WINDOW.start, data_interval_end=WINDOW.end)
    context: dict[str, Any] = {"dag_run": run, "params": {}}
    last = WINDOW.end + timedelta(minutes=45)

    def at(moment: datetime) -> Any:
        clock = SimpleNamespace(now=lambda _zone: moment, fromisoformat=datetime.fromisoformat)
        monkeypatch.setattr(operators, "datetime", clock)
        try:
            return task.execute(context)
        except AirflowRescheduleException as waiting:
            return waiting.reschedule_date

    assert at(WINDOW.end + timedelta(minutes=15)) == WINDOW.end + timedelta(minutes=15) + POLL_INTERVAL
    assert at(last - timedelta(seconds=1)) == last
    assert at(last)["end"] == "2026-11-20T11:00:00+00:00"

    (contracts / "late.jsonl").write_text("{}")
    assert at(WINDOW.end + timedelta(minutes=15))["end"] == "2026-11-20T11:00:00+00:00"


def test_a_run_waits_for_the_hop_before(
    look: Look, contracts: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    """Until its current, checked runs cover the window, and no longer than for evidence that is late."""
    look()
    file = contracts / "orders.yml"
    file.write_text(file.read_text().replace("group:", "after: enrich\ngroup:"))
    task = WindowOperator(task_id="window", contract=load_contract(file))
    run = SimpleNamespace(
        run_type="scheduled", data_interval_start=WINDOW.start, data_interval_end=WINDOW.end
    )

    def at(moment: datetime) -> Any:
        clock = SimpleNamespace(now=lambda _zone: moment, fromisoformat=datetime.fromisoformat)
        monkeypatch.setattr(operators, "datetime", clock)
        try:
            return task.execute({"dag_run": run, "params": {}})
        except AirflowRescheduleException as waiting:
            return waiting.reschedule_date

    def publish(store: Store, number: int, start: int, end: str) -> None:
        window = {"start": f"2026-11-20T10:{start:02d}:00Z", "end": f"2026-11-20T{end}:00Z"}
        published = statement(number, pipeline="enrich", window=window, incidents=[], breaks_total=0)
        store.publish(published, [], {"pipeline": "enrich"}, ORIGIN)

    due = WINDOW.end + timedelta(minutes=15)
    with store_named(postgres_url, "hop_before") as url:
        monkeypatch.setenv("TIEOUT_DATABASE_URL", url)
        store = Store(url)
        publish(store, 1, 0, "10:30")
        assert at(due) == due + POLL_INTERVAL
        publish(store, 2, 30, "11:00")
        assert at(due) == due + POLL_INTERVAL

        for number in (1, 2):
            store.record_checks(
                run_id(number), [], Verdict.BROKEN, suite="s", suite_digest="d", gx_version="1"
            )
        assert at(due)["end"] == "2026-11-20T11:00:00+00:00"
        assert "note" not in at(due + timedelta(minutes=30))

        publish(store, 3, 30, "11:00")
        assert at(due) == due + POLL_INTERVAL
        gone_on = at(due + timedelta(minutes=30))
        assert gone_on["end"] == "2026-11-20T11:00:00+00:00"
        assert gone_on["note"] == "after: enrich has not judged all of the window"


def test_where_a_triggerer_runs_a_wait_is_deferred(
    look: Look, contracts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow's own setting says so; it is rescheduled otherwise. Afterwards everything is looked at anew."""
    look(delivered=ledger("late.jsonl"))
    contract = load_contract(contracts / "orders.yml")
    now = datetime.now(UTC)
    run = SimpleNamespace(
        run_type="manual",
        data_interval_start=now - timedelta(hours=1),
        data_interval_end=now - contract.grace - timedelta(minutes=1),
    )
    context: dict[str, Any] = {"dag_run": run, "params": {}}

    with pytest.raises(TaskDeferred) as deferred:
        WindowOperator(task_id="window", contract=contract, deferrable=True).execute(context)
    with pytest.raises(AirflowRescheduleException):
        WindowOperator(task_id="window", contract=contract).execute(context)
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    with pytest.raises(TaskDeferred):
        WindowOperator(task_id="window", contract=contract).execute(context)

    assert now < deferred.value.trigger.moment <= datetime.now(UTC) + POLL_INTERVAL
    (contracts / "late.jsonl").write_text("{}")
    task = WindowOperator(task_id="window", contract=contract)
    assert getattr(task, deferred.value.method_name)(context)["contract"] == contract.to_json()
