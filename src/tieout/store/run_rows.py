"""A statement's parts as rows: each value in its column, in a form that PostgreSQL can hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg2.extras import Json

import tieout
from tieout.errors import StoreError
from tieout.model import Severity
from tieout.store.covering import time_of
from tieout.store.results import RunOrigin
from tieout.store.storable import EVIDENCE_LIMIT, TEXT_LIMIT, storable_json, storable_text

COUNTS: Final = (
    "attempts",
    "acked_attempts",
    "failed_attempts",
    "unknown_attempts",
    "messages",
    "resends",
    "accepted",
    "unproven",
    "failed",
    "delivered",
    "filtered",
    "dead_lettered",
    "compacted",
    "lost",
    "in_flight",
    "unverifiable",
    "effects",
    "first_effects",
    "further_effects",
    "phantom_effects",
    "unverifiable_effects",
    "unexplained",
)
"""The counts of a partition, in the order of the table's columns."""

_NEEDED: Final = (
    "run_id",
    "pipeline",
    "group",
    "window",
    "guarantee",
    "contract_digest",
    "verdict",
    "reasons",
    "coverage",
    "partitions",
    "classes",
    "flags",
    "incidents",
    "breaks_total",
    "breaks_truncated",
    "generated_at",
)


def run_row(statement: Mapping[str, Any], contract: Mapping[str, Any], origin: RunOrigin) -> dict[str, Any]:
    """Return the parameters of the statement `write_run`.

    Raises:
        StoreError: where the statement lacks a key, or its run id is no UUID.
    """
    _require("statement", statement, _NEEDED)
    return {
        "run_id": checked_run_id(statement["run_id"]),
        "pipeline": storable_text(statement["pipeline"]),
        "consumer_group": storable_text(statement["group"]),
        "window_start": time_of(statement["window"]["start"]),
        "window_end": time_of(statement["window"]["end"]),
        "guarantee": statement["guarantee"],
        "contract_digest": statement["contract_digest"],
        "contract": Json(storable_json(contract)),
        "verdict": statement["verdict"],
        "reasons": Json(storable_json(statement["reasons"])),
        "statement": Json(storable_json(statement)),
        "breaks_total": statement["breaks_total"],
        "breaks_truncated": statement["breaks_truncated"],
        "dag_id": _text(origin.dag_id),
        "dag_run_id": _text(origin.dag_run_id),
        "try_number": origin.try_number,
        "tieout_version": tieout.__version__,
        "generated_at": time_of(statement["generated_at"]),
    }


def checked_run_id(run_id: str) -> str:
    """Return a run id in the form in which PostgreSQL gives it back.

    Raises:
        StoreError: where it is no UUID.
    """
    try:
        return str(UUID(run_id))
    except ValueError as error:
        raise StoreError(f"run_id: expected a UUID, found {run_id!r}") from error


def partition_row(run_id: str, item: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return one row of `statement_partition`.

    Raises:
        StoreError: where a count is missing.
    """
    _require("statement.partitions", item, ("topic", "partition", *COUNTS))
    counts = (item[name] for name in COUNTS)
    return (run_id, _text(item["topic"]), item["partition"], *counts, _json(item.get("offsets")))


def count_rows(run_id: str, statement: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of `statement_count`."""
    for kind, key in (("class", "classes"), ("flag", "flags")):
        for name, count in statement[key].items():
            yield (run_id, kind, _text(name), count)


def break_row(run_id: str, item: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return one row of `break`; long ids are cut, and long strings in the evidence.

    Raises:
        StoreError: where it has no id, no class or no severity.
    """
    _require("break", item, ("break_id", "class"))
    return (
        run_id,
        _text(item["break_id"]),
        _text(item.get("incident_id")),
        _text(item["class"]),
        _json(item.get("flags") or []),
        _text(item.get("message_id")),
        _text(item.get("producer_id")),
        _text(item.get("topic")),
        item.get("partition"),
        item.get("offset"),
        _json(item.get("positions")),
        _text(item.get("locus")),
        _text(item.get("cause")),
        _json(item.get("admissible")),
        _text(item.get("rule")),
        severity_of(item),
        _json(item.get("evidence") or {}),
        last_attempt_at(item),
    )


def stored_id(item: Mapping[str, Any]) -> str | None:
    """Return a break's id as the store keeps it, or None where it has none."""
    return _text(item.get("break_id"))


def last_attempt_at(item: Mapping[str, Any]) -> datetime | None:
    """Return the latest attempt that a break's evidence shows, or None; an invalid time is ignored."""
    attempts = (item.get("evidence") or {}).get("produced") or ()
    times = []
    for row in attempts:
        try:
            times.append(time_of(row.get("attempted_at")))
        except StoreError:
            continue
    return max((time for time in times if time is not None), default=None)


def severity_of(item: Mapping[str, Any]) -> Severity:
    """Return the severity of a break.

    Raises:
        StoreError: where it has none, or an unknown one.
    """
    try:
        return Severity(item["severity"])
    except (KeyError, ValueError) as error:
        found = item.get("severity", "none")
        raise StoreError(
            f"break {item.get('break_id')}: expected a severity of {', '.join(Severity)}, found {found}"
        ) from error


def incident_row(
    run_id: str,
    item: Mapping[str, Any],
    worst: Mapping[str, Severity],
    ids: tuple[str | None, str | None] = (None, None),
) -> tuple[Any, ...]:
    """Return one row of `incident`; where it has no severity of its own, the `worst` of its breaks.

    `ids` are what the store keeps of the ids of its messages, and of those at the hop before.

    Raises:
        StoreError: where it has no id, no class or no number of breaks.
    """
    _require("statement.incidents", item, ("incident_id", "class", "breaks"))
    return (
        run_id,
        _text(item["incident_id"]),
        _text(item["class"]),
        _text(item.get("locus")),
        _text(item.get("cause")),
        _text(item.get("topic")),
        item.get("partition"),
        _json(item.get("first_position")),
        _json(item.get("last_position")),
        item["breaks"],
        item.get("severity") or worst.get(item["incident_id"]),
        *ids,
    )


def _require(place: str, item: Mapping[str, Any], keys: Iterable[str]) -> None:
    missing = [key for key in keys if key not in item]
    if missing:
        raise StoreError(f"{place}: expected the keys of the published format, found no {', '.join(missing)}")


def _text(value: object) -> str | None:
    return None if value is None else storable_text(str(value), TEXT_LIMIT)


def _json(value: object) -> Json | None:
    return None if value is None else Json(storable_json(value, EVIDENCE_LIMIT))
