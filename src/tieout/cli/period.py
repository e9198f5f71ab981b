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
    """Return the windows whose current statements are in the store; one that was not checked is not KEPT.

    Raises:
        UsageError: if TIEOUT_DATABASE_URL is not set.
        StoreError: if the store cannot be read.
    """
    from tieout.store import Store  # noqa: PLC0415 - only this command and its like need PostgreSQL's client

    store = Store(required_database_url(), application_name="tieout report")
    stored = store.statements_between(period.start, period.end, pipeline)
    origins = _origins(store, [row.statement for row in stored])
    return tuple(
        JudgedWindow(
            statement=row.statement,
            verdict=row.final_verdict or final_verdict(row.verdict, ()),
            is_checked=row.final_verdict is not None,
            active_from=row.active_from,
            active_until=row.active_until,
            origins=origins.get(row.statement["run_id"], {}),
        )
        for row in stored
    )


def _origins(store: Store, statements: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Origin]]:
    """Return by run and incident the hop of a chain at which it happened."""
    runs: dict[str, list[str]] = {}
    for statement in statements:
        if statement.get("after") is not None and statement["incidents"]:
            runs.setdefault(statement["pipeline"], []).append(statement["run_id"])
    origins_by_run: dict[str, dict[str, Origin]] = {}
    for pipeline, run_ids in runs.items():
        for (run_id, incident_id), origin in store.origins(pipeline, run_ids).items():
            earlier = tuple(
                {
                    "pipeline": incident.pipeline,
                    "run_id": incident.run_id,
                    "incident_id": incident.incident_id,
                    "window": {
                        "start": format_time(incident.window.start),
                        "end": format_time(incident.window.end),
                    },
                    "messages": incident.messages,
                }
                for incident in origin.earlier
            )
            origins_by_run.setdefault(run_id, {})[incident_id] = Origin(
                origin.words, origin.is_consequence, earlier
            )
    return origins_by_run


def written_windows(folder: Path) -> tuple[JudgedWindow, ...]:
    """Return the windows of every `statement.json` below the folder, one per window: the latest.

    Raises:
        UsageError: if there is none, or a file is not a statement.
    """
    files = sorted(folder.rglob(STATEMENT)) if folder.is_dir() else []
    if not files:
        raise UsageError(
            f"--statements {folder}: expected a folder with {STATEMENT} files in it, found none; "
            "give the folder that holds the --output folders of tieout reconcile"
        )
    latest = _latest(_statement(file) for file in files)
    return tuple(JudgedWindow(statement, Verdict(statement["verdict"])) for statement in latest)


def _statement(file: Path) -> dict[str, Any]:
    try:
        statement = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read as JSON: {error}") from error
    missing = (
        [name for name in _NEEDED if name not in statement] if isinstance(statement, dict) else ["everything"]
    )
    if missing:
        raise UsageError(
            f"{file}: expected a statement of tieout reconcile, found none of {', '.join(missing)}"
        )
    return dict(statement)


def _latest(statements: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one statement per pipeline, group and window: the latest, and of equals the highest run id."""
    chosen: dict[tuple[object, ...], dict[str, Any]] = {}
    for statement in sorted(
        statements, key=lambda each: (_moment(each["generated_at"]), str(each["run_id"]))
    ):
        window = statement["window"]
        name = (statement["pipeline"], statement["group"], _moment(window["start"]), _moment(window["end"]))
        chosen[name] = statement
    return list(chosen.values())


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
