"""Snapshots: every way in which an engine may say something else is told, in a line of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.snapshots.comparing import compared, judged
from tests.snapshots.keeping import read, snapshot_of, write

Change = Callable[[dict[str, Any]], object]


def _break(number: int) -> dict[str, Any]:
    return {
        "break_id": f"id-{number}",
        "incident_id": "incident",
        "class": "LOST",
        "flags": [],
        "message_id": f"m{number}",
        "topic": "orders",
        "partition": 0,
        "offset": number,
        "cause": "unknown",
        "evidence": {"produced": [{"message_id": f"m{number}", "attempted_at": "10:00"}]},
    }


def _statement() -> dict[str, Any]:
    return {
        "run_id": "run",
        "generated_at": "now",
        "verdict": "BROKEN",
        "classes": {"LOST": 2},
        "latency": {"mean_s": 1.0},
        "partitions": [{"topic": "orders", "partition": 0, "lost": 2}],
        "breaks": [_break(1), _break(2)],
    }


def _differences(change: Change) -> list[str]:
    """Return what is told where the engine says of the history what `change` makes of its snapshot."""
    kept = {"a": snapshot_of("a", "digest", _statement())}
    now = _statement()
    change(now)
    return compared(kept, [snapshot_of("a", "digest", now)], is_whole=True)


def _of_break(**values: Any) -> Change:
    return lambda now: now["breaks"][1].update(values)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda now: now.update(verdict="KEPT"), ["verdict: expected 'BROKEN', found 'KEPT'"]),
        (lambda now: now["classes"].update(LOST=1), ["classes.LOST: expected 2, found 1"]),
        (lambda now: now["classes"].update(LATE=1), ["classes.LATE: expected 'nothing', found 1"]),
        (lambda now: now["latency"].update(mean_s=1), ["latency.mean_s: expected 1.0, found 1"]),
        (lambda now: now["partitions"][0].update(lost=3), ["partitions[0].lost: expected 2, found 3"]),
        (_of_break(cause="poll"), ["break LOST m2 at orders-0/2.cause: expected 'unknown', found 'poll'"]),
        (_of_break(flags=["OVERDUE"]), ["break LOST m2 at orders-0/2.flags: expected [], found ['OVERDUE']"]),
        (
            _of_break(**{"class": "LATE"}),
            ["break LOST m2 at orders-0/2.class: expected 'LOST', found 'LATE'"],
        ),
        (
            _of_break(break_id="new"),
            ["break LOST m2 at orders-0/2.break_id: expected 'id-2', found 'new'"],
        ),
        (
            _of_break(incident_id="new"),
            ["break LOST m2 at orders-0/2.incident_id: expected 'incident', found 'new'"],
        ),
        (
            lambda now: now["breaks"][1]["evidence"].clear(),
            [
                "break LOST m2 at orders-0/2.evidence.produced: expected "
                "[{'message_id': 'm2', 'attempted_at': '10:00'}], found 'nothing'"
            ],
        ),
        (lambda now: now["breaks"].pop(), ["break LOST m2 at orders-0/2: missing"]),
        (lambda now: now["breaks"].append(_break(3)), ["break LOST m3 at orders-0/3: unexpected"]),
        (lambda now: now["breaks"].append(_break(1)), ["break LOST m1 at orders-0/1: unexpected"]),
        (lambda now: now["breaks"].reverse(), ["breaks: the same, in another order"]),
    ],
)
def test_every_difference_is_reported(change: Change, expected: list[str]) -> None:
    """A changed field, a missing break, one too many and another order are each a line that names the history."""
    assert sorted(_differences(change)) == sorted(f"a: {line}" for line in expected)


def test_what_says_nothing_of_the_evidence_is_left_out() -> None:
    """Run and time of a statement differ in every run, and rows of one time come in any order; other rows do not."""
    row, tied, later = ({"message_id": name, "attempted_at": at} for name, at in ("a1", "b1", "c2"))

    def rows(*found: Mapping[str, str]) -> Change:
        return lambda now: now["breaks"][0].update(evidence={"produced": list(found)})

    kept, again = _statement(), _statement() | {"run_id": "other", "generated_at": "later"}
    rows(row, tied, later)(kept)
    rows(tied, row, later)(again)
    snapshots = {"a": snapshot_of("a", "digest", kept)}
    assert compared(snapshots, [snapshot_of("a", "digest", again)], is_whole=True) == []

    rows(later, row, tied)(again)
    assert compared(snapshots, [snapshot_of("a", "digest", again)], is_whole=True) != []


def test_another_history_is_distinguished_from_another_engine() -> None:
    """Changed inputs are all that is said; histories that came or went are told, unless few were asked for."""
    kept = {name: snapshot_of(name, "digest", _statement()) for name in ("a", "b")}
    changed = snapshot_of("a", "other digest", _statement() | {"verdict": "KEPT"})
    new = snapshot_of("c", "digest", _statement())

    assert compared(kept, [changed, new], is_whole=True) == [
        "a: this history is another one now: what is judged changed, whatever judges it",
        "c: no snapshot: it is new",
        "b: this history is no more",
    ]
    assert compared(kept, [kept["a"]], is_whole=False) == []


def test_a_file_has_the_same_bytes_for_the_same_snapshots(tmp_path: Path) -> None:
    """Snapshots are read as they were written, in whatever order they were judged."""
    histories = {"b": "history b", "a": "history a"}
    found = list(
        judged(
            lambda these: [(place, _statement()) for place in reversed(range(len(these)))],
            histories,
            lambda one: f"of {one}",
        )
    )

    write(tmp_path / "one.gz", "what", found)
    write(tmp_path / "other.gz", "what", reversed(found))

    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "other.gz").read_bytes()
    assert read(tmp_path / "one.gz") == {one.name: one for one in found}
    assert {one.name: one.digest for one in found} == {"a": "of history a", "b": "of history b"}
