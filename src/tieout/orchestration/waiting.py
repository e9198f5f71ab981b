"""Waiting without a worker: deferred where a triggerer runs, rescheduled where none does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from airflow.sdk import BaseOperator

from tieout.orchestration.versions import AirflowRescheduleException, conf


class WaitingOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """An operator that can pause and resume later.

    Args:
        deferrable: Whether it is deferred meanwhile, which needs a triggerer. The default is that of Airflow's own
            operators: `[operators] default_deferrable` of the configuration.
        arguments: Airflow's.
    """

    def __init__(self, *, deferrable: bool | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._deferrable = deferrable

    def pause_until(self, moment: datetime) -> NoReturn:
        """Pause, and have `execute` called again at that time; no worker is held until then.

        Raises:
            AirflowRescheduleException: where it is not deferred.
        """
        is_deferred = self._deferrable
        if is_deferred is None:
            is_deferred = conf.getboolean("operators", "default_deferrable", fallback=False)
        if is_deferred:
            from airflow.providers.standard.triggers.temporal import (  # noqa: PLC0415 - where it is needed only
                DateTimeTrigger,
            )

            self.defer(trigger=DateTimeTrigger(moment=moment), method_name="resume")
        raise AirflowRescheduleException(moment)

    def resume(self, context: Mapping[str, Any], event: object = None) -> Any:  # noqa: ARG002 - Airflow's signature
        """Resume after a deferral: `execute` starts again."""
        return self.execute(context)
