"""Alerts about changed incidents: from the store's news to alerts in its outbox.

Each delivery of alerts does this first, so that no change is missed: an acceptance, its end, or an incident whose run
died before its alert was stored. Docs: docs/reference/alerts.md.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from tieout.contracts import Contract
from tieout.reporting.incident_alerts import IncidentNews, incident_alerts
from tieout.store import Life, Origin, Run, Store

_log: Final = logging.getLogger(__name__)


def enqueue_incident_alerts(store: Store, pipeline: str | None = None) -> int:
    """Store the alerts about changed incidents of one pipeline or all; return how many are new.

    The routes are those of the contract that the latest of these incidents was judged by. Repeating it stores nothing
    new.

    Raises:
        StoreError: where the store cannot be read or written.
    """
    names = store.pipelines() if pipeline is None else (pipeline,)
    return sum(_enqueue_alerts_of(store, name) for name in names)


def _enqueue_alerts_of(store: Store, pipeline: str) -> int:
    news = store.incident_news(pipeline)
    if not news:
        return 0
    run = store.run(max(news, key=lambda incident: incident.seen_at).run_id)
    contract = None if run is None else _contract(run)
    if contract is None:
        _log.warning(
            "pipeline %s: %s incidents changed, but no contract says whom to tell", pipeline, len(news)
        )
        return 0
    open_runs = {incident.run_id for incident in news if incident.resolution is None}
    origins = store.origins(pipeline, open_runs) if contract.after else {}
    changes = [_news(incident, origins.get((incident.run_id, incident.id))) for incident in news]
    return store.enqueue_news(news, incident_alerts(contract, changes))


def _contract(run: Run) -> Contract | None:
    """Return the contract that the run was judged by, or None where this version cannot read it."""
    try:
        return Contract.from_json(json.dumps(run.contract), Path())
    except ValidationError:
        return None


def _news(incident: Life, origin: Origin | None) -> IncidentNews:
    return IncidentNews(
        incident_id=incident.id,
        thread=incident.origin_id or incident.id,
        resolution=incident.resolution,
        class_name=incident.class_name,
        severity=incident.severity,
        locus=incident.locus,
        cause=incident.cause,
        topic=incident.topic,
        partition=incident.partition,
        first_position=incident.first_position,
        last_position=incident.last_position,
        breaks=incident.breaks,
        reopenings=incident.reopenings,
        window=incident.window,
        run_id=incident.run_id,
        accepted_until=incident.accepted_until,
        chain=origin.words if origin is not None and incident.resolution is None else None,
    )
