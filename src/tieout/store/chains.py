"""Where in a chain of contracts a break happened, so that only that hop alerts about it.

A contract names the hop before it (`after`). An incident of lost messages is a *consequence* if an earlier hop lost
each of them already. An incident of doubled, corrupted or invented messages is one if this hop only carried on the
output of the hop before (`carrying.py` defines the proof). Origins are computed from the current runs on each read and
never stored; they never change a statement or its verdict. Docs: docs/how-to/follow-a-chain.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from tieout.contracts.durations import parse_duration
from tieout.contracts.times import format_time
from tieout.model import BreakClass, Window
from tieout.store.carrying import CARRIED, CORRUPTED, JOINED, why_not
from tieout.store.connecting import Cursor
from tieout.store.sql import queries

_FILE: Final = "chains.sql"
_LOOK_BACK: Final = timedelta(days=7)

IncidentKey = tuple[str, str]
"""A run and one of its incidents."""


@dataclass(frozen=True)
class EarlierIncident:
    """An incident of an earlier hop, and how many messages of a later incident it contains.

    `has_alerts` says whether it, or one of a hop in between, has alerts of its own.
    """

    pipeline: str
    run_id: str
    incident_id: str
    window: Window
    messages: int
    has_alerts: bool


@dataclass(frozen=True)
class Origin:
    """At which hop the break of an incident's messages happened, as far as the runs of earlier hops show.

    `what` is `lost`, `duplicated`, `corrupted` or `invented`. `earlier` has each message once, at the earliest hop that
    has it; `doubt` says why the origin of the others is unknown. `messages` is None where they are not known; `hops`
    are the earlier hops that were searched, the nearest first.
    """

    what: str
    hops: tuple[str, ...]
    messages: int | None
    earlier: tuple[EarlierIncident, ...]
    doubt: str | None

    @property
    def after(self) -> str:
        """The hop before."""
        return self.hops[0]

    @property
    def messages_before(self) -> int:
        """How many of the messages are in incidents of earlier hops."""
        return sum(one.messages for one in self.earlier)

    @property
    def is_consequence(self) -> bool:
        """Whether all of the messages were broken at an earlier hop."""
        return bool(self.earlier) and self.messages_before == self.messages

    @property
    def is_alerted_before(self) -> bool:
        """Whether alerts of earlier hops cover all of its messages."""
        return self.is_consequence and all(one.has_alerts for one in self.earlier)

    @property
    def words(self) -> str:
        """The origin in words."""
        places = " and ".join(dict.fromkeys(one.pipeline for one in self.earlier))
        if self.is_consequence:
            return f"{self.what} before, at {places}"
        if self.doubt is not None:
            some = (
                f"{self.messages_before} were {self.what} before, at {places}; of the others, "
                if self.earlier
                else ""
            )
            return f"{some}could not tell whether {self.after} {self.what} them: {self.doubt}"
        if self.earlier:
            others = "here" if self.what == LOST else "are not the same there"
            some = f"{self.messages_before} of {self.messages} were {self.what} before, at {places}"
            return f"{some}; the others {others}"
        if self.what == LOST:
            return f"lost here: {self.after} did not lose them"
        return f"{self.what} here, not at {self.after}"


LOST: Final = "lost"
"""What a hop did to the messages of an incident of class LOST."""


def what_of(class_name: str) -> str:
    """Return what a hop did to the messages of an incident, in one word.

    >>> what_of("LOST"), what_of("CORRUPTED_KEY"), what_of("LOG_DUPLICATE"), what_of("PHANTOM_ABORTED")
    ('lost', 'corrupted', 'duplicated', 'invented')
    """
    if class_name == BreakClass.LOST:
        return LOST
    if class_name in CORRUPTED:
        return "corrupted"
    return "duplicated" if class_name.endswith("DUPLICATE") else "invented"


@dataclass(frozen=True)
class _Hop:
    """A pipeline of the chain; `why_not` says why its ids cannot be compared, None where they can."""

    pipeline: str
    changes_ids: bool
    why_not: str | None


def origins_of(cursor: Cursor, pipeline: str, run_ids: Collection[str]) -> dict[IncidentKey, Origin]:
    """Return the origins of the incidents of some runs of a pipeline, by run and incident.

    Incidents of classes that are not joined have none. Nor do pipelines whose contract has no `after`.
    """
    if not run_ids:
        return {}
    chain = _chain(cursor, pipeline)
    if len(chain) == 1:
        return {}
    cursor.execute(queries(_FILE)["found_here"], {"runs": list(run_ids), "classes": list(JOINED)})
    here = cursor.fetchall()
    since = {row["run_id"]: row["window_start"] - _look_back(row["look_back"]) for row in here}
    parameters = {
        "runs": list(since),
        "since": list(since.values()),
        "hops": [hop.pipeline for hop in chain[1:]],
        "classes": list(JOINED),
        "carried": list(CARRIED),
    }
    parameters |= _runs_before(cursor, parameters)
    judged, earlier = _judged_before(cursor, parameters), _earlier_incidents(cursor, parameters)
    found: dict[IncidentKey, Origin] = {}
    for row in here:
        key = (row["run_id"], row["incident_id"])
        hops, incidents = tuple(parameters["hops"]), tuple(earlier.get(key, ()))
        origin = Origin(what_of(row["class"]), hops, row["compared"], incidents, None)
        if not origin.is_consequence:
            doubt = _doubt_of_loss if row["class"] == BreakClass.LOST else _doubt_of_carrying
            origin = replace(origin, doubt=doubt(origin, row, chain, judged[row["run_id"]]))
        found[key] = origin
    return found


def _runs_before(cursor: Cursor, parameters: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return for each of the runs the runs of earlier hops that count, column by column."""
    cursor.execute(queries(_FILE)["runs_before"], parameters)
    found = cursor.fetchall()
    columns = {"here": "here_run_id", "depths": "depth", "before": "run_id"}
    return {name: [row[column] for row in found] for name, column in columns.items()}


