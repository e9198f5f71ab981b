"""Where in a chain of contracts a message was lost: told at the hop where it happened, once.

A contract names the hop before it (`after`). An incident of lost messages is a *consequence* where each of its messages
was lost at an earlier hop already. That is read from the runs that count whenever somebody asks, and stored nowhere: a
statement and its verdict never change for it. Docs: docs/how-to/follow-a-chain.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from tieout.contracts import After
from tieout.contracts.durations import parse_duration
from tieout.contracts.times import format_time
from tieout.model import Window
from tieout.store.connecting import Cursor
from tieout.store.sql import queries
from tieout.store.storable import storable_text

_FILE: Final = "chains.sql"
_LOOK_BACK: Final = timedelta(days=7)

IncidentKey = tuple[str, str]
"""A run and one of its incidents."""


@dataclass(frozen=True)
class EarlierLoss:
    """An incident of an earlier hop, and how many messages of a later one it lost.

    `is_told` says whether it, or one of a hop in between, has alerts of its own.
    """

    pipeline: str
    run_id: str
    incident_id: str
    window: Window
    messages: int
    is_told: bool


@dataclass(frozen=True)
class Origin:
    """Where the messages of an incident were lost, as far as the runs of earlier hops tell.

    `earlier` has each message once, at the earliest hop that lost it; `doubt` says why nothing can be told of the
    others. `messages` is None where their ids are not known; `hops` are the
    earlier hops that were asked, the nearest first.
    """

    hops: tuple[str, ...]
    messages: int | None
    earlier: tuple[EarlierLoss, ...]
    doubt: str | None

    @property
    def after(self) -> str:
        """The hop before."""
        return self.hops[0]

    @property
    def lost_before(self) -> int:
        """How many of the messages earlier hops lost."""
        return sum(one.messages for one in self.earlier)

    @property
    def is_consequence(self) -> bool:
        """Whether each of the messages was lost before."""
        return bool(self.earlier) and self.lost_before == self.messages

    @property
    def is_told_before(self) -> bool:
        """Whether alerts about earlier hops tell all of it."""
        return self.is_consequence and all(one.is_told for one in self.earlier)

    @property
    def words(self) -> str:
        """The same in words."""
        places = " and ".join(dict.fromkeys(one.pipeline for one in self.earlier))
        if self.is_consequence:
            return f"lost before, at {places}"
        if self.doubt is not None:
            some = (
                f"{self.lost_before} were lost before, at {places}; of the others, " if self.earlier else ""
            )
            return f"{some}could not tell whether {self.after} lost them: {self.doubt}"
        if self.earlier:
            return f"{self.lost_before} of {self.messages} were lost before, at {places}; the others here"
        return f"lost here: {self.after} did not lose them"


@dataclass(frozen=True)
class _Hop:
    """A contract before another; `why_not` says why its ids are not to be compared, None where they are."""

    pipeline: str
    changes_ids: bool
    why_not: str | None


def message_ids(contract: Mapping[str, Any], found: Iterable[str]) -> tuple[str | None, str | None]:
    """Return what the store keeps of the ids of an incident's lost messages: digests, and those of the hop before.

    Null where an id is not one message's alone, or where the hop before calls them the same.
    """
    if _why_not(contract) is not None:
        return None, None
    ids = set(found)
    told = contract.get("after") or {}
    if told.get("id") is None:
        return _array(ids), None
    after = After(pipeline=told["pipeline"], id=told["id"])
    earlier = [after.id_there(one) for one in ids]
    return _array(ids), "{}" if None in earlier else _array(set(filter(None, earlier)))


def _why_not(contract: Mapping[str, Any]) -> str | None:
    """Return why an id of a contract does not stand for one message, or None where it does."""
    identity = contract.get("identity", "message_id")
    if identity != "message_id":
        return f"identifies messages by {identity}"
    if contract.get("id_scope", "global") != "global":
        return "has ids that are a session's own"
    kind = (contract.get("multiplicity") or {}).get("kind", "one_to_one")
    return None if kind == "one_to_one" else f"is {kind}: of a message, a part may be lost"


def _array(ids: Collection[str]) -> str:
    digests = sorted(
        str(UUID(hashlib.md5(storable_text(one).encode(), usedforsecurity=False).hexdigest())) for one in ids
    )
    return "{" + ",".join(digests) + "}"


def origins_of(cursor: Cursor, pipeline: str, run_ids: Collection[str]) -> dict[IncidentKey, Origin]:
    """Return where the lost messages of some runs of a pipeline were lost, by run and incident.

    Nothing where its contract comes after no other.
    """
    if not run_ids:
        return {}
    way = _way(cursor, pipeline)
    if len(way) == 1:
        return {}
    cursor.execute(queries(_FILE)["lost_here"], {"runs": list(run_ids)})
    here = cursor.fetchall()
    since = {row["run_id"]: row["window_start"] - _look_back(row["look_back"]) for row in here}
    asked = {"runs": list(since), "since": list(since.values()), "hops": [hop.pipeline for hop in way[1:]]}
    asked |= _runs_before(cursor, asked)
    judged, earlier = _judged_before(cursor, asked), _lost_before(cursor, asked)
    found: dict[IncidentKey, Origin] = {}
    for row in here:
        key = (row["run_id"], row["incident_id"])
        origin = Origin(tuple(asked["hops"]), row["compared"], tuple(earlier.get(key, ())), None)
        if not origin.is_consequence:
            origin = replace(origin, doubt=_doubt(origin, row, way, judged[row["run_id"]]))
        found[key] = origin
    return found


def _runs_before(cursor: Cursor, asked: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the runs of earlier hops that count for each run that is asked about, column by column."""
    cursor.execute(queries(_FILE)["runs_before"], asked)
    found = cursor.fetchall()
    columns = {"here": "here_run_id", "depths": "depth", "before": "run_id"}
    return {name: [row[column] for row in found] for name, column in columns.items()}


