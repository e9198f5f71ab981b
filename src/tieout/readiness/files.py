"""Evidence in files: how much it is, and whether there is one behind every path, and a folder for every partition."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, get_args

from tieout.contracts import (
    ConnectOffsetsSource,
    Contract,
    FilesSource,
    FlinkCheckpointsSource,
    FlinkPreparedSource,
    JdbcSource,
    KafkaSegmentsSource,
    KafkaSource,
    KahaDbSource,
    Source,
    SparkCheckpointSource,
    SparkFilesSource,
    TridentSource,
)
from tieout.model import missing_ranges
from tieout.regular_files import pattern_of

_REMOTE: Final = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")
_SET_ASIDE: Final = ("_", ".")
_MAKES_IT_ONE: Final[dict[type, tuple[str, str]]] = {
    SparkCheckpointSource: ("offsets", "a Structured Streaming checkpoint"),
    SparkFilesSource: ("_spark_metadata", "a file sink of Structured Streaming"),
}
"""The folder in a source's folder without which that holds no evidence, and what it is of."""
_OfSystem = (
    SparkCheckpointSource
    | SparkFilesSource
    | FlinkCheckpointsSource
    | FlinkPreparedSource
    | KahaDbSource
    | TridentSource
)
_OF_SYSTEMS: Final = get_args(_OfSystem)
"""The kinds whose folders are looked at for what their systems leave in them."""


def missing_input(source: Source, base_dir: Path) -> Iterator[str]:
    """Yield each path without a file, and the partitions without a folder; remote paths are not looked at.

    A table may have no file yet: there its folder is enough. A query writes its first batch to a folder of its own.
    """
    if isinstance(source, _OF_SYSTEMS):
        yield from _missing_of_system(source, base_dir)
        return
    found: list[Path] = []
    for path in _paths(source) or ():
        if _REMOTE.match(path):
            return
        matches = _matches(path, base_dir)
        is_table = isinstance(source, FilesSource) and source.is_table
        if not any(is_table or _has_file(match) for match in matches):
            yield f"no file at {path}"
        found += matches
    if isinstance(source, KafkaSegmentsSource):
        yield from _missing_partitions(source, found)


def _missing_of_system(source: _OfSystem, base_dir: Path) -> Iterator[str]:
    """Yield that a system has not left in its folder yet what makes that evidence."""
    if isinstance(source, SparkCheckpointSource | SparkFilesSource):
        yield from _missing_folder(source, base_dir)
    elif isinstance(source, FlinkCheckpointsSource | FlinkPreparedSource):
        if not _REMOTE.match(source.path) and next((base_dir / source.path).rglob("_metadata"), None) is None:
            yield f"no checkpoint of a Flink job, a folder with _metadata, in {source.path}"
    else:
        folders = [base_dir / path for path in source.path if not _REMOTE.match(path)]
        if isinstance(source, KahaDbSource):
            pattern, description = "db-*.log", "file of a KahaDB journal, db-1.log"
        else:
            pattern, description = "**/log.*", "transaction log of a ZooKeeper server, log.1"
        if not any(next(folder.glob(pattern), None) for folder in folders):
            yield f"no {description}, in {', '.join(source.path)}"


def size_of(contract: Contract) -> int | None:
    """Return the bytes of all evidence, None unless all of it is in files of this machine."""
    named = [_paths(ledger.source) for ledger in contract.ledgers.values()]
    paths = [path for some in named for path in some or ()]
    if None in named or any(_REMOTE.match(path) for path in paths):
        return None
    return sum(_size(match) for path in paths for match in _matches(path, contract.base_dir))


def _paths(source: Source) -> tuple[str, ...] | None:
    """Return what the source's `path` names; None for one without, which is read through a connection."""
    if isinstance(source, ConnectOffsetsSource) and source.segments is not None:
        return source.segments
    if isinstance(source, JdbcSource | KafkaSource) or source.path is None:
        return None
    return (source.path,) if isinstance(source.path, str) else source.path


def _missing_folder(source: SparkCheckpointSource | SparkFilesSource, base_dir: Path) -> Iterator[str]:
    """Yield that a query has not written anything yet into the folder that its evidence is in."""
    name, kept_by = _MAKES_IT_ONE[type(source)]
    if not _REMOTE.match(source.path) and not (base_dir / source.path / name).is_dir():
        yield f"no folder {name} of {kept_by} in {source.path}"


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 for what is gone or may not be looked at."""
    inside = path.rglob("*") if path.is_dir() else (path,)
    try:
        return sum(file.stat().st_size for file in inside if file.is_file())
    except OSError:
        return 0


def _matches(path: str, base_dir: Path) -> list[Path]:
    plain = base_dir.absolute() / path
    if plain.exists():
        return [plain]
    pattern = pattern_of(path, base_dir)
    return [Path(match) for match in glob.iglob(pattern, recursive=True)]  # noqa: PTH207 - an absolute pattern


def _has_file(path: Path) -> bool:
    """Return whether the path is a file, or a folder with one anywhere below that readers do not set aside."""
    if not path.is_dir():
        return True
    for _folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(_SET_ASIDE)]
        if any(not name.startswith(_SET_ASIDE) for name in names):
            return True
    return False


def _missing_partitions(source: KafkaSegmentsSource, found: Sequence[Path]) -> Iterator[str]:
    """Yield which partitions' folders are not there, where the contract says how many there are."""
    folders = [folder for path in found if path.is_dir() for folder in (path, *path.iterdir())]
    pattern = re.compile(rf"{re.escape(source.topic)}-(\d{{1,10}})")
    numbers = {int(match[1]) for folder in folders if (match := pattern.fullmatch(folder.name))}
    missing = list(missing_ranges(numbers, source.partitions or 0))
    if numbers and missing:
        shown = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in missing)
        yield f"no folder of {source.topic}'s partition {shown}"
