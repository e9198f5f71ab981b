"""A second consumer joins while the first one is in the middle of a batch."""

from __future__ import annotations

from tests.integration.kafka_faults.scene import Case, Scene, breaks_of

_COMMITTED = 5
_BATCH = 15
"""Messages of each of the two partitions: committed before, and in the batch that is interrupted."""
_WRITTEN = 10
_ZOMBIE = "zombie after rebalance"
_PROCESSED = "process before commit"


def eager(scene: Scene) -> list[Case]:
    """Eager assignment takes all partitions away: both parts of the batch are read again."""
    return _joined(scene, "range", is_eager=True)


def cooperative(scene: Scene) -> list[Case]:
    """Cooperative assignment takes one partition away: its part of the batch is read again, the other is not."""
    return _joined(scene, "cooperative-sticky", is_eager=False)


def _joined(scene: Scene, strategy: str, *, is_eager: bool) -> list[Case]:
    scene.create([[1], [1]])
    for number in (0, 1):
        scene.send(_COMMITTED, partition=number, session=f"sender-{number}")
    groups = {drains: f"{scene.name}-{'drains' if drains else 'goes-on'}" for drains in (False, True)}
    firsts = {}
    for drains, group in groups.items():
        first = scene.reader(group, 1, drains=drains, partition_assignment_strategy=strategy)
        first.call("read", count=2 * _COMMITTED)
        first.call("write")
        first.call("commit")
        firsts[drains] = first
    for number in (0, 1):
        scene.send(_BATCH, partition=number, session=f"sender-{number + 2}")
    scene.end()

    breaks = []
    for drains, group in groups.items():
        first = firsts[drains]
        first.call("read", count=2 * _BATCH)
        early = first.call("write", count=_WRITTEN)
        second = scene.reader(group, 2, drains=drains, partition_assignment_strategy=strategy)
        second.begin("join")
        first.call("serve", partitions=1)
        (moved,) = second.answer()
        second.call("drain")
        late = first.call("write")
        first.call("resume")
        if is_eager:
            first.call("drain")
        elif not drains:
            first.call("commit")
        if not drains:
            breaks = breaks_of(
                [place for place in early if place[0] == moved or is_eager],
                "OUTPUT_DUPLICATE",
                "consumer or sink",
                _PROCESSED,
            )
            breaks += breaks_of(
                [place for place in late if place[0] == moved],
                "OUTPUT_DUPLICATE",
                "consumer or sink",
                _ZOMBIE,
            )
            if is_eager:
                breaks += breaks_of(
                    [place for place in late if place[0] != moved],
                    "OUTPUT_DUPLICATE",
                    "consumer or sink",
                    _PROCESSED,
                )
        for reader in (first, second):
            reader.kill()
    fault = f"rebalance in the middle of a batch, {'eager' if is_eager else 'cooperative'}"
    total = 2 * (_COMMITTED + _BATCH)
    return [
        scene.case(
            fault,
            "goes on writing what it was handed",
            groups[False],
            "BROKEN",
            {"DELIVERED": total - len(breaks), "OUTPUT_DUPLICATE": len(breaks)},
            breaks,
        ),
        scene.case(
            fault,
            "writes and commits before it gives up a partition",
            groups[True],
            "KEPT",
            {"DELIVERED": total},
        ),
    ]
