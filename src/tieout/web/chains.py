"""The chain of a pipeline, and the origins of its incidents, as far as the visitor may read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tieout.contracts.chains import whole_chain
from tieout.model import Window
from tieout.store import EarlierIncident
from tieout.store.reader import Reader
from tieout.store.views import HopWindow
from tieout.web.visits import Visit


@dataclass(frozen=True)
class Hop:
    """A pipeline of a chain; `windows` are its windows in a time, None where the visitor may not read it.

    `broken_before` is how many of their broken messages an earlier hop broke.
    """

    pipeline: str
    windows: tuple[HopWindow, ...] | None
    broken_before: int = 0


@dataclass(frozen=True)
class ShownOrigin:
    """Where an incident happened, in words, and the earlier incidents to link to."""

    what: str
    words: str
    is_consequence: bool
    is_alerted_before: bool
    earlier: tuple[EarlierIncident, ...]


@dataclass(frozen=True)
class HopLine:
    """A later hop in a list of pipelines: the hop before it, and its open incidents that happened at earlier hops.

    `before` has them in words, with their number and the earlier incident to link to.
    """

    after: str
    before: tuple[tuple[str, int, EarlierIncident], ...]


def hop_lines(visit: Visit, reader: Reader, pipelines: Sequence[str]) -> dict[str, HopLine]:
    """Return a line for each of the pipelines that comes after another."""
    lines = {}
    for pipeline, after in reader.predecessors(pipelines).items():
        if after is None:
            continue
        opened = reader.open_incidents_of_hop(pipeline)
        origins = origins_shown(visit, reader, pipeline, [run_id for run_id, _ in opened])
        found = [origins[key] for key in opened if key in origins and origins[key].is_consequence]
        counts = Counter(one.words for one in found)
        first = {one.words: one.earlier[0] for one in reversed(found)}
        lines[pipeline] = HopLine(after, tuple((words, counts[words], first[words]) for words in counts))
    return lines


def hops_of(visit: Visit, reader: Reader, pipeline: str) -> tuple[str, ...]:
    """Return the hops of a pipeline's chain in order; only the pipeline if it has no chain."""
    readable = visit.access.readable(visit.user, reader.pipelines())
    return whole_chain(pipeline, reader.predecessors(sorted(readable)))


def chain_of(visit: Visit, reader: Reader, pipeline: str, window: Window) -> tuple[Hop, ...]:
    """Return the chain with each hop's windows in a time; empty where the pipeline is not in a chain."""
    pipelines = hops_of(visit, reader, pipeline)
    if len(pipelines) == 1:
        return ()
    readable = visit.access.readable(visit.user, pipelines)
    found = reader.hop_windows(sorted(readable), window)
    hops = []
    for name in pipelines:
        windows = tuple(one for one in found if one.pipeline == name)
        origins = origins_shown(visit, reader, name, [one.run_id for one in windows if one.broken])
        before = sum(one.messages for origin in origins.values() for one in origin.earlier)
        hops.append(Hop(name, windows, before) if name in readable else Hop(name, None))
    return tuple(hops)


def origins_shown(
    visit: Visit, reader: Reader, pipeline: str, run_ids: Iterable[str]
) -> Mapping[tuple[str, str], ShownOrigin]:
    """Return the origins of the incidents of some runs, hidden if the visitor may not read every earlier hop."""
    shown = {}
    for key, origin in reader.origins(pipeline, set(run_ids)).items():
        if visit.access.readable(visit.user, origin.hops) >= set(origin.hops):
            shown[key] = ShownOrigin(
                origin.what, origin.words, origin.is_consequence, origin.is_alerted_before, origin.earlier
            )
        else:
            shown[key] = ShownOrigin(
                origin.what, "not shown: you may not read every earlier hop", False, False, ()
            )
    return shown
