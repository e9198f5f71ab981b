"""Kafka's share groups: members that acknowledge before or after their output, reject, release, and are killed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import UNTIL_READ
from tests.integration.kafka_faults.scene import Place, Scene, breaks_of
from tests.integration.systems.engine import Application, Engine, class_path_of
from tests.integration.systems.scene import Case, Expected, Stage

_COUNT: Final = 10
_PROCESSED: Final = 4
_LATER: Final = 2
_REFUSED: Final = (3, 6)
_LONG_LOCK_MS: Final = 60_000
_SLOW_SECONDS: Final = 8
"""For so long a member is slow: longer than a lock of the other plays, which last 3 s."""
_KILLED: Final = "member killed with records in hand"
_GROUP: Final = {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"}
_BEFORE: Final = {**_GROUP, "commits": "before processing"}
_PLAIN: Final = {**_GROUP, "commits": "after processing"}
_KEYED: Final = {**_PLAIN, "output": "keyed by position"}
_TWICE: Final = ("OUTPUT_DUPLICATE", "consumer or sink")


def engine(folder: Path) -> Engine:
    """Return Kafka's client with a member of a share group, compiled into the folder."""
    return Engine(class_path_of("share", folder), "128m")


def before(stage: Stage) -> list[Case]:
    """What was acknowledged before its output is given to nobody else."""
    source, sent, first = _started(stage, acknowledges_first="true", limit=_PROCESSED)
    _await_held(first)
    first.kill()
    source.send(_LATER, session="sender-2")
    source.end()
    second = _member(stage, source, acknowledges_first="true")
    _await_rows(stage, _PROCESSED + _LATER)
    second.kill()
    lost = breaks_of(sent[_PROCESSED:], "LOST", "consumer", flags=["COMMIT_AHEAD"])
    expected = Expected("BROKEN", {"DELIVERED": _PROCESSED + _LATER, "LOST": len(lost)}, lost)
    return [_case(stage, _KILLED, "acknowledges before its output", source, expected, _BEFORE)]


def after(stage: Stage) -> list[Case]:
    """What was not acknowledged is given to the next member once its lock is over."""
    source, _ = _killed(stage, leaves_last="false")
    expected = Expected("KEPT", {"DELIVERED": _COUNT})
    how = "acknowledges after its output, between two records"
    return [_case(stage, _KILLED, how, source, expected, _KEYED, guarantee="exactly_once")]


def unacknowledged(stage: Stage) -> list[Case]:
    """What was put out and not acknowledged is put out again."""
    source, sent = _killed(stage, leaves_last="true")
    again = breaks_of([sent[_PROCESSED - 1]], *_TWICE)
    classes = {"DELIVERED": _COUNT - 1, "OUTPUT_DUPLICATE": 1}
    how = "acknowledges after its output, killed in between"
    broken, kept = Expected("BROKEN", classes, again), Expected("KEPT", classes, again)
    return [
        _case(stage, _KILLED, how, source, broken, _PLAIN, guarantee="exactly_once"),
        _case(stage, _KILLED, how, source, kept),
    ]


def rejected(stage: Stage) -> list[Case]:
    """What a member rejects is given to nobody; whoever does not say that it may be has lost it."""
    source, sent, member = _started(stage, reject=" ".join(map(str, _REFUSED)))
    _await_rows(stage, _COUNT - len(_REFUSED))
    source.end()
    member.kill()
    ledgers = {"dead_letters": {"source": _state(stage, source)}}
    delivered = _COUNT - len(_REFUSED)
    rows = {"dead_letters": len(_REFUSED)}
    parked = Expected("KEPT", {"DELIVERED": delivered, "DEAD_LETTERED": len(_REFUSED)}, rows=rows)
    lost = breaks_of([sent[offset] for offset in _REFUSED], "LOST", "consumer")
    gone = Expected("BROKEN", {"DELIVERED": delivered, "LOST": len(lost)}, lost)
    fault = "member rejects records"
    return [
        _case(stage, fault, "rejected, declared as dead letters", source, parked, ledgers=ledgers),
        _case(stage, fault, "rejected, not declared", source, gone),
    ]


def released(stage: Stage) -> list[Case]:
    """What a member releases is given out again."""
    source, _, member = _started(stage, release_first=" ".join(map(str, _REFUSED)))
    _await_rows(stage, _COUNT)
    source.end()
    member.kill()
    expected = Expected("KEPT", {"DELIVERED": _COUNT})
    fault = "member releases records once"
    return [_case(stage, fault, "released", source, expected, guarantee="exactly_once")]