def _judged_before(cursor: Cursor, parameters: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return for each run what each hop has judged of its time, the nearest hop first."""
    cursor.execute(queries(_FILE)["judged_before"], parameters)
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in cursor.fetchall():
        found.setdefault(row["run_id"], []).append(row)
    return found


def _earlier_incidents(
    cursor: Cursor, parameters: Mapping[str, Any]
) -> dict[IncidentKey, list[EarlierIncident]]:
    """Return the earliest incidents that have the messages, by run and incident."""
    cursor.execute(queries(_FILE)["found_before"], parameters)
    found: dict[IncidentKey, list[EarlierIncident]] = {}
    for row in cursor.fetchall():
        found.setdefault((row["here_run_id"], row["here_incident_id"]), []).append(_earlier_incident(row))
    return found


def _chain(cursor: Cursor, pipeline: str) -> list[_Hop]:
    """Return a pipeline's own hop and the comparable hops before it, the nearest first."""
    passed: list[_Hop] = []
    name: str | None = pipeline
    while name is not None and name not in [hop.pipeline for hop in passed]:
        cursor.execute(queries(_FILE)["hop"], {"pipeline": name})
        row: Mapping[str, Any] = cursor.fetchone() or {}
        contract = {**row, "multiplicity": {"kind": row.get("multiplicity", "one_to_one")}}
        passed.append(_Hop(name, row.get("id") is not None, why_not(contract)))
        name = row.get("before")
        if len(passed) > 1 and passed[-1].changes_ids:
            break
    return passed


def _doubt_of_loss(
    origin: Origin, row: Mapping[str, Any], chain: Sequence[_Hop], judged: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return why it is unknown whether each message was lost before, or None where it is known."""
    own, *hops = chain
    if row["known"] is None:
        return f"{own.pipeline} {own.why_not}" if own.why_not else "not every id of them is known"
    if not row["compared"]:
        return "after.id does not match each of their ids"
    doubts = [
        _doubt_of(hop, hop_judged, _window_of(row)) for hop, hop_judged in zip(hops, judged, strict=True)
    ]
    if any(doubts):
        return next(filter(None, doubts))
    other = next((hop for hop, hop_judged in zip(hops, judged, strict=True) if hop_judged["lost"]), None)
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


def _doubt_of_carrying(
    origin: Origin, row: Mapping[str, Any], chain: Sequence[_Hop], judged: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return why it is unknown whether the hop before output each message like that, or None where it is known.

    Only that hop is examined: breaks from farther away went through it.
    """
    own, before, before_judged = chain[0], chain[1], judged[0]
    judges = "OUTPUT_DUPLICATE" if row["class"] == BreakClass.LOG_DUPLICATE else row["class"]
    doubts = (
        (row["known"] is None and own.why_not is not None, f"{own.pipeline} {own.why_not}"),
        (row["known"] is None, f"the evidence of {own.pipeline} does not show all of them"),
        (not before_judged["is_judged"], f"{before.pipeline} has not judged all of {_window_of(row)}"),
        (judges in before_judged["not_judged"], f"{before.pipeline} does not judge {judges}"),
    )
    # A hop without carried breaks in its output has nothing to compare.
    compared = (
        (before.why_not is not None, f"{before.pipeline} {before.why_not}"),
        (not row["compared"], f"the evidence of {own.pipeline} does not show that it only carried them on"),
        (not origin.earlier, f"{before.pipeline} has others, or the same otherwise"),
    )
    conditions = (*doubts, *(compared if before_judged["carried"] else ()))
    return next((words for holds, words in conditions if holds), None)


def _window_of(row: Mapping[str, Any]) -> str:
    return f"{format_time(row['window_start'])} to {format_time(row['window_end'])}"


def _doubt_of(hop: _Hop, judged: Mapping[str, Any], window: str) -> str | None:
    """Return why a hop's runs do not show what it lost in a window, or None where they do."""
    if not judged["is_judged"]:
        return f"{hop.pipeline} has not judged all of {window}"
    if judged["lost"] and hop.why_not:
        return f"{hop.pipeline} {hop.why_not}"
    return f"not every id of what {hop.pipeline} lost is known" if judged["unnamed"] else None


def _earlier_incident(row: Mapping[str, Any]) -> EarlierIncident:
    window = Window(row["window_start"], row["window_end"])
    return EarlierIncident(
        row["pipeline"], row["run_id"], row["incident_id"], window, row["messages"], bool(row["has_alerts"])
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
