"""Where a broker keeps a partition's log, and what the small files beside the segments say of it.

A broker's log directory has a folder `<topic>-<partition>` for each partition that it holds, and checkpoint files for
all of them together. A segment is named by its first offset; files with other endings are indexes, or on their way in
or out.

Source: `LogFileUtils`, `CheckpointFile` and `PartitionMetadataFile` of Apache Kafka 4.3 (storage, server-common).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tieout.engine.limits import LARGEST, LARGEST_INT, number_in, shown
from tieout.engine.unlisted import matched, reason_unlisted
from tieout.regular_files import pattern_of, read_bytes

_PARTITION: Final = re.compile(r"^(?P<topic>.+)-(?P<partition>\d+)$")
_SEGMENT: Final = re.compile(r"^\d{20}\.log$")
_SWAPPED: Final = re.compile(r"^\d{20}\.log\.swap$")
LOG_START: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK: Final = "replication-offset-checkpoint"
_METADATA: Final = "partition.metadata"
_LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
_TOPIC_ID: Final = re.compile(r"^topic_id: (\S+)$", re.MULTILINE)
_SHOWN: Final = 40
_NO_SEGMENTS: Final = (
    "no segment files; expected names such as 00000000000000000000.log: copy the folder again, as the broker may have "
    "deleted them meanwhile"
)


@dataclass(frozen=True)
class PartitionFolder:
    """One partition's folder, its segments in the order of their offsets, and what the files beside them say.

    `faults` are reasons why the log is not all there, `leader_epochs` the epochs with their first offsets, `notes` what
    else the files lack.
    """

    path: Path
    topic: str
    partition: int
    segments: tuple[Path, ...]
    topic_id: str | None
    checkpointed_start: int | None
    high_watermark: int | None
    leader_epochs: tuple[tuple[int, int], ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Folders:
    """The partition folders of one topic behind the paths, the paths that lead to none, and folders of no partition."""

    folders: tuple[PartitionFolder, ...]
    missing: tuple[str, ...]
    faults: tuple[str, ...] = ()


def folders_of(paths: Sequence[str], base_dir: Path, topic: str) -> Folders:
    """Return the topic's partition folders behind the paths, ordered by partition.

    A path is a broker's log directory, a partition's folder or segment files, with wildcards or without; a relative one
    starts at `base_dir`. Folders of other topics are passed over.
    """
    segments: dict[Path, set[Path]] = {}
    missing = []
    closed: set[Path] = set()
    for path in paths:
        found = list(_segments_behind(path, base_dir, topic, closed))
        for folder, files in found:
            segments.setdefault(folder, set()).update(files)
        if not found:
            missing.append(path)
    numbered = [folder for folder in segments if _number_of(folder) is not None]
    folders = (_described(folder, sorted(segments[folder])) for folder in numbered)
    faults = [
        f"{shown(folder.name)}: expected a partition's number up to {LARGEST_INT}, found a larger one"
        for folder in sorted(segments.keys() - set(numbered))
    ]
    faults += [
        f"{shown(str(folder))}: cannot be read: {reason_unlisted(folder)}" for folder in sorted(closed)
    ]
    ordered = sorted(folders, key=lambda folder: (folder.partition, folder.path))
    return Folders(tuple(ordered), tuple(missing), tuple(faults))


def base_offset_of(segment: Path) -> int:
    """Return the offset that a segment file is named by.

    >>> base_offset_of(Path("orders-0/00000000000000000047.log"))
    47
    """
    return int(segment.stem)


def _number_of(folder: Path) -> int | None:
    """Return the number of the partition that a folder is named by, None where no partition has it."""
    return number_in(folder.name.rpartition("-")[2], LARGEST_INT)


def _segments_behind(
    path: str, base_dir: Path, topic: str, closed: set[Path]
) -> Iterator[tuple[Path, Iterable[Path]]]:
    """Give each of the topic's folders that the path leads to, with the segments that are meant.

    Folders on the way that cannot be looked through are added to `closed`.
    """
    pattern = pattern_of(path, base_dir)
    matches, unreadable = matched(base_dir.absolute() / path, pattern)
    closed.update(unreadable)
    for match in map(Path, sorted(matches)):
        if match.is_file():
            if _SEGMENT.match(match.name) and _is_of(match.parent, topic):
                yield match.parent, (match,)
        elif _is_of(match, topic):
            yield match, _segments_in(match)
        elif reason_unlisted(match) is not None:
            closed.add(match)
        else:
            yield from (
                (child, _segments_in(child))
                for child in match.glob(f"{glob.escape(topic)}-*")
                if _is_of(child, topic)
            )


def _is_of(folder: Path, topic: str) -> bool:
    found = _PARTITION.match(folder.name)
    return found is not None and found["topic"] == topic and folder.is_dir()


def _segments_in(folder: Path) -> list[Path]:
    return [folder / name for name in _names_in(folder) if _SEGMENT.match(name)]


def _names_in(folder: Path) -> list[str]:
    """Return the names in the folder; none where the broker takes it away meanwhile, or nobody may look into it."""
    try:
        return sorted(file.name for file in folder.iterdir())
    except OSError:
        return []


def _described(folder: Path, segments: Sequence[Path]) -> PartitionFolder:
    partition = _number_of(folder) or 0
    topic = folder.name.rpartition("-")[0]
    faults: list[str] = []
    notes: list[str] = []
    beyond = [segment for segment in segments if base_offset_of(segment) > LARGEST]
    faults.extend(f"{segment.name}: expected to be named by an offset below 2^62" for segment in beyond)
    segments = [segment for segment in segments if segment not in beyond]
    swapped = [name for name in _names_in(folder) if _SWAPPED.match(name)]
    if swapped:
        faults.append(
            f"{swapped[0]}: expected segments, found one that is to replace others: the broker was stopped or copied "
            "meanwhile; copy the folder again, where the broker is stopped start it once before"
        )
    if not segments:
        faults.append(_NO_SEGMENTS)
    place = (topic, partition)
    start = _checkpoint(folder.parent / LOG_START, faults).get(place)
    watermarks = _checkpoint(folder.parent / HIGH_WATERMARK, faults)
    if start is not None and segments and start < base_offset_of(segments[0]):
        faults.append(
            f"{LOG_START} says that the log starts at offset {start}, the first segment is "
            f"{segments[0].name}: expected the segments before it, found none; they are missing, in remote storage, or "
            "were deleted within the last minute"
        )
    return PartitionFolder(
        path=folder,
        topic=topic,
        partition=partition,
        segments=tuple(segments),
        topic_id=_topic_id(folder / _METADATA, faults, notes),
        checkpointed_start=start,
        high_watermark=watermarks.get(place),
        leader_epochs=tuple(_leader_epochs(folder / _LEADER_EPOCHS, faults)),
        faults=tuple(faults),
        notes=tuple(notes),
    )


def _entries(file: Path, faults: list[str]) -> list[list[str]]:
    """Return the words of each entry of a checkpoint file; none where there is no file, or nothing in it yet.

    The file has a version, which is 0, the number of its entries, and an entry per line. A broker creates it empty and
    writes it at the first interval; until then it reads it as no entries, as it does a file that has the version alone.
    """
    try:
        lines = read_bytes(file).decode("utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        found = error.strerror if isinstance(error, OSError) else "bytes that are no UTF-8"
        faults.append(f"{file.name}: expected the text of a checkpoint, found: {found}; copy it again")
        return []
    if not lines or lines == ["0"]:
        return []
    version, count, entries = lines[0], lines[1] if len(lines) > 1 else "none", lines[2:]
    if version != "0" or count != str(len(entries)):
        faults.append(
            f"{file.name}: expected version 0 and the number of its entries, found version {_shown(version)} and "
            f"the number {_shown(count)} above {len(entries)} entries; copy it again, when the broker is not writing it"
        )
        return []
    return [line.split() for line in entries]


def _shown(text: str) -> str:
    return text if text.isprintable() and text.strip() and len(text) <= _SHOWN else repr(text[:_SHOWN])


def _checkpoint(file: Path, faults: list[str]) -> Mapping[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for words in _entries(file, faults):
        partition, offset = map(number_in, words[1:]) if len(words) == 3 else (None, None)
        if partition is None or offset is None:
            faults.append(
                f"{file.name}: expected a topic, a partition and an offset, found {shown(' '.join(words))}"
            )
        else:
            found[words[0], partition] = offset
    return found


def _leader_epochs(file: Path, faults: list[str]) -> Iterator[tuple[int, int]]:
    for words in _entries(file, faults):
        epoch, offset = map(number_in, words) if len(words) == 2 else (None, None)
        if epoch is None or offset is None:
            faults.append(f"{file.name}: expected an epoch and an offset, found {shown(' '.join(words))}")
        else:
            yield epoch, offset


def _topic_id(file: Path, faults: list[str], notes: list[str]) -> str | None:
    """Return the id that tells a topic from another of its name that was deleted; None where no file says it.

    Brokers before Kafka 2.8 have no such file, and one that was stopped at the wrong moment may have an empty one.
    """
    try:
        text = read_bytes(file).decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        text = str(error.strerror) if isinstance(error, OSError) else "bytes that are no UTF-8"
    if not text.strip("\0 \r\n"):
        notes.append(f"{file.name} is empty: the topic's id is not known")
        return None
    found = _TOPIC_ID.search(text)
    if found is None:
        faults.append(f"{file.name}: expected lines `version: 0` and `topic_id: …`, found {_shown(text)}")
    return found[1] if found else None
