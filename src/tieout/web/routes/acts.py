"""What people do about incidents: accept, reopen, annotate, silence; each is recorded with their name.

An act changes who is alerted, never a verdict (docs/reference/taxonomy.md, section 6). Every act needs the right to
change the DAG's runs, and a form of these pages.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from http import HTTPStatus

from fastapi import APIRouter, HTTPException
from fastapi.responses import RedirectResponse

from tieout.store import Store
from tieout.store.results import Run
from tieout.web.queries import Days, IncidentId, PipelineName, Reason, RunId
from tieout.web.visits import Visit, VisitDep

router = APIRouter()


class Act(StrEnum):
    """The acts on an incident."""

    ACCEPT = "accept"
    REOPEN = "reopen"
    ANNOTATE = "annotate"
    SILENCE = "silence"


@router.post("/runs/{run_id}/incident/{act}")
def act_on_incident(
    visit: VisitDep, run_id: RunId, act: Act, incident_id: IncidentId, reason: Reason, *, days: Days = 7
) -> RedirectResponse:
    """Perform an act on an incident, and redirect to its page."""
    with visit.reading() as reader:
        run = reader.run(str(run_id))
        if run is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "No run of that id is stored.")
        visit.require_write(run.pipeline)
        if reader.incident(str(run_id), incident_id) is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "No incident of that id is stored with that run.")
    _act(visit, run, act, incident_id, reason=reason, days=days)
    return _redirect(visit.links.page("incident", {"id": incident_id}, run_id=run_id))


@router.post("/pipelines/{pipeline}/silence")
def silence_pipeline(
    visit: VisitDep, pipeline: PipelineName, reason: Reason, days: Days = 7
) -> RedirectResponse:
    """Send no alerts about a pipeline for some days, and redirect to its page."""
    visit.require_write(pipeline)
    until = visit.now + timedelta(days=days)
    visit.store.silence(pipeline, who=visit.access.name(visit.user), reason=reason, until=until)
    return _redirect(visit.links.page("pipeline", pipeline=pipeline))


def _act(visit: Visit, run: Run, act: Act, incident_id: str, *, reason: str, days: int) -> None:
    store: Store = visit.store
    who, until = visit.access.name(visit.user), visit.now + timedelta(days=days)
    if act == Act.ACCEPT:
        store.accept(
            run.pipeline, run.group, incident_id=incident_id, who=who, reason=reason, expires_at=until
        )
    elif act == Act.REOPEN:
        store.reopen(run.pipeline, run.group, incident_id=incident_id, who=who, reason=reason)
    elif act == Act.ANNOTATE:
        store.annotate(run.pipeline, run.group, incident_id=incident_id, who=who, reason=reason)
    else:
        store.silence(run.pipeline, who=who, reason=reason, until=until, incident_id=incident_id)


def _redirect(address: str) -> RedirectResponse:
    return RedirectResponse(address, status_code=HTTPStatus.SEE_OTHER)
