"""The command `report`: the statements of a period, from the store or from a folder, as one document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tieout.contracts.times import format_time
from tieout.errors import UsageError
from tieout.model import Verdict, Window
from tieout.reporting.period import JudgedWindow, Origin
from tieout.settings import required_database_url
from tieout.verdicts import final_verdict

if TYPE_CHECKING:
    from tieout.store import Store

STATEMENT: Final = "statement.json"
_NEEDED: Final = (
    "pipeline", "group", "window", "guarantee", "verdict", "reasons", "coverage", "partitions", "classes", "flags",
    "incidents", "breaks_total", "run_id", "generated_at", "contract_digest",
)  # fmt: skip


def stored_windows(period: Window, pipeline: str | None) -> tuple[JudgedWindow, ...]:
    """Return the windows whose current statements the store holds; one that no check has looked at is not KEPT.

    Raises:
        UsageError: where TIEOUT_DATABASE_URL is not set.
        StoreError: where the store cannot be read.
    """
    from tieout.store import Store  # noqa: PLC0415 - only this command and its like need PostgreSQL's client

    store = Store(required_database_url(), application_name="tieout report")
    stored = store.statements_between(period.start, period.end, pipeline)
    origins = _origins(store, [one.statement for one in stored])
    return tuple(
        JudgedWindow(
            statement=found.statement,
            verdict=found.final_verdict or final_verdict(found.verdict, ()),
            is_checked=found.final_verdict is not None,
            active_from=found.active_from,
            active_until=found.active_until,
            origins=origins.get(found.statement["run_id"], {}),
        )
        for found in stored
    )


def _origins(store: Store, statements: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Origin]]:
    """Return by run and incident at which hop of a chain it happened."""
    runs: dict[str, list[str]] = {}
    for one in statements:
        if one.get("after") is not None and one["incidents"]:
            runs.setdefault(one["pipeline"], []).append(one["run_id"])
    found: dict[str, dict[str, Origin]] = {}
    for pipeline, run_ids in runs.items():
        for (run_id, incident_id), origin in store.origins(pipeline, run_ids).items():
            earlier = tuple(
                {
                    "pipeline": one.pipeline,
                    "run_id": one.run_id,
                    "incident_id": one.incident_id,
                    "window": {"start": format_time(one.window.start), "end": format_time(one.window.end)},
                    "messages": one.messages,
                }
                for one in origin.earlier
            )
            found.setdefault(run_id, {})[incident_id] = Origin(origin.words, origin.is_consequence, earlier)
    return found


def written_windows(folder: Path) -> tuple[JudgedWindow, ...]:
    """Return the windows of every `statement.json` below the folder; of a window's several the latest counts.

    Raises:
        UsageError: where there is none, or one that no run wrote.
    """
    files = sorted(folder.rglob(STATEMENT)) if folder.is_dir() else []
    if not files:
        raise UsageError(
            f"--statements {folder}: expected a folder with {STATEMENT} files in it, found none; "
            "give the folder that holds the --output folders of tieout reconcile"
        )
    latest = _latest(_statement(file) for file in files)
    return tuple(JudgedWindow(found, Verdict(found["verdict"])) for found in latest)


def _statement(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read as JSON: {error}") from error
    missing = [name for name in _NEEDED if name not in found] if isinstance(found, dict) else ["everything"]
    if missing:
        raise UsageError(
            f"{file}: expected a statement of tieout reconcile, found none of {', '.join(missing)}"
        )
    return dict(found)


def _latest(statements: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one statement a pipeline, group and window: the one generated last, by its run id among equals."""
    chosen: dict[tuple[object, ...], dict[str, Any]] = {}
    for found in sorted(statements, key=lambda one: (_moment(one["generated_at"]), str(one["run_id"]))):
        window = found["window"]
        name = (found["pipeline"], found["group"], _moment(window["start"]), _moment(window["end"]))
        chosen[name] = found
    return list(chosen.values())


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
