"""The trace of a message, given by id, key or position: its path in the stored breaks that show it."""

from __future__ import annotations

import shlex
from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from tieout.model import Window
from tieout.reporting.trace import RequestedBy, TraceRequest
from tieout.store.handles import key_handles, message_id_handles, position_handles
from tieout.store.reader import TRACED_AT_MOST, Reader
from tieout.web.chains import hops_of, origins_shown
from tieout.web.journeys import WIDTH, journey_of
from tieout.web.positions import form_of
from tieout.web.queries import PipelineName, TraceQuery
from tieout.web.rendering import iso
from tieout.web.visits import VisitDep

SHOWN: Final = 20
HOP_BREAKS: Final = 5
"""How many breaks of each hop of a chain are listed."""

router = APIRouter()


@router.get("/pipelines/{pipeline}/trace")
def trace(visit: VisitDep, pipeline: PipelineName, query: Annotated[TraceQuery, Query()]) -> HTMLResponse:
    """Return the breaks of a pipeline that show a message, each with its path; without a value, only the form."""
    visit.require_read(pipeline)
    request = query.trace_request
    if request is None:
        return visit.page("trace.html.j2", pipeline=pipeline, query=query, trace_request=None)
    with visit.reading() as reader:
        found = reader.traced(pipeline, _handles(request), SHOWN)
        place = request.position
        judged = reader.judged_at(pipeline, *place) if place else ()
        around = reader.incidents_at([run.run_id for run in judged], *place) if place else ()
        known = [one.window for one in found.breaks] + [run.window for run in judged]
        window = _window_of(reader, pipeline, known)
        chain = hops_of(visit, reader, pipeline) if place is None else (pipeline,)
        readable = visit.access.readable(visit.user, chain)
        hops = [
            (name, reader.traced(name, _handles(request), HOP_BREAKS) if name in readable else None)
            for name in (chain if len(chain) > 1 else ())
        ]
        origins = {
            key: origin
            for name, traced in hops
            if traced is not None
            for key, origin in origins_shown(
                visit, reader, name, [one.run_id for one in traced.breaks]
            ).items()
        }
        form = form_of(reader, pipeline)
    return visit.page(
        "trace.html.j2",
        pipeline=pipeline,
        query=query,
        trace_request=request,
        found=[(one, journey_of(one, form)) for one in found.breaks],
        total=found.total,
        bound=TRACED_AT_MOST,
        judged=judged,
        hops=hops,
        origins=origins,
        around=around,
        form=form,
        width=WIDTH,
        command=_command(request, window),
    )


def _handles(request: TraceRequest) -> tuple[str, ...]:
    if request.position is not None:
        return position_handles(*request.position)
    return (
        key_handles(request.digests()) if request.by is RequestedBy.KEY else message_id_handles(request.value)
    )


def _window_of(reader: Reader, pipeline: str, known: list[Window]) -> Window | None:
    """Return the first of the windows that show the message, else the pipeline's latest one."""
    heads = () if known else reader.heads([pipeline])
    return next(iter((*known, *(head.window for head in heads))), None)


def _command(request: TraceRequest, window: Window | None) -> str:
    """Return the shell command that traces the message in the ledgers themselves."""
    options = {RequestedBy.KEY: ["--key"], RequestedBy.MESSAGE_ID: ["--id"], RequestedBy.POSITION: []}[
        request.by
    ]
    time = [] if window is None else ["--from", iso(window.start), "--to", iso(window.end)]
    return shlex.join(["tieout", "trace", "CONTRACT.yml", *_option_arguments(options, request.value), *time])


def _option_arguments(options: list[str], value: str) -> list[str]:
    """Return an option and its value as one argument, so that a value with a leading dash is not an option."""
    return [f"{options[0]}={value}"] if options else [value]
