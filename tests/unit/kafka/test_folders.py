"""Which folders a path leads to, and what the small files beside the segments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.engine.kafka.folders import folders_of

LOG = Path(__file__).parents[2] / "kafka_files" / "log"


@pytest.mark.parametrize("path", ["log", "log/payments-*", "log/payments-?/*.log", "**/*.log"])
def test_a_log_directory_partition_folders_and_segments_lead_to_the_same(path: str) -> None:
    """However they are named, the topic's partitions are found, with their segments in the order of offsets."""
    found = folders_of([path], LOG.parent, "payments")

    assert [(folder.partition, len(folder.segments)) for folder in found.folders] == [(0, 4), (1, 1)]
    assert [int(file.stem) for file in found.folders[0].segments] == [0, 15, 31, 47]
    assert (found.folders[1].checkpointed_start, found.folders[0].high_watermark) == (2, 48)
    assert (found.folders[0].leader_epochs, found.folders[0].faults) == (((0, 0),), ())


def test_other_topics_are_passed_over_whatever_their_names(tmp_path: Path) -> None:
    """A name that begins alike, a folder on its way out, and a file are not the topic's partitions."""
    for name in (
        "orders-0",
        "orders-1-0",
        "orders-x",
        "orders-0.3a-delete",
        "orders-1.9b-future",
        "my-orders-0",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "orders-7").write_text("no folder")

    found = folders_of([str(tmp_path)], tmp_path, "orders")

    assert [folder.path.name for folder in found.folders] == ["orders-0"]
    (fault,) = found.folders[0].faults
    assert fault.startswith("no segment files; expected names such as 00000000000000000000.log")


def test_a_path_without_the_topic_is_missing() -> None:
    """The path is named as the contract has it."""
    assert folders_of(["log", "nowhere-*"], LOG.parent, "refunds").missing == ("log", "nowhere-*")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            "1\n0\n",
            "expected version 0 and the number of its entries, found version 1 and the number 0 above 0 ",
        ),
        ("0\n2\norders 0 5\n", "found version 0 and the number 2 above 1 entries"),
        ("0\n1\norders 0 five\n", "expected a topic, a partition and an offset, found orders 0 five"),
        ("0\n1\norders 0\n", "expected a topic, a partition and an offset, found orders 0"),
        ("0\nmany\norders 0 5\n", "found version 0 and the number many above 1 entries"),
        ("7\n", "found version 7 and the number none above 0 entries"),
        ("\n", "found version '' and the number none above 0 entries"),
        ("\0" * 24, "found version '\\x00"),
        (b"\xff\xfe0\0", "expected the text of a checkpoint, found: bytes that are no UTF-8"),
    ],
)
def test_a_checkpoint_that_does_not_read_is_a_fault(
    tmp_path: Path, content: str | bytes, reason: str
) -> None:
    """A file that would say where the log starts, and cannot be read, is never taken for one that says nothing."""
    folder = _partition(tmp_path)
    path = tmp_path / "log-start-offset-checkpoint"
    path.write_bytes(content.encode() if isinstance(content, str) else content)

    faults = folders_of(["."], tmp_path, "orders").folders[0].faults

    assert folder.exists()
    assert len(faults) == 1
    assert faults[0].startswith("log-start-offset-checkpoint: expected")
    assert reason in faults[0]


def _partition(log: Path, *names: str) -> Path:
    folder = log / "orders-0"
    folder.mkdir()
    for name in names or (f"{0:020}.log",):
        (folder / name).touch()
    return folder


_CHECKPOINTS = (
    *("log-start-offset-checkpoint", "replication-offset-checkpoint", "recovery-point-offset-checkpoint"),
    *("cleaner-offset-checkpoint", "orders-0/leader-epoch-checkpoint"),
)


@pytest.mark.parametrize("content", ["", "0\n", "0", "0\n0\n"], ids=["empty", "version", "cut", "none"])
@pytest.mark.parametrize("name", _CHECKPOINTS)
def test_a_checkpoint_without_an_entry_says_nothing(tmp_path: Path, name: str, content: str) -> None:
    """A broker creates each empty and writes it half a minute later; it reads such a file as no entries itself."""
    _partition(tmp_path)
    (tmp_path / name).write_text(content)

    (folder,) = folders_of(["."], tmp_path, "orders").folders

    assert (folder.faults, folder.notes) == ((), ())
    assert (folder.checkpointed_start, folder.high_watermark, folder.leader_epochs) == (None, None, ())


@pytest.mark.parametrize(
    "name",
    [
        f"{0:020}.log.deleted",
        f"{0:020}.log.cleaned",
        f"{0:020}.index.swap",
        f"{0:020}.timeindex.cleaned",
        *(f"{5:020}.{ending}" for ending in ("index", "timeindex", "snapshot", "txnindex")),
        "leader-epoch-checkpoint.tmp",
        "partition.metadata.tmp",
        ".kafka_cleanshutdown",
        "remote_log_snapshot",
    ],
)
def test_files_on_their_way_in_or_out_are_no_segments(tmp_path: Path, name: str) -> None:
    """Of a log that is rolled, cleaned or cut off, only what ends with `.log` is the log."""
    _partition(tmp_path, f"{5:020}.log", name)
    (tmp_path / ".kafka_cleanshutdown").touch()
    (tmp_path / "meta.properties").write_text("")

    (folder,) = folders_of(["."], tmp_path, "orders").folders

    assert [file.name for file in folder.segments] == [f"{5:020}.log"]
    assert (folder.faults, folder.notes) == ((), ())


def test_a_topic_s_id_is_unknown_where_its_file_is_empty_and_a_fault_where_it_is_another(
    tmp_path: Path,
) -> None:
    """An unclean stop may leave the file empty, or zeros in it; anything else is no such file."""
    folder = _partition(tmp_path)
    found = []
    for content in ("", "\0\0", "version: 0\ntopic_id: abc\n", "version: 0\n"):
        (folder / "partition.metadata").write_text(content)
        (described,) = folders_of(["."], tmp_path, "orders").folders
        found.append((described.topic_id, described.notes != (), described.faults != ()))

    assert found == [
        (None, True, False),
        (None, True, False),
        ("abc", False, False),
        (None, False, True),
    ]


def test_segments_that_the_checkpoint_expects_and_that_are_not_there_are_a_fault(tmp_path: Path) -> None:
    """They are in remote storage, or were not copied: nothing below the first segment is known to be deleted."""
    _partition(tmp_path, f"{40:020}.log")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 7\n")

    (folder,) = folders_of(["."], tmp_path, "orders").folders

    assert "the log starts at offset 7, the first segment is 00000000000000000040.log" in folder.faults[0]


@pytest.mark.parametrize("ending", ["delete", "future", "stray"])
def test_a_folder_on_its_way_is_no_partition(tmp_path: Path, ending: str) -> None:
    """What is deleted, moved between disks or of no known topic is not the topic's log."""
    name = f"orders-0.0123456789abcdef0123456789abcdef-{ending}"
    (tmp_path / name).mkdir()
    (tmp_path / name / f"{0:020}.log").touch()

    assert folders_of([".", name], tmp_path, "orders").missing == (".", name)


def test_a_broker_that_was_stopped_while_it_cleaned_is_a_fault(tmp_path: Path) -> None:
    """Segments that are being replaced are finished by the broker's next start, and half a log until then."""
    (tmp_path / "orders-0").mkdir()
    for name in (f"{0:020}.log", f"{5:020}.log.swap"):
        (tmp_path / "orders-0" / name).touch()

    assert "start it once" in folders_of(["orders-0"], tmp_path, "orders").folders[0].faults[0]
