"""The pages' addresses. They are permanent: links in alerts and tickets stay valid."""

from __future__ import annotations

from fastapi import APIRouter

from tieout.web.routes import acts, assets, breaks, data_docs, health, incidents, pipelines, traces, windows

router = APIRouter()
for part in (assets, health, pipelines, windows, incidents, breaks, traces, acts, data_docs):
    router.include_router(part.router)
