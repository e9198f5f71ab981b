"""The rule of transactions: a producer's next marker decides, in whatever pieces the log is looked at."""

from __future__ import annotations

import struct
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tieout.engine.kafka.records import Batch, Record
from tieout.engine.kafka.transactions import States, fates_of, first_open_offset, markers_of, transactions_of

_KINDS = st.sampled_from(["plain", "data", "data", "commit", "abort"])
_LOGS = st.lists(st.tuples(st.integers(min_value=1, max_value=3), _KINDS), max_size=25)


def _batch(offset: int, producer: int, kind: str) -> Batch:
    is_control = kind in ("commit", "abort")
    key = struct.pack(">hh", 0, kind == "commit") if is_control else b"k"
    return Batch(
        place=offset,
        base_offset=offset,
        last_offset=offset,
        leader_epoch=0,
        producer_id=producer,
        producer_epoch=0,
        is_transactional=kind != "plain",
        is_control=is_control,
        is_log_append_time=False,
        count=1,
        read=lambda: [Record(offset, 0, -1, key, None)],
    )


def _states(log: list[tuple[int, str]]) -> list[str]:
    """The states by the rule's own words: look ahead for the producer's next marker."""
    states = []
    for place, (producer, kind) in enumerate(log):
        if kind == "plain":
            states.append("none")
            continue
        markers = (
            other for owner, other in log[place:] if owner == producer and other in ("commit", "abort")
        )
        states.append({"commit": "committed", "abort": "aborted", None: "open"}[next(markers, None)])
    return states


@settings(deadline=None)
@given(log=_LOGS, cuts=st.lists(st.integers(min_value=0, max_value=25), max_size=4))
def test_states_do_not_depend_on_how_the_log_is_cut_into_segments(
    log: list[tuple[int, str]], cuts: list[int]
) -> None:
    """Each record's state, and the last stable offset, are the same for one piece and for many."""
    batches = [_batch(offset, *entry) for offset, entry in enumerate(log)]
    bounds = [0, *sorted(cut for cut in cuts if cut < len(batches)), len(batches)]
    pieces = [batches[start:end] for start, end in pairwise(bounds)]

    shown = [transactions_of(piece) for piece in pieces]
    states = [
        States(markers_of(piece), fates).of(batch)
        for piece, fates in zip(pieces, fates_of(shown), strict=True)
        for batch in piece
    ]

    expected = _states(log)
    assert states == expected
    assert first_open_offset(shown) == next((o for o, state in enumerate(expected) if state == "open"), None)


def test_a_control_record_of_the_cluster_decides_nothing() -> None:
    """A change of leadership is a control record and no marker."""
    key = struct.pack(">hh", 0, 2)
    change = Batch(0, 0, 0, 0, 1, 0, False, True, False, 1, read=lambda: [Record(0, 0, -1, key, None)])

    assert change.marker() is None
    assert transactions_of([_batch(0, 1, "data"), change]).undecided == {1: 0}


def test_a_control_batch_whose_record_was_cleaned_away_decides_nothing() -> None:
    """Compaction keeps the batch of a marker for a while after its record is gone."""
    emptied = Batch(0, 0, 0, 0, 1, 0, True, True, False, 0, read=list)

    assert emptied.marker() is None
