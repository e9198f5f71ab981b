"""The store as its users see it: one object, one transaction a call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from tieout.model import Alert, CheckResult, Verdict, Window
from tieout.store import (
    acts,
    chains,
    checking,
    expiring,
    gaps,
    life,
    migrating,
    outbox,
    publishing,
    replays,
    results,
)
from tieout.store.acts import Silence, Subject
from tieout.store.chains import Origin
from tieout.store.connecting import Database
from tieout.store.gaps import GapsTold, JudgedWindow, OpenGap
from tieout.store.life import EarlierWindow, HistoryEntry, Life, PipelineStanding
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
from tieout.store.sql import migrations, queries
from tieout.store.storable import storable_text

_T = TypeVar("_T")


class Store:
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
        self._database = Database(url, application_name)
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
        """Store one run, all of it or nothing, and make it its window's current one where coverage allows.

        Publishing the same run again leaves the same rows. A run whose evidence reaches less far than the
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
        """Give a reader whose answers are all of one moment, as a page needs them; it cannot write."""
        with self._database.transaction(READ_TIMEOUT, is_snapshot=True) as cursor:
            yield Reader(cursor)

    def run(self, run_id: str) -> Run | None:
        """Return one run with its documents, or None where it is not stored."""
        return self._first("run", results.run_of, run_id=checked_run_id(run_id))

    def current_run(self, pipeline: str, window_start: datetime, window_end: datetime) -> Run | None:
        """Return the run that counts for a window, or None where none was published."""
        return self._first(
            "current_run",
            results.run_of,
            pipeline=storable_text(pipeline),
            window_start=window_start,
            window_end=window_end,
        )

    def runs_of(self, pipeline: str, limit: int = 100) -> tuple[RunSummary, ...]:
        """Return a pipeline's runs, current or not: the latest window first, in it the latest published."""
        return self._all("runs_of", results.summary_of, pipeline=storable_text(pipeline), limit=limit)

    def statements_between(
        self, start: datetime, end: datetime, pipeline: str | None = None
    ) -> tuple[CurrentStatement, ...]:
        """Return the current statements of windows that touch `[start, end)`, of one pipeline or all, in time."""
        named = None if pipeline is None else storable_text(pipeline)
        return self._all(
            "statements_between", results.current_statement_of, start=start, end=end, pipeline=named
        )

    def incidents(self, run_id: str, limit: int = 1000) -> tuple[StoredIncident, ...]:
        """Return a run's incidents, the gravest and largest first."""
        return self._all("incidents", results.incident_of, run_id=checked_run_id(run_id), limit=limit)

    def breaks(self, run_id: str, limit: int = 100) -> tuple[StoredBreak, ...]:
        """Return stored breaks of a run, the gravest first, then by class and position."""
        return self._all("breaks", results.break_of, run_id=checked_run_id(run_id), limit=limit)

    def checks(self, run_id: str) -> tuple[CheckResult, ...]:
        """Return what the independent checks of a run found, in the suite's order."""
        return self._all("checks", results.check_of, run_id=checked_run_id(run_id))

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
        """Return how many alerts are neither sent nor given up."""
        return self._all("pending_alerts", lambda row: int(row["pending"]), pipeline=pipeline)[0]

    def judged_windows(self, pipeline: str, since: datetime) -> tuple[JudgedWindow, ...]:
        """Return the current statement of each window of a pipeline that ends after `since`, in their order."""
        return self._all(
            "judged_windows", gaps.judged_window_of, pipeline=storable_text(pipeline), since=since
        )

    def audited_since(self, pipeline: str) -> datetime | None:
        """Return the start of the first window that a timetable had judged, or that was told to be missing, or None."""
        since: datetime | None = self._all("audited_since", dict, pipeline=storable_text(pipeline))[0][
            "since"
        ]
        return since

    def contract_versions(self, pipeline: str) -> dict[str, dict[str, Any]]:
        """Return the contracts, by digest, that a pipeline's current statements were judged by."""
        rows = self._all("contract_versions", dict, pipeline=storable_text(pipeline))
        return {row["contract_digest"]: row["contract"] for row in rows}

    def last_contracts(self) -> dict[str, tuple[dict[str, Any], datetime]]:
        """Return, for each pipeline, the contract that its latest window was judged by, and that window's end."""
        rows = self._all("last_contracts", dict)
        return {row["pipeline"]: (row["contract"], row["window_end"]) for row in rows}

    def tell_gaps(
        self, pipeline: str, found: Sequence[OpenGap], since: datetime, closing: Callable[[Alert], Alert]
    ) -> GapsTold:
        """Store what an audit has to tell: each gap once when it opens and once when it closes.

        Args:
            pipeline: Whose windows were audited.
            found: All gaps among them now, with the alerts that tell of them.
            since: The audit looked at no window that ended earlier.
            closing: Makes the alert that says a told gap is closed.
        """
        with self._database.transaction() as cursor:
            return gaps.tell(cursor, pipeline, found, since, closing)

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

    def open_breaks(self, pipeline: str, *, limit: int = 100, after: str | None = None) -> tuple[Life, ...]:
        """Return followed breaks that are open or reopened, the oldest window first, then by id.

        Args:
            pipeline: Whose breaks.
            limit: How many at most.
            after: The id of the last break of the page before; None begins.
        """
        return self._lives(pipeline, "break", limit, after)

    def open_incidents(
        self, pipeline: str, *, limit: int = 100, after: str | None = None
    ) -> tuple[Life, ...]:
        """Return incidents that are open or reopened, the oldest window first, then by id; pages as `open_breaks`."""
        return self._lives(pipeline, "incident", limit, after)

    def _lives(self, pipeline: str, kind: str, limit: int, after: str | None) -> tuple[Life, ...]:
        self.expire_acceptances(pipeline)
        return self._all(
            "open_lives", life.life_of, pipeline=storable_text(pipeline), kind=kind, limit=limit, after=after
        )

    def break_life(self, break_id: str) -> Life | None:
        """Return what became of a followed break, or None where it is not followed."""
        return self._first("lives", life.life_of, id=storable_text(break_id), kind="break")

    def incident_life(self, incident_id: str) -> Life | None:
        """Return what became of an incident, or None where it is not known."""
        return self._first("lives", life.life_of, id=storable_text(incident_id), kind="incident")

    def break_history(self, break_id: str) -> tuple[HistoryEntry, ...]:
        """Return every change of a break and every act upon it or its incidents, oldest first; empty if not known."""
        return self._all("life_history", life.entry_of, id=storable_text(break_id))

    def accept(
        self,
        pipeline: str,
        group: str,
        *,
        incident_id: str | None = None,
        break_ids: Sequence[str] = (),
        who: str,
        reason: str,
        expires_at: datetime,
    ) -> int:
        """Accept an incident with its breaks, or breaks, until a time; return how many lives that resolved.

        Acceptance changes who is alerted, never a verdict. It ends with its time, or where the class changes.

        Raises:
            UsageError: where the subject, who, why, or a time in the future is missing.
        """
        subject = Subject.of(pipeline, group, incident_id, break_ids)
        with self._database.transaction() as cursor:
            return acts.accept(cursor, subject, who=who, reason=reason, expires_at=expires_at)

    def reopen(
        self,
        pipeline: str,
        group: str,
        *,
        incident_id: str | None = None,
        break_ids: Sequence[str] = (),
        who: str,
        reason: str,
    ) -> int:
        """Take an acceptance back; return how many breaks and incidents had one.

        Raises:
            UsageError: where the subject, who or why is missing.
        """
        subject = Subject.of(pipeline, group, incident_id, break_ids)
        with self._database.transaction() as cursor:
            return acts.reopen(cursor, subject, who=who, reason=reason)

    def annotate(
        self,
        pipeline: str,
        group: str,
        *,
        incident_id: str | None = None,
        break_ids: Sequence[str] = (),
        who: str,
        reason: str,
    ) -> int:
        """Write a note into the history of an incident or of breaks; return how many of them it names.

        Raises:
            UsageError: where the subject, who or the note is missing.
        """
        subject = Subject.of(pipeline, group, incident_id, break_ids)
        with self._database.transaction() as cursor:
            return acts.annotate(cursor, subject, who=who, reason=reason)

    def silence(
        self, pipeline: str, *, who: str, reason: str, until: datetime | None, incident_id: str | None = None
    ) -> None:
        """Send nothing about a pipeline, or one of its incidents, until a time; None ends an earlier silence.

        Raises:
            UsageError: where who or why is missing, or the time has passed.
        """
        with self._database.transaction() as cursor:
            acts.silence(cursor, pipeline, incident_id, who=who, reason=reason, until=until)

    def silences(self, pipeline: str | None = None) -> tuple[Silence, ...]:
        """Return the silences that hold now, of one pipeline or all."""
        return self._all("silences", acts.silence_of, pipeline=pipeline)

    def expire_acceptances(self, pipeline: str | None = None) -> None:
        """Reopen what was accepted until a time that has passed; publishing and reading open breaks do it, too."""
        with self._database.transaction() as cursor:
            life.expire(cursor, pipeline and storable_text(pipeline))

    def earlier_windows(
        self, pipeline: str, group: str, before: datetime, *, since: datetime | None = None
    ) -> tuple[EarlierWindow, ...]:
        """Return the judged windows that end in `(since, before]`, the least recently judged first."""
        return self._all(
            "earlier_windows",
            life.earlier_of,
            pipeline=storable_text(pipeline),
            consumer_group=storable_text(group),
            before=before,
            since=since or datetime.min.replace(tzinfo=UTC),
            open_classes=list(life.OPEN_CLASSES),
        )

    def windows_to_rejudge(
        self, pipeline: str, group: str, before: datetime, *, since: datetime | None = None
    ) -> tuple[EarlierWindow, ...]:
        """Return the earlier windows with an open message: one in flight, lost, or not to be told yet."""
        return tuple(w for w in self.earlier_windows(pipeline, group, before, since=since) if w.is_open)

    def incident_news(self, pipeline: str, limit: int = 100) -> tuple[Life, ...]:
        """Return incidents about which something changed that no alert tells yet, the gravest and largest first.

        Those whose loss the alerts of an earlier hop tell are left out until that is no longer so.
        """
        self.expire_acceptances(pipeline)
        with self._database.transaction() as cursor:
            return life.incident_news(cursor, storable_text(pipeline), limit)

    def origins(self, pipeline: str, run_ids: Collection[str]) -> dict[tuple[str, str], Origin]:
        """Return where the lost messages of a pipeline's runs were lost, by run and incident.

        Nothing where the contract comes after no other.
        """
        with self._database.transaction(is_snapshot=True) as cursor:
            return chains.origins_of(cursor, storable_text(pipeline), run_ids)

    def is_judged(self, pipeline: str, window: Window) -> bool:
        """Return whether current, checked runs of a pipeline cover all of a window."""
        with self._database.transaction(is_snapshot=True) as cursor:
            return chains.is_judged(cursor, storable_text(pipeline), window)

    def tell_news(self, news: Sequence[Life], alerts: Iterable[Alert]) -> int:
        """Store the alerts that tell news, and remember that it is told, together; return how many alerts are new."""
        with self._database.transaction() as cursor:
            for incident in news:
                cursor.execute(queries()["told_news"], life.as_told(incident))
            return outbox.enqueue(cursor, alerts)

    def pipelines(self) -> tuple[str, ...]:
        """Return the pipelines that have runs, by name."""
        return self._all("pipelines", lambda row: str(row["pipeline"]))

    def standings(self, pipeline: str | None = None) -> tuple[PipelineStanding, ...]:
        """Return how pipelines stand, one or all that have runs, by name."""
        self.expire_acceptances(pipeline)
        found = self._all("standing", life.standing_of, pipeline=pipeline and storable_text(pipeline))
        return tuple(replace(one, lost_before=self._lost_before(one.pipeline)) for one in found)

    def _lost_before(self, pipeline: str) -> int:
        opened = self._all("open_losses", dict, pipeline=pipeline)
        origins = self.origins(pipeline, {row["run_id"] for row in opened}) if opened else {}
        found = (origins.get((row["run_id"], row["id"])) for row in opened)
        return sum(origin is not None and origin.is_consequence for origin in found)

    def _all(
        self, query: str, convert: Callable[[Mapping[str, Any]], _T], **parameters: object
    ) -> tuple[_T, ...]:
        with self._database.transaction() as cursor:
            cursor.execute(queries()[query], parameters)
            return tuple(convert(row) for row in cursor.fetchall())

    def _first(
        self, query: str, convert: Callable[[Mapping[str, Any]], _T], **parameters: object
    ) -> _T | None:
        return next(iter(self._all(query, convert, **parameters)), None)
