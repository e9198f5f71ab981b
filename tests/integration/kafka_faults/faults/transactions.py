"""Transactions that end badly, and readers that look at what is not committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import Case, Place, Scene, breaks_of

_EACH = 10
_NEVER_MS = 900_000
_SOON_MS = 2_000


def ended_badly(scene: Scene) -> list[Case]:
    """One transaction is committed, one aborted, one times out after its producer's death, one is fenced off."""
    scene.create()
    steady = _transactional(scene, "steady-1", _NEVER_MS)
    _begin(scene, steady)
    committed = _places(steady.call("commit"))
    _begin(scene, steady)
    steady.call("abort")

    doomed = _transactional(scene, "doomed-1", _SOON_MS)
    _begin(scene, doomed)
    doomed.call("leave")
    doomed.kill()

    zombie = _transactional(scene, "twin-1", _NEVER_MS)
    fenced = _begin(scene, zombie)
    successor = _transactional(scene, "twin-2", _NEVER_MS)
    _begin(scene, successor)
    committed += _places(successor.call("commit"))
    if zombie.call("try_commit") == "committed":
        raise AssertionError("expected the older of two sessions to be fenced, but it committed")
    wait_until(lambda: _markers(scene) == 5, "the markers of five transactions")

    scene.drain("reads-committed")
    scene.drain("reads-uncommitted", isolation_level="read_uncommitted")
    scene.end()
    kept_ids = {id_ for *_, id_ in committed}
    aborted = [[0, offset, id_] for offset, id_ in scene.records() if id_ not in kept_ids]
    if not set(fenced) <= {id_ for *_, id_ in aborted} or len(aborted) != 3 * _EACH:
        raise AssertionError(f"expected three aborted transactions of {_EACH} records, found {aborted}")
    fault = "transactions aborted, timed out and fenced"
    producers = ["steady", "doomed", "twin"]
    phantoms = breaks_of(aborted, "PHANTOM_ABORTED", "consumer isolation", "aborted transaction read")
    return [
        scene.case(
            fault,
            "read_committed",
            "reads-committed",
            "KEPT",
            {"DELIVERED": len(committed), "NOT_SENT": len(aborted)},
            producers=producers,
        ),
        scene.case(
            fault,
            "read_uncommitted",
            "reads-uncommitted",
            "BROKEN",
            {"DELIVERED": len(committed), "PHANTOM_ABORTED": len(aborted)},
            phantoms,
            producers=producers,
        ),
    ]


def left_open(scene: Scene) -> list[Case]:
    """A transaction stays open: who reads what is committed waits before it, and nothing behind it is lost."""
    scene.create()
    before = scene.send(_EACH, session="plain-1")
    holder = _transactional(scene, "holder-1", _NEVER_MS)
    _begin(scene, holder)
    opened = _places(holder.call("leave"))
    behind = scene.send(_EACH, session="plain-2")

    scene.drain("waits")
    scene.drain("peeks", isolation_level="read_uncommitted")
    scene.end()
    fault = "transaction left open"
    producers = ["plain", "holder"]
    waiting = breaks_of(behind, "IN_FLIGHT", "unknown", flags=["OVERDUE"])
    return [
        scene.case(
            fault,
            "read_committed",
            "waits",
            "PENDING",
            {"DELIVERED": len(before), "IN_FLIGHT": len(behind) + len(opened)},
            waiting,
            producers=producers,
        ),
        scene.case(
            fault,
            "read_uncommitted",
            "peeks",
            "BROKEN",
            {"DELIVERED": len(before) + len(behind), "PHANTOM_UNCOMMITTED": len(opened)},
            breaks_of(opened, "PHANTOM_UNCOMMITTED", "consumer isolation"),
            producers=producers,
        ),
    ]


def _transactional(scene: Scene, session: str, timeout_ms: int) -> Any:
    sender = scene.sender(
        session, transactional_id=session.rpartition("-")[0], transaction_timeout_ms=timeout_ms
    )
    sender.call("init")
    return sender


def _begin(scene: Scene, sender: Any) -> list[str]:
    """Begin a transaction, and see its records to the broker before it may end."""
    ids = scene.ids(_EACH)
    sender.call("begin")
    sender.call("send", ids=ids, partition=0)
    if sender.call("flush"):
        raise AssertionError("the broker did not take the records of a transaction")
    return ids


def _places(rows: Sequence[Sequence[Any]]) -> list[Place]:
    return [[partition, offset, id_] for id_, partition, offset, _ in rows]


def _markers(scene: Scene) -> int:
    return sum(batch.is_control for batch in scene.cluster.log(scene.leader, scene.name))