def outlived(stage: Stage) -> list[Case]:
    """What a member holds for longer than its locks is given to another one, and both put it out."""
    source, sent, first = _started(stage, limit=_PROCESSED, wakes_at=_wake(stage))
    _await_held(first)
    second = _member(stage, source)
    _await_rows(stage, _COUNT)
    _wake(stage).touch()
    _await_rows(stage, _COUNT + _COUNT - _PROCESSED)
    source.end()
    first.kill()
    second.kill()
    again = breaks_of(sent[_PROCESSED:], *_TWICE)
    classes = {"DELIVERED": _PROCESSED, "OUTPUT_DUPLICATE": len(again)}
    broken, kept = Expected("BROKEN", classes, again), Expected("KEPT", classes, again)
    fault, how = "member slower than its locks", "its locks of 3 s over, its output afterwards"
    return [
        _case(stage, fault, how, source, broken, _PLAIN, guarantee="exactly_once"),
        _case(stage, fault, how, source, kept),
    ]


def in_time(stage: Stage) -> list[Case]:
    """While its locks hold, what a member has is given to nobody else, however slow it is."""
    source, _, first = _started(stage, limit=_PROCESSED, wakes_at=_wake(stage), lock_ms=_LONG_LOCK_MS)
    _await_held(first)
    second = _member(stage, source, lock_ms=_LONG_LOCK_MS)
    time.sleep(_SLOW_SECONDS)
    _wake(stage).touch()
    _await_rows(stage, _COUNT)
    source.end()
    first.kill()
    second.kill()
    expected = Expected("KEPT", {"DELIVERED": _COUNT})
    how = "its output within its locks of 60 s"
    return [_case(stage, "member slow with its records", how, source, expected, guarantee="exactly_once")]


PLAYS: Final = {
    "share-before": before,
    "share-after": after,
    "share-unacknowledged": unacknowledged,
    "share-rejected": rejected,
    "share-released": released,
    "share-outlived": outlived,
    "share-in-time": in_time,
}


def _started(stage: Stage, **settings: object) -> tuple[Scene, list[Place], Application]:
    """Send what a member is to be given, and start it."""
    source = stage.topic("in")
    sent = source.send(_COUNT)
    return source, sent, _member(stage, source, **settings)


def _killed(stage: Stage, leaves_last: str) -> tuple[Scene, list[Place]]:
    """Kill a member that has put out some of what it was given, and wait until another one has put out the rest."""
    source, sent, first = _started(stage, leaves_last=leaves_last, limit=_PROCESSED)
    _await_held(first)
    first.kill()
    source.end()
    second = _member(stage, source)
    _await_rows(stage, _COUNT + (leaves_last == "true"))
    second.kill()
    return source, sent


def _member(stage: Stage, source: Scene, **settings: object) -> Application:
    life = sum(1 for _ in stage.folder.glob("member-*.log")) + 1
    named = {name.replace("_", "."): value for name, value in settings.items()}
    _output(stage).parent.mkdir(parents=True, exist_ok=True)
    reported = {
        "bootstrap.servers": stage.cluster.bootstrap,
        "input": source.name,
        "group": stage.name,
        "member": f"member-{life}",
        "output": _output(stage),
        **named,
    }
    return stage.start("Member", reported, "member")


def _wake(stage: Stage) -> Path:
    """The file that a member which stands still waits for."""
    return stage.folder / "wake"


def _output(stage: Stage) -> Path:
    return stage.folder / "output" / "delivered.jsonl"


def _await_held(member: Application) -> None:
    wait_until(lambda: "HELD" in member.log.read_text(), f"{member.name} to stand still")


def _await_rows(stage: Stage, count: int) -> None:
    """Wait until so many rows are put out, and what was given for them is written down."""
    file = _output(stage)
    wait_until(lambda: file.exists() and len(file.read_text().splitlines()) >= count, f"{count} rows")


def _state(stage: Stage, source: Scene) -> dict[str, Any]:
    return {
        "kind": "kafka_share_group",
        "path": str(stage.data),
        "group": stage.name,
        "topic": source.name,
        "partitions": 1,
        "taken_at": "now",
    }


def _case(
    stage: Stage,
    fault: str,
    how: str,
    source: Scene,
    expected: Expected,
    settings: Mapping[str, str] | None = None,
    guarantee: str = "at_least_once",
    ledgers: dict[str, Any] | None = None,
) -> Case:
    output = {"kind": "files", "format": "jsonl", "path": str(_output(stage))}
    own = {
        "delivered": {"source": output, "coverage": UNTIL_READ},
        "committed": {"source": _state(stage, source)},
        **(ledgers or {}),
    }
    more: dict[str, Any] = {"consumption": "queue", "redelivery": "3s"}
    if settings is not None:
        more["settings"] = {"share_group": dict(settings)}
    return stage.case(fault, how, source, own, expected, group=stage.name, guarantee=guarantee, **more)
