"""The store as its users see it: one object, one transaction a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from tieout.model import Alert, CheckResult, Verdict, Window
from tieout.store import (
    chains,
    checking,
    expiring,
    gaps,
    migrating,
    outbox,
    publishing,
    replays,
    results,
)
from tieout.store.connecting import Database
from tieout.store.gaps import GapsTold, JudgedWindow, OpenGap
from tieout.store.lives import Lives
from tieout.store.outbox import ClaimedAlert
from tieout.store.reader import READ_TIMEOUT, Reader
from tieout.store.replays import Replay, Replayed, ReplayItem
from tieout.store.results import (
    CurrentStatement,
    PublishedRun,
    Run,
    RunOrigin,
    RunSummary,
    StoredBreak,
    StoredIncident,
)
from tieout.store.run_rows import checked_run_id
from tieout.store.sql import migrations
from tieout.store.storable import storable_text


class Store(Lives):
    """What runs found, in PostgreSQL; every method raises `StoreError` where the database refuses.

    A call is one transaction on a connection of its own, so a store may be shared between threads and forked.

    Args:
        url: A libpq URL, `postgresql://user:password@host:port/database`. It is never shown.
        application_name: What PostgreSQL's administrators see.
        publish_wait: How long `publish` waits for another run of the same window.
    """

    def __init__(
        self, url: str, *, application_name: str = "tieout", publish_wait: timedelta = timedelta(seconds=30)
    ) -> None:
        super().__init__(Database(url, application_name))
        self._publish_wait = publish_wait

    def __repr__(self) -> str:
        return f"Store({self._database.place()})"

    def migrate(self) -> tuple[int, ...]:
        """Bring the database to this version's schema and return the versions applied now; again is harmless.

        Raises:
            StoreError: where the database is newer than the code, or an applied migration was edited.
        """
        with self._database.transaction(statement_timeout=migrating.TIMEOUT) as cursor:
            return migrating.migrate(cursor, migrations())

    def missing_migrations(self) -> tuple[int, ...]:
        """Return the versions that `migrate` would apply now; changes nothing.

        Raises:
            StoreError: where the database is newer than the code, or an applied migration was edited.
        """
        with self._database.transaction(is_snapshot=True) as cursor:
            return migrating.missing_versions(cursor, migrations())

    def publish(
        self,
        statement: Mapping[str, Any],
        breaks: Iterable[Mapping[str, Any]],
        contract: Mapping[str, Any],
        origin: RunOrigin,
    ) -> PublishedRun:
        """Store one run, all of it or nothing, and make it its window's current run if its coverage allows.

        Publishing the same run again leaves the same rows. A run whose evidence covers less than the
        current one's, or that was generated before it, is stored and does not become current.

        Args:
            statement: What `statement.json` holds; `run_id` is a UUID.
            breaks: Rows of `breaks.jsonl`; read once, 20 of each incident are stored.
            contract: The contract it was judged by, in its canonical form.
            origin: The Airflow task that publishes.

        Raises:
            PublishInProgressError: where another run publishes the same pipeline, group and window.
        """
        with self._database.transaction() as cursor:
            return publishing.publish(
                cursor, statement, breaks, contract=contract, origin=origin, wait=self._publish_wait
            )

    def record_checks(
        self,
        run_id: str,
        results: Sequence[CheckResult],
        final_verdict: Verdict,
        *,
        suite: str,
        suite_digest: str,
        gx_version: str,
        alerts: Sequence[Alert] = (),
    ) -> None:
        """Store what the checks found, the final verdict, and the alerts that follow from it, together.

        Raises:
            StoreError: where the run is not stored.
        """
        with self._database.transaction() as cursor:
            described = checking.Suite(suite, suite_digest, gx_version)
            checking.record(cursor, checked_run_id(run_id), results, final=final_verdict, suite=described)
            outbox.enqueue(cursor, alerts)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Give a read-only reader that sees the store at one moment, as a page needs it."""
        with self._database.transaction(READ_TIMEOUT, is_snapshot=True) as cursor:
            yield Reader(cursor)

    def run(self, run_id: str) -> Run | None:
        """Return one run with its documents, or None where it is not stored."""
        return self._database.first("run", results.run_of, run_id=checked_run_id(run_id))

    def current_run(self, pipeline: str, window_start: datetime, window_end: datetime) -> Run | None:
        """Return the run that counts for a window, or None where none was published."""
        return self._database.first(
            "current_run",
            results.run_of,
            pipeline=storable_text(pipeline),
            window_start=window_start,
            window_end=window_end,
        )

    def runs_of(self, pipeline: str, limit: int = 100) -> tuple[RunSummary, ...]:
        """Return a pipeline's runs, current or not: the latest window first, in it the latest published."""
        return self._database.all(
            "runs_of", results.summary_of, pipeline=storable_text(pipeline), limit=limit
        )

    def statements_between(
        self, start: datetime, end: datetime, pipeline: str | None = None
    ) -> tuple[CurrentStatement, ...]:
        """Return the current statements of windows that touch `[start, end)`, of one pipeline or all, in time."""
        named = None if pipeline is None else storable_text(pipeline)
        return self._database.all(
            "statements_between", results.current_statement_of, start=start, end=end, pipeline=named
        )

    def incidents(self, run_id: str, limit: int = 1000) -> tuple[StoredIncident, ...]:
        """Return a run's incidents, the gravest and largest first."""
        return self._database.all(
            "incidents", results.incident_of, run_id=checked_run_id(run_id), limit=limit
        )

    def breaks(self, run_id: str, limit: int = 100) -> tuple[StoredBreak, ...]:
        """Return stored breaks of a run, the gravest first, then by class and position."""
        return self._database.all("breaks", results.break_of, run_id=checked_run_id(run_id), limit=limit)

    def checks(self, run_id: str) -> tuple[CheckResult, ...]:
        """Return what the independent checks of a run found, in the suite's order."""
        return self._database.all("checks", results.check_of, run_id=checked_run_id(run_id))

    def enqueue(self, alerts: Iterable[Alert]) -> int:
        """Store alerts to be sent and return how many are new; a known `dedup_key` adds nothing."""
        with self._database.transaction() as cursor:
            return outbox.enqueue(cursor, alerts)

    def claim_alerts(
        self, limit: int, lease: timedelta, pipeline: str | None = None
    ) -> tuple[ClaimedAlert, ...]:
        """Take up to `limit` due alerts of a pipeline or all; after `lease` another worker may take them."""
        with self._database.transaction() as cursor:
            return outbox.claim(cursor, limit, lease, pipeline)

    def mark_sent(self, claimed: ClaimedAlert) -> None:
        """Record that the receiver took an alert."""
        with self._database.transaction() as cursor:
            outbox.mark_sent(cursor, claimed)

    def mark_failed(self, claimed: ClaimedAlert, error: str, *, is_permanent: bool = False) -> bool:
        """Record why an alert was not sent; return whether it is given up, at once or after 10 attempts."""
        with self._database.transaction() as cursor:
            return outbox.mark_failed(cursor, claimed, error, is_permanent=is_permanent)

    def pending_alerts(self, pipeline: str | None = None) -> int:
        """Return the number of alerts that are neither sent nor given up."""
        return self._database.all("pending_alerts", lambda row: int(row["pending"]), pipeline=pipeline)[0]

    def judged_windows(self, pipeline: str, since: datetime) -> tuple[JudgedWindow, ...]:
        """Return the current statement of each window of a pipeline that ends after `since`, in their order."""
        return self._database.all(
            "judged_windows", gaps.judged_window_of, pipeline=storable_text(pipeline), since=since
        )

    def audited_since(self, pipeline: str) -> datetime | None:
        """Return the start of the first window that a timetable had judged, or that was reported missing, or None."""
        since: datetime | None = self._database.all("audited_since", dict, pipeline=storable_text(pipeline))[
            0
        ]["since"]
        return since

    def contract_versions(self, pipeline: str) -> dict[str, dict[str, Any]]:
        """Return the contracts, by digest, that a pipeline's current statements were judged by."""
        rows = self._database.all("contract_versions", dict, pipeline=storable_text(pipeline))
        return {row["contract_digest"]: row["contract"] for row in rows}

    def last_contracts(self) -> dict[str, tuple[dict[str, Any], datetime]]:
        """Return, for each pipeline, the contract that its latest window was judged by, and that window's end."""
        rows = self._database.all("last_contracts", dict)
        return {row["pipeline"]: (row["contract"], row["window_end"]) for row in rows}

    def store_gap_alerts(
        self, pipeline: str, found: Sequence[OpenGap], since: datetime, closing: Callable[[Alert], Alert]
    ) -> GapsTold:
        """Store the alerts of a gap audit: one when a gap opens and one when it closes.

        Args:
            pipeline: Whose windows were audited.
            found: All gaps among them now, with the alerts about them.
            since: The audit looked at no window that ended earlier.
            closing: Makes the alert that says a gap is closed.
        """
        with self._database.transaction() as cursor:
            return gaps.store_alerts(cursor, pipeline, found, since, closing)

    def delete_expired(
        self, superseded_before: datetime | None, breaks_before: datetime | None
    ) -> tuple[int, int]:
        """Delete some runs that do not count, and some old windows' breaks; return how many of each.

        Args:
            superseded_before: Runs that are not current and were published earlier go; None keeps all of them.
            breaks_before: Breaks of windows that ended earlier go; None keeps all of them.
        """
        with self._database.transaction() as cursor:
            return expiring.delete_expired(cursor, superseded_before, breaks_before)

    def record_replay(self, replay: Replay, items: Iterable[ReplayItem]) -> int:
        """Store what an approved plan repaired, in one transaction; return how many items are new."""
        with self._database.transaction() as cursor:
            return replays.record(cursor, replay, items)

    def replayed(self, idempotence_keys: Sequence[str]) -> dict[str, Replayed]:
        """Return those of the keys that were replayed, with when and by which plan."""
        with self._database.transaction() as cursor:
            return replays.replayed(cursor, idempotence_keys)

    def replayed_breaks(self, break_ids: Sequence[str]) -> int:
        """Return how many of the breaks were replayed, whatever the attempt."""
        with self._database.transaction() as cursor:
            return replays.replayed_breaks(cursor, break_ids)

    def is_judged(self, pipeline: str, window: Window) -> bool:
        """Return whether current, checked runs of a pipeline cover all of a window."""
        with self._database.transaction(is_snapshot=True) as cursor:
            return chains.is_judged(cursor, storable_text(pipeline), window)

    def pipelines(self) -> tuple[str, ...]:
        """Return the pipelines that have runs, by name."""
        return self._database.all("pipelines", lambda row: str(row["pipeline"]))
