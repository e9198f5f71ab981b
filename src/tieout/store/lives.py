"""The state and history of breaks and incidents, and people's acts on them, for users of the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tieout.model import Alert
from tieout.store import acts, chains, life, outbox
from tieout.store.acts import Silence, Subject
from tieout.store.carrying import JOINED
from tieout.store.chains import Origin
from tieout.store.connecting import Database
from tieout.store.life import EarlierWindow, HistoryEntry, Life, PipelineSummary
from tieout.store.sql import queries
from tieout.store.storable import storable_text


class Lives:
    """The followed breaks and incidents in a database; one transaction per call, errors as in `Store`."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
        return self._database.all(
            "open_lives", life.life_of, pipeline=storable_text(pipeline), kind=kind, limit=limit, after=after
        )

    def break_life(self, break_id: str) -> Life | None:
        """Return what became of a followed break, or None where it is not followed."""
        return self._database.first("lives", life.life_of, id=storable_text(break_id), kind="break")

    def incident_life(self, incident_id: str) -> Life | None:
        """Return what became of an incident, or None where it is not known."""
        return self._database.first("lives", life.life_of, id=storable_text(incident_id), kind="incident")

    def break_history(self, break_id: str) -> tuple[HistoryEntry, ...]:
        """Return every change of a break and every act upon it or its incidents, oldest first; empty if not known."""
        return self._database.all("life_history", life.entry_of, id=storable_text(break_id))

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
        """Withdraw an acceptance; return how many breaks and incidents had one.

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
        return self._database.all("silences", acts.silence_of, pipeline=pipeline)

    def expire_acceptances(self, pipeline: str | None = None) -> None:
        """Reopen what was accepted until a time that has passed; publishing and reading open breaks do it, too."""
        with self._database.transaction() as cursor:
            life.expire(cursor, pipeline and storable_text(pipeline))

    def earlier_windows(
        self, pipeline: str, group: str, before: datetime, *, since: datetime | None = None
    ) -> tuple[EarlierWindow, ...]:
        """Return the judged windows that end in `(since, before]`, the least recently judged first."""
        return self._database.all(
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
        """Return the earlier windows with an open message: in flight, lost, or not yet decided."""
        return tuple(w for w in self.earlier_windows(pipeline, group, before, since=since) if w.is_open)

    def incident_news(self, pipeline: str, limit: int = 100) -> tuple[Life, ...]:
        """Return incidents with changes that no alert reports yet, the gravest and largest first.

        Incidents that alerts of an earlier hop cover are left out as long as they do.
        """
        self.expire_acceptances(pipeline)
        with self._database.transaction() as cursor:
            return life.incident_news(cursor, storable_text(pipeline), limit)

    def enqueue_news(self, news: Sequence[Life], alerts: Iterable[Alert]) -> int:
        """Store the alerts about news and mark the news as reported, together; return how many alerts are new."""
        with self._database.transaction() as cursor:
            for incident in news:
                cursor.execute(queries()["mark_alerted"], life.alerted_state(incident))
            return outbox.enqueue(cursor, alerts)

    def origins(self, pipeline: str, run_ids: Collection[str]) -> dict[tuple[str, str], Origin]:
        """Return the origins of the incidents of a pipeline's runs, by run and incident.

        Incidents of classes that are not joined have none. Nor do pipelines whose contract has no `after`.
        """
        with self._database.transaction(is_snapshot=True) as cursor:
            return chains.origins_of(cursor, storable_text(pipeline), run_ids)

    def pipeline_summaries(self, pipeline: str | None = None) -> tuple[PipelineSummary, ...]:
        """Return the summary of one pipeline, or of all that have runs, by name."""
        self.expire_acceptances(pipeline)
        found = self._database.all(
            "pipeline_summaries", life.pipeline_summary_of, pipeline=pipeline and storable_text(pipeline)
        )
        return tuple(replace(one, happened_before=self._happened_before(one.pipeline)) for one in found)

    def _happened_before(self, pipeline: str) -> int:
        opened = self._database.all("open_hops", dict, pipeline=pipeline, classes=list(JOINED))
        origins = self.origins(pipeline, {row["run_id"] for row in opened}) if opened else {}
        found = (origins.get((row["run_id"], row["id"])) for row in opened)
        return sum(origin is not None and origin.is_consequence for origin in found)
