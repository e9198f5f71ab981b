"""The audit on a real Airflow database and a real store: every way in which Airflow was seen to skip a window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from tests.dags.home import ROOT, write_contract
from tests.store.examples import breaks, run_id, statement

from tieout.contracts import Contract, load_contract
from tieout.model import Verdict
from tieout.orchestration import alerting
from tieout.store import RunOrigin, Store

pytestmark = pytest.mark.usefixtures("airflow_database")
DAY = datetime(2026, 11, 18, tzinfo=UTC)
BOUNDS = "active: {from: 2026-11-18T00:00:00Z, until: 2026-11-18T08:00:00Z}"


@pytest.fixture
def store(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An empty, migrated store that the tasks use; what it tells goes nowhere."""
    monkeypatch.setenv("TIEOUT_DATABASE_URL", postgres_url)
    monkeypatch.setattr(alerting, "send", lambda _alert, _receiver: None)
    monkeypatch.setenv("AIRFLOW_CONN_ON_CALL", "http://127.0.0.1:1/")
    yield_store = Store(postgres_url)
    yield_store.migrate()
    yield yield_store
    with closing(psycopg2.connect(postgres_url)) as session, session, session.cursor() as cursor:
        cursor.execute("DROP SCHEMA tieout CASCADE")


@pytest.fixture
def contract(contracts: Path) -> Contract:
    """A contract that was active for eight hourly windows, long ago."""
    return load_contract(write_contract(contracts, "orders", BOUNDS))


@pytest.fixture
def audit(store: Store, contract: Contract, airflow_runs: Any) -> DAG:
    """The DAG of the audit."""
    assert store, contract
    return DagBag(str(ROOT / "dags" / "tieout_upkeep.py")).dags["tieout_gap_audit"]


@pytest.fixture
def airflow_runs() -> Iterator[Any]:
    """Adds rows of Airflow's runs of the pipeline, as the scheduler leaves them; they are gone afterwards."""
    from airflow.models.dag import DagModel  # noqa: PLC0415 - after the database is there
    from airflow.models.dagrun import DagRun  # noqa: PLC0415 - as above
    from airflow.utils.session import create_session  # noqa: PLC0415 - as above

    def clear() -> None:
        with create_session() as session:
            session.query(DagRun).filter(DagRun.dag_id.in_(("orders", "tieout_gap_audit"))).delete()
            session.query(DagModel).filter(DagModel.dag_id == "orders").update({"is_paused": False})

    def add(hour: int | None, state: str, *, paused: bool = False, judges: datetime | None = None) -> None:
        start = None if hour is None else DAY + timedelta(hours=hour)
        kind = "manual" if judges or not start else "backfill"
        with create_session() as session:
            session.query(DagRun).filter(DagRun.dag_id == "orders", DagRun.logical_date == start).delete()
            run = DagRun(
                dag_id="orders", run_id=f"{kind}__{hour}", run_type=kind, logical_date=start, state=state
            )
            run.data_interval_start = judges or start
            run.data_interval_end = run.data_interval_start and run.data_interval_start + timedelta(hours=1)
            session.add(run)
            session.query(DagModel).filter(DagModel.dag_id == "orders").update({"is_paused": paused})

    clear()
    yield add
    clear()


def judge(store: Store, contract: Contract, *hours: float, length: timedelta = timedelta(hours=1)) -> None:
    """Publish checked statements about the windows that begin at these hours."""
    for hour in hours:
        start, number = DAY + timedelta(hours=hour), int(hour * 2) + 1
        window = {"start": start.isoformat(), "end": (start + length).isoformat()}
        of = statement(number, window=window, contract_digest=contract.digest)
        store.publish(
            of, breaks(), json.loads(contract.to_json()), RunOrigin("orders", f"backfill__{hour}", 1)
        )
        store.record_checks(run_id(number), [], Verdict.KEPT, suite="s", suite_digest="d", gx_version="1")


