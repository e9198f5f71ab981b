"""Recording what the independent checks of a stored run found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from psycopg2.extras import execute_values

from tieout.errors import StoreError
from tieout.model import CheckResult, Verdict
from tieout.store.connecting import Cursor
from tieout.store.sql import queries
from tieout.store.storable import EVIDENCE_LIMIT, storable_text


@dataclass(frozen=True)
class Suite:
    """Which suite of which content was run, by which version of Great Expectations."""

    name: str
    digest: str
    gx_version: str


def record(
    cursor: Cursor, run_id: str, results: Sequence[CheckResult], *, final: Verdict, suite: Suite
) -> None:
    """Replace the run's check results and set its final verdict.

    Raises:
        StoreError: where the run is not stored.
    """
    cursor.execute(queries()["finish_run"], {"run_id": run_id, "final_verdict": final})
    if cursor.rowcount == 0:
        raise StoreError(f"run {run_id}: expected a published run, found none; publish it before its checks")
    cursor.execute(queries()["clear_checks"], {"run_id": run_id})
    checked_at = datetime.now(UTC)
    rows = (
        (
            run_id,
            place,
            storable_text(result.rule),
            result.severity,
            result.status,
            storable_text(result.observed, EVIDENCE_LIMIT),
            storable_text(result.limit, EVIDENCE_LIMIT),
            suite.name,
            suite.digest,
            suite.gx_version,
            checked_at,
        )
        for place, result in enumerate(results)
    )
    execute_values(cursor, queries()["write_checks"], rows)
