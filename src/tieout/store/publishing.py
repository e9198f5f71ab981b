"""Publishing a run: its statement, its incidents and a sample of its breaks, all of it or nothing."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from psycopg2 import errors
from psycopg2.extras import execute_values

from tieout.errors import PublishInProgressError
from tieout.model import Severity
from tieout.store import life
from tieout.store.carrying import Carrying, Mark
from tieout.store.connecting import LOCK_TIMEOUT, Cursor, milliseconds
from tieout.store.covering import lacking, time_of
from tieout.store.results import PublishedRun, RunOrigin
from tieout.store.run_rows import (
    break_row,
    count_rows,
    incident_row,
    partition_row,
    run_row,
    severity_of,
    stored_id,
)
from tieout.store.sql import queries

BREAKS_PER_INCIDENT: Final = 20
_PAGE: Final = 200
"""Rows per batch; a break with its evidence is some kilobytes."""


@dataclass
class _Sample:
    """Yields the first breaks of each incident and the followed ones, and keeps totals of the others.

    Of what may be joined over a chain it remembers every mark: `marks` has them by incident, those of messages without
    an id left out.
    """

    chain: Carrying
    followed: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)
    severities: dict[str, Severity] = field(default_factory=dict)
    marks: dict[str, list[Mark]] = field(default_factory=dict)
    is_cut: bool = False

    def of(self, breaks: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield 20 breaks of each incident and all followed breaks; breaks without an incident are grouped by class."""
        for item in breaks:
            incident = item.get("incident_id") or f"class {item.get('class')}"
            self.counts[incident] += 1
            severity = severity_of(item)
            if severity.rank >= self.severities.get(incident, Severity.INFO).rank:
                self.severities[incident] = severity
            if (mark := self.chain.mark_of(item)) is not None:
                self.marks.setdefault(incident, []).append(mark)
            if self.counts[incident] <= BREAKS_PER_INCIDENT or stored_id(item) in self.followed:
                yield item
            else:
                self.is_cut = True


def publish(
    cursor: Cursor,
    statement: Mapping[str, Any],
    breaks: Iterable[Mapping[str, Any]],
    *,
    contract: Mapping[str, Any],
    origin: RunOrigin,
    wait: timedelta,
) -> PublishedRun:
    """Write one run in the cursor's transaction, and make it its window's current run if it may be.

    A run that is stored with the same statement is left alone, checks and all: a worker that was given up for
    dead and publishes after its successor changes nothing. Another statement under the same id replaces the
    run's rows.

    Raises:
        PublishInProgressError: where another transaction publishes the same window for longer than `wait`.
        StoreError: where the statement or a break lacks a required field.
    """
    run = run_row(statement, contract, origin)
    _lock(cursor, run, wait)
    cursor.execute(queries()["same_statement"], run)
    stored = cursor.fetchone()
    if stored is not None:
        reason = None if stored["is_current"] else "it was published before and is not current"
        return PublishedRun(run["run_id"], stored["is_current"], reason)
    cursor.execute(queries()["current_of_window"], run)
    predecessor = cursor.fetchone()
    cursor.execute(queries()["write_run"], run)
    cursor.execute(queries()["clear_run"], run)
    _write_findings(cursor, run, statement, breaks, contract)
    reason = None if predecessor is None else _reason_to_stay(statement, predecessor)
    if reason is None:
        cursor.execute(queries()["make_current"], run)
        life.advance(cursor, run, contract)
    return PublishedRun(run["run_id"], reason is None, reason)


def _lock(cursor: Cursor, run: Mapping[str, Any], wait: timedelta) -> None:
    """Wait for the window's lock, which the transaction holds until its end."""
    parts = [str(run[key]) for key in ("pipeline", "consumer_group", "window_start", "window_end")]
    key = int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:8], "big", signed=True)
    cursor.execute(queries()["set_lock_timeout"], {"lock_timeout": milliseconds(wait)})
    try:
        cursor.execute(queries()["lock"], {"key": key})
    except errors.LockNotAvailable as error:
        raise PublishInProgressError(
            f"pipeline {parts[0]}, group {parts[1]}, window {parts[2]} to {parts[3]}: expected to be "
            f"the only run that publishes it, found another at it for {wait.total_seconds():g} s; nothing "
            "was stored, run it again when that one has ended"
        ) from error
    cursor.execute(queries()["set_lock_timeout"], {"lock_timeout": milliseconds(LOCK_TIMEOUT)})


def _write_findings(
    cursor: Cursor,
    run: Mapping[str, Any],
    statement: Mapping[str, Any],
    breaks: Iterable[Mapping[str, Any]],
    contract: Mapping[str, Any],
) -> None:
    """Write a run's rows in all other tables; breaks are read once, page by page."""
    run_id = run["run_id"]
    _write(cursor, "write_partitions", (partition_row(run_id, item) for item in statement["partitions"]))
    _write(cursor, "write_counts", count_rows(run_id, statement))
    sample = _Sample(Carrying.of(contract), life.followed(cursor, run))
    _write(cursor, "write_breaks", (break_row(run_id, item) for item in sample.of(breaks)))
    incidents = (
        incident_row(run_id, item, sample.severities, _marks(item, sample)) for item in statement["incidents"]
    )
    _write(cursor, "write_incidents", incidents)
    if sample.is_cut or sample.counts.total() < statement["breaks_total"]:
        cursor.execute(queries()["mark_truncated"], {"run_id": run_id})
    cursor.execute(queries()["note_breaks_read"], {"run_id": run_id, "breaks_read": sample.counts.total()})


def _marks(item: Mapping[str, Any], sample: _Sample) -> tuple[str | None, str | None]:
    """Return the stored form of the marks of an incident's messages; nulls where not all of its breaks were read."""
    found = sample.marks.get(item["incident_id"], ())
    if not found or len(found) != item["breaks"]:
        return None, None
    return sample.chain.kept(item["class"], found)


def _write(cursor: Cursor, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
    execute_values(cursor, queries()[query], rows, page_size=_PAGE)


def _reason_to_stay(statement: Mapping[str, Any], predecessor: Mapping[str, Any]) -> str | None:
    """Return why the window's current run stays current, or None where the new run replaces it."""
    generated_at = time_of(statement["generated_at"])
    if generated_at is None or generated_at < predecessor["generated_at"]:
        return f"run {predecessor['run_id']} was generated later, at {predecessor['generated_at']}"
    lack = lacking(statement["coverage"], predecessor["coverage"] or {})
    return lack and f"its coverage does not contain that of run {predecessor['run_id']}: {lack}"
