"""One pipeline over time."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from tieout.contracts import stored_position_form
from tieout.store.views import IncidentFilter, WindowFilter
from tieout.web.chains import chain_of, origins_shown
from tieout.web.health import health_of
from tieout.web.histories import plots_of
from tieout.web.lint import lint_of
from tieout.web.periods import TICKS, buckets_until
from tieout.web.queries import DagId, PeriodQuery
from tieout.web.visits import VisitDep

WINDOWS_SHOWN: Final = 10
INCIDENTS_SHOWN: Final = 10

router = APIRouter()


@router.get("/pipelines/{pipeline}")
def pipeline(visit: VisitDep, pipeline: DagId, query: Annotated[PeriodQuery, Query()]) -> HTMLResponse:
    """Return verdicts, plots, latest windows, oldest incidents and the contract of one pipeline.

    This is also the tab that Airflow shows on every DAG, so a DAG that is no pipeline gets a friendly page.
    """
    visit.require_read(pipeline)
    buckets, ticks = buckets_until(query.period, query.until or visit.now), TICKS[query.period]
    with visit.reading() as reader:
        heads = reader.heads([pipeline])
        if not heads:
            return visit.page("no_runs.html.j2", pipeline=pipeline)
        run = reader.run(heads[0].run_id)
        incidents = reader.incidents(pipeline, IncidentFilter(state="open"), limit=INCIDENTS_SHOWN)
        return visit.page(
            "pipeline.html.j2",
            query=query,
            buckets=buckets,
            ticks=ticks,
            head=heads[0],
            health=health_of(reader, heads, buckets, visit.now)[0],
            plots=plots_of(reader, pipeline, buckets, ticks),
            windows=reader.windows(pipeline, WindowFilter(), limit=WINDOWS_SHOWN),
            incidents=incidents,
            origins=origins_shown(visit, reader, pipeline, [one.run_id for one in incidents.rows]),
            chain=chain_of(visit, reader, pipeline, heads[0].window),
            contract=run.contract if run else {},
            form=stored_position_form(run.contract) if run else None,
            findings=lint_of(run.contract) if run else None,
            now=visit.now,
            silences=visit.store.silences(pipeline),
            may_write=visit.may_write(pipeline),
        )
