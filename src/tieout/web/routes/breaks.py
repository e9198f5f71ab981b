"""The stored breaks of a run, filtered, sorted, and as CSV."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import HTMLResponse, Response

from tieout.contracts import stored_position_form
from tieout.model import BreakClass, Severity
from tieout.store.paging import Key, Page
from tieout.store.results import Run, StoredBreak
from tieout.web.queries import BreaksQuery, RunId
from tieout.web.tables import PIECE, csv_response
from tieout.web.visits import Visit, VisitDep

SHOWN: Final = 50

router = APIRouter()


@router.get("/runs/{run_id}/breaks")
def breaks(visit: VisitDep, run_id: RunId, query: Annotated[BreaksQuery, Query()]) -> HTMLResponse:
    """Return a page of a run's stored breaks."""
    run = _readable_run(visit, str(run_id))
    with visit.reading() as reader:
        page = reader.breaks(str(run_id), query.row_filter, sort=query.sort, after=query.key, limit=SHOWN)
    return visit.page(
        "breaks.html.j2",
        run=run,
        form=stored_position_form(run.contract),
        query=query,
        page=page,
        classes=[one.value for one in BreakClass],
        severities=[one.value for one in Severity],
    )


@router.get("/runs/{run_id}/breaks.csv")
def breaks_csv(visit: VisitDep, run_id: RunId, query: Annotated[BreaksQuery, Query()]) -> Response:
    """Return the whole list as CSV, without the evidence."""
    _readable_run(visit, str(run_id))

    def piece(after: Key | None) -> Page[StoredBreak]:
        with visit.reading() as reader:
            return reader.breaks(str(run_id), query.row_filter, sort=query.sort, after=after, limit=PIECE)

    return csv_response(f"breaks_{run_id}", piece, _columns)


def _readable_run(visit: Visit, run_id: str) -> Run:
    with visit.reading() as reader:
        run = reader.run(run_id)
    if run is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, "No run of that id is stored.")
    visit.require_read(run.pipeline)
    return run


def _columns(row: StoredBreak) -> dict[str, object]:
    return {
        "break_id": row.break_id,
        "class": row.class_name,
        "flags": list(row.flags),
        "severity": row.severity.value,
        "message_id": row.message_id,
        "producer_id": row.producer_id,
        "topic": row.topic,
        "partition": row.partition,
        "offset": row.offset,
        "locus": row.locus,
        "cause": row.cause,
        "rule": row.rule,
        "incident_id": row.incident_id,
    }
