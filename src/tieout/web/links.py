"""Addresses of pages, below the path at which the application is mounted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request


@dataclass(frozen=True)
class Links:
    """The addresses of links on the pages of one request."""

    request: Request

    def page(self, page: str, query: Mapping[str, Any] | None = None, **path: object) -> str:
        """Return the address of a page; query values that are None or empty are left out."""
        root = str(self.request.scope.get("root_path", ""))
        escaped = {name: quote(str(value), safe=":") for name, value in path.items()}
        place = root + str(self.request.app.url_path_for(page, **escaped))
        given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        return f"{place}?{urlencode(given)}" if given else place

    def airflow(self, *parts: str) -> str:
        """Return the address of a page, or of the API, of the Airflow that serves these pages."""
        root = str(self.request.scope.get("app_root_path", ""))
        return "/".join([root, *(quote(part, safe="") for part in parts)])

    def here(self, **changes: object) -> str:
        """Return this page's address with other query values; those that are None are left out."""
        given = {**self.request.query_params, **changes}
        root = str(self.request.scope.get("root_path", ""))
        path = str(self.request.scope["path"])
        place = path if path.startswith(root) else root + path
        kept = {name: str(value) for name, value in given.items() if value not in (None, "")}
        return f"{quote(place, safe='/:')}?{urlencode(kept)}" if kept else quote(place, safe="/:")
