"""Topologies with a Kafka spout: killed under its guarantees, without ackers, and slower than their timeout."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.kafka_faults.contract import committed_of
from tests.integration.kafka_faults.scene import Place, Scene, breaks_of
from tests.integration.systems.scene import Case, Expected, Stage
from tests.integration.systems.storm.topology import Topology
from tests.integration.systems.tables import rows_of

_FIRST, _MORE = 10, 10
_FAILING: Final = (2, 3, 7)
_SLOWEST, _SLOW_MS = 4, 5000
_SHORT, _LONG = 2, 30
_AT_LEAST_ONCE: Final = {"processing.guarantee": "AT_LEAST_ONCE"}
_AT_MOST_ONCE: Final = {"processing.guarantee": "AT_MOST_ONCE"}
_KILLED: Final = "worker killed between the write of a tuple and its commit"
_FAILED: Final = "bolt fails tuples"
_SLOW: Final = "bolt slower than topology.message.timeout.secs"
_PLAIN, _KEYED = "a table without a key", "a table keyed by position"
_TWICE: Final = ("OUTPUT_DUPLICATE", "consumer or sink")
_EARLY: Final = ("LOST", "consumer", "commit before process", ["COMMIT_AHEAD"])


def killed_at_least_once(stage: Stage) -> list[Case]:
    """What was written and not acknowledged is written again, unless the table is keyed."""
    source, topology = _loader(stage, "AT_LEAST_ONCE", together=_FIRST)
    sent = source.send(_FIRST + _MORE)
    life = topology.start(stand_still_after=_FIRST + _MORE - 2)
    written = _FIRST + _MORE - 1
    topology.await_offsets(life, *[1] * written)
    topology.await_commit(_FIRST)
    life.kill()
    source.end()
    again = sent[_FIRST:written]
    successor = topology.start()
    topology.await_offsets(successor, *[1] * _FIRST, *[2] * len(again), 1)
    topology.await_commit(_FIRST + _MORE)
    successor.kill()
    twice = breaks_of(again, *_TWICE, "process before commit")
    classes = {"DELIVERED": _FIRST + 1, "OUTPUT_DUPLICATE": len(twice)}
    once = Expected("KEPT", {"DELIVERED": _FIRST + _MORE})
    how = "AT_LEAST_ONCE, "
    return [
        _case(stage, _KILLED, how + _PLAIN, source, Expected("BROKEN", classes, twice), _AT_LEAST_ONCE),
        _case(
            stage,
            _KILLED,
            how + _KEYED,
            source,
            once,
            {**_AT_LEAST_ONCE, "output": "keyed by position"},
            table="keyed",
        ),
        _case(
            stage,
            _KILLED,
            how + _PLAIN,
            source,
            Expected("KEPT", classes, twice),
            _AT_LEAST_ONCE,
            guarantee="at_least_once",
        ),
    ]


def killed_at_most_once(stage: Stage) -> list[Case]:
    """What was committed before it was written is lost; a loss budget may allow for it."""
    source, topology = _loader(stage, "AT_MOST_ONCE")
    sent = source.send(_FIRST + _MORE)
    life = topology.start(stand_still_after=_FIRST - 1)
    topology.await_offsets(life, *[1] * _FIRST)
    topology.await_commit(_FIRST + _MORE)
    life.kill()
    source.send(_MORE, session="sender-2")
    source.end()
    successor = topology.start()
    topology.await_offsets(successor, *[1] * _FIRST, *[0] * _MORE, *[1] * _MORE)
    topology.await_commit(_FIRST + 2 * _MORE)
    successor.kill()
    lost = breaks_of(sent[_FIRST:], *_EARLY)
    classes = {"DELIVERED": _FIRST + _MORE, "LOST": _MORE}
    how, at_least, at_most = "AT_MOST_ONCE", "at_least_once", "at_most_once"
    broken, kept = Expected("BROKEN", classes, lost), Expected("KEPT", classes, lost)
    return [
        _case(stage, _KILLED, how, source, broken, _AT_MOST_ONCE, guarantee=at_least),
        _case(
            stage,
            _KILLED,
            f"{how}, loss_ratio 0.4",
            source,
            kept,
            guarantee=at_most,
            budgets={"loss_ratio": 0.4},
        ),
    ]


def failed_without_ackers(stage: Stage) -> list[Case]:
    """Without ackers a tuple counts as processed when it is emitted: one that fails is not tried again."""
    source, sent = _failed(stage, ackers=0)
    lost = breaks_of([sent[offset] for offset in _FAILING], "LOST", "consumer", flags=["COMMIT_AHEAD"])
    expected = Expected("BROKEN", {"DELIVERED": _MORE - len(lost), "LOST": len(lost)}, lost)
    settings = {**_AT_LEAST_ONCE, "topology.acker.executors": 0}
    return [_case(stage, _FAILED, "no ackers", source, expected, settings, guarantee="at_least_once")]


def failed_with_ackers(stage: Stage) -> list[Case]:
    """With an acker the spout emits it again."""
    source, _ = _failed(stage, ackers=1)
    settings = {**_AT_LEAST_ONCE, "topology.acker.executors": 1}
    once = Expected("KEPT", {"DELIVERED": _MORE})
    return [_case(stage, _FAILED, "one acker", source, once, settings, guarantee="at_least_once")]


def too_slow(stage: Stage) -> list[Case]:
    """The spout emits a tuple again that is still in the bolt, and it is written twice by one life."""
    source, sent = _slow(stage, timeout=_SHORT, tries=2)
    again = breaks_of([sent[_SLOWEST]], *_TWICE)
    expected = Expected("BROKEN", {"DELIVERED": _MORE - 1, "OUTPUT_DUPLICATE": 1}, again)
    settings = {**_AT_LEAST_ONCE, "topology.message.timeout.secs": _SHORT}
    return [_case(stage, _SLOW, f"timeout {_SHORT} s, a write of 5 s", source, expected, settings)]


def slow_enough(stage: Stage) -> list[Case]:
    """With a timeout that is longer than the slowest write, each tuple is written once."""
    source, _ = _slow(stage, timeout=_LONG, tries=1)
    once = Expected("KEPT", {"DELIVERED": _MORE})
    return [_case(stage, _SLOW, f"timeout {_LONG} s, a write of 5 s", source, once)]


PLAYS: Final = {
    "storm-at-least-once": killed_at_least_once,
    "storm-at-most-once": killed_at_most_once,
    "storm-no-ackers": failed_without_ackers,
    "storm-acker": failed_with_ackers,
    "storm-timeout-short": too_slow,
    "storm-timeout-long": slow_enough,
}


def _loader(stage: Stage, guarantee: str, **settings: object) -> tuple[Scene, Topology]:
    source = stage.topic("in")
    return source, Topology(stage, source, "Loader", processing_guarantee=guarantee, **settings)


def _failed(stage: Stage, ackers: int) -> tuple[Scene, list[Place]]:
    """Have the bolt fail the first try of some tuples, and return what was sent."""
    failing = " ".join(map(str, _FAILING))
    source, topology = _loader(stage, "AT_LEAST_ONCE", topology_acker_executors=ackers, fail_first=failing)
    sent = source.send(_MORE)
    source.end()
    life = topology.start()
    topology.await_offsets(life, *(int(ackers > 0 or offset not in _FAILING) for offset in range(_MORE)))
    topology.await_commit(_MORE)
    life.kill()
    return source, sent


def _slow(stage: Stage, timeout: int, tries: int) -> tuple[Scene, list[Place]]:
    """Have the bolt take long for the first try of the last tuple there is; the others are sent afterwards.

    The spout looks for what is overdue whenever a timeout is over: a tuple fails within two of them, and once more two
    later. In between is when the bolt is done with it.
    """
    source, topology = _loader(
        stage, "AT_LEAST_ONCE", topology_message_timeout_secs=timeout, slow_first=_SLOWEST, slow_ms=_SLOW_MS
    )
    sent = source.send(_SLOWEST + 1)
    life = topology.start()
    counts = [*(1,) * _SLOWEST, tries]
    topology.await_offsets(life, *counts)
    sent += source.send(_MORE - len(sent), session="sender-2")
    source.end()
    topology.await_offsets(life, *counts, *(1,) * (_MORE - len(counts)))
    topology.await_commit(_MORE)
    life.kill()
    return source, sent


def _case(
    stage: Stage,
    fault: str,
    how: str,
    source: Scene,
    expected: Expected,
    settings: dict[str, Any] | None = None,
    guarantee: str = "exactly_once",
    table: str = "plain",
    **more: Any,
) -> Case:
    ledgers = {"delivered": rows_of(stage, table), "committed": committed_of(stage.data, stage.name)}
    if settings is not None:
        more = {"settings": {"storm": settings}, **more}
    return stage.case(fault, how, source, ledgers, expected, group=stage.name, guarantee=guarantee, **more)
