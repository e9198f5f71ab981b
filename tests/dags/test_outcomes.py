"""How a run ends, for all that can come out of its tasks; each is a real one, by Airflow's own `dag.test`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from tests.dags.home import write_contract
from tests.store.examples import statement

from tieout.contracts import load_contract
from tieout.errors import StoreError, SuiteError
from tieout.model import Verdict
from tieout.orchestration import alerting, concluding
from tieout.orchestration.alerting import DeliveryReport
from tieout.orchestration.concluding import Conclusion
from tieout.orchestration.dag_factory import pipeline_dag
from tieout.orchestration.submitting import TieoutSparkSubmit
from tieout.orchestration.versions import Stats

pytestmark = pytest.mark.usefixtures("airflow_database")
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


@dataclass
class Surroundings:
    """What the tasks reach outside of Airflow: the Spark job, the checks, the outbox."""

    verdict: Verdict = Verdict.KEPT
    is_current: bool = True
    job_error: Exception | None = None
    check_error: Exception | None = None
    delivery_error: Exception | None = None
    judged: list[dict[str, str]] = field(default_factory=list)
    alerted: list[dict[str, str]] = field(default_factory=list)
    deliveries: list[str] = field(default_factory=list)

    def reconcile(self, _operator: Any, context: Any) -> dict[str, Any]:
        """Stand for the Spark job."""
        if self.job_error:
            raise self.job_error
        self.judged.append(context["ti"].xcom_pull(task_ids="window"))
        return {"run_id": "r1", "verdict": "KEPT", "counts": {}, "output": "/statements/r1"}

    def conclude(self, _url: str, _run_id: str, _contract: Any, _page: str) -> Conclusion:
        """Stand for the checks."""
        if self.check_error:
            raise self.check_error
        reasons = ("3 messages lost",) if self.verdict == Verdict.BROKEN else ()
        return Conclusion(self.verdict, reasons, self.is_current, statement())

    def tell(self, *arguments: Any, **_page: Any) -> None:
        """Stand for the outbox's alerts about failed runs."""
        self.alerted.append(dict(arguments[4]))

    def deliver(self, _store: Any, pipeline: str) -> DeliveryReport:
        """Stand for the receivers."""
        self.deliveries.append(pipeline)
        if self.delivery_error:
            raise self.delivery_error
        return DeliveryReport(sent=0, failed=1, given_up=0, waiting=1)


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    """The surroundings, with nothing going wrong."""
    found = Surroundings()
    monkeypatch.setenv("TIEOUT_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.setattr(
        TieoutSparkSubmit,
        "execute",
        lambda operator, context: found.reconcile(operator, context),  # noqa: PLW0108 - binds the operator
    )
    monkeypatch.setattr(concluding, "conclude", found.conclude)
    monkeypatch.setattr(concluding, "enqueue_failure_alerts", found.tell)
    monkeypatch.setattr(alerting, "deliver", found.deliver)
    return found


@pytest.fixture
def dag(contracts: Path) -> DAG:
    """The DAG of a contract, without pauses before another try."""
    file = write_contract(contracts, "orders")
    built = pipeline_dag(load_contract(file))
    for task in built.tasks:
        task.retries = 0
    return built


def ended(
    dag: DAG, conf: dict[str, Any] | None = None, logical_date: datetime | None = TEN
) -> dict[str, str]:
    """Run the DAG and return the states of the run and of its tasks."""
    run = dag.test(logical_date=logical_date, run_conf=conf)
    return {"run": str(run.state), **{task.task_id: str(task.state) for task in run.get_task_instances()}}


@pytest.mark.parametrize("verdict", [Verdict.KEPT, Verdict.PENDING])
def test_a_run_succeeds_where_nothing_is_broken(dag: DAG, around: Surroundings, verdict: Verdict) -> None:
    """PENDING is no failure: the window is judged again."""
    around.verdict = verdict

    states = ended(dag)

    assert set(states.values()) == {"success"}
    assert around.alerted == []
    assert around.deliveries == ["orders"]


@pytest.mark.parametrize("verdict", [Verdict.BROKEN, Verdict.UNKNOWN])
def test_a_run_fails_by_its_verdict_alone(dag: DAG, around: Surroundings, verdict: Verdict) -> None:
    """The alert went out before, and does not turn the run green."""
    around.verdict = verdict

    states = ended(dag)

    assert states == {
        "run": "failed",
        "window": "success",
        "reconcile": "success",
        "check": "success",
        "alert": "success",
        "verdict": "failed",
    }
    assert around.deliveries == ["orders"]


def test_a_dead_job_fails_the_run_and_is_reported(dag: DAG, around: Surroundings) -> None:
    """The alert says which steps did not succeed; the run has no verdict and is failed."""
    around.job_error = AirflowFailException("the job died")

    states = ended(dag)

    assert states["run"] == "failed"
    assert (states["alert"], states["verdict"]) == ("success", "failed")
    assert around.alerted == [{"reconcile": "failed", "check": "upstream_failed"}]
    assert around.deliveries == ["orders"]


@pytest.mark.parametrize("error", [SuiteError("an empty suite"), StoreError("out of reach")])
def test_checks_that_cannot_be_carried_out_fail_the_run(
    dag: DAG, around: Surroundings, error: Exception
) -> None:
    """A judge's KEPT without its checks is no KEPT."""
    around.check_error = error

    states = ended(dag)

    assert states["run"] == "failed"
    assert around.alerted == [{"check": "failed"}]


