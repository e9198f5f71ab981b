"""The application: every route requires a user, every answer has the same strict headers, every error is a page."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from tieout.errors import StoreError, TieoutError, UsageError
from tieout.store import Store
from tieout.web import routes
from tieout.web.access import Access
from tieout.web.links import Links
from tieout.web.rendering import render
from tieout.web.visits import Visit

POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'self'",
        "base-uri 'none'",
    ]
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}

_FAILED: Final = (
    "This page could not be made: Tieout met an error that it does not know. It is in the log of the API server, "
    "under the time of this request."
)

_log: Final = logging.getLogger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


def create_app(
    database_url: Callable[[], str], access: Access, *, clock: Callable[[], datetime] = _utc_now
) -> FastAPI:
    """Return the pages as an application to be mounted or served.

    Args:
        database_url: Gives the result store's URL; read at each request, so that a store that is not set up yet
            gives an error page.
        access: Who may see and do what.
        clock: Gives the current time, to find due windows.
    """
    identified = Depends(access.identify)

    def visited(request: Request, user: Any = identified) -> None:
        store = Store(database_url(), application_name="tieout-pages")
        request.state.tieout_visit = Visit(request, user, access, store, clock())

    app = FastAPI(
        title="Tieout", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(visited)]
    )
    app.include_router(routes.router)
    app.middleware("http")(_with_headers)
    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _misunderstood)
    app.add_exception_handler(TieoutError, _failed)
    return app


async def _with_headers(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Add headers that keep the page from running or loading anything from outside this package.

    Any failure gives a page as well, without its text, which may hold secrets.
    """
    try:
        response = await answer(request)
    except Exception:
        _log.exception("a page could not be made: %r", request.scope["path"])
        response = _error_page(request, HTTPStatus.INTERNAL_SERVER_ERROR, _FAILED)
    for name, value in HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")
    return response


async def _refused(request: Request, error: Exception) -> HTMLResponse:
    status = error.status_code if isinstance(error, HTTPException | StarletteHTTPException) else 500
    detail = str(getattr(error, "detail", ""))
    if status == HTTPStatus.NOT_FOUND and detail == HTTPStatus.NOT_FOUND.phrase:
        detail = "There is no page at this address; the page of all pipelines leads to every other."
    page = _error_page(request, status, detail)
    page.headers.update(getattr(error, "headers", None) or {})
    return page


async def _misunderstood(request: Request, error: Exception) -> HTMLResponse:
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    detail = "; ".join(
        f"{problem['loc'][-1]}: {problem['msg'].removeprefix('Value error, ')}" for problem in problems
    )
    return _error_page(request, HTTPStatus.BAD_REQUEST, detail)


async def _failed(request: Request, error: Exception) -> HTMLResponse:
    """Return a page with the error's text; these errors are written to be shown and hold no secret."""
    if isinstance(error, StoreError):
        _log.warning("the store did not answer a page: %s", error)
        return _error_page(request, HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    status = HTTPStatus.BAD_REQUEST if isinstance(error, UsageError) else HTTPStatus.INTERNAL_SERVER_ERROR
    return _error_page(request, status, str(error))


def _error_page(request: Request, status: int, detail: str) -> HTMLResponse:
    text = render(
        "error.html.j2", links=Links(request), status=status, title=HTTPStatus(status).phrase, detail=detail
    )
    return HTMLResponse(text, status_code=status)
