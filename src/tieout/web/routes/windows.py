"""The windows of a pipeline, and one of them with its statement and evidence."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import HTMLResponse, Response

from tieout import settings
from tieout.checks import data_docs_page
from tieout.contracts import stored_position_form
from tieout.errors import UsageError
from tieout.model import Window
from tieout.reporting.page import MEANINGS
from tieout.reporting.sheet import COUNTS, accounts
from tieout.store.paging import Key, Page
from tieout.store.reader import LOCATED_AT_MOST, Reader
from tieout.store.results import RunSummary
from tieout.store.views import counted_verdict
from tieout.web.chains import chain_of, origins_shown
from tieout.web.lint import contradicted_by
from tieout.web.offset_lines import offset_lines
from tieout.web.queries import PipelineName, RunId, WindowBound, WindowsQuery
from tieout.web.rendering import iso
from tieout.web.tables import PIECE, csv_response
from tieout.web.visits import Visit, VisitDep

SHOWN: Final = 50
PARTITIONS_SHOWN: Final = 200
LINES_SHOWN: Final = 50

router = APIRouter()


@router.get("/pipelines/{pipeline}/windows")
def windows(visit: VisitDep, pipeline: PipelineName, query: Annotated[WindowsQuery, Query()]) -> HTMLResponse:
    """Return a page of a pipeline's windows, each with its current run."""
    visit.require_read(pipeline)
    with visit.reading() as reader:
        page = reader.windows(pipeline, query.row_filter, sort=query.sort, after=query.key, limit=SHOWN)
    return visit.page("windows.html.j2", pipeline=pipeline, query=query, page=page)


@router.get("/pipelines/{pipeline}/windows.csv")
def windows_csv(visit: VisitDep, pipeline: PipelineName, query: Annotated[WindowsQuery, Query()]) -> Response:
    """Return the whole list as CSV."""
    visit.require_read(pipeline)

    def piece(after: Key | None) -> Page[RunSummary]:
        with visit.reading() as reader:
            return reader.windows(pipeline, query.row_filter, sort=query.sort, after=after, limit=PIECE)

    return csv_response(f"{pipeline}_windows", piece, _columns)


@router.get("/pipelines/{pipeline}/windows/{start}/{end}")
def window(visit: VisitDep, pipeline: PipelineName, start: WindowBound, end: WindowBound) -> HTMLResponse:
    """Return the page of a window's current run, whichever run that is at the time."""
    visit.require_read(pipeline)
    if end <= start:
        raise UsageError(f"expected a window that ends after it starts, found {start} to {end}")
    with visit.reading() as reader:
        runs = reader.runs_of_window(pipeline, Window(start, end))
        if not runs:
            raise HTTPException(
                HTTPStatus.NOT_FOUND,
                f"No run of {pipeline} for {iso(start)} to {iso(end)} is stored: the window was never judged, "
                "or its run is older than what is kept.",
            )
        return _statement_page(visit, reader, runs[0].run_id)


@router.get("/runs/{run_id}")
def run(visit: VisitDep, run_id: RunId) -> HTMLResponse:
    """Return the page of one run, current or not."""
    with visit.reading() as reader:
        return _statement_page(visit, reader, str(run_id))


def _statement_page(visit: Visit, reader: Reader, run_id: str) -> HTMLResponse:
    found = reader.run(run_id)
    if found is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, "No run of that id is stored.")
    visit.require_read(found.pipeline)
    statement = found.statement
    verdict = counted_verdict(found.verdict, found.final_verdict)
    located = reader.located_incidents(run_id)
    lines = offset_lines(statement["partitions"][:LINES_SHOWN], located.incidents)
    incidents = reader.incidents_of_run(run_id, SHOWN)
    origins = origins_shown(visit, reader, found.pipeline, [run_id])
    return visit.page(
        "window.html.j2",
        run=found,
        verdict=verdict,
        meaning=MEANINGS[verdict],
        statement=statement,
        form=stored_position_form(found.contract),
        accounts=accounts(statement),
        count_names=COUNTS,
        partitions=statement["partitions"][:PARTITIONS_SHOWN],
        lines=lines,
        drawn_at_most=LOCATED_AT_MOST if located.is_cut else None,
        incidents=incidents,
        origins=origins,
        chain=chain_of(visit, reader, found.pipeline, found.window),
        checks=reader.checks(run_id),
        has_data_docs=data_docs_page(settings.data_docs_folder(found.pipeline), run_id) is not None,
        contradicted=contradicted_by(found.contract, [one.incident for one in incidents]),
        others=[
            one for one in reader.runs_of_window(found.pipeline, found.window) if one.run_id != found.run_id
        ],
        may_write=visit.may_write(found.pipeline),
    )


def _columns(row: RunSummary) -> dict[str, object]:
    return {
        "pipeline": row.pipeline,
        "group": row.group,
        "window_start": iso(row.window.start),
        "window_end": iso(row.window.end),
        "verdict": counted_verdict(row.verdict, row.final_verdict).value,
        "judged": row.verdict.value,
        "checked": row.final_verdict and row.final_verdict.value,
        "breaks": row.breaks_total,
        "reasons": "; ".join(row.reasons),
        "run_id": row.run_id,
        "published_at": iso(row.published_at),
    }
