"""What Flink's metadata says, as Flink itself wrote it, and what is wrong with files that say something else."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.engine.sources.flink import SINK, SOURCE, committer, metadata, split, transaction

from tieout.engine.systems.flink_checkpoint import Checkpoint, checkpoint_in
from tieout.engine.systems.flink_operators import Operator, id_of_uid
from tieout.engine.systems.flink_states import (
    COMMITTER_STATE,
    SOURCE_STATE,
    OtherStateError,
    PreparedTransaction,
    SplitPosition,
    prepared_transactions,
    reads_kafka,
    split_position,
)
from tieout.engine.systems.json_texts import FormatError

FLINK_FILES = Path(__file__).resolve().parents[2] / "flink_files"
_STATES = {
    SOURCE: {SOURCE_STATE: [split("orders", 0, 20), split("orders", 1, -2)]},
    SINK: {COMMITTER_STATE: [committer(3, transaction(11, 0))]},
}
_KEYED = b"\x0c" + struct.pack(">iiqb", 0, 1, 7, 0) + b"\0\1a"
_INCREMENT = b"\x0b" + struct.pack(">q", 3) + b"\0\1u" + struct.pack(">iiqbii", 0, 1, 9, 0, 0, 0) + b"\0\1a"


def _recorded(name: str) -> bytes:
    (path,) = (FLINK_FILES / name).rglob("_metadata")
    return path.read_bytes()


def _positions(checkpoint: Checkpoint) -> list[SplitPosition]:
    return [
        split_position(element) for state in checkpoint.states for element in state.elements(SOURCE_STATE)
    ]


def _prepared(checkpoint: Checkpoint) -> list[PreparedTransaction]:
    states = checkpoint.states
    elements = [element for state in states for element in state.elements(COMMITTER_STATE)]
    return [one for element in elements for one in prepared_transactions(element)]


def test_a_savepoint_of_flink_is_read() -> None:
    """It has keyed state beside the positions and the transaction that its sink prepared."""
    found = checkpoint_in(_recorded("savepoint"))

    assert found.number == 2
    assert [(state.operator.name, state.operator.uid, state.subtask) for state in found.states] == [
        ("output: Committer", "Sink Committer: output", 0),
        ("Source: input", "input", 0),
        ("output: Writer", "output", 0),
    ]
    assert _positions(found) == [SplitPosition("fx-plain-in", 0, 20)]
    ((checkpoint, name),) = [(one.checkpoint, one.transactional_id) for one in _prepared(found)]
    assert (checkpoint, name) == (2, "fx-plain-0-2")


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("1.18", [("", ""), ("", "")]),
        ("1.20", [("", ""), ("", "")]),
        ("2.0", [SINK, SOURCE]),
        ("2.1", [SINK, SOURCE]),
    ],
)
def test_savepoints_of_earlier_versions_of_flink_are_read(version: str, names: list[tuple[str, str]]) -> None:
    """Up to Flink 1.20 the metadata has no names: an operator is known by its id, which is a hash of its uid."""
    found = checkpoint_in(_recorded(f"{version}/savepoint"))
    topic = f"f{version.replace('.', '')}-savepoint"

    assert found.number == 2
    assert [(state.operator.name, state.operator.uid) for state in found.states[:2]] == names
    assert [state.operator.id for state in found.states] == [
        id_of_uid(uid) for uid in ("Sink Committer: output", "input", "output")
    ]
    assert _positions(found) == [SplitPosition(f"{topic}-in", 0, 30)]
    ((checkpoint, name),) = [(one.checkpoint, one.transactional_id) for one in _prepared(found)]
    assert (checkpoint, name) == (2, f"{topic}-0-2")


@pytest.mark.parametrize("uid", ["", "input", "Sink Committer: output", "a" * 15, "b" * 16, "c" * 33, "für"])
def test_an_operator_is_found_by_its_uid_where_the_metadata_has_no_names(uid: str) -> None:
    """Not by its name, which is not in the id."""
    operator = Operator(id_of_uid(uid))

    assert operator.is_called(uid)
    assert operator.is_called(operator.id)
    assert not operator.is_called(f"Source: {uid}")
    assert (operator.label, operator.key) == (operator.id, operator.id)


def test_keyed_state_is_passed_over_in_both_forms() -> None:
    """Whole state of a heap backend, and the increments of RocksDB."""
    assert _positions(checkpoint_in(_recorded("rocksdb"))) == [SplitPosition("fx-rocksdb-in", 0, 20)]
    for keyed in (_KEYED, _INCREMENT, b"\x07" + _KEYED[1:-3]):
        found = checkpoint_in(metadata(3, _STATES, rest=keyed + bytes(1 + 2 * 4)))
        assert _positions(found) == [SplitPosition("orders", 0, 20), SplitPosition("orders", 1, None)]


def test_a_state_in_a_file_beside_it_has_that_file_s_name() -> None:
    """Flink writes states of more than 20 kB into files of their own, by default."""
    files = {state.file for state in checkpoint_in(_recorded("files")).states}

    assert len(files) == 3
    assert all(file and "/" not in file for file in files)
    for version in ("1.20", "2.0"):
        of_version = checkpoint_in(_recorded(f"{version}/files")).states
        assert len({state.file for state in of_version}) == 3
    assert checkpoint_in(metadata(3, _STATES, file="x")).states[0].file == "x"


def test_what_a_file_sink_prepares_is_no_transaction() -> None:
    """The committer's state is of the same form, and holds something else."""
    found = checkpoint_in(_recorded("file_sink"))

    with pytest.raises(OtherStateError, match="another sink's state"):
        _prepared(found)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("unaligned", "unaligned: it holds records on their way .* the operator Source: input"),
        ("merged", "the operator output: Committer is merged with others' in one file"),
    ],
)
def test_what_is_not_read_is_refused_with_what_to_set(name: str, reason: str) -> None:
    """Checkpoints that Flink wrote with settings under which more than operators' states matters."""
    with pytest.raises(FormatError, match=reason) as found:
        checkpoint_in(_recorded(name))
    assert "execution.checkpointing." in str(found.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cut off at byte 0"),
        (b"v1\n{}", "expected the metadata of a Flink checkpoint"),
        (metadata(3, _STATES, version=3), "version 4 to 6 .* found version 3"),
        (metadata(3, _STATES, version=7), "version 4 to 6 .* found version 7"),
        (metadata(-3, _STATES), "a number from 0 on"),
        (metadata(3, _STATES, rest=b"\x0e" + bytes(9)), r"of a form that is not read \(kind 14\)"),
        (metadata(3, _STATES, rest=bytes(2) + b"\0\0\0\1" + bytes(4)), "unaligned"),
        (metadata(3, _STATES) + b"x", "properties are not whole"),
    ],
)
def test_another_file_is_refused_with_its_reason(content: bytes, reason: str) -> None:
    """Another beginning, an older or a later version, a changelog's state, something behind the end."""
    with pytest.raises(FormatError, match=reason):
        checkpoint_in(content)


