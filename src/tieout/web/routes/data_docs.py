"""Great Expectations' own page of one run's checks, without what it would load from elsewhere.

As the library writes it, the page asks eight servers for scripts, styles and a picture that tells them who looks. Here
it is text and tables alone, under the pages' own style sheet.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse

from tieout import settings
from tieout.checks import data_docs_page
from tieout.web.queries import RunId
from tieout.web.rendering import asset_version
from tieout.web.visits import VisitDep

_LOADED: Final = re.compile(
    r"<script\b.*?</script\s*>|<style\b.*?</style\s*>|<(?:link|img|base|iframe)\b[^>]*>",
    re.DOTALL | re.IGNORECASE,
)

router = APIRouter()


@router.get("/runs/{run_id}/data-docs")
def data_docs(visit: VisitDep, run_id: RunId) -> HTMLResponse:
    """Return the page of a run's checks, where the task `check` has had one built."""
    with visit.reading() as reader:
        run = reader.run(str(run_id))
    if run is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, "No run of that id is stored.")
    visit.require_read(run.pipeline)
    page = data_docs_page(settings.data_docs_folder(run.pipeline), run.run_id)
    if page is None:
        raise HTTPException(
            HTTPStatus.NOT_FOUND,
            f"There are no Data Docs of this run: {settings.DATA_DOCS}=1 has them built when a window is checked.",
        )
    style = visit.links.page("static", version=asset_version(), name="tieout.css")
    text = _LOADED.sub("", page.read_text(encoding="utf-8"))
    return HTMLResponse(text.replace("</head>", f'<link rel="stylesheet" href="{style}"></head>', 1))
