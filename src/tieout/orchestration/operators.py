"""The tasks around the Spark job: fix the window, check, alert, decide.

Operators assign in `__init__` and do their work in `execute`. Heavy libraries are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from airflow.sdk import BaseOperator

from tieout import settings
from tieout.contracts import Contract
from tieout.errors import StoreError, TieoutError
from tieout.model import Verdict, Window
from tieout.orchestration import metrics
from tieout.orchestration.assets import announce
from tieout.orchestration.connections import export_connections
from tieout.orchestration.page_links import IncidentLink, WindowLink
from tieout.orchestration.versions import AirflowFailException, conf
from tieout.orchestration.waiting import WaitingOperator
from tieout.orchestration.windows import judged_from, refusal, window_of

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from tieout.orchestration.concluding import Conclusion

STEPS: Final = ("window", "reconcile", "check")
"""The tasks whose failure causes an alert."""

POLL_INTERVAL: Final = timedelta(minutes=2)
"""The pause between two looks at late evidence."""


class WindowOperator(WaitingOperator):
    """Fixes what the run judges: `{"start", "end", "contract", "base_dir"}`, the contract by value.

    A scheduled run or a backfill before the end of the window's grace frees its worker and resumes at that
    time. A manual run is refused: its author chose a window that cannot be judged yet.
    Every run then waits in the same way for late evidence, for the contract's `evidence_timeout` from the
    end of the grace on: docs/reference/readiness.md.
    """

    def __init__(self, *, contract: Contract, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._contract = contract

    def execute(self, context: Mapping[str, Any]) -> dict[str, str]:
        """Return the window and the contract."""
        run, params = context["dag_run"], context["params"]
        try:
            window = window_of(
                requested=(params.get("window_start"), params.get("window_end")),
                interval=(run.data_interval_start, run.data_interval_end),
            )
        except TieoutError as error:
            raise AirflowFailException(str(error)) from error
        now, due = datetime.now(UTC), judged_from(window, self._contract.grace)
        if now < due:
            if run.run_type not in ("scheduled", "backfill"):
                raise AirflowFailException(refusal(window, self._contract.grace, now))
            self.log.info("the window's grace lasts until %s, coming again then", due.isoformat())
            self.pause_until(due)
        note = self._await_evidence(window, now, due + self._contract.evidence_timeout)
        return {
            "start": window.start.astimezone(UTC).isoformat(),
            "end": window.end.astimezone(UTC).isoformat(),
            "contract": self._contract.to_json(),
            "base_dir": str(self._contract.base_dir),
            **({} if note is None else {"note": note}),
        }

    def _await_evidence(self, window: Window, now: datetime, until: datetime) -> str | None:
        """Resume later while a ledger is known not to reach far enough, until its timeout.

        Then the run goes on, and its verdict says which ledger does not cover the window. The hop before is waited for
        in the same way, so that the hop where a loss happened reports it; no verdict depends on it. Returns a note if
        that wait was in vain, else None.

        No worker is held while the task waits.
        """
        unjudged = _unjudged_before(self._contract, window)
        if now >= until:
            for note in unjudged:
                self.log.warning("going on without the hop before: %s", note)
            return next(iter(unjudged), None)
        from tieout.readiness import incomplete_ledgers  # noqa: PLC0415 - brings PostgreSQL's driver

        export_connections(self._contract.connections)
        reasons = (*incomplete_ledgers(self._contract, window), *unjudged)
        if reasons:
            resume_at = min(now + POLL_INTERVAL, until)
            self.log.info("evidence is awaited until %s: %s", until.isoformat(), "; ".join(reasons))
            self.pause_until(resume_at)
        return None


def _unjudged_before(contract: Contract, window: Window) -> tuple[str, ...]:
    """Return that the hop before has not judged all of a window, where it has not."""
    if contract.after is None:
        return ()
    from tieout.store import Store  # noqa: PLC0415 - brings PostgreSQL's driver

    before = contract.after.pipeline
    if Store(settings.required_database_url()).is_judged(before, window):
        return ()
    return (f"after: {before} has not judged all of the window",)


class CheckOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Checks the stored run against the contract's limits; stores the final verdict with its alerts.

    A stored verdict is an event of its pipeline's assets: docs/how-to/wait-for-a-kept-window.md.
    """

    operator_extra_links = (WindowLink(), IncidentLink())
    _judged: tuple[Contract, Conclusion]

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return `{"run_id", "verdict", "reasons", "output", "incident_id"}` with the final verdict."""
        from tieout.orchestration.concluding import conclude  # noqa: PLC0415 - brings PostgreSQL's driver

        task = context["ti"]
        given, judged = task.xcom_pull(task_ids="window"), task.xcom_pull(task_ids="reconcile")
        contract = Contract.from_json(given["contract"], Path(given["base_dir"]))
        try:
            concluded = conclude(
                settings.required_database_url(), judged["run_id"], contract, run_page(context)
            )
        except StoreError:
            raise
        except TieoutError as error:
            raise AirflowFailException(str(error)) from error
        if settings.writes_data_docs():
            self._document(judged["run_id"], contract, concluded)
        self._judged = contract, concluded
        announce(context, given, judged["run_id"], concluded)
        metrics.emit(metrics.verdict_measures(concluded.statement, concluded.verdict, datetime.now(UTC)))
        self.log.info("%s: %s", concluded.verdict, "; ".join(concluded.reasons) or "nothing to add")
        return {
            "run_id": judged["run_id"],
            "verdict": concluded.verdict.value,
            "reasons": list(concluded.reasons),
            "output": judged["output"],
            "incident_id": next((one["incident_id"] for one in concluded.statement["incidents"]), None),
        }

    def _document(self, run_id: str, contract: Contract, concluded: Conclusion) -> None:
        """Add the run to the pipeline's Data Docs; a failure to build them does not affect the verdict."""
        from tieout.checks import data_docs  # noqa: PLC0415 - where it is wanted only

        start, end = (datetime.fromisoformat(concluded.statement["window"][key]) for key in ("start", "end"))
        try:
            folder = settings.data_docs_folder(contract.pipeline)
            data_docs(settings.required_database_url(), run_id, contract, Window(start, end), folder)
        except Exception:
            self.log.exception("no Data Docs of this run")

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage:  # noqa: ARG002 - the provider's
        """Return the facets for Airflow's OpenLineage provider, which calls this method by name."""
        from tieout.orchestration.lineage import lineage_of  # noqa: PLC0415 - brings OpenLineage

        return lineage_of(*self._judged)


class AlertOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Sends the pipeline's waiting alerts, after adding one where an earlier task failed.

    An unreachable receiver does not fail the task: the alert stays in the outbox.
    """

    def __init__(self, *, contract: Contract, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._contract = contract

    def execute(self, context: Mapping[str, Any]) -> dict[str, int]:
        """Return how many alerts were sent, failed, were given up and still wait."""
        from tieout.orchestration.alerting import deliver  # noqa: PLC0415 - brings PostgreSQL's driver
        from tieout.orchestration.concluding import enqueue_failure_alerts  # noqa: PLC0415 - as above
        from tieout.store import Store  # noqa: PLC0415 - as above

        url = settings.required_database_url()
        failed = failed_steps(context)
        if failed:
            window, run_id = _window(context), context["run_id"]
            enqueue_failure_alerts(url, self._contract, window, run_id, failed, page=run_page(context))
        return asdict(deliver(Store(url), self._contract.pipeline))


class VerdictOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Ends the run according to its verdict; it is the DAG's only leaf, so it alone decides the run's state."""

    operator_extra_links = (WindowLink(), IncidentLink())

    def execute(self, context: Mapping[str, Any]) -> str:
        """Return the verdict that lets the run succeed."""
        failed = failed_steps(context)
        if failed:
            raise AirflowFailException(
                f"no verdict: {', '.join(f'{task} {state}' for task, state in failed.items())}; "
                "the log of the first of them says why"
            )
        found = context["ti"].xcom_pull(task_ids="check")
        if found is None:
            raise AirflowFailException(
                "no verdict: the task check left no result; clear the run to do it again"
            )
        verdict = Verdict(found["verdict"])
        given = context["ti"].xcom_pull(task_ids="window")
        notes = (note,) if (note := given.get("note")) else ()
        summary = (
            f"{verdict}: {'; '.join((*found['reasons'], *notes)) or 'no reason given'} ({found['output']})"
        )
        if verdict.fails_the_run:
            raise AirflowFailException(summary)
        self.log.info(summary)
        return verdict.value


class ContractErrorOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Fails with what is wrong with a contract file."""

    def __init__(self, *, message: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._message = message

    def execute(self, context: Mapping[str, Any]) -> None:  # noqa: ARG002 - Airflow's signature
        """Fail without retries: only an edit of the file helps."""
        raise AirflowFailException(self._message)


def failed_steps(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the steps before the alert that did not succeed, in their order, with their states."""
    task = context["ti"]
    found = task.get_task_states(dag_id=task.dag_id, task_ids=list(STEPS), run_ids=[task.run_id])
    states = {step: str((found.get(task.run_id) or {}).get(step)) for step in STEPS}
    return {step: state for step, state in states.items() if state != "success"}


def run_page(context: Mapping[str, Any]) -> str:
    """Return the address of the run's page in Airflow."""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}/dags/{context['ti'].dag_id}/runs/{quote(context['ti'].run_id, safe='')}"


def _window(context: Mapping[str, Any]) -> Window | None:
    """Return the run's window, or None where it was never fixed."""
    given = context["ti"].xcom_pull(task_ids="window")
    if given is None:
        return None
    return Window(datetime.fromisoformat(given["start"]), datetime.fromisoformat(given["end"]))
