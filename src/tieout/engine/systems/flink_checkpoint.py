"""Parses the file `_metadata` of a Flink checkpoint or savepoint: the states of each operator's subtasks, by name.

Only operator states are read, which are lists of bytes: positions of sources, and prepared transactions of sinks. Keyed
state is skipped. Nothing is deserialised: of the checkpoint's properties, a Java object at the end of the file, only
the end is checked, which shows whether the file is complete.

| Version | Flink         | Difference                                        |
|---------|---------------|---------------------------------------------------|
| 4       | 1.18 to 1.20  | operators have an id only, no name and no uid     |
| 5       | 2.0           |                                                   |
| 6       | 2.1 to 2.3    | the form of channel states, which are not read    |

Source: `Checkpoints`, `MetadataV2V3SerializerBase` and `MetadataV3Serializer` to `MetadataV6Serializer` of Apache Flink
1.18 to 2.3 (flink-runtime).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tieout.engine.limits import shown
from tieout.engine.systems.data_input import DataInput
from tieout.engine.systems.flink_operators import Operator
from tieout.engine.systems.java_maps import MAGIC as JAVA_MAGIC
from tieout.engine.systems.json_texts import FormatError

MAGIC: Final = bytes.fromhex("4960672d")
"""The first bytes of a metadata file."""
OLDEST_VERSION, NEWEST_VERSION = 4, 6
"""The versions that are read; earlier ones have no properties at the end."""
_FIRST_WITH_NAMES: Final = 5
_MASTER_MAGIC: Final = bytes.fromhex("c96b1696")
_NULL, _BYTES, _FILE, _RELATIVE_FILE = 0, 1, 2, 6
_PARTITIONABLE: Final = 4
_KEY_GROUPS, _SAVEPOINT_KEY_GROUPS, _INCREMENT = 12, 7, 11
_ALL_FINISHED: Final = -1
_LAST_TEXT: Final = 64
"""The checkpoint's properties end with the name of a constant, which is shorter than this."""


@dataclass(frozen=True)
class OperatorState:
    """The states of one subtask of an operator: for each name the offsets of its elements in `content`.

    `file` is the name of a separate file with the content, None if the metadata contains it.
    """

    operator: Operator
    subtask: int
    offsets: Mapping[str, tuple[int, ...]]
    content: bytes
    file: str | None = None

    def elements(self, name: str) -> list[bytes]:
        """Return the elements of the state with this name; none if the subtask has no such state.

        Raises:
            FormatError: if an element, or all together, exceed the content.
        """
        elements, remaining = [], len(self.content)
        for begin in self.offsets.get(name, ()):
            data = DataInput(self.content, min(begin, len(self.content)))
            length = data.number(4)
            remaining -= 4 + length
            if remaining < 0:
                raise FormatError(f"expected elements of {name} within {len(self.content)} bytes, found more")
            elements.append(data.taken(length))
        return elements


@dataclass(frozen=True)
class Checkpoint:
    """The content of one metadata file: the checkpoint's number, and the states of all operators."""

    number: int
    states: tuple[OperatorState, ...]


def checkpoint_in(content: bytes) -> Checkpoint:
    """Return the checkpoint in a metadata file.

    Raises:
        FormatError: if it is another file, of another version, cut off, or has content that is not supported.
    """
    data = DataInput(content)
    if data.taken(len(MAGIC)) != MAGIC:
        raise FormatError("expected the metadata of a Flink checkpoint, found another beginning")
    version = data.signed(4)
    if not OLDEST_VERSION <= version <= NEWEST_VERSION:
        raise FormatError(
            f"expected version {OLDEST_VERSION} to {NEWEST_VERSION} of a checkpoint's metadata, as Flink 1.18 to 2.3 "
            f"write it, found version {version}"
        )
    number = data.number(8)
    for _ in range(data.number(4)):
        if data.taken(len(_MASTER_MAGIC)) != _MASTER_MAGIC:
            raise FormatError(f"expected the state of a master hook at byte {data.at}, found none")
        data.taken(data.number(4))
    states: list[OperatorState] = []
    for _ in range(data.number(4)):
        states += _operator(data, has_names=version >= _FIRST_WITH_NAMES)
    _require_properties(data.remaining(), len(content))
    return Checkpoint(number, tuple(states))


