"""Users' permissions: the host of the pages decides them, and this package enforces them for every request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

SAME_ORIGIN = "same-origin"


class Access(Protocol):
    """The permissions in the host of the pages; a pipeline's name is its DAG's."""

    @property
    def identify(self) -> Callable[..., Any]:
        """A FastAPI dependency that gives the user, and refuses unauthenticated requests (401, 403)."""

    def readable(self, user: Any, pipelines: Collection[str]) -> frozenset[str]:
        """Return those of the pipelines that the user may read."""

    def may_write(self, user: Any, pipeline: str) -> bool:
        """Return whether the user may change what is stored about a pipeline, and have it judged."""

    def name(self, user: Any) -> str:
        """Return the user's name for the record of their acts."""

    def scheduled(self, user: Any) -> frozenset[str]:
        """Return the pipelines that are scheduled and the user may read, judged or not."""


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Return whether a request that changes something came from one of these pages.

    Browsers say so in `Sec-Fetch-Site`, and over plain HTTP in `Origin`, which a page of another site cannot
    change. A request with neither comes from no current browser and is refused as well; programs use the
    command line. A token in a header is no proof: Airflow without logins adds one to every request.

    Source: OWASP Cross-Site Request Forgery Prevention Cheat Sheet, "Fetch Metadata headers".
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == SAME_ORIGIN
    origin, host = headers.get("origin"), headers.get("host")
    try:
        return bool(host) and urlsplit(origin or "").netloc == host
    except ValueError:
        return False  # the origin is no address