def test_an_alert_that_fails_does_not_change_the_verdict(dag: DAG, around: Surroundings) -> None:
    """The alerts are in the outbox; the upkeep sends them."""
    around.delivery_error = StoreError("out of reach")

    states = ended(dag)

    assert (states["alert"], states["verdict"], states["run"]) == ("failed", "success", "success")


def test_a_broken_guarantee_fails_the_run_though_the_alert_fails_too(dag: DAG, around: Surroundings) -> None:
    """Nothing hides it."""
    around.verdict, around.delivery_error = Verdict.BROKEN, StoreError("out of reach")

    assert ended(dag)["run"] == "failed"


def test_a_run_on_a_tick_judges_the_window_that_starts_there(dag: DAG, around: Surroundings) -> None:
    """Also when it is triggered by hand; the contract goes along by value."""
    ended(dag, logical_date=TEN)

    (given,) = around.judged
    assert (given["start"], given["end"]) == ("2026-11-20T10:00:00+00:00", "2026-11-20T11:00:00+00:00")
    assert '"pipeline":"orders"' in given["contract"]


def test_a_run_without_a_logical_date_is_refused_and_reported(dag: DAG, around: Surroundings) -> None:
    """It has no data interval, and nothing before the refusal needed one."""
    states = ended(dag, logical_date=None)

    assert (states["run"], states["window"], states["alert"]) == ("failed", "failed", "success")
    assert around.alerted == [
        {"window": "failed", "reconcile": "upstream_failed", "check": "upstream_failed"}
    ]


def test_a_run_without_a_logical_date_judges_the_window_asked_for(dag: DAG, around: Surroundings) -> None:
    """That is how a person has any window judged."""
    conf = {"window_start": "2026-11-19T10:00:00Z", "window_end": "2026-11-19T10:30:00Z"}

    states = ended(dag, conf, logical_date=None)

    assert states["run"] == "success"
    assert around.judged[0]["end"] == "2026-11-19T10:30:00+00:00"


def test_a_window_that_is_not_over_is_refused(dag: DAG, around: Surroundings) -> None:
    """A manual run's author chose it; waiting would hide the mistake."""
    now = datetime.now(UTC)
    conf = {"window_start": (now - timedelta(hours=1)).isoformat(), "window_end": now.isoformat()}

    states = ended(dag, conf, logical_date=None)

    assert (states["run"], states["window"]) == ("failed", "failed")
    assert around.judged == []


def events() -> list[tuple[str, dict[str, Any]]]:
    """Return the asset events since the last call: the asset, and what it says."""
    from airflow.models.asset import AssetEvent  # noqa: PLC0415 - after the database is there
    from airflow.utils.session import create_session  # noqa: PLC0415 - as above

    with create_session() as session:
        found = [(one.asset.uri, one.extra) for one in session.query(AssetEvent).order_by(AssetEvent.id)]
        session.query(AssetEvent).delete()
    return found


@pytest.mark.parametrize(
    ("verdict", "is_current", "is_kept"),
    [
        (Verdict.KEPT, True, True),
        (Verdict.KEPT, False, False),
        (Verdict.PENDING, True, False),
        (Verdict.BROKEN, True, False),
    ],
)
def test_a_verdict_is_an_event_and_a_kept_window_is_another(
    dag: DAG, around: Surroundings, verdict: Verdict, is_current: bool, is_kept: bool
) -> None:
    """A DAG that waits for `kept` starts for nothing else; a run that does not count announces none."""
    around.verdict, around.is_current = verdict, is_current
    events()

    ended(dag)

    found = events()
    extra = {
        "pipeline": "orders",
        "window_start": "2026-11-20T10:00:00+00:00",
        "window_end": "2026-11-20T11:00:00+00:00",
        "verdict": verdict.value,
        "run_id": "r1",
        "is_current": is_current,
    }
    reported = [(uri, {name: said[name] for name in extra}) for uri, said in found]
    expected = ["tieout://orders/verdict", *(["tieout://orders/kept"] if is_kept else [])]
    assert sorted(reported) == sorted((uri, extra) for uri in expected)


def test_a_run_without_a_verdict_is_no_event(dag: DAG, around: Surroundings) -> None:
    """Nothing is known about its window."""
    around.check_error = StoreError("out of reach")
    events()

    ended(dag)

    assert events() == []


def test_a_verdict_is_measured(dag: DAG, around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    """By pipeline, verdict and class, through Airflow's own metrics."""
    reported: dict[tuple[str, str], float] = {}

    def take(name: str, value: float = 1, tags: dict[str, str] | None = None, **_more: Any) -> None:
        reported[name, ",".join(value for key, value in (tags or {}).items() if key != "pipeline")] = value

    monkeypatch.setattr(Stats, "incr", take)
    monkeypatch.setattr(Stats, "gauge", take)
    around.verdict = Verdict.BROKEN

    ended(dag)

    assert reported.pop(("tieout.judged_after_seconds", "")) > 0
    assert {key: value for key, value in reported.items() if key[0].startswith("tieout.")} == {
        ("tieout.verdicts", "BROKEN"): 1,
        ("tieout.messages", "LOST"): 2,
        ("tieout.messages", "DELIVERED"): 8,
        ("tieout.flags", "LATE"): 1,
        ("tieout.breaks", ""): 2,
    }
