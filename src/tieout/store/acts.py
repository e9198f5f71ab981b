"""What people do about breaks and incidents: accept, reopen, annotate, silence. Each act is recorded.

An act changes who is alerted about a break, never a verdict (docs/reference/taxonomy.md, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg2.extras import execute_values

from tieout.errors import StoreError, UsageError
from tieout.store import life
from tieout.store.connecting import Cursor
from tieout.store.sql import queries
from tieout.store.storable import EVIDENCE_LIMIT, TEXT_LIMIT, storable_text


@dataclass(frozen=True)
class Subject:
    """What an act is about: an incident with all of its breaks, or some breaks, of one pipeline and group."""

    pipeline: str
    group: str
    kind: str
    ids: tuple[str, ...]

    @classmethod
    def of(cls, pipeline: str, group: str, incident_id: str | None, break_ids: Sequence[str]) -> Subject:
        """Return the subject of an act.

        Raises:
            UsageError: where neither or both of incident and breaks are named.
        """
        if (incident_id is None) == (not break_ids):
            raise UsageError("name either one incident or at least one break, not both and not neither")
        ids = tuple(break_ids) if incident_id is None else (incident_id,)
        kind = "break" if incident_id is None else "incident"
        stored = tuple(dict.fromkeys(storable_text(each, TEXT_LIMIT) for each in ids))
        return cls(storable_text(pipeline), storable_text(group), kind, stored)

    def parameters(self) -> dict[str, Any]:
        """Return the subject as parameters of a statement."""
        return {
            "pipeline": self.pipeline,
            "consumer_group": self.group,
            "kind": self.kind,
            "ids": list(self.ids),
        }


@dataclass(frozen=True)
class Silence:
    """A period in which no alert is sent about a pipeline, or about one of its incidents."""

    pipeline: str
    incident_id: str | None
    who: str
    reason: str
    made_at: datetime
    expires_at: datetime


def accept(cursor: Cursor, subject: Subject, *, who: str, reason: str, expires_at: datetime) -> int:
    """Accept the open breaks and incidents of the subject until a time, and return how many there were.

    Raises:
        UsageError: where who or why is missing, or the expiry is not in the future.
        StoreError: where the subject is not known, or nothing of it is open.
    """
    _require_future("until", expires_at)
    _signed(who, reason)
    found = _known(cursor, subject)
    cursor.execute(queries()["accept_lives"], {**subject.parameters(), "expires_at": expires_at})
    touched = cursor.fetchall()
    if not touched:
        states = ", ".join(f"{row['id']} is resolved: {row['resolution']}" for row in found[:3])
        raise StoreError(f"{subject.pipeline}: nothing here is open that could be accepted ({states})")
    _write(cursor, "accept", subject, who=who, reason=reason, expires_at=expires_at)
    life.advance_touched(cursor, subject.pipeline, subject.group, touched)
    return len(touched)


def reopen(cursor: Cursor, subject: Subject, *, who: str, reason: str) -> int:
    """Withdraw the acceptance of the subject, and return the number of breaks and incidents reopened.

    Raises:
        UsageError: where who or why is missing.
        StoreError: where the subject is not known, or nothing of it is accepted. Only new evidence reopens what
            evidence resolved.
    """
    _signed(who, reason)
    found = _known(cursor, subject)
    cursor.execute(queries()["reopen_lives"], subject.parameters())
    touched = cursor.fetchall()
    if not touched:
        states = ", ".join(f"{row['id']} is {row['resolution'] or row['state']}" for row in found[:3])
        raise StoreError(
            f"{subject.pipeline}: expected something accepted to be reopened, found that {states}; what the evidence "
            "resolved is reopened by other evidence only: judge its window again"
        )
    _write(cursor, "reopen", subject, who=who, reason=reason)
    life.advance_touched(cursor, subject.pipeline, subject.group, touched)
    return len(touched)


def annotate(cursor: Cursor, subject: Subject, *, who: str, reason: str) -> int:
    """Record a note about the subject, and return how many breaks or incidents it names.

    Raises:
        UsageError: where who or what is missing.
        StoreError: where the subject is not known.
    """
    _signed(who, reason)
    _known(cursor, subject)
    _write(cursor, "annotate", subject, who=who, reason=reason)
    return len(subject.ids)


def silence(
    cursor: Cursor, pipeline: str, incident_id: str | None, *, who: str, reason: str, until: datetime | None
) -> None:
    """Send nothing about a pipeline, or one of its incidents, until a time; None ends the silence at once.

    Alerts wait in the outbox meanwhile. They are sent afterwards if they are still true.

    Raises:
        UsageError: where who or why is missing, or the time has passed.
        StoreError: where nothing is known of the pipeline or the incident.
    """
    _signed(who, reason)
    if until is not None:
        _require_future("until", until)
    name = storable_text(pipeline)
    cursor.execute(queries()["has_pipeline"], {"pipeline": name})
    known = cursor.fetchone()
    if known is None or not known["is_known"]:
        raise StoreError(f"pipeline {pipeline}: no run of it is in the store; is the name right?")
    incident = None if incident_id is None else storable_text(incident_id, TEXT_LIMIT)
    if incident is not None:
        cursor.execute(queries()["lives"], {"id": incident, "kind": "incident"})
        if not any(row["pipeline"] == name for row in cursor.fetchall()):
            raise StoreError(f"pipeline {pipeline}: no incident {incident_id} is in the store")
    subject = Subject(name, "", "incident", () if incident is None else (incident,))
    _write(cursor, "silence", subject, who=who, reason=reason, expires_at=until)


def _known(cursor: Cursor, subject: Subject) -> Sequence[Mapping[str, Any]]:
    """Return the subject's lives, and lock them against changes by others."""
    cursor.execute(queries()["lock"], {"key": life.life_key(subject.pipeline, subject.group)})
    life.expire(cursor, subject.pipeline)
    cursor.execute(queries()["known_lives"], subject.parameters())
    rows = cursor.fetchall()
    missing = sorted(set(subject.ids) - {row["id"] for row in rows})
    if missing:
        raise StoreError(
            f"{subject.pipeline}, group {subject.group}: expected to know the {subject.kind} {', '.join(missing[:3])}, "
            f"found it nowhere; `tieout breaks {subject.pipeline}` lists the open ones with their groups"
        )
    return rows


def _write(
    cursor: Cursor, act: str, subject: Subject, *, who: str, reason: str, expires_at: datetime | None = None
) -> None:
    signed = (storable_text(who, TEXT_LIMIT), storable_text(reason, EVIDENCE_LIMIT), expires_at)
    of = (subject.pipeline, subject.group or None, act)
    rows: list[tuple[object, ...]] = [(*of, subject.kind, each, *signed) for each in subject.ids]
    rows = rows or [(*of, None, None, *signed)]
    execute_values(cursor, queries()["write_acts"], rows)


def _signed(who: str, reason: str) -> None:
    for name, value in (("who", who), ("reason", reason)):
        if not value.strip():
            raise UsageError(
                f"{name}: expected some words, found none; an act is kept with who did it, and why"
            )


def _require_future(name: str, time: datetime) -> None:
    if time.tzinfo is None:
        raise UsageError(f"{name}: expected a time with a time zone, found {time.isoformat()}")
    if time <= datetime.now(UTC):
        raise UsageError(f"{name}: expected a time in the future, found {time.isoformat()}")


def silence_of(row: Mapping[str, Any]) -> Silence:
    """Return the silence in `row`."""
    return Silence(**row)
