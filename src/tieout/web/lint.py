"""The linter's findings about the contract that a pipeline was judged by, and contradictions in a statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tieout.contracts import Contract
from tieout.linting import Finding, contradictions, findings
from tieout.store.results import StoredIncident


def lint_of(stored: Mapping[str, Any]) -> tuple[Finding, ...] | None:
    """Return the findings about a stored contract's settings, the severest first, or None where they are not known.

    They are not known for a contract that names settings files (they are not available here) or a cluster to query, or
    that this version cannot read. A contract without settings has no findings, which proves nothing.

    >>> lint_of({"settings": {"producer": {"file": "producer.properties"}}}) is None
    True
    """
    contract = _contract_of(stored)
    return None if contract is None else findings(contract)


def contradicted_by(stored: Mapping[str, Any], incidents: Iterable[StoredIncident]) -> tuple[Finding, ...]:
    """Return the settings of a stored contract that a run's incidents contradict; none where they are not known."""
    contract = _contract_of(stored)
    if contract is None:
        return ()
    rows = [{"class": incident.class_name, **asdict(incident)} for incident in incidents]
    return contradictions(contract, {"incidents": rows})


def _contract_of(stored: Mapping[str, Any]) -> Contract | None:
    """Return the contract, or None where its settings are not known here."""
    if any({"file", "connection"} & part.keys() for part in (stored.get("settings") or {}).values()):
        return None
    try:
        return Contract.from_json(json.dumps(stored), Path())
    except ValidationError:
        return None
