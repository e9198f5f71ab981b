"""All pipelines over time."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from tieout.web.chains import hop_lines
from tieout.web.health import health_of
from tieout.web.periods import TICKS, buckets_until
from tieout.web.queries import PipelinesQuery
from tieout.web.visits import VisitDep

PIPELINES_SHOWN: Final = 50

router = APIRouter()


@router.get("/")
def health(visit: VisitDep, query: Annotated[PipelinesQuery, Query()]) -> HTMLResponse:
    """Return the heat map of the pipelines that the user may read, filtered by name."""
    buckets = buckets_until(query.period, query.until or visit.now)
    scheduled = visit.access.scheduled(visit.user)
    with visit.reading() as reader:
        known = sorted(scheduled | visit.access.readable(visit.user, reader.pipelines()))
        matching = [one for one in known if query.name.casefold() in one and one > query.after]
        shown = matching[:PIPELINES_SHOWN]
        found = health_of(reader, reader.heads(shown), buckets, visit.now)
        hops = hop_lines(visit, reader, [one.head.pipeline for one in found])
    return visit.page(
        "health.html.j2",
        query=query,
        buckets=buckets,
        ticks=TICKS[query.period],
        found=found,
        hops=hops,
        never_judged=sorted(set(shown) - {one.head.pipeline for one in found}),
        following=shown[-1] if len(matching) > len(shown) else None,
        total=len(known),
    )
