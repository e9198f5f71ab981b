"""Great Expectations' own page of one run's checks, without remote content.

The library's page loads scripts, styles and a tracking picture from eight servers. Here it has only text and tables,
with the pages' own style sheet.
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

_REMOVED: Final = re.compile(r"<footer\b.*?</footer>", re.DOTALL | re.IGNORECASE)
_LINKS: Final = re.compile(r"""<a\b[^>]*href=["'](?!#)[^>]*>(?P<text>.*?)</a>""", re.DOTALL | re.IGNORECASE)
"""Links to other pages of the site, which are not served, and to other sites."""
_SIGNS: Final = re.compile(r"<i\b[^>]*\bfa-(?P<sign>check-circle|times|exclamation-triangle)\b[^>]*>\s*</i>")
_ICON_WORDS: Final = {"check-circle": "pass", "times": "fail", "exclamation-triangle": "error"}
"""Words for the icons, whose font is not loaded."""

router = APIRouter()


@router.get("/runs/{run_id}/data-docs")
def data_docs(visit: VisitDep, run_id: RunId) -> HTMLResponse:
    """Return the page of a run's checks, if the task `check` built one."""
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
    text = _readable(page.read_text(encoding="utf-8"))
    return HTMLResponse(text.replace("</head>", f'<link rel="stylesheet" href="{style}"></head>', 1))


def _readable(text: str) -> str:
    """Return the library's page without remote content and links, with icons as words."""
    text = _REMOVED.sub("", _LOADED.sub("", text))
    text = _LINKS.sub(lambda found: found["text"], text)
    return _SIGNS.sub(lambda found: _ICON_WORDS[found["sign"]], text)
