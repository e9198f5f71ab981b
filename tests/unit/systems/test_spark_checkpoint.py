"""What the files of a Structured Streaming checkpoint say, and what is wrong with those that say something else."""

from __future__ import annotations

import json

import pytest

from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.spark_checkpoint import (
    BatchRange,
    PlannedBatch,
    history_of,
    initial_offsets,
    planned_batch,
    require_commit,
)

_META = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1000, "conf": {}})


def _planned(*ends: int) -> dict[int, PlannedBatch]:
    return {n: PlannedBatch({("orders", 0): end}, 1000 * (n + 1)) for n, end in enumerate(ends)}


def test_a_batch_has_the_end_of_each_partition_of_the_named_source() -> None:
    """Other sources have lines of their own; one without an offset yet has a dash."""
    content = f'v1\n{_META}\n{{"logOffset":2}}\n{{"orders":{{"0":5,"1":0}}}}\n-'.encode()

    assert planned_batch(content, 1) == PlannedBatch({("orders", 0): 5, ("orders", 1): 0}, 1000)
    assert planned_batch(content, 2) == PlannedBatch({}, 1000)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "expected version v1"),
        (b"v2\n{}\n0:{}", "expected version v1 on the first line, found 'v2'"),
        (b"v1", "cut off"),
        (b"v1\n{}", "expected a line for source 0"),
        (b'v1\n{}\n{"orders":{"0":5}', "expected JSON"),
        (b'v1\n{"batchTi\n{"orders":{"0":5}}', "expected JSON"),
        (b'v1\n{}\n{"logOffset":2}', "another kind of source"),
        (b'v1\n{}\n{"orders":{"0":5,"0":6}}', "each key once"),
        (b'v1\n{}\n{"orders":{"0":-1}}', "expected an offset from 0 on"),
        (b'v1\n{}\n{"orders":{"0":5.0}}', "expected an offset from 0 on"),
        (b'v1\n{}\n{"orders":{"0":4611686018427387904}}', "expected an offset from 0 on"),
        (b'v1\n{}\n{"orders":{"x":1}}', "expected an offset from 0 on"),
        (b"v1\n{}\n" + b"[" * 100_000, "expected JSON"),
        (b"v1\n{}\n5", "expected a JSON object, found a number"),
        (b"v1\n\xff", "expected UTF-8"),
    ],
)
def test_a_batch_of_another_form_is_refused_with_its_reason(content: bytes, reason: str) -> None:
    """Another version, a cut-off file, another source, numbers that are no offsets."""
    with pytest.raises(FormatError, match=reason):
        planned_batch(content, 0)


def test_a_commit_is_one_in_both_versions() -> None:
    """Version 2 adds ids of state files to the same commit."""
    require_commit(b'v1\n{"nextBatchWatermarkMs":0}')
    require_commit(b'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}')

    for content in (b"", b"v3\n{}", b"v1\n{"):
        with pytest.raises(FormatError):
            require_commit(content)


def test_the_first_offsets_are_read_with_and_without_the_zero_byte() -> None:
    """Spark writes it since 2.1 so that older versions can go on."""
    assert initial_offsets(b'\0v1\n{"orders":{"0":3}}') == {("orders", 0): 3}

    with pytest.raises(FormatError):
        initial_offsets(b"\0")


def test_a_batch_covers_from_the_end_of_the_one_before() -> None:
    """Batch 0 begins at the first offsets, and the batch in doubt has no row."""
    found = history_of(_planned(5, 9, 12), frozenset({0, 1}), {("orders", 0): 2}, 0)

    assert found.ranges == (BatchRange(0, "orders", 0, 2, 5), BatchRange(1, "orders", 0, 5, 9))
    assert found.faults == ()
    assert found.begins_at is None
    assert found.notes[0].startswith("batch 2 is in doubt")


def test_without_first_offsets_a_batch_begins_at_the_beginning_and_a_note_says_so() -> None:
    """A partition that came later begins there as well."""
    planned = _planned(5, 9)
    planned[1] = PlannedBatch({("orders", 0): 9, ("orders", 1): 4}, 2000)

    found = history_of(planned, frozenset({0, 1}), None, 0)

    assert [(one.partition, one.first) for one in found.ranges] == [(0, None), (0, 5), (1, None)]
    assert any(note.startswith("sources/0/0: not there") for note in found.notes)


def test_a_query_that_was_set_back_read_nothing() -> None:
    """Its range is empty and lies where it goes on from."""
    found = history_of(_planned(9, 4, 6), frozenset({0, 1, 2}), {("orders", 0): 0}, 0)

    assert [(one.first, one.end) for one in found.ranges] == [(0, 9), (4, 4), (4, 6)]


def test_a_hole_is_a_fault_and_the_batch_behind_it_has_no_row() -> None:
    """Nobody knows where the batch behind a missing one began."""
    planned = _planned(5, 9, 12)
    del planned[1]

    found = history_of(planned, frozenset({0, 1, 2}), {}, 0)

    assert [one.batch for one in found.ranges] == [0]
    assert found.faults == ("offsets/1: not there or not readable, though offsets/0 and offsets/2 are there",)


def test_a_missing_commit_below_the_newest_batch_is_a_fault() -> None:
    """Spark begins no batch before the commit of the one before; neither is there a commit without a batch."""
    assert history_of(_planned(5, 9), frozenset({1}), {}, 0).faults == (
        "commits/0: not there or not readable, though batch 1 began",
    )
    assert history_of(_planned(5), frozenset({0, 1}), {}, 0).faults == (
        "offsets/1: not there or not readable, though commits/1 is there",
    )
    assert history_of({}, frozenset({0}), None, 0).faults


def test_purged_batches_are_reported_and_the_history_begins_with_the_oldest_one() -> None:
    """The oldest batch's row stands for all up to it."""
    planned = _planned(5, 9, 12)
    del planned[0]

    found = history_of(planned, frozenset({1, 2}), {("orders", 0): 0}, 0)

    assert found.begins_at == 2000
    assert [(one.batch, one.first, one.end) for one in found.ranges] == [(1, 0, 9), (2, 9, 12)]
    assert any("purged" in note for note in found.notes)
    assert found.faults == ()
