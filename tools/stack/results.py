"""What a run leaves in the store, so that two runs of a window can be compared."""

from __future__ import annotations

from typing import Any, Final

from tieout.model import Window
from tieout.store import Store

_LABELS: Final = ("run_id", "generated_at")
_LIMIT: Final = 100_000


def rows_left(store: Store, pipeline: str, window: Window) -> dict[str, Any] | None:
    """Return everything that a window's current run holds, less the labels of the run, or None without one."""
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