def _operator(data: DataInput, *, has_names: bool) -> list[OperatorState]:
    """Return the states of one operator's subtasks, none if all of them have finished."""
    name, uid = (data.text(), data.text()) if has_names else ("", "")
    operator = Operator(data.taken(16).hex(), name, uid)
    data.taken(4 + 4)  # parallelism, and the most subtasks that it may have
    _stream(data, operator)  # the coordinator's state, which hands out places and has no position
    count = data.signed(4)
    if count < _ALL_FINISHED:
        raise FormatError(f"expected a number of subtasks at byte {data.at - 4}, found {count}")
    states = []
    for _ in range(count):
        subtask = data.signed(4)
        if subtask >= 0:
            states += _subtask(data, operator, subtask)
    return states


def _subtask(data: DataInput, operator: Operator, subtask: int) -> list[OperatorState]:
    """Return the managed operator state of one subtask, if it has any."""
    managed = _operator_state(data, operator, subtask) if data.number(4) else None
    if data.number(4):
        _operator_state(data, operator, subtask)
    for _ in range(2):
        _skip_keyed(data, operator)
    for _ in range(2):
        if data.number(4):
            raise FormatError(
                "the checkpoint is unaligned: it holds records on their way to or from the operator "
                f"{shown(operator.label)}, which are not read; take aligned checkpoints "
                "(execution.checkpointing.unaligned.enabled: false), or a savepoint"
            )
    return [] if managed is None else [managed]


def _operator_state(data: DataInput, operator: Operator, subtask: int) -> OperatorState | None:
    kind = data.number(1)
    if kind == _NULL:
        return None
    if kind != _PARTITIONABLE:
        raise FormatError(
            f"the state of the operator {shown(operator.label)} is merged with others' in one file, which is not read; "
            "set execution.checkpointing.file-merging.enabled: false"
        )
    offsets: dict[str, tuple[int, ...]] = {}
    for _ in range(data.number(4)):
        state = data.text()
        data.taken(1)  # how it is distributed when the parallelism changes
        offsets[state] = tuple(data.number(8) for _ in range(data.number(4)))
    content, file = _stream(data, operator)
    return OperatorState(operator, subtask, offsets, content, file)


def _skip_keyed(data: DataInput, operator: Operator) -> None:
    """Skip keyed state."""
    kind = data.number(1)
    if kind == _NULL:
        return
    if kind == _INCREMENT:
        _skip_increment(data, operator)
        return
    if kind not in (_KEY_GROUPS, _SAVEPOINT_KEY_GROUPS):
        raise FormatError(
            f"the keyed state of the operator {shown(operator.label)} is of a form that is not read (kind {kind}), as "
            "that of a changelog; set state.changelog.enabled: false, or judge a savepoint"
        )
    data.taken(4)  # the first group of keys
    for _ in range(data.number(4)):
        data.taken(8)
    _stream(data, operator)
    if kind == _KEY_GROUPS:
        data.text()


def _skip_increment(data: DataInput, operator: Operator) -> None:
    """Skip incremental keyed state, as of RocksDB."""
    data.taken(8)  # of which checkpoint
    data.text()  # of which backend
    data.taken(4 + 4 + 8)  # the first group of keys, how many, and how many bytes
    _stream(data, operator)
    for _ in range(2):
        for _ in range(data.number(4)):
            data.text()
            _stream(data, operator)
    data.text()


def _stream(data: DataInput, operator: Operator) -> tuple[bytes, str | None]:
    """Return the content of a state if the metadata has it, else the name of the file with the content."""
    kind = data.number(1)
    if kind == _NULL:
        return b"", None
    if kind == _BYTES:
        data.text()
        return data.taken(data.number(4)), None
    if kind == _FILE:
        data.taken(8)
        return b"", data.text().rpartition("/")[2]
    if kind == _RELATIVE_FILE:
        path = data.text()
        data.taken(8)
        return b"", path
    raise FormatError(
        f"expected a state of the operator {shown(operator.label)} at byte {data.at - 1}, found kind {kind}"
    )


def _require_properties(properties: bytes, size: int) -> None:
    """Refuse a file whose last part, the checkpoint's properties, is incomplete."""
    ends = (len(properties) - 3 - length for length in range(1, _LAST_TEXT))
    is_whole = any(
        place > 0 and properties[place : place + 3] == b"t" + (len(properties) - place - 3).to_bytes(2, "big")
        for place in ends
    )
    if not properties.startswith(JAVA_MAGIC) or not is_whole:
        raise FormatError(f"cut off at byte {size}: the checkpoint's properties are not whole")
