"""The incidents of a pipeline, and one of them with its breaks and their evidence."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import HTMLResponse, Response

from tieout.contracts import stored_position_form
from tieout.model import BreakClass, Cause, Locus, Severity
from tieout.store.paging import Key, Page
from tieout.store.views import BreakFilter, WindowIncident
from tieout.web.chains import origins_shown
from tieout.web.positions import form_of
from tieout.web.queries import IncidentId, IncidentsQuery, PipelineName, RunId
from tieout.web.rendering import iso
from tieout.web.repairs import repair_for
from tieout.web.tables import PIECE, csv_response
from tieout.web.visits import VisitDep

SHOWN: Final = 50
BREAKS_SHOWN: Final = 20

CHOICES: Final[dict[str, Any]] = {
    "classes": [one.value for one in BreakClass],
    "severities": [one.value for one in Severity],
    "loci": [one.value for one in Locus],
    "causes": [one.value for one in Cause],
}

REPLAYABLE: Final = (BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE)
"""The classes that the DAG `tieout_replay` has a repair for; docs/how-to/replay-lost-messages.md."""

router = APIRouter()


@router.get("/pipelines/{pipeline}/incidents")
def incidents(
    visit: VisitDep, pipeline: PipelineName, query: Annotated[IncidentsQuery, Query()]
) -> HTMLResponse:
    """Return a page of the incidents in a pipeline's current runs."""
    visit.require_read(pipeline)
    with visit.reading() as reader:
        page = reader.incidents(pipeline, query.row_filter, sort=query.sort, after=query.key, limit=SHOWN)
        origins = origins_shown(visit, reader, pipeline, [one.run_id for one in page.rows])
        form = form_of(reader, pipeline)
    return visit.page(
        "incidents.html.j2",
        pipeline=pipeline,
        query=query,
        page=page,
        origins=origins,
        form=form,
        now=visit.now,
        **CHOICES,
    )


@router.get("/pipelines/{pipeline}/incidents.csv")
def incidents_csv(
    visit: VisitDep, pipeline: PipelineName, query: Annotated[IncidentsQuery, Query()]
) -> Response:
    """Return the whole list as CSV."""
    visit.require_read(pipeline)

    def piece(after: Key | None) -> Page[WindowIncident]:
        with visit.reading() as reader:
            return reader.incidents(pipeline, query.row_filter, sort=query.sort, after=after, limit=PIECE)

    return csv_response(f"{pipeline}_incidents", piece, _columns)


@router.get("/runs/{run_id}/incident")
def incident(visit: VisitDep, run_id: RunId, incident_id: IncidentId) -> HTMLResponse:
    """Return one incident with a sample of its breaks."""
    with visit.reading() as reader:
        run = reader.run(str(run_id))
        if run is not None:
            visit.require_read(run.pipeline)
        found = reader.incident(str(run_id), incident_id)
        if run is None or found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "No incident of that id is stored with that run.")
        history = reader.incident_history(run.pipeline, run.group, incident_id)
        origins = origins_shown(visit, reader, run.pipeline, [str(run_id)])
        breaks = reader.breaks(str(run_id), BreakFilter(incident_id=incident_id), limit=BREAKS_SHOWN)
    return visit.page(
        "incident.html.j2",
        run=run,
        form=stored_position_form(run.contract),
        found=found,
        incident=found.incident,
        breaks=breaks,
        repair=repair_for(found.incident.class_name, found.incident.cause),
        history=history,
        origin=origins.get((str(run_id), incident_id)),
        is_replayable=found.incident.class_name in REPLAYABLE,
        lacks_bodies=found.incident.class_name == BreakClass.LOST and not _has_body_source(run.contract),
        may_write=visit.may_write(run.pipeline),
    )


def _has_body_source(contract: Mapping[str, Any]) -> bool:
    """Return whether a stored contract says where the bodies of lost messages are."""
    return bool((contract.get("replay") or {}).get("value"))


def _columns(row: WindowIncident) -> dict[str, object]:
    incident = row.incident
    return {
        "window_start": iso(row.window.start),
        "window_end": iso(row.window.end),
        "class": incident.class_name,
        "severity": incident.severity and incident.severity.value,
        "breaks": incident.breaks,
        "topic": incident.topic,
        "partition": incident.partition,
        "first_position": incident.first_position,
        "last_position": incident.last_position,
        "locus": incident.locus,
        "cause": incident.cause,
        "state": row.state and row.state.value,
        "resolution": row.resolution and row.resolution.value,
        "incident_id": incident.incident_id,
        "run_id": row.run_id,
    }
