"""Parses the operator states of Flink's Kafka connector: positions, and prepared transactions of sinks.

A committer's state nests three structures, each with a version of its own:

| Flink                        | Checkpoint | Subtask | Difference                                          |
|------------------------------|------------|---------|-----------------------------------------------------|
| 1.18, 1.19.0, 1.20.0         | 0          | 0       | no count of subtasks, no number of the subtask      |
| later ones of 1.19 and 1.20  | 1          | 1       | three counts after the requests to commit           |
| 2.0 to 2.3                   | 1          | 2       | two counts after the requests to commit             |

Source: `KafkaPartitionSplitSerializer` and `KafkaCommittableSerializer`, the same in flink-connector-kafka 3.0 to 5.0,
`FlinkKafkaConsumerBase` and `FlinkKafkaProducer` of 3.0 to 3.4;
`SimpleVersionedSerialization` and `CommittableCollectorSerializer` of Apache Flink 1.18 to 2.3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from tieout.engine.limits import LARGEST, LARGEST_INT
from tieout.engine.systems.data_input import DataInput
from tieout.engine.systems.flink_checkpoint import OperatorState
from tieout.engine.systems.json_texts import FormatError

SOURCE_STATE: Final = "SourceReaderState"
COMMITTER_STATE: Final = "streaming_committer_raw_states"
OLDER_SOURCES: Final = {
    "topic-partition-offset-states": "is a FlinkKafkaConsumer, whose positions are not read; use a KafkaSource, or "
    "name the one that is meant in source"
}
OLDER_SINKS: Final = dict.fromkeys(
    ("next-transactional-id-hint", "next-transactional-id-hint-v2"),
    "is a FlinkKafkaProducer, whose transactions are not read; use a KafkaSink, or name the one that is meant in sink",
)
"""States of what flink-connector-kafka had before version 4, and why a checkpoint with one is not read."""
_SPLIT_VERSION: Final = 0
_COLLECTOR_MAGIC: Final = bytes.fromhex("b91f252c")
_COLLECTOR, _REQUEST, _COMMITTABLE = 2, 0, 1
_SUBTASKS_OF: Final = {0: (0,), 1: (1, 2)}
"""The versions of a committer's subtask by that of its checkpoint."""
_FIRST_WITH_NUMBERS, _FIRST_WITH_TWO_COUNTS = 1, 2
_OTHER_SINK: Final = "expected a transaction of a Kafka sink, found another sink's state"
_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_MOST_NAME: Final = 249
_LOWEST_SPECIAL_OFFSET: Final = -3
"""The lowest of the special offsets latest (-1), earliest (-2) and committed (-3)."""


class OtherStateError(FormatError):
    """What a committer holds is no transaction of Kafka, but what another sink prepares."""


@dataclass(frozen=True)
class SplitPosition:
    """The offset at which a source continues in a partition; None if it has not started."""

    topic: str
    partition: int
    offset: int | None


@dataclass(frozen=True)
class PreparedTransaction:
    """A transaction prepared by a sink's checkpoint: Kafka's producer id and epoch, and its name."""

    checkpoint: int
    producer_id: int
    epoch: int
    transactional_id: str


def reads_kafka(state: OperatorState) -> bool:
    """Return whether an operator's subtask has positions of a Kafka source."""
    try:
        return bool([split_position(element) for element in state.elements(SOURCE_STATE)])
    except FormatError:
        return False


def split_position(element: bytes) -> SplitPosition:
    """Return the position in an element of a Kafka source's state.

    Raises:
        FormatError: if it is another source's, of another version, or cut off.
    """
    whole = DataInput(element)
    data = _versioned(whole, _SPLIT_VERSION, "a position of a Kafka source")
    topic, partition, offset = data.text(), data.number(4), data.signed(8)
    data.taken(8)  # where the source stops
    is_complete = data.is_at_end and whole.is_at_end
    if not is_complete or not topic or len(topic) > _MOST_NAME or not _LEGAL.issuperset(topic):
        raise FormatError("expected a position of a Kafka source, found another source's state")
    if partition > LARGEST_INT or not _LOWEST_SPECIAL_OFFSET <= offset <= LARGEST:
        raise FormatError(f"expected an offset of {topic} that Kafka has, found {offset}")
    return SplitPosition(topic, partition, offset if offset >= 0 else None)


def prepared_transactions(element: bytes) -> list[PreparedTransaction]:
    """Return the transactions in an element of a Kafka sink's committer state.

    Raises:
        OtherStateError: if it belongs to another sink.
        FormatError: if it is of another version, or cut off.
    """
    whole = DataInput(element)
    data = _versioned(whole, _COLLECTOR, "the state of a sink's committer")
    _require_end(whole)
    if data.taken(len(_COLLECTOR_MAGIC)) != _COLLECTOR_MAGIC:
        raise FormatError("expected the state of a sink's committer, found another beginning")
    version = _version(data, tuple(_SUBTASKS_OF), "a committer's checkpoint")
    transactions = [
        prepared for checkpoint in _list(data) for prepared in _of_checkpoint(checkpoint, version)
    ]
    _require_end(data)
    return transactions


def _of_checkpoint(data: DataInput, checkpoint_version: int) -> Iterator[PreparedTransaction]:
    number = data.number(8)
    if checkpoint_version >= _FIRST_WITH_NUMBERS:
        data.taken(4)  # how many subtasks the sink has
    version = _version(data, _SUBTASKS_OF[checkpoint_version], "a committer's subtask")
    for subtask in _list(data):
        if version >= _FIRST_WITH_NUMBERS:
            subtask.taken(4)
        _version(subtask, (_REQUEST,), "a request to commit")
        for request in _list(subtask):
            yield _committable(request, number)
            request.taken(4 + 4)  # how often it was tried, and how that went
            _require_end(request)
        # How many there are, how many were passed on (up to Flink 1.20), and how many failed.
        subtask.taken(4 * (2 if version >= _FIRST_WITH_TWO_COUNTS else 3))
        _require_end(subtask)
    _require_end(data)


def _committable(request: DataInput, checkpoint: int) -> PreparedTransaction:
    """Return the transaction of a commit request.

    Raises:
        OtherStateError: if it is a request to commit something else.
    """
    version, content = request.signed(4), request.taken(request.number(4))
    data = DataInput(content)
    try:
        epoch, producer_id, name = data.number(2), data.number(8), data.text()
        _require_end(data)
    except FormatError:
        raise OtherStateError(_OTHER_SINK) from None
    if version != _COMMITTABLE:
        raise OtherStateError(
            f"expected a transaction of a Kafka sink of version {_COMMITTABLE}, found version {version}"
        )
    return PreparedTransaction(checkpoint, producer_id, epoch, name)


def _versioned(data: DataInput, version: int, subject: str) -> DataInput:
    """Return the data that follows its version and length."""
    _version(data, (version,), subject)
    return DataInput(data.taken(data.number(4)))


def _version(data: DataInput, versions: Collection[int], subject: str) -> int:
    """Return the next version, which must be one of these."""
    found_version = data.signed(4)
    if found_version not in versions:
        expected = " or ".join(map(str, versions))
        raise FormatError(f"expected {subject} of version {expected}, found version {found_version}")
    return found_version


def _list(data: DataInput) -> Iterator[DataInput]:
    """Yield the elements of a list, each with its length; the version of all of them comes before it."""
    for _ in range(data.number(4)):
        yield DataInput(data.taken(data.number(4)))


def _require_end(data: DataInput) -> None:
    if not data.is_at_end:
        raise FormatError(_OTHER_SINK)
