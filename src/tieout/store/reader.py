"""Reading for the pages: lists paged by key and sums by bucket, from one snapshot and within a time limit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

from tieout.model import CheckResult, Window
from tieout.store import chains, results, views
from tieout.store.carrying import JOINED
from tieout.store.chains import Origin
from tieout.store.connecting import Cursor
from tieout.store.life import HistoryEntry, entry_of
from tieout.store.paging import BREAKS, INCIDENTS, WINDOWS, Key, Listing, Page
from tieout.store.results import Run, RunSummary, StoredBreak
from tieout.store.run_rows import checked_run_id
from tieout.store.sql import queries
from tieout.store.views import BreakFilter, Buckets, IncidentFilter, PipelineHead, WindowFilter

READ_TIMEOUT: Final = timedelta(seconds=20)
LOCATED_AT_MOST: Final = 1_000
"""How many incidents of a run are read for the drawing."""
TRACED_AT_MOST: Final = 1_000
"""How many breaks of one message, key or position are read: a million messages may share a key."""
_FILE: Final = "pages.sql"

_Row = Mapping[str, Any]
_T = TypeVar("_T")


class Reader:
    """The store at one moment; every method raises `StoreError` where the database refuses or is too slow."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def pipelines(self) -> tuple[str, ...]:
        """Return the names of all pipelines that have a run, in order."""
        return self._all("pipelines", lambda row: str(row["pipeline"]))

    def heads(self, pipelines: Sequence[str]) -> tuple[PipelineHead, ...]:
        """Return those of the pipelines that have a current run, in the order of their names."""
        return self._all("heads", views.head_of, pipelines=list(pipelines))

    def health(
        self, pipelines: Sequence[str], buckets: Buckets, reach: timedelta
    ) -> tuple[views.JudgedBucket, ...]:
        """Return how many current windows touch each bucket, by the verdict they show.

        Args:
            pipelines: Whose windows are meant.
            buckets: The period.
            reach: How long a window may be that began before the period.
        """
        period = {
            "start": buckets.start,
            "end": buckets.end,
            "step": buckets.step.total_seconds(),
            "buckets": buckets.count,
        }
        names = list(pipelines)
        return self._all("health", views.judged_bucket_of, pipelines=names, reach=reach, **period)

    def gaps(
        self, expected: Mapping[str, Window], buckets: Buckets, reach: timedelta
    ) -> tuple[views.Gap, ...]:
        """Return the buckets in which a pipeline has time without a current run.

        Args:
            expected: The time that each pipeline's schedule covers, within the buckets.
            buckets: The period.
            reach: How long a window may be that began before the expected time.
        """
        return self._all(
            "gaps",
            views.gap_of,
            pipelines=list(expected),
            since=[window.start for window in expected.values()],
            until=[window.end for window in expected.values()],
            start=buckets.start,
            step=buckets.step.total_seconds(),
            reach=reach,
        )

    def history(self, pipeline: str, buckets: Buckets) -> tuple[views.HistoryPoint, ...]:
        """Return the sums over the current windows that start in each bucket; a bucket without any is left out."""
        return self._all(
            "history", lambda row: views.HistoryPoint(**row), pipeline=pipeline, **_period(buckets)
        )

    def offsets_history(self, pipeline: str, buckets: Buckets) -> tuple[views.OffsetPoint, ...]:
        """Return where each partition's judged offsets ended, by bucket; empty without a log."""
        return self._all(
            "offsets_history", lambda row: views.OffsetPoint(**row), pipeline=pipeline, **_period(buckets)
        )

    def windows(
        self,
        pipeline: str,
        filter_by: WindowFilter,
        *,
        sort: str = "newest",
        after: Key | None = None,
        limit: int = 50,
    ) -> Page[RunSummary]:
        """Return a piece of a pipeline's current runs in one of `WINDOW_SORTS`, after the key of a row."""
        filters = {"pipeline": pipeline, **vars(filter_by)}
        return self._page(WINDOWS, filters, sort=sort, after=after, limit=limit)

    def runs_of_window(self, pipeline: str, window: Window, limit: int = 50) -> tuple[RunSummary, ...]:
        """Return every run of a window, the current one first, then the latest published."""
        return self._all(
            "runs_of_window",
            results.summary_of,
            pipeline=pipeline,
            window_start=window.start,
            window_end=window.end,
            limit=limit,
        )

    def run(self, run_id: str) -> Run | None:
        """Return a run with its contract and its statement, whose incidents are left out, or None."""
        found = self._all("run", results.run_of, run_id=checked_run_id(run_id))
        return next(iter(found), None)

    def checks(self, run_id: str) -> tuple[CheckResult, ...]:
        """Return what the independent checks of a run found, in the suite's order."""
        return self._all("checks", results.check_of, run_id=checked_run_id(run_id))

    def incidents(
        self,
        pipeline: str,
        filter_by: IncidentFilter,
        *,
        sort: str = "oldest",
        after: Key | None = None,
        limit: int = 50,
    ) -> Page[views.WindowIncident]:
        """Return a piece of the incidents in a pipeline's current runs, in one of `INCIDENT_SORTS`."""
        filters = {"pipeline": pipeline, **vars(filter_by)}
        return self._page(INCIDENTS, filters, sort=sort, after=after, limit=limit)

    def incidents_of_run(self, run_id: str, limit: int = 50) -> tuple[views.WindowIncident, ...]:
        """Return the gravest and largest incidents of a run."""
        return self._all(
            "run_incidents", views.window_incident_of, run_id=checked_run_id(run_id), limit=limit
        )

    def incident(self, run_id: str, incident_id: str) -> views.WindowIncident | None:
        """Return one incident of a run, or None."""
        found = self._all(
            "incident", views.window_incident_of, run_id=checked_run_id(run_id), incident_id=incident_id
        )
        return next(iter(found), None)

    def incident_history(self, pipeline: str, group: str, incident_id: str) -> tuple[HistoryEntry, ...]:
        """Return the changes of an incident and the acts on it, the oldest first; breaks have `Store.break_history`."""
        return self._all(
            "incident_history", entry_of, pipeline=pipeline, group=group, incident_id=incident_id
        )

    def origins(self, pipeline: str, run_ids: Collection[str]) -> dict[tuple[str, str], Origin]:
        """Return the origins of the incidents of a pipeline's runs, by run and incident."""
        return chains.origins_of(self._cursor, pipeline, run_ids)

    def open_incidents_of_hop(self, pipeline: str) -> tuple[tuple[str, str], ...]:
        """Return run and id of a pipeline's latest open incidents that may have happened at an earlier hop."""
        self._cursor.execute(
            queries("life.sql")["open_hops"], {"pipeline": pipeline, "classes": list(JOINED)}
        )
        return tuple((row["run_id"], row["id"]) for row in self._cursor.fetchall())

    def predecessors(self, pipelines: Sequence[str]) -> dict[str, str | None]:
        """Return the pipeline of the hop before each of the pipelines that have a run."""
        return chains.predecessors(self._cursor, pipelines)

    def hop_windows(
        self, pipelines: Sequence[str], window: Window, limit: int = 200
    ) -> tuple[views.HopWindow, ...]:
        """Return the current runs of some pipelines whose windows touch a window, by pipeline and time."""
        self._cursor.execute(
            queries("chains.sql")["hop_windows"],
            {
                "pipelines": list(pipelines),
                "start": window.start,
                "end": window.end,
                "classes": list(JOINED),
                "limit": limit,
            },
        )
        return tuple(map(views.hop_window_of, self._cursor.fetchall()))

    def located_incidents(self, run_id: str, limit: int = LOCATED_AT_MOST) -> views.Located:
        """Return, of a run's gravest and largest incidents, those whose first and last positions are offsets."""
        parameters = {"run_id": checked_run_id(run_id), "limit": limit}
        self._cursor.execute(queries(_FILE)["located_incidents"], parameters)
        rows = self._cursor.fetchall()
        is_cut = bool(rows) and rows[0]["looked_at"] > limit
        return views.Located(tuple(map(views.located_incident_of, rows[:limit])), is_cut)

    def breaks(
        self,
        run_id: str,
        filter_by: BreakFilter,
        *,
        sort: str = "position",
        after: Key | None = None,
        limit: int = 50,
    ) -> Page[StoredBreak]:
        """Return a piece of a run's stored breaks in one of `BREAK_SORTS`."""
        filters = {"run_id": checked_run_id(run_id), **vars(filter_by)}
        return self._page(BREAKS, filters, sort=sort, after=after, limit=limit)

    def traced(self, pipeline: str, handles: Sequence[str], limit: int = 20) -> views.Traced:
        """Return the stored breaks in a pipeline's current runs that show one of the handles, the latest windows first.

        Args:
            pipeline: Whose runs are meant.
            handles: Of the requested message, made by `handles.py`.
            limit: How many are returned; `TRACED_AT_MOST` bounds how many are counted.
        """
        self._cursor.execute(
            queries(_FILE)["traced"],
            {"pipeline": pipeline, "handles": list(handles), "bound": TRACED_AT_MOST, "limit": limit},
        )
        rows = self._cursor.fetchall()
        return views.Traced(tuple(map(views.traced_of, rows)), rows[0]["total"] if rows else 0)

    def judged_at(
        self, pipeline: str, topic: str, partition: int, offset: int, limit: int = 10
    ) -> tuple[RunSummary, ...]:
        """Return the current runs whose judged offsets hold a position, the latest window first."""
        return self._all(
            "judged_at",
            results.summary_of,
            pipeline=pipeline,
            topic=topic,
            partition=partition,
            offset=offset,
            limit=limit,
        )

    def incidents_at(
        self, runs: Sequence[str], topic: str, partition: int, offset: int, limit: int = 20
    ) -> tuple[views.WindowIncident, ...]:
        """Return the incidents of some runs whose range contains a position, be it one of their breaks or not."""
        return self._all(
            "incidents_at",
            views.window_incident_of,
            runs=[checked_run_id(run) for run in runs],
            topic=topic,
            partition=partition,
            offset=offset,
            limit=limit,
        )

    def _all(self, query: str, convert: Callable[[_Row], _T], **parameters: object) -> tuple[_T, ...]:
        self._cursor.execute(queries(_FILE)[query], parameters)
        return tuple(convert(row) for row in self._cursor.fetchall())

    def _page(
        self,
        listing: Listing[_T],
        filters: Mapping[str, object],
        *,
        sort: str,
        after: Key | None,
        limit: int,
    ) -> Page[_T]:
        """Return up to `limit` rows after a key; one row more is read, to see whether there are more."""
        order = listing.order(sort)
        sql = queries(_FILE)[listing.query].format(**order.clauses(after))
        keys = {f"after_{place}": value for place, value in enumerate(after or ())}
        self._cursor.execute(sql, {**filters, **keys, "limit": limit + 1})
        rows = self._cursor.fetchall()
        shown = rows[:limit]
        return Page(
            tuple(listing.convert(row) for row in shown), order.key(shown[-1]) if len(rows) > limit else None
        )


def _period(buckets: Buckets) -> dict[str, object]:
    return {"start": buckets.start, "end": buckets.end, "step": buckets.step.total_seconds()}
