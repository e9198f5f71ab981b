"""Approving a replay: only users named in the contract may, and never the user who requested it.

Airflow lets every user of the DAG answer, and all pipelines share one DAG. So the answer is checked against the
contract when it arrives, and once more in the task that sends. Docs: docs/how-to/replay-lost-messages.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from airflow.providers.standard.operators.hitl import ApprovalOperator

from tieout.contracts import ID_PREFIX, Contract
from tieout.errors import TieoutError, UsageError
from tieout.orchestration.catalogue import contract_of
from tieout.orchestration.versions import AirflowException
from tieout.replaying.describing import approvers_of

PLAN_DIGEST: Final = "plan_digest"
"""The key that Tieout adds to Airflow's answer: the digest of the plan that was shown."""


class ReplayApproval(ApprovalOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Requests approval of the plan; an approval without permission fails the try, and is requested again.

    Anybody who can answer may reject: then nothing is sent. An answer is valid only for the plan that was shown: if the
    task `plan` runs again, its new plan needs approval.
    """

    def __init__(self, *, folders: Iterable[Path], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._folders = tuple(folders)

    def execute(self, context: Mapping[str, Any]) -> Any:
        """Record which plan is shown, and wait for the answer."""
        task = context["ti"]
        task.xcom_push(key=PLAN_DIGEST, value=task.xcom_pull(task_ids="plan")["digest"])
        return super().execute(context)

    def execute_complete(self, context: Mapping[str, Any], event: dict[str, Any]) -> Any:
        """Return the answer, as Airflow's operator does, with the digest of the plan that was shown."""
        task = context["ti"]
        shown = {PLAN_DIGEST: task.xcom_pull(task_ids=self.task_id, key=PLAN_DIGEST)}
        if self.APPROVE in (event.get("chosen_options") or ()):
            plan = task.xcom_pull(task_ids="plan")
            try:
                contract = contract_of(self._folders, plan["pipeline"])
                require_approval(contract, event, context["dag_run"].triggering_user_name)
                require_shown(plan, shown)
            except TieoutError as error:
                raise AirflowException(str(error)) from error
        return {**super().execute_complete(context=context, event=event), **shown}


def require_shown(plan: Mapping[str, Any], answer: Mapping[str, Any] | None) -> None:
    """Refuse a plan other than the one that the answer is about.

    Raises:
        UsageError: where its digest differs from that of the plan that was shown.
    """
    shown = (answer or {}).get(PLAN_DIGEST)
    if shown != plan["digest"]:
        raise UsageError(
            f"expected the plan that was shown, with digest {shown or '(none)'}, found {plan['digest']}: it was "
            "made anew since; clear the task approve as well, and have this one approved"
        )


def require_approvers(contract: Contract) -> tuple[str, ...]:
    """Return who may approve the pipeline's replays.

    Raises:
        UsageError: where its contract names no approvers.
    """
    found = approvers_of(contract)
    if not found:
        raise UsageError(
            f"pipeline {contract.pipeline}: expected replay.approvers with the Airflow users who may approve its "
            "replays, found none; add them to the contract, such as "
            "approvers: [ann, bob]; no window needs to be judged anew for it"
        )
    return found


def require_approval(contract: Contract, answer: Mapping[str, Any] | None, triggered_by: str | None) -> str:
    """Return the name of the user who approved.

    Args:
        contract: The pipeline's contract, as it is now.
        answer: The answer as Airflow stores it.
        triggered_by: The name of the user who started the run of the DAG.

    Raises:
        UsageError: where the answer is no approval, or comes from a user whom the contract does not name or who
            started the run, or where that user is unknown.
    """
    approvers = require_approvers(contract)
    given = answer or {}
    if list(given.get("chosen_options") or ()) != [ApprovalOperator.APPROVE]:
        raise UsageError("expected an approval of the plan, found none; nothing is sent")
    user = given.get("responded_by_user") or {}
    name, identity = str(user.get("name") or ""), str(user.get("id") or "")
    is_named = name in approvers and not name.startswith(ID_PREFIX)
    if not is_named and f"{ID_PREFIX}{identity}" not in approvers:
        raise UsageError(
            f"pipeline {contract.pipeline}: expected the approval of {', '.join(approvers)} (replay.approvers of its "
            f"contract), found that of {name or 'nobody'} (id {identity or '-'}); nothing is sent"
        )
    if triggered_by is None:
        raise UsageError(
            "expected to know who started this run, because they may not approve it themselves; Airflow does not know "
            "it. Start it from the page, over the REST API or from the command line"
        )
    if triggered_by in (name, identity):
        raise UsageError(
            f"expected the approval of somebody else than {triggered_by}, who started this run; nothing is sent. Where "
            "nobody logs in everybody has one name: start it from the command line, airflow dags trigger, instead"
        )
    return name or identity
