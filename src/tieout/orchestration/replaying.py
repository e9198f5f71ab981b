"""The tasks of a replay: plan, approve, carry out, wait for its effects.

Docs: docs/how-to/replay-lost-messages.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from airflow.sdk import BaseOperator

from tieout import settings
from tieout.contracts import Contract
from tieout.errors import StoreError, TieoutError, UsageError
from tieout.orchestration.approving import require_approval, require_approvers, require_shown
from tieout.orchestration.catalogue import contract_of
from tieout.orchestration.submitting import TieoutSparkSubmit, output_folder
from tieout.orchestration.versions import (
    AirflowFailException,
    AirflowSkipException,
)
from tieout.orchestration.waiting import WaitingOperator
from tieout.replaying.folder import read_plan, require_removal_sql, target_of, write_console_lines


class ReplayPlanSubmit(TieoutSparkSubmit):
    """Runs `spark_apps/replay.py` on the run named by the parameter `run_id`, and returns what it planned.

    The contract is the current one, because `replay.value` may have been added since; all that verdicts depend on must
    be as in the run's contract. An empty plan is a skip if everything was replayed before, else a failure.
    """

    def __init__(self, *, folders: Iterable[Path], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._folders = tuple(folders)

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return `plan_id`, `folder`, `digest`, counts, `markdown`, the window and the run that judged it."""
        from tieout.store import Store  # noqa: PLC0415 - brings PostgreSQL's driver

        params = context["params"]
        try:
            run = Store(settings.required_database_url()).run(_run_id(params["run_id"]))
            if run is None:
                raise UsageError(f"run_id: expected a stored run, found none with the id {params['run_id']}")
            contract = self._contract(run.pipeline, run.contract)
            require_approvers(contract)
        except StoreError:
            raise
        except TieoutError as error:
            raise AirflowFailException(str(error)) from error
        options = {
            "--base-dir": contract.base_dir,
            "--run-id": run.run_id,
            "--statement": output_folder(run.pipeline, run.window.start),
            "--attempt": params["attempt"],
            "--output": settings.home() / "replays",
            **({"--incident-id": params["incident_id"]} if params["incident_id"] else {}),
        }
        planned = self.submitted(
            context,
            contract,
            lambda file: [
                str(part) for pair in {"--contract-json": file, **options}.items() for part in pair
            ],
        )
        _refuse_empty(planned)
        return {**planned, "dag_id": run.pipeline, "dag_run_id": run.origin.dag_run_id}

    def _contract(self, pipeline: str, judged_by: Mapping[str, Any]) -> Contract:
        found = contract_of(self._folders, pipeline)
        was = Contract.from_json(json.dumps(judged_by), found.base_dir)
        if was.digest != found.digest:
            raise UsageError(
                f"pipeline {pipeline}: the contract was changed since the run (digest {was.digest[:12]}, now "
                f"{found.digest[:12]}); judge the window again, and plan from the run that gives. Its field replay "
                "may be changed freely"
            )
        return found


class ReplayOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Carries out the approved plan, into the contract's table or topic or to files. Repeating it writes nothing twice.

    The plan must have the approved digest and an approver named in the current contract, and the run must still be its
    window's current one.
    """

    def __init__(self, *, folders: Iterable[Path], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._folders = tuple(folders)

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return `executed_at`, how many messages were `new`, and `files`: the remaining manual steps."""
        task = context["ti"]
        plan, answer = task.xcom_pull(task_ids="plan"), task.xcom_pull(task_ids="approve")
        try:
            contract = contract_of(self._folders, plan["pipeline"])
            user = require_approval(contract, answer, context["dag_run"].triggering_user_name)
            require_shown(plan, answer)
            done = carry_out(plan, contract, approved_by=user, dag_run_id=task.run_id)
        except TieoutError as error:
            if error.is_temporary:
                raise
            raise AirflowFailException(str(error)) from error
        for note in done["files"].values():
            self.log.info("%s", note)
        return done


class SettleOperator(WaitingOperator):
    """Waits, without a worker, until what was replayed must have had its effects: the contract's `max_latency`."""

    def execute(self, context: Mapping[str, Any]) -> None:
        """Return once that time has come."""
        done = context["ti"].xcom_pull(task_ids="replay")
        due = datetime.fromisoformat(done["settled_at"])
        if datetime.now(UTC) < due:
            self.log.info("the replayed messages have until %s to take effect", due.isoformat())
            self.pause_until(due)


def carry_out(
    plan: Mapping[str, Any], contract: Contract, *, approved_by: str, dag_run_id: str
) -> dict[str, Any]:
    """Carry out an approved plan and record it in the ledger of replays; repeating it changes nothing.

    A table or a topic is written first, in one transaction. If the task is killed between that and the ledger, the next
    try writes nothing new and records what is there.

    Args:
        plan: What `replaying.folder.write_plan` returned.
        contract: The pipeline's contract.
        approved_by: Who approved it.
        dag_run_id: The run of the DAG.

    Raises:
        UsageError: where the plan is not the approved one, its target has changed, or another run is current by now.
        StoreError: where a database is out of reach or refuses.
        SourceError: where the topic's cluster is out of reach or refuses.
        ConnectionNotFoundError: where the connection is not defined, or for the table is none to PostgreSQL.
    """
    from tieout.orchestration.replay_targets import write_records  # noqa: PLC0415 - brings librdkafka
    from tieout.store import Replay, ReplayItem, Store  # noqa: PLC0415 - brings PostgreSQL's driver

    store = Store(settings.required_database_url())
    run = store.run(plan["run_id"])
    if run is None or not run.is_current:
        raise UsageError(
            f"run {plan['run_id']}: the window was judged again since this was planned; plan from the run that counts"
        )
    if target_of(contract) != plan["target"]:
        raise UsageError(
            f"the plan was approved for {plan['target']}; the contract now says {target_of(contract)}; "
            "plan again"
        )
    folder = Path(plan["folder"])
    records, removals = read_plan(folder, plan["digest"])
    to = contract.replay.to if contract.replay else None
    files = write_console_lines(records, folder) if to is None else {}
    if to is not None:
        write_records(plan, to, records)
    if removals:
        require_removal_sql(folder, removals, contract)
        files["remove.sql"] = f"removing rows is left to their owner: {folder / 'remove.sql'}"
    items = [ReplayItem(r.message.key, r.message.break_id, "produce", r.message.message_id) for r in records]
    items += [ReplayItem(r.key, r.break_id, "remove", r.message_id) for r in removals]
    names = ("plan_id", "run_id", "pipeline", "group", "incident_id", "target", "digest")
    replay = Replay(**{name: plan[name] for name in names}, approved_by=approved_by, dag_run_id=dag_run_id)
    new = store.record_replay(replay, items)
    now = datetime.now(UTC)
    settled_at = now + contract.max_latency + contract.clock_skew
    return {"executed_at": now.isoformat(), "settled_at": settled_at.isoformat(), "new": new, "files": files}


def _run_id(given: object) -> str:
    try:
        return str(UUID(str(given)))
    except ValueError:
        raise UsageError(f"run_id: expected the id of a run, a UUID, found {given!r}") from None


def _refuse_empty(planned: Mapping[str, Any]) -> None:
    """End the run where there is nothing to approve."""
    if planned["records"] or planned["removals"]:
        return
    message = f"nothing can be replayed: {planned['refused']} breaks are refused; {planned['folder']}/plan.md says why"
    if planned["refused"] and planned["done"] == planned["refused"]:
        raise AirflowSkipException(
            "everything was replayed before; raise the parameter attempt to do it once more"
        )
    raise AirflowFailException(message)
