"""Which folders a path leads to, and what the small files beside the segments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.engine.kafka.folders import folders_of

LOG = Path(__file__).parents[2] / "kafka_files" / "log"


@pytest.mark.parametrize("path", ["log", "log/payments-*", "log/payments-?/*.log"])
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
    assert found.folders[0].faults == ("no segment files; expected names such as 00000000000000000000.log",)


def test_a_path_without_the_topic_is_missing() -> None:
    """The path is named as the contract has it."""
    assert folders_of(["log", "nowhere-*"], LOG.parent, "refunds").missing == ("log", "nowhere-*")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("1\n0\n", "expected version 0 and 0 entries, found version 1 and 0"),
        ("0\n2\norders 0 5\n", "expected version 0 and 2 entries, found version 0 and 1"),
        ("0\n1\norders 0 five\n", "expected a topic, a partition and an offset, found orders 0 five"),
        ("", "does not read as a checkpoint"),
    ],
)
def test_a_checkpoint_that_does_not_read_is_a_fault(tmp_path: Path, content: str, reason: str) -> None:
    """A file that would say where the log starts, and cannot be read, is never taken for one that says nothing."""
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    (tmp_path / "log-start-offset-checkpoint").write_text(content)

    faults = folders_of(["."], tmp_path, "orders").folders[0].faults

    assert len(faults) == 1
    assert reason in faults[0]


def test_a_broker_that_was_stopped_while_it_cleaned_is_a_fault(tmp_path: Path) -> None:
    """Segments that are being replaced are finished by the broker's next start, and half a log until then."""
    (tmp_path / "orders-0").mkdir()
    for name in (f"{0:020}.log", f"{5:020}.log.swap"):
        (tmp_path / "orders-0" / name).touch()

    assert "start it once" in folders_of(["orders-0"], tmp_path, "orders").folders[0].faults[0]
