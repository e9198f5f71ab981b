"""The style sheet and the script, under an address that changes with them."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

from tieout.web.rendering import MEDIA_TYPES, asset
from tieout.web.visits import VisitDep

router = APIRouter()

_FOR_EVER = {"Cache-Control": "private, max-age=31536000, immutable"}


@router.get("/static/{version}/{name}")
def static(_visit: VisitDep, version: str, name: str) -> Response:  # noqa: ARG001 - the version is for browsers
    """Return a file that the pages load."""
    if name not in MEDIA_TYPES:
        raise HTTPException(HTTPStatus.NOT_FOUND, "There is no such file.")
    return Response(asset(name), media_type=MEDIA_TYPES[name], headers=_FOR_EVER)
