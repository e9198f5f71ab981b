"""What became of a partition's transactions, worked out from the markers in its log.

A producer id has at most one open transaction in a partition. So its next marker there decides all of its transactional
records since the marker before; records that no marker follows are open. The epoch is no part of the rule: since
Kafka 4 every transaction has its own, and a newer session's marker aborts what an older one left.

Source: Apache Kafka's documentation, "Transaction Protocol" (Operations), and KIP-98.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tieout.engine.kafka.records import NONE, OPEN, Batch


@dataclass(frozen=True)
class Transactions:
    """What one piece of a log, such as a segment, shows of its producers' transactions.

    `first_markers` is each producer's first marker in the piece, which decides what earlier pieces left open;
    `undecided` is the first offset of what each leaves open at the piece's end.
    """

    first_markers: Mapping[int, str]
    undecided: Mapping[int, int]

    @property
    def is_empty(self) -> bool:
        """Whether the piece holds neither records nor markers of a transaction."""
        return not self.first_markers and not self.undecided


def transactions_of(batches: Iterable[Batch]) -> Transactions:
    """Return what the batches of one piece, in their order, show.

    Raises:
        LogError: where a control record does not decode.
    """
    first_markers: dict[int, str] = {}
    undecided: dict[int, int] = {}
    for batch in batches:
        marker = batch.marker()
        if marker is not None:
            first_markers.setdefault(batch.producer_id, marker)
            undecided.pop(batch.producer_id, None)
        elif batch.is_transactional and not batch.is_control:
            undecided.setdefault(batch.producer_id, batch.base_offset)
    return Transactions(first_markers, undecided)


def fates_of(pieces: Sequence[Transactions]) -> tuple[dict[int, str], ...]:
    """Return for each piece what later pieces decide of what it leaves open, by producer id.

    >>> first, second = Transactions({}, {7: 100}), Transactions({7: "committed"}, {})
    >>> fates_of([first, second])
    ({7: 'committed'}, {})
    """
    decided: dict[int, str] = {}
    fates: list[dict[int, str]] = []
    for piece in reversed(pieces):
        fates.append({producer: decided[producer] for producer in piece.undecided if producer in decided})
        decided.update(piece.first_markers)
    return tuple(reversed(fates))


def first_open_offset(pieces: Sequence[Transactions]) -> int | None:
    """Return the first offset of the log's oldest open transaction, None where all are decided.

    >>> first_open_offset([Transactions({}, {7: 100, 8: 90}), Transactions({8: "aborted"}, {7: 300})])
    100
    """
    undecided: dict[int, int] = {}
    for piece in pieces:
        for producer in piece.first_markers:
            undecided.pop(producer, None)
        undecided = {**piece.undecided, **undecided}
    return min(undecided.values(), default=None)


class States:
    """The transaction state of every batch of one piece, given what later pieces decide."""

    def __init__(self, markers: Iterable[tuple[int, int, str]], fates: Mapping[int, str]) -> None:
        self._offsets: defaultdict[int, list[int]] = defaultdict(list)
        self._states: defaultdict[int, list[str]] = defaultdict(list)
        for producer, offset, state in markers:
            self._offsets[producer].append(offset)
            self._states[producer].append(state)
        self._fates = fates

    def of(self, batch: Batch) -> str:
        """Return the state of the batch's records; a marker's is what it decides.

        Raises:
            LogError: where a control record does not decode.
        """
        if batch.is_control:
            return batch.marker() or NONE
        if not batch.is_transactional:
            return NONE
        place = bisect_right(self._offsets[batch.producer_id], batch.last_offset)
        states = self._states[batch.producer_id]
        return states[place] if place < len(states) else self._fates.get(batch.producer_id, OPEN)


def markers_of(batches: Iterable[Batch]) -> list[tuple[int, int, str]]:
    """Return the markers among the batches: producer id, offset and what each decides.

    Raises:
        LogError: where a control record does not decode.
    """
    found = ((batch, batch.marker()) for batch in batches if batch.is_control)
    return [(batch.producer_id, batch.base_offset, marker) for batch, marker in found if marker is not None]
