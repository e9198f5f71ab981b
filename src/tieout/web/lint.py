"""What the linter says about the contract that a pipeline was judged by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tieout.contracts import Contract
from tieout.linting import Finding, findings


def lint_of(stored: Mapping[str, Any]) -> tuple[Finding, ...] | None:
    """Return the findings about a stored contract's settings, the severest first, or None where they are not known.

    Not known are those of a contract that names settings files, which lie where it was written and not here, and
    of one that this version cannot read. A contract without settings has no findings, which says nothing.

    >>> lint_of({"settings": {"producer": {"file": "producer.properties"}}}) is None
    True
    """
    if any("file" in part for part in (stored.get("settings") or {}).values()):
        return None
    try:
        return findings(Contract.from_json(json.dumps(stored), Path()))
    except ValidationError:
        return None