@pytest.mark.parametrize(
    "name",
    ["savepoint", "rocksdb", "files", "1.18/savepoint", "1.20/savepoint", "1.20/files", "2.0/savepoint"],
)
def test_a_file_is_refused_wherever_it_is_cut_off(name: str) -> None:
    """Also within the checkpoint's properties, which are not read."""
    content = _recorded(name)
    for end in (*range(0, len(content) - 64, 101), *range(len(content) - 64, len(content))):
        with pytest.raises(FormatError):
            checkpoint_in(content[:end])


def test_elements_that_lead_out_of_their_state_are_refused() -> None:
    """Neither beyond its end, nor more than it has, however often one is named."""
    beyond = metadata(3, {SOURCE: {SOURCE_STATE: [split("orders", 0, 20)]}})
    place = beyond.index(text_of_state := b"SourceReaderState\0\0\0\0\1") + len(text_of_state)

    moved = checkpoint_in(beyond[:place] + struct.pack(">q", 2**40) + beyond[place + 8 :])
    with pytest.raises(FormatError, match="cut off"):
        moved.states[0].elements(SOURCE_STATE)

    many = struct.pack(">i", 3) + struct.pack(">q", 0) * 3
    often = checkpoint_in(beyond[: place - 4] + many + beyond[place + 8 :])
    with pytest.raises(FormatError, match="found more"):
        often.states[0].elements(SOURCE_STATE)
    assert not reads_kafka(often.states[0])


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        (b"", "cut off"),
        (struct.pack(">i", 1) + split("orders", 0, 20)[4:], "of version 0, found version 1"),
        (split("orders", -1, 20), "from 0 on"),
        (split("orders", 0, 2**62), "expected an offset"),
        (split("orders", 0, -4), "expected an offset"),
        (split("", 0, 2), "another source's state"),
        (split("a/b", 0, 2), "another source's state"),
        (struct.pack(">ii", 0, 4) + b"part", "cut off"),
        (split("orders", 0, 20)[:-8] + bytes(16), "another source's state|cut off"),
    ],
)
def test_a_position_of_another_form_is_refused(element: bytes, reason: str) -> None:
    """Another version, another source, numbers that Kafka does not have."""
    with pytest.raises(FormatError, match=reason):
        split_position(element)


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        (b"", "cut off"),
        (struct.pack(">i", 1) + committer(3)[4:], "of version 2, found version 1"),
        (committer(3).replace(bytes.fromhex("b91f252c"), bytes(4)), "another beginning"),
        (committer(3, transaction(11, 0))[:-1], "cut off"),
        (committer(3, transaction(-1, 0)), "another sink's state"),
        (committer(3, transaction(11, -1)), "another sink's state"),
        (committer(3, b"part-0"), "another sink's state"),
        (committer(3, versions=(2, 2)), "checkpoint of version 0 or 1, found version 2"),
        (committer(3, versions=(1, 3)), "subtask of version 1 or 2, found version 3"),
        (committer(3, versions=(0, 1)), "subtask of version 0, found version 1"),
        (committer(3, versions=(1, 0)), "subtask of version 1 or 2, found version 0"),
    ],
)
def test_what_a_committer_does_not_write_is_refused(element: bytes, reason: str) -> None:
    """Another version, another sink, a state that is cut off."""
    with pytest.raises(FormatError, match=reason):
        prepared_transactions(element)


def test_a_committer_without_transactions_has_prepared_nothing() -> None:
    """As under at-least-once; several are told one by one."""
    assert prepared_transactions(committer(3)) == []
    for versions in ((0, 0), (1, 1), (1, 2)):
        element = committer(3, transaction(11, 0), transaction(12, 1, "out-1-1"), versions=versions)
        found = prepared_transactions(element)
        assert [(one.checkpoint, one.producer_id, one.epoch) for one in found] == [(3, 11, 0), (3, 12, 1)]