def result(audit: DAG) -> tuple[str, list[tuple[int, str, str]]]:
    """Run the audit and return its run's state, and the findings by hour."""
    run = audit.test()
    tasks = {task.task_id: task for task in run.get_task_instances()}
    found = tasks["audit"].xcom_pull(task_ids="audit")
    findings = [
        (datetime.fromisoformat(one["start"]).hour, one["state"], one["why"]) for one in found["findings"]
    ]
    return str(run.state), findings


def gap_alerts(store: Store) -> list[tuple[str, str]]:
    """Return kind and span of each alert about gaps that the audits stored, sent or not."""
    with closing(psycopg2.connect(store._database.url)) as session, session.cursor() as cursor:
        cursor.execute(
            "SELECT kind, window_start, window_end FROM tieout.alert WHERE kind LIKE 'window_gap%' ORDER BY alert_id"
        )
        return [(kind, f"{start:%H}-{end:%H}") for kind, start, end in cursor.fetchall()]


def test_every_way_to_skip_a_window_is_found_reported_once_and_closed(
    audit: DAG, store: Store, contract: Contract, airflow_runs: Any
) -> None:
    """The numbers are those of docs/reference/gap-audit.md; each window was skipped in another way.

    Of eight windows: the first was judged, although a cancelled backfill marked its run as failed since (7), and so
    was the last but one, for all of its time, in two windows of other bounds.
    """
    judge(store, contract, 0, 3)
    airflow_runs(0, "failed")
    airflow_runs(
        1, "success", judges=DAY - timedelta(hours=1)
    )  # 1: a manual run took the place of its window
    airflow_runs(2, "success")  # 2: a run without a single task
    airflow_runs(None, "failed")  # 3: a run without a logical date is no window's
    airflow_runs(4, "queued")  # 7: cleared after its backfill was cancelled
    airflow_runs(5, "failed")  # the job died
    half = timedelta(minutes=30)
    judge(store, contract, 6, length=half)
    judge(store, contract, 6.5, length=half)

    state, findings = result(audit)

    assert state == "failed"
    assert findings == [
        (1, "missing", "Airflow's run of it succeeded without judging it"),
        (2, "missing", "Airflow's run of it succeeded without judging it"),
        (4, "missing", "Airflow's run of it is queued"),
        (5, "failed", "Airflow's run of it is failed"),
        (6, "superseded", "judged in windows of other bounds"),
        (7, "missing", "Airflow has no run of it"),
    ]
    assert gap_alerts(store) == [("window_gap", "01-03"), ("window_gap", "04-06"), ("window_gap", "07-08")]

    judge(store, contract, 1, 2, 7)
    airflow_runs(4, "queued", paused=True)  # 4: a backfill of a paused DAG waits for ever
    (contract.base_dir / "orders.yml").write_text("pipeline: [")

    state, findings = result(audit)

    assert findings == [
        (4, "missing", "Airflow's run of it is queued; the DAG is paused"),
        (5, "failed", "Airflow's run of it is failed; the DAG is paused"),
        (6, "superseded", "judged in windows of other bounds"),
    ]
    assert gap_alerts(store)[3:] == [("window_gap_closed", "01-03"), ("window_gap_closed", "07-08")]

    judge(store, contract, 4, 5)

    state, findings = result(audit)

    assert (state, findings) == ("success", [(6, "superseded", "judged in windows of other bounds")])
    assert gap_alerts(store)[5:] == [("window_gap_closed", "04-06")]
    assert store.pending_alerts() == 0


def test_a_pipeline_that_was_never_judged_is_a_gap(
    audit: DAG, store: Store, contract: Contract, airflow_runs: Any
) -> None:
    """Without an active time and without any window in the store; the next audit tells nothing new."""
    write_contract(contract.base_dir, "orders")
    airflow_runs(None, "failed", paused=True)

    first, again = result(audit), result(audit)

    assert first[0] == again[0] == "failed"
    assert {why for _, _, why in again[1]} == {"Airflow has no run of it; the DAG is paused"}
    assert [kind for kind, _ in gap_alerts(store)] == ["window_gap"]
