"""One request: its user, their rights, its links, and its page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, cast

from fastapi import Depends, HTTPException, Request
from fastapi.responses import HTMLResponse

from tieout.store import Store
from tieout.store.reader import Reader
from tieout.web.access import Access, is_same_origin
from tieout.web.links import Links
from tieout.web.rendering import render


@dataclass(frozen=True)
class Visit:
    """One request of one user."""

    request: Request
    user: Any
    access: Access
    store: Store
    now: datetime

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Give a reader that sees the store at one moment."""
        with self.store.reading() as reader:
            yield reader

    def require_read(self, pipeline: str) -> None:
        """Refuse users who may not read a pipeline, whether or not it exists.

        Raises:
            HTTPException: 403.
        """
        if pipeline not in self.access.readable(self.user, [pipeline]):
            raise HTTPException(
                HTTPStatus.FORBIDDEN,
                f"You may not read the DAG {pipeline}; ask whoever administers Airflow for that.",
            )

    def require_write(self, pipeline: str) -> None:
        """Refuse users who may not change a pipeline's runs, and requests from another site.

        Raises:
            HTTPException: 403.
        """
        self.require_read(pipeline)
        if not self.access.may_write(self.user, pipeline):
            raise HTTPException(
                HTTPStatus.FORBIDDEN, f"You may read the DAG {pipeline}, and not change its runs."
            )
        if not is_same_origin(self.request.headers):
            raise HTTPException(HTTPStatus.FORBIDDEN, "This form was not sent by one of these pages.")

    def may_write(self, pipeline: str) -> bool:
        """Return whether to show forms that change something."""
        return self.access.may_write(self.user, pipeline)

    @property
    def links(self) -> Links:
        """The links of this request."""
        return Links(self.request)

    def page(self, template: str, status: int = HTTPStatus.OK, **values: object) -> HTMLResponse:
        """Return a rendered page."""
        text = render(template, links=self.links, **values)
        return HTMLResponse(text, status_code=status)


def visit_of(request: Request) -> Visit:
    """Return the visit that the application attached to the request with its user."""
    return cast("Visit", request.state.tieout_visit)


VisitDep = Annotated[Visit, Depends(visit_of)]
