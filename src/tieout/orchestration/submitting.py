"""The Spark job of a run: its arguments and its result."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook

from tieout import settings
from tieout.contracts import Contract
from tieout.java_options import QUICK_COMPILER, suits_quick_compiler
from tieout.orchestration.connections import connection_variables
from tieout.orchestration.metrics import Measure, emit
from tieout.orchestration.retaining import NAME_FORMAT
from tieout.orchestration.versions import AirflowException, AirflowFailException
from tieout.spark_environment import hand_over, spark_environment

CONF: Final = {
    "spark.ui.enabled": "false",
    "spark.log.level": "WARN",
}
_UNREADABLE: Final = (
    'expected JSON such as {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}'
)


class TieoutSparkSubmit(SparkSubmitOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Runs `spark_apps/reconcile.py` on the run's window and returns its small result.

    The result is `{"run_id", "verdict", "counts", "output"}`. The contract goes by value, in a file. Spark's
    processes get the environment variables that they need and no secret; the database's URL and the connections are
    in a file that the driver deletes. None may show in the process table. An error that the job explained fails the
    task for good, unless it says that trying again may help.

    The provider replaces a missing or unreadable connection by the master `yarn`; here that is an error.
    """

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Submit the job and return what it wrote."""
        given = context["ti"].xcom_pull(task_ids="window")
        contract = Contract.from_json(given["contract"], Path(given["base_dir"]))
        return self.submitted(context, contract, lambda file: arguments(given, file, context))

    def submitted(
        self, context: Mapping[str, Any], contract: Contract, command_line: Callable[[Path], list[str]]
    ) -> dict[str, Any]:
        """Submit the application with a contract and return what it wrote.

        Args:
            context: Airflow's.
            contract: The contract, whose relative paths start at the folder of the evidence.
            command_line: Returns the application's command line, given the file that holds the contract.
        """
        is_local = self._known_master().startswith("local")
        with tempfile.TemporaryDirectory(prefix="tieout-") as folder:
            file, result, handover = (
                Path(folder) / name for name in ("contract.json", "result.json", "handover.json")
            )
            file.write_text(contract.to_json())
            self.application_args = command_line(file)
            secrets = {
                settings.DATABASE_URL: settings.required_database_url(),
                **connection_variables(contract.connections),
            }
            hand_over(secrets, handover)
            variables = {
                settings.RESULT_PATH: str(result),
                settings.HANDOVER_PATH: str(handover),
                **(_local_spark_variables(contract) if is_local else {}),
            }
            if contract.connectors:
                self.jars = ",".join(map(str, settings.jars(contract.connectors))) or None
            began = time.monotonic()
            try:
                # The provider's `env_vars` would stand on the command line for YARN and Kubernetes.
                with settings.defined(variables):
                    super().execute(context)
            except AirflowException as error:
                raise failure(result, error) from error
            seconds = Measure(
                "gauge", "reconcile_seconds", time.monotonic() - began, {"pipeline": context["ti"].dag_id}
            )
            emit([seconds])
            return outcome(result)

    def _get_hook(self) -> SparkSubmitHook:
        """Return the provider's hook, which starts spark-submit in the environment of Spark's processes."""
        hook = super()._get_hook()
        submit = hook.submit
        hook.submit = lambda application="": submit(application, env=spark_environment())
        return hook

    def _known_master(self) -> str:
        try:
            connection = BaseHook.get_connection(self._conn_id)
        except Exception:
            # What Airflow says about an unreadable connection may quote it.
            raise AirflowFailException(
                f"the Spark connection {self._conn_id!r} is not defined or unreadable: define it in "
                f"Airflow, or as the environment variable AIRFLOW_CONN_{self._conn_id.upper()}; {_UNREADABLE}"
            ) from None
        master: str = self._get_hook()._connection["master"]
        is_yarn = "yarn" in (connection.host or "") or connection.conn_type == "yarn"
        if master == "://" or not connection.host or (master == "yarn" and not is_yarn):
            raise AirflowFailException(
                f"the Spark connection {self._conn_id!r} names no master (found {master!r}); {_UNREADABLE}"
            )
        return master


def _local_spark_variables(contract: Contract) -> dict[str, str]:
    """Return the variables that fit a local Spark to the evidence: its memory and Java's compiler."""
    from tieout.readiness.files import size_of  # noqa: PLC0415 - brings PostgreSQL's driver

    variables = {settings.DRIVER_MEMORY: settings.driver_memory()}
    if suits_quick_compiler(size_of(contract)):
        variables[settings.SUBMIT_OPTIONS] = settings.submit_options(QUICK_COMPILER)
    return variables


def arguments(given: Mapping[str, str], contract: Path, context: Mapping[str, Any]) -> list[str]:
    """Return the job's command line for the window and contract that the task `window` fixed."""
    task = context["ti"]
    output = output_folder(task.dag_id, datetime.fromisoformat(given["start"]))
    named = {
        "--contract-json": contract,
        "--base-dir": given["base_dir"],
        "--from": given["start"],
        "--to": given["end"],
        "--output": output,
        "--dag-id": task.dag_id,
        "--dag-run-id": task.run_id,
        "--try-number": task.try_number,
    }
    return [str(argument) for pair in named.items() for argument in pair]


def output_folder(pipeline: str, start: datetime) -> Path:
    """Return the folder of a window's statement; the same window always has the same."""
    return settings.home() / "statements" / pipeline / start.strftime(NAME_FORMAT)


def outcome(result: Path) -> dict[str, Any]:
    """Return the job's result.

    Raises:
        AirflowException: where the job succeeded and wrote none.
    """
    try:
        found: dict[str, Any] = json.loads(result.read_text())
    except (OSError, ValueError) as error:
        raise AirflowException(
            "the Spark job ended without a result: its log, above, says how far it got"
        ) from error
    return found


def failure(result: Path, error: Exception) -> Exception:
    """Return the job's own explanation of its failure as an exception, or `error` where it gave none."""
    try:
        reported = json.loads(result.read_text())
    except (OSError, ValueError):
        return error
    if "error" not in reported:
        return error
    kind: type[Exception] = AirflowException if reported.get("is_temporary") else AirflowFailException
    return kind(reported["error"])