def _judged_before(cursor: Cursor, asked: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return by run what each hop has judged of its time, the nearest hop first."""
    cursor.execute(queries(_FILE)["judged_before"], asked)
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in cursor.fetchall():
        found.setdefault(row["run_id"], []).append(row)
    return found


def _lost_before(cursor: Cursor, asked: Mapping[str, Any]) -> dict[IncidentKey, list[EarlierLoss]]:
    """Return by run and incident where its messages were lost first."""
    cursor.execute(queries(_FILE)["lost_before"], asked)
    found: dict[IncidentKey, list[EarlierLoss]] = {}
    for row in cursor.fetchall():
        found.setdefault((row["here_run_id"], row["here_incident_id"]), []).append(_earlier_loss(row))
    return found


def _way(cursor: Cursor, pipeline: str) -> list[_Hop]:
    """Return a pipeline's own hop and those before it, the nearest first, up to where nothing more can be compared."""
    passed: list[_Hop] = []
    name: str | None = pipeline
    while name is not None and name not in [hop.pipeline for hop in passed]:
        cursor.execute(queries(_FILE)["hop"], {"pipeline": name})
        row: Mapping[str, Any] = cursor.fetchone() or {}
        contract = {**row, "multiplicity": {"kind": row.get("multiplicity", "one_to_one")}}
        passed.append(_Hop(name, row.get("id") is not None, _why_not(contract)))
        name = row.get("before")
        if len(passed) > 1 and passed[-1].changes_ids:
            break
    return passed


def _doubt(
    origin: Origin, row: Mapping[str, Any], way: Sequence[_Hop], judged: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return why it cannot be told of each message whether it was lost before, or None where it can."""
    own, *hops = way
    if row["known"] is None:
        return f"{own.pipeline} {own.why_not}" if own.why_not else "not every id of them is known"
    if not row["compared"]:
        return "after.id does not match each of their ids"
    window = f"{format_time(row['window_start'])} to {format_time(row['window_end'])}"
    doubts = [_doubt_of(hop, told, window) for hop, told in zip(hops, judged, strict=True)]
    if any(doubts):
        return next(filter(None, doubts))
    other = next((hop for hop, told in zip(hops, judged, strict=True) if told["lost"]), None)
    if other is not None and not origin.earlier and not own.changes_ids:
        return (
            f"{other.pipeline} lost others, and no id is known to be the same there and here; "
            "where ids change on the way, after.id says how"
        )
    last = hops[-1]
    return (
        f"ids change at {last.pipeline}, and what was lost before it is not compared"
        if last.changes_ids
        else None
    )


def _doubt_of(hop: _Hop, told: Mapping[str, Any], window: str) -> str | None:
    """Return why a hop's runs do not tell what it lost of a time."""
    if not told["is_judged"]:
        return f"{hop.pipeline} has not judged all of {window}"
    if told["lost"] and hop.why_not:
        return f"{hop.pipeline} {hop.why_not}"
    return f"not every id of what {hop.pipeline} lost is known" if told["unnamed"] else None


def _earlier_loss(row: Mapping[str, Any]) -> EarlierLoss:
    window = Window(row["window_start"], row["window_end"])
    return EarlierLoss(
        row["pipeline"], row["run_id"], row["incident_id"], window, row["messages"], bool(row["is_told"])
    )


def _look_back(text: str | None) -> timedelta:
    return _LOOK_BACK if text is None else parse_duration(text)


def is_judged(cursor: Cursor, pipeline: str, window: Window) -> bool:
    """Return whether current, checked runs of a pipeline cover all of a window."""
    cursor.execute(
        queries(_FILE)["is_judged"], {"pipeline": pipeline, "start": window.start, "end": window.end}
    )
    row = cursor.fetchone()
    return bool(row and row["is_judged"])


def predecessors(cursor: Cursor, pipelines: Sequence[str]) -> dict[str, str | None]:
    """Return the pipeline of the hop before each of the pipelines that have a run."""
    cursor.execute(queries(_FILE)["hop_names"], {"pipelines": list(pipelines)})
    return {row["pipeline"]: row["before"] for row in cursor.fetchall()}
