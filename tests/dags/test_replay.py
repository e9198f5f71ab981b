"""The DAG `tieout_replay`: approved, rejected, overtaken and repeated, by Airflow's own `dag.test` and a real store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG
from airflow.sdk.timezone import utcnow
from tests.dags.home import ROOT, write_contract
from tests.store.conftest import made_database
from tests.store.examples import ORIGIN, breaks, query, rows, statement

from tieout.contracts import Contract, load_contract
from tieout.orchestration.replaying import ReplayPlanSubmit
from tieout.orchestration.versions import AirflowException
from tieout.replaying import Body, choose, plan_of
from tieout.replaying.describing import Subject, markdown
from tieout.replaying.folder import read_breaks, target_of, write_plan
from tieout.store import Store

pytestmark = pytest.mark.usefixtures("airflow_database")

_NO_LEDGER = """
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'cut off'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON tieout.replay_item FOR EACH ROW EXECUTE FUNCTION public.refuse()
"""
REPLAY = """
max_latency: 0s
replay: {value: body, approvers: [ann, "id:9"], to: {connection: outbox, table: outbox}}
"""


@pytest.fixture
def url(postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A migrated store of this test's own, which is also where replays go."""
    with made_database(postgres_url, "template0") as made:
        monkeypatch.setenv("TIEOUT_DATABASE_URL", made)
        monkeypatch.setenv("TIEOUT_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("AIRFLOW_CONN_OUTBOX", made)
        Store(made).migrate()
        yield made


@pytest.fixture
def contract(contracts: Path) -> Contract:
    """The contract of a pipeline whose lost messages can be replayed."""
    return load_contract(write_contract(contracts, "orders", REPLAY))


@pytest.fixture
def run_id(url: str, contract: Contract) -> str:
    """A stored run with two lost messages."""
    found = statement(1, contract_digest=contract.digest)
    lost = [
        {
            **one,
            "flags": [],
            "evidence": {"produced": [{"topic": "orders", "payload_hash": f"h{n}"}], "delivered": None},
        }
        for n, one in enumerate(breaks())
    ]
    Store(url).publish(found, lost, json.loads(contract.to_json()), ORIGIN)
    return str(found["run_id"])


class Surroundings:
    """What the tasks reach outside: the Spark job, the person who answers, the DAG that is triggered."""

    def __init__(self, contract: Contract, url: str) -> None:
        self.contract, self.url = contract, url
        self.answer = "Approve"
        self.user = {"id": "7", "name": "ann"}
        self.asked: list[str] = []
        self.triggered: list[dict[str, Any]] = []
        self.before_answer: Callable[[], object] = lambda: None

    def plan(self, words: list[str]) -> dict[str, Any]:
        """Stand for the Spark job: its steps without Spark, with a body for every wanted message."""
        given = dict(zip(words[::2], words[1::2], strict=True))
        run = Store(self.url).run(given["--run-id"])
        assert run is not None
        folder = Path(given["--statement"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "statement.json").write_text(json.dumps(run.statement))
        lines = [
            {"class": b.class_name, **{name: getattr(b, name) for name in _NAMES}}
            for b in Store(self.url).breaks(run.run_id)
        ]
        (folder / "breaks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        run, reported, found = read_breaks(run, folder)
        store = Store(self.url)
        chosen = choose(
            found,
            reported,
            self.contract,
            find_done=lambda keys: dict.fromkeys(store.replayed(keys), "before"),
        )
        plan = plan_of(chosen, {one.key: Body(1, None, b"body", is_verified=True) for one in chosen.lost})
        subject = Subject(self.contract, run.window, run.run_id, None, target_of(self.contract))
        return write_plan(plan, subject, markdown(plan, subject), Path(given["--output"]))

    def answered(self, operator: ApprovalOperator, context: Any) -> Any:
        """Stand for the person: what they chose goes the way that Airflow takes it."""
        self.asked.append(f"{operator.subject}\n{operator.body}")
        self.before_answer()
        event = {
            "chosen_options": [self.answer],
            "params_input": {},
            "responded_at": utcnow(),
            "responded_by_user": self.user,
        }
        return operator.execute_complete(context, event)


_NAMES = ("break_id", "incident_id", "flags", "message_id", "topic", "partition", "offset", "evidence")


@pytest.fixture
def around(contract: Contract, url: str, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    """The surroundings, in which the person approves."""
    found = Surroundings(contract, url)
    monkeypatch.setattr(
        ReplayPlanSubmit,
        "submitted",
        lambda _operator, _context, _json, words: found.plan(words(Path("contract.json"))),
    )
    monkeypatch.setattr(ApprovalOperator, "execute", found_answer(found))
    monkeypatch.setattr(
        TriggerDagRunOperator,
        "execute",
        lambda operator, context: found.triggered.append(  # noqa: ARG005 - Airflow's signature
            {"dag": operator.trigger_dag_id, "run": operator.trigger_run_id, **operator.conf}
        ),
    )
    return found


def found_answer(found: Surroundings) -> Any:
    """Return what takes the place of waiting for a person."""
    return lambda operator, context: found.answered(operator, context)  # noqa: PLW0108 - binds the operator


@pytest.fixture
def dag(contract: Contract) -> DAG:
    """The DAG of `dags/`, without pauses before another try."""
    assert contract.replay is not None
    built = DagBag(str(ROOT / "dags" / "tieout_replay.py")).dags["tieout_replay"]
    for task in built.tasks:
        task.retries = 0
    return built


def ended(dag: DAG, run_id: str) -> dict[str, str]:
    """Run the DAG on a stored run and return the states of the run and of its tasks."""
    run = dag.test(run_conf={"run_id": run_id})
    return {"run": str(run.state), **{task.task_id: str(task.state) for task in run.get_task_instances()}}


def in_outbox(url: str) -> list[str]:
    """Return the messages in the table that takes replays."""
    if query(url, "SELECT to_regclass('outbox') AS found") == [{"found": None}]:
        return []
    return sorted(row["message_id"] for row in query(url, "SELECT message_id FROM outbox"))


def test_an_approved_plan_is_carried_out_once_and_the_window_judged_again(
    dag: DAG, around: Surroundings, run_id: str, url: str
) -> None:
    """A second run of the same finds everything replayed and asks nobody."""
    states = ended(dag, run_id)

    assert set(states.values()) == {"success"}
    assert in_outbox(url) == ["m-0", "m-1"]
    assert "produce 2 messages again" in around.asked[0]
    assert r"m\-0" in around.asked[0]
    assert around.triggered == [
        {
            "dag": "orders",
            "run": ORIGIN.dag_run_id,
            "window_start": "2026-11-20T10:00:00+00:00",
            "window_end": "2026-11-20T11:00:00+00:00",
        }
    ]
    assert {row["approved_by"] for row in rows(url, "replay")} == {"ann"}
    assert {row["break_id"] for row in rows(url, "replay_item")} == {"break-0", "break-1"}

    again = ended(dag, run_id)

    assert (again["run"], again["plan"], again["replay"]) == ("success", "skipped", "skipped")
    assert in_outbox(url) == ["m-0", "m-1"]
    assert len(around.asked) == 1


def test_a_rejected_plan_changes_nothing(dag: DAG, around: Surroundings, run_id: str, url: str) -> None:
    """Neither the table, nor the ledger, nor the window."""
    around.answer = "Reject"

    states = ended(dag, run_id)

    assert (states["run"], states["approve"]) == ("success", "success")
    assert {states[task] for task in ("replay", "settle", "judge_again")} == {"skipped"}
    assert (in_outbox(url), rows(url, "replay"), around.triggered) == ([], [], [])


def test_a_plan_that_was_overtaken_is_not_carried_out(
    dag: DAG, around: Surroundings, run_id: str, url: str
) -> None:
    """While the person thought, the window was judged again: the messages may be there by now."""

    def judged_again() -> None:
        later = statement(2, contract_digest=around.contract.digest, breaks_total=0, incidents=[])
        assert Store(url).publish(later, [], json.loads(around.contract.to_json()), ORIGIN).is_current

    around.before_answer = judged_again

    states = ended(dag, run_id)

    assert (states["run"], states["replay"]) == ("failed", "failed")
    assert (in_outbox(url), rows(url, "replay")) == ([], [])


def test_a_plan_goes_nowhere_else_than_approved(
    dag: DAG, around: Surroundings, run_id: str, url: str, contracts: Path
) -> None:
    """The contract was pointed at another table while the person thought."""
    elsewhere = REPLAY.replace("table: outbox", "table: other")
    around.before_answer = lambda: write_contract(contracts, "orders", elsewhere)

    assert ended(dag, run_id)["replay"] == "failed"
    assert (in_outbox(url), rows(url, "replay")) == ([], [])


def test_a_replay_that_died_before_its_ledger_is_completed_by_the_next(
    dag: DAG, around: Surroundings, run_id: str, url: str
) -> None:
    """The rows are there, the ledger does not know: the next run records them and inserts nothing."""
    query(url, _NO_LEDGER)
    assert ended(dag, run_id)["replay"] == "failed"
    assert (in_outbox(url), rows(url, "replay_item")) == (["m-0", "m-1"], [])
    query(url, "DROP FUNCTION public.refuse() CASCADE")

    assert ended(dag, run_id)["run"] == "success"

    assert in_outbox(url) == ["m-0", "m-1"]
    assert len(rows(url, "replay_item")) == 2


@pytest.mark.parametrize(
    "user",
    [
        {"id": "8", "name": "eve"},
        {"id": "ann", "name": "eve"},
        {"id": "8", "name": "id:9"},
        {"id": "8", "name": ""},
        {"id": "", "name": "Ann"},
        None,
    ],
)
def test_only_whom_the_contract_names_approves(
    dag: DAG, around: Surroundings, run_id: str, url: str, user: dict[str, str] | None
) -> None:
    """Whoever may use the DAG may answer; the answer of a stranger is none."""
    around.user = user  # type: ignore[assignment]

    states = ended(dag, run_id)

    assert (states["run"], states["approve"]) == ("failed", "failed")
    assert (in_outbox(url), rows(url, "replay"), around.triggered) == ([], [], [])


@pytest.mark.parametrize("user", [{"id": "9", "name": "bob"}, {"id": "9", "name": "id:7"}])
def test_an_approver_may_be_named_by_an_id(
    dag: DAG, around: Surroundings, run_id: str, url: str, user: dict[str, str]
) -> None:
    """Where users choose their own names, the id is what tells them apart."""
    around.user = user

    assert ended(dag, run_id)["run"] == "success"
    assert {row["approved_by"] for row in rows(url, "replay")} == {user["name"]}


@pytest.mark.parametrize("user", [{"id": "7", "name": "dag_test"}, {"id": "dag_test", "name": "ann"}])
def test_nobody_approves_what_they_started(
    dag: DAG, around: Surroundings, run_id: str, url: str, contracts: Path, user: dict[str, str]
) -> None:
    """An approver who asks for a replay needs another one."""
    write_contract(contracts, "orders", REPLAY.replace("[ann,", "[ann, dag_test,"))
    around.user = user

    assert ended(dag, run_id)["approve"] == "failed"
    assert (in_outbox(url), rows(url, "replay")) == ([], [])


@pytest.mark.parametrize(
    "answer",
    [
        {"chosen_options": ["Approve"], "responded_by_user": {"id": "8", "name": "eve"}},
        {"chosen_options": ["Approve"], "responded_by_user": {"id": "7", "name": "dag_test"}},
        {"chosen_options": ["Reject"], "responded_by_user": {"id": "7", "name": "ann"}},
        {"chosen_options": ["Approve"], "responded_by_user": None},
        {"chosen_options": ["Approve"]},
        {},
        {"chosen_options": ["Approve"], "responded_by_user": {"id": "7", "name": "ann"}},
        {
            "chosen_options": ["Approve"],
            "responded_by_user": {"id": "7", "name": "ann"},
            "plan_digest": "of the plan before",
        },
    ],
)
def test_the_task_that_sends_looks_itself(
    dag: DAG,
    around: Surroundings,
    run_id: str,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, Any],
) -> None:
    """Whatever became of the task before it, set to success by hand for one."""
    monkeypatch.setattr(ApprovalOperator, "execute", lambda *_, **__: answer)

    states = ended(dag, run_id)

    assert (states["approve"], states["replay"]) == ("success", "failed")
    assert (in_outbox(url), rows(url, "replay")) == ([], [])


def test_an_answer_is_for_the_plan_that_was_shown(dag: DAG, contract: Contract) -> None:
    """Whoever has the task `plan` run again while a person reads has the new plan approved as well."""
    plans = {"shown": {"pipeline": "orders", "digest": "1"}, "later": {"pipeline": "orders", "digest": "2"}}
    event = {
        "chosen_options": ["Approve"],
        "params_input": {},
        "responded_at": utcnow(),
        "responded_by_user": {"id": "7", "name": "ann"},
    }
    task, run = Mock(), Mock(triggering_user_name="bob")
    approve = dag.get_task("approve")

    def answered(plan: str) -> Any:
        task.xcom_pull = lambda task_ids, key=None: plans[plan] if task_ids == "plan" else key and "1"
        return approve.execute_complete({"ti": task, "dag_run": run}, event)

    assert answered("shown")["plan_digest"] == "1"
    with pytest.raises(AirflowException, match="expected the plan that was shown, with digest 1, found 2"):
        answered("later")


def test_a_contract_that_lost_its_approver_meanwhile_is_not_replayed(
    dag: DAG, around: Surroundings, run_id: str, url: str, contracts: Path
) -> None:
    """Today's contract counts, also between the answer and the sending."""
    around.before_answer = lambda: write_contract(contracts, "orders", REPLAY.replace("ann", "cid"))

    assert ended(dag, run_id)["run"] == "failed"
    assert (in_outbox(url), rows(url, "replay")) == ([], [])


@pytest.mark.parametrize("approvers", ["", "approvers: [],"])
def test_without_approvers_nothing_is_planned(
    dag: DAG, around: Surroundings, run_id: str, contracts: Path, approvers: str
) -> None:
    """Nobody is asked who could not answer."""
    write_contract(contracts, "orders", REPLAY.replace('approvers: [ann, "id:9"],', approvers))

    assert ended(dag, run_id)["plan"] == "failed"
    assert around.asked == []


def test_a_run_that_is_not_there_is_refused(dag: DAG, around: Surroundings, url: str) -> None:
    """And so is what is no run id at all."""
    for wrong in ("0b9f2f0e-0000-0000-0000-000000000000", "x" * 36):
        assert ended(dag, wrong)["plan"] == "failed"
    assert around.asked == []


def test_nothing_is_executed_without_an_approval(dag: DAG) -> None:
    """No answer within a day is a rejection, and the approval stands between plan and replay."""
    approve = dag.get_task("approve")

    assert approve.defaults == ["Reject"]
    assert approve.response_timeout is not None
    assert dag.get_task("replay").upstream_task_ids == {"approve"}
    assert dag.get_task("judge_again").upstream_task_ids == {"settle"}
    assert dag.schedule is None
