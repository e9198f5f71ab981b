"""Assets that other DAGs can wait for: an event for each verdict, and another for each KEPT window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from tieout.model import Verdict

if TYPE_CHECKING:
    from tieout.orchestration.concluding import Conclusion


def verdict_asset(pipeline: str) -> Asset:
    """Return the asset that has an event for each final verdict of a pipeline, whatever it is."""
    return Asset(uri=f"tieout://{pipeline}/verdict")


def kept_asset(pipeline: str) -> Asset:
    """Return the asset that has an event for each window that was found KEPT, and for nothing else."""
    return Asset(uri=f"tieout://{pipeline}/kept")


def outlets_of(pipeline: str) -> list[Asset | AssetAlias]:
    """Return the outlets of the task that stores final verdicts.

    Airflow adds an event for every asset among them when the task succeeds; one behind an alias only if the
    task says so.
    """
    return [verdict_asset(pipeline), _kept_alias(pipeline)]


def announce(
    context: Mapping[str, Any], given: Mapping[str, str], run_id: str, concluded: Conclusion
) -> None:
    """Add the window and its verdict to the task's asset events.

    A run with less coverage than the window's current run does not count, and gives no event of `kept_asset`.

    Args:
        context: The task's.
        given: The window that the task `window` fixed.
        run_id: The stored run.
        concluded: Its final verdict.
    """
    pipeline = context["ti"].dag_id
    extra = {
        "pipeline": pipeline,
        "window_start": given["start"],
        "window_end": given["end"],
        "verdict": concluded.verdict.value,
        "run_id": run_id,
        "is_current": concluded.is_current,
    }
    events = context["outlet_events"]
    events[verdict_asset(pipeline)].extra.update(extra)
    if concluded.verdict is Verdict.KEPT and concluded.is_current:
        events[_kept_alias(pipeline)].add(kept_asset(pipeline), extra=extra)


def _kept_alias(pipeline: str) -> AssetAlias:
    return AssetAlias(f"tieout_{pipeline}_kept")
