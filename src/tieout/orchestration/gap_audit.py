"""The tasks of the gap audit: compare, alert, and fail where a window has no verdict."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from airflow.sdk import BaseOperator
from pydantic import ValidationError

from tieout import settings
from tieout.contracts import Contract, load_contracts
from tieout.model import Window
from tieout.orchestration.auditing import (
    ACTIVE,
    NOT_QUERIED,
    Audited,
    Finding,
    findings_of,
    gaps_of,
    table_of,
)
from tieout.orchestration.metrics import Measure, emit
from tieout.orchestration.operators import run_page
from tieout.orchestration.timetable import timetable_of, windows_between
from tieout.orchestration.versions import AirflowFailException, is_paused
from tieout.reporting.gap_alerts import UNJUDGED, closed_alert, gap_alerts
from tieout.store import GapsTold, OpenGap, Store

MOST_WINDOWS: Final = 10_000
"""How many windows of a pipeline one audit compares, the latest ones: more than a year of hours."""

MOST_QUERIED: Final = 500
"""How many windows without a verdict, the latest ones, have the state of their run queried per pipeline."""

MOST_RETURNED: Final = 1_000
"""How many findings the task returns; its log and the alerts count all of them."""

DELETED_CONTRACT_PERIOD: Final = timedelta(days=35)
"""How long after its last judged window a pipeline without a valid contract is still expected to be judged."""


class GapAuditOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Compares the windows that each contract's timetable expects with the store, and stores alerts about the gaps.

    A pipeline whose contract file is gone, or cannot be used any more, is audited by the contract that its last window
    was judged by: a broken file must not end its audit.
    """

    def __init__(self, *, folders: Iterable[Path], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._folders = tuple(folders)

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return `{"windows", "unjudged", "findings": [{"pipeline", "start", "end", "state", "why"}]}`."""
        store, now = Store(settings.required_database_url()), datetime.now(UTC)
        found: list[Finding] = []
        count = 0
        contracts, errors = load_contracts(*self._folders)
        for error in errors:
            self.log.error("not audited as it is now: %s", error)
        for contract, until in _audited_contracts(store, contracts, now):
            audited = audited_of(store, contract, until)
            if audited is None:
                continue
            findings = findings_of(audited, _AirflowRunStates(context["ti"], audited.expected), now)
            stored = _store_alerts(store, audited, findings, run_page(context))
            unjudged = sum(one.state in UNJUDGED for one in findings)
            emit([Measure("gauge", "windows_unjudged", unjudged, {"pipeline": contract.pipeline})])
            found += findings
            count += len(audited.expected)
            self.log.info(
                "%s: %s windows, %s findings, %s",
                contract.pipeline,
                len(audited.expected),
                len(findings),
                stored,
            )
        self.log.info("%s windows compared\n%s", count, table_of(found))
        return {
            "windows": count,
            "unjudged": sum(one.state in UNJUDGED for one in found),
            "findings": [_as_fields(one) for one in found[:MOST_RETURNED]],
        }


class GapReportOperator(BaseOperator):  # type: ignore[misc]  # airflow is untyped to us
    """Fails where the audit found windows without a verdict, so that they show in the grid without any alert."""

    def execute(self, context: Mapping[str, Any]) -> str:
        """Return the result of the audit in words."""
        found = context["ti"].xcom_pull(task_ids="audit")
        if found is None:
            raise AirflowFailException("the task audit left no result: its log says why")
        if found["unjudged"]:
            raise AirflowFailException(
                f"{found['unjudged']} of {found['windows']} windows have no verdict: the task audit lists them"
            )
        return f"{found['windows']} windows compared, none without a verdict"


def audited_of(store: Store, contract: Contract, now: datetime) -> Audited | None:
    """Return the windows to compare, or None where the contract has no schedule or nothing is due.

    The windows begin with `active.from`, else with the first that was judged or reported missing, else with the latest
    one that is due: a pipeline that was never judged is a gap as well.
    """
    timetable = timetable_of(contract)
    if timetable is None:
        return None
    due = now - contract.grace
    latest = timetable.latest_window(due)
    since = contract.active.from_ or store.audited_since(contract.pipeline) or latest.start
    since = max(since, latest.end - MOST_WINDOWS * (latest.end - latest.start))
    expected = tuple(windows_between(timetable, since, due))
    if not expected:
        return None
    judged = store.judged_windows(contract.pipeline, since)
    return Audited(contract, expected, judged, store.contract_versions(contract.pipeline))


class _AirflowRunStates:
    """The states of a pipeline's Airflow runs, queried for the latest windows only."""

    def __init__(self, task: Any, expected: tuple[Window, ...]) -> None:
        self._task = task
        self._since = expected[-MOST_QUERIED:][0].start
        self._is_paused: dict[str, bool | None] = {}

    def is_paused(self, pipeline: str) -> bool | None:
        """Return whether the DAG is paused, or None where there is none."""
        if pipeline not in self._is_paused:
            self._is_paused[pipeline] = is_paused(self._task, pipeline)
        return self._is_paused[pipeline]

    def state_of(self, pipeline: str, window: Window) -> str | None:
        """Return the state of the run whose logical date is the window's start."""
        if window.start < self._since:
            return NOT_QUERIED
        of_window = {"dag_id": pipeline, "logical_dates": [window.start]}
        if not self._task.get_dr_count(**of_window):
            return None
        states = (*ACTIVE, "failed", "success")
        return next(state for state in states if self._task.get_dr_count(**of_window, states=[state]))


def _audited_contracts(
    store: Store, contracts: Iterable[Contract], now: datetime
) -> Iterator[tuple[Contract, datetime]]:
    """Yield each contract with the time up to which it is audited, including deleted contracts."""
    valid = {contract.pipeline: contract for contract in contracts}
    yield from ((contract, now) for contract in valid.values())
    for pipeline, (stored, judged_until) in store.last_contracts().items():
        if pipeline not in valid and (contract := _readable(stored)) is not None:
            yield contract, min(now, judged_until + DELETED_CONTRACT_PERIOD)


def _readable(stored: Mapping[str, Any]) -> Contract | None:
    """Return a stored contract, or None where another version of Tieout wrote it and this one cannot read it."""
    try:
        return Contract.from_json(json.dumps(stored), Path())
    except ValidationError:
        return None


def _store_alerts(store: Store, audited: Audited, findings: Iterable[Finding], page: str) -> GapsTold:
    """Store the alerts about a pipeline's gaps."""
    contract = audited.contract
    found = [
        OpenGap(gap.kind, gap.window, gap_alerts(contract, gap, page)) for gap in gaps_of(audited, findings)
    ]
    return store.store_gap_alerts(contract.pipeline, found, audited.expected[0].start, closed_alert)


def _as_fields(finding: Finding) -> dict[str, str]:
    return {
        "pipeline": finding.pipeline,
        "start": finding.window.start.isoformat(),
        "end": finding.window.end.isoformat(),
        "state": finding.state.value,
        "why": finding.detail,
    }
