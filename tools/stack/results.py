"""The stored rows of a run, for comparing two runs of a window."""

from __future__ import annotations

from typing import Any, Final

from tieout.model import Window
from tieout.store import Store

_LABELS: Final = ("run_id", "generated_at")
_LIMIT: Final = 100_000


def stored_rows(store: Store, pipeline: str, window: Window) -> dict[str, Any] | None:
    """Return all rows of a window's current run, without the run's labels, or None without a run."""
    run = store.current_run(pipeline, window.start, window.end)
    if run is None:
        return None
    return {
        "statement": {key: value for key, value in run.statement.items() if key not in _LABELS},
        "final": run.final_verdict,
        "incidents": store.incidents(run.run_id, limit=_LIMIT),
        "breaks": store.breaks(run.run_id, limit=_LIMIT),
        "checks": store.checks(run.run_id),
    }
