"""Trident topologies, killed between the update of a state and the end of its batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tests.integration.kafka_faults.scene import Place, Scene, breaks_of
from tests.integration.systems.scene import Case, Expected, Stage
from tests.integration.systems.storm.topology import Topology
from tests.integration.systems.tables import rows_of

_BATCH: Final = 5
_PART: Final = 3
"""How many messages a batch has at its first try, where more of them are there at the second one."""
_SAME: Final = "transactional state, transactional spout"
_ENTRIES: Final = "entries"
_KILLED: Final = "worker killed between multiPut and the end of the batch"
_GROWN: Final = f"{_KILLED}, and more messages sent"
_TWICE: Final = ("OUTPUT_DUPLICATE", "consumer or sink", "process before commit")


def non_transactional(stage: Stage) -> list[Case]:
    """The state counts the batch again."""
    source, batch = _killed(stage, "opaque", "non-transactional", tries=2)
    again = breaks_of(batch, *_TWICE)
    classes = {"DELIVERED": 2 * _BATCH, "OUTPUT_DUPLICATE": len(again)}
    broken, kept = Expected("BROKEN", classes, again), Expected("KEPT", classes, again)
    how, state = "non-transactional state, opaque spout", "non-transactional"
    return [
        _case(stage, _KILLED, how, source, broken, state),
        _case(stage, _KILLED, how, source, kept, state, guarantee="at_least_once"),
    ]


def opaque(stage: Stage) -> list[Case]:
    """The state takes the batch back, and counts it once."""
    source, _ = _killed(stage, "opaque", "opaque", tries=1)
    once = Expected("KEPT", {"DELIVERED": 3 * _BATCH})
    return [_case(stage, _KILLED, "opaque state, opaque spout", source, once, "opaque")]


def transactional(stage: Stage) -> list[Case]:
    """The state knows the batch, which is the same again, and leaves it out."""
    source, _ = _killed(stage, "transactional", "transactional", tries=1)
    once = Expected("KEPT", {"DELIVERED": 3 * _BATCH})
    return [_case(stage, _KILLED, _SAME, source, once, "transactional")]


def transactional_on_opaque(stage: Stage) -> list[Case]:
    """The state knows the batch, and leaves it out, but the spout has put more into it: that is lost."""
    source, added = _grown(stage, "transactional", is_kept=False)
    lost = breaks_of(added, "LOST", "consumer", flags=["COMMIT_AHEAD"])
    classes = {"DELIVERED": 3 * _BATCH - len(lost), "LOST": len(lost)}
    how, expected = "transactional state, opaque spout", Expected("BROKEN", classes, lost)
    return [_case(stage, _GROWN, how, source, expected, "transactional", "at_least_once")]


def opaque_on_opaque(stage: Stage) -> list[Case]:
    """An opaque state takes back what it had of the batch, and counts what the batch has now."""
    source, _ = _grown(stage, "opaque", is_kept=True)
    once = Expected("KEPT", {"DELIVERED": 3 * _BATCH})
    return [_case(stage, _GROWN, "opaque state, opaque spout", source, once, "opaque")]


PLAYS: Final = {
    "storm-trident-plain": non_transactional,
    "storm-trident-opaque": opaque,
    "storm-trident-transactional": transactional,
    "storm-trident-mixed": transactional_on_opaque,
    "storm-trident-grown": opaque_on_opaque,
}


def _killed(stage: Stage, spout: str, state: str, tries: int) -> tuple[Scene, list[Place]]:
    """Kill a topology once its second batch is in the state; return what that had, counted so often in the end."""
    source, topology = _counter(stage, spout, state)
    sent = source.send(2 * _BATCH)
    life = topology.start(life="counter-1", stand_still_after=2 * _BATCH - 1)
    topology.await_offsets(life, *(1,) * 2 * _BATCH, table=_ENTRIES)
    life.kill()
    source.send(_BATCH, session="sender-2")
    source.end()
    counts = [*(1,) * _BATCH, *(tries,) * _BATCH, *(1,) * _BATCH]
    _succeed(topology, counts)
    return source, sent[_BATCH:]


def _grown(stage: Stage, state: str, *, is_kept: bool) -> tuple[Scene, list[Place]]:
    """Kill a topology once a part of the second batch is in the state; return what was sent before its second try."""
    source, topology = _counter(stage, "opaque", state)
    source.send(_BATCH + _PART)
    life = topology.start(life="counter-1", stand_still_after=_BATCH + _PART - 1)
    topology.await_offsets(life, *(1,) * (_BATCH + _PART), table=_ENTRIES)
    life.kill()
    added = source.send(_BATCH - _PART, session="sender-2")
    source.send(_BATCH, session="sender-3")
    source.end()
    counts = [*(1,) * (_BATCH + _PART), *(int(is_kept),) * len(added), *(1,) * _BATCH]
    _succeed(topology, counts)
    return source, added


def _counter(stage: Stage, spout: str, state: str) -> tuple[Scene, Topology]:
    source = stage.topic("in")
    settings = {"trident_spout": spout, "trident_state": state, "per_batch": _BATCH}
    return source, Topology(stage, source, "Counter", **settings)


def _succeed(topology: Topology, counts: Sequence[int]) -> None:
    """Let another life go on until everything is counted, and its last batch has ended."""
    life = topology.start(life="counter-2")
    topology.await_offsets(life, *counts, table=_ENTRIES)
    topology.await_next_batch()
    life.kill()


def _case(
    stage: Stage,
    fault: str,
    how: str,
    source: Scene,
    expected: Expected,
    state: str,
    guarantee: str = "exactly_once",
) -> Case:
    batches = {
        "kind": "trident",
        "path": str(stage.folder / "zookeeper" / "version-2"),
        "stream": stage.name,
        "taken_at": "now",
    }
    ledgers: dict[str, Any] = {"delivered": rows_of(stage, _ENTRIES), "committed": {"source": batches}}
    spout = "transactional" if how == _SAME else "opaque"
    more: dict[str, Any] = {
        "multiplicity": {"kind": "many_to_one"},
        "settings": {"storm": {"trident.state": state, "trident.spout": spout}},
    }
    return stage.case(fault, how, source, ledgers, expected, group=stage.name, guarantee=guarantee, **more)
