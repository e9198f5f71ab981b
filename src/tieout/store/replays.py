"""The ledger of replays: which breaks were repaired, by which approved plan, each once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from psycopg2.extras import execute_values

from tieout.store.connecting import Cursor
from tieout.store.run_rows import checked_run_id
from tieout.store.sql import queries
from tieout.store.storable import TEXT_LIMIT, storable_text

_PAGE = 500


@dataclass(frozen=True)
class Replay:
    """One plan that was approved and carried out."""

    plan_id: str
    run_id: str
    pipeline: str
    group: str
    incident_id: str | None
    target: str
    digest: str
    approved_by: str | None
    dag_run_id: str | None


@dataclass(frozen=True)
class ReplayItem:
    """One break that was repaired; `kind` is `produce` or `remove`."""

    idempotence_key: str
    break_id: str
    kind: str
    message_id: str | None


@dataclass(frozen=True)
class Replayed:
    """When, and by which plan, a key was replayed."""

    plan_id: str
    executed_at: datetime


def record(cursor: Cursor, replay: Replay, items: Iterable[ReplayItem]) -> int:
    """Store the items that a plan repaired and return how many are new; a known key stays as it is."""
    row = {name: None if value is None else storable_text(value) for name, value in asdict(replay).items()}
    cursor.execute(queries()["write_replay"], {**row, "run_id": checked_run_id(replay.run_id)})
    rows = [
        (
            item.idempotence_key,
            replay.plan_id,
            storable_text(item.break_id, TEXT_LIMIT),
            item.kind,
            None if item.message_id is None else storable_text(item.message_id, TEXT_LIMIT),
        )
        for item in items
    ]
    new = execute_values(cursor, queries()["write_replay_items"], rows, page_size=_PAGE, fetch=True)
    return len(new)


def replayed_breaks(cursor: Cursor, break_ids: Sequence[str]) -> int:
    """Return how many of the breaks were replayed, by any attempt."""
    stored = [storable_text(one, TEXT_LIMIT) for one in break_ids]
    cursor.execute(queries()["replayed_breaks"], {"break_ids": stored})
    return len(cursor.fetchall())


def replayed(cursor: Cursor, keys: Sequence[str]) -> dict[str, Replayed]:
    """Return those of the keys that were replayed."""
    cursor.execute(queries()["replayed"], {"keys": list(keys)})
    return {row["idempotence_key"]: Replayed(row["plan_id"], row["executed_at"]) for row in cursor.fetchall()}
