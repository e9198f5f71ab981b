"""People with different rights, told apart by a badge in a header."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from fastapi import HTTPException, Request

BADGES = ("reader", "writer", "stranger")
HIDDEN = "secret_pipeline"


def _identify(request: Request) -> str:
    badge = request.headers.get("x-badge")
    if badge not in BADGES:
        raise HTTPException(401, "Not authenticated")
    return badge


class Badges:
    """What Airflow's permissions are to the pages, without Airflow."""

    @property
    def identify(self) -> Callable[..., Any]:
        """Gives the badge, or refuses."""
        return _identify

    def readable(self, user: Any, pipelines: Collection[str]) -> frozenset[str]:
        """Everything but one, for everyone but strangers."""
        return frozenset() if user == "stranger" else frozenset(pipelines) - {HIDDEN}

    def may_write(self, user: Any, _pipeline: str) -> bool:
        """Whether the badge says so."""
        return bool(user == "writer")

    def name(self, user: Any) -> str:
        """The badge."""
        return str(user)

    def scheduled(self, user: Any) -> frozenset[str]:
        """One pipeline that was never judged."""
        return frozenset() if user == "stranger" else frozenset({"never_judged"})
