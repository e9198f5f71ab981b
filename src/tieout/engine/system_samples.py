"""Samples what Spark, Kafka Connect, Flink and ActiveMQ keep, known by its form: checkpoints, sinks, ranges, journals.

Pure Python except for topics. The samples read what the readers of the same kinds read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from tieout.contracts.guessing import POSITION_COLUMNS, ColumnSample, LedgerSample
from tieout.contracts.sources.connect import RANGE_NAME
from tieout.engine.share_group_samples import has_share_state
from tieout.engine.systems.flink_checkpoint import MAGIC as FLINK_MAGIC
from tieout.engine.systems.flink_checkpoint import checkpoint_in
from tieout.engine.systems.flink_states import reads_kafka
from tieout.engine.systems.java_maps import MAGIC, byte_map
from tieout.engine.systems.json_texts import FormatError, exact_json, offset_in
from tieout.engine.systems.kahadb_journal import begins_journal
from tieout.engine.systems.range_names import SHADOW, range_name
from tieout.engine.systems.spark_checkpoint import OtherSourceError, planned_batch
from tieout.engine.systems.trident_state import stream_at
from tieout.engine.systems.zookeeper_log import LOG_MAGIC, Transaction, transactions_in
from tieout.engine.table_folders import is_sink_folder
from tieout.errors import SourceError
from tieout.model import POSITION_LEDGERS, Ledger
from tieout.regular_files import opened_file

WRITTEN: Final = ColumnSample("file_modified_at", "time", ("",))
"""The time of a row's file, which the readers of a sink's files add to its own columns."""
_OF_NAMES: Final = ("topic", "partition", "offset", "consumer_group")
TRANSACTIONAL: Final = "/transactional"
"""Where Trident keeps its batches in ZooKeeper by default."""
_HIDDEN: Final = ("_", ".")
_MOST_NAMES: Final = 10_000
"""How many files of a folder are sampled."""
_MOST_BYTES: Final = 1 << 24
_MOST_SOURCES: Final = 64
_HEAD: Final = 64
_OF_JOURNAL: Final = (Ledger.LOG, Ledger.COMMITTED, Ledger.DEAD_LETTERS, Ledger.FILTERED)
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_Key = tuple[bytes | None, bytes | None]


def is_checkpoint(folder: Path) -> bool:
    """Return whether a local folder is the checkpoint of a Structured Streaming query."""
    return (folder / "offsets").is_dir() and (
        (folder / "commits").is_dir() or (folder / "metadata").is_file()
    )


def checkpoint_sample(text: str, place: str) -> LedgerSample:
    """Return the sample of a checkpoint: its newest batch shows which of the query's sources is Kafka.

    Raises:
        SourceError: where none is, or no batch can be read.
    """
    folder = Path(text) / "offsets"
    batches = sorted((int(name) for name in os.listdir(folder) if _NUMBER.fullmatch(name)), reverse=True)  # noqa: PTH208
    content = b"" if not batches else _content(folder / str(batches[0]), place, text)
    for source in range(_MOST_SOURCES):
        try:
            has_offsets = bool(planned_batch(content, source).ends)
        except OtherSourceError:
            continue
        except FormatError as error:
            raise SourceError(
                f"{place} {text}: expected the offsets of a Kafka source, found none: {error}"
            ) from None
        else:
            if has_offsets:
                options = (("source", source),) if source else ()
                return _positions("spark_checkpoint", text, len(batches), options)
    raise SourceError(f"{place} {text}: expected the offsets of a Kafka source, found none")


def flink_metadata(folder: Path) -> tuple[Path, ...]:
    """Return the files of Flink's checkpoints below a local folder, the newest first."""
    found = (path for path in islice(_metadata_below(folder), _MOST_NAMES) if _begins_with(path, FLINK_MAGIC))
    return tuple(sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True))


def flink_sample(text: str, place: str, files: Sequence[Path]) -> LedgerSample:
    """Return the sample of the first operator that reads Kafka in a job's newest checkpoint; a warning names others.

    Raises:
        SourceError: where none does, or the checkpoint cannot be read.
    """
    try:
        states = checkpoint_in(_content(files[0], place, text)).states
    except FormatError as error:
        raise SourceError(f"{place} {text}: {files[0].parent.name} cannot be read: {error}") from None
    names = sorted({state.operator.key for state in states if reads_kafka(state)})
    if not names:
        raise SourceError(
            f"{place} {text}: expected an operator that reads Kafka in {files[0].parent.name}, found none"
        )
    options = (("source", names[0]),) if len(names) > 1 else ()
    warnings = (f"other operators read Kafka as well: {', '.join(names[1:])}",) if len(names) > 1 else ()
    return _positions("flink_checkpoints", text, len(files), options, "", warnings)


def server_logs(folder: Path) -> tuple[Path, ...]:
    """Return the transaction logs of a ZooKeeper server in a local folder or in its `version-2`, the oldest first."""
    place = folder / "version-2" if (folder / "version-2").is_dir() else folder
    logs = (path for path in islice(place.glob("log.*"), _MOST_NAMES) if _begins_with(path, LOG_MAGIC))
    return tuple(sorted(logs, key=lambda path: (len(path.name), path.name)))


def trident_sample(text: str, place: str, logs: Sequence[Path]) -> LedgerSample:
    """Return the sample of the Trident stream in the logs; of several the first, with a warning.

    Raises:
        SourceError: where they have none, or cannot be read.
    """
    streams: dict[str, int] = {}
    for path in logs:
        try:
            for one in transactions_in(_content(path, place, text).rstrip(b"\0"), TRANSACTIONAL):
                changes = one.changes if isinstance(one, Transaction) else ()
                for stream in filter(None, (stream_at(TRANSACTIONAL, change.path) for change in changes)):
                    streams[stream[0]] = streams.get(stream[0], 0) + 1
        except FormatError as error:
            raise SourceError(f"{place} {text}: {path.name} cannot be read: {error}") from None
    if not streams:
        raise SourceError(
            f"{place} {text}: expected a stream of Trident below {TRANSACTIONAL}, found none; another "
            "transactional.zookeeper.root goes into the contract as root"
        )
    first, *others = sorted(streams)
    warnings = (f"other streams as well: {', '.join(others[:5])}",) if others else ()
    return _positions("trident", text, sum(streams.values()), (("stream", first),), "", warnings)


def is_worker_file(path: Path) -> bool:
    """Return whether a local file begins like a Java serialisation, as a standalone worker's positions do."""
    return _begins_with(path, MAGIC)


def worker_sample(text: str, place: str) -> LedgerSample:
    """Return the sample of a standalone worker's file of positions.

    Raises:
        SourceError: where it cannot be read, or has no position.
    """
    try:
        entries = byte_map(_content(Path(text), place, text))
    except FormatError as error:
        raise SourceError(f"{place} {text}: cannot be read as a worker's positions: {error}") from None
    return positions_sample(text, place, entries)


def positions_sample(text: str, place: str, entries: Iterable[_Key], *, form: str = "") -> LedgerSample:
    """Return the sample of the first connector's positions, with their fields, and a warning about other connectors.

    Raises:
        SourceError: where none is the position of a source connector.
    """
    found = [one for key, value in entries if (one := _fields(key, value)) is not None]
    if not found:
        raise SourceError(
            f"{place} {text}: expected positions of a source connector, [connector, {{…}}] and {{…}}, found none"
        )
    connector, keys, values = found[0]
    others = sorted({one for one, _, _ in found} - {connector})
    named = (("place", keys, "filename"), ("position", values, "position"))
    options = [("connector", connector)] + [
        (option, names[0]) for option, names, usual in named if names and usual not in names
    ]
    warnings = (f"positions of other connectors as well: {', '.join(others[:5])}",) if others else ()
    return _positions("connect_offsets", text, len(found), tuple(options), form, warnings)


def positions_of_groups(text: str, records: int) -> LedgerSample:
    """Return the sample of a cluster's topic of all groups' positions; its reader picks those of one group."""
    return _positions("kafka_offsets", text, records, (), "kafka")


def range_files(folder: Path) -> tuple[Path, ...]:
    """Return the files below a local folder whose names are ranges of offsets, where there are any."""
    pattern = re.compile(RANGE_NAME)
    return tuple(path for path in _files_below(folder) if _is_range(path, pattern))


def positions_of_names(text: str, files: Sequence[Path]) -> LedgerSample:
    """Return the sample of files that are named by their offsets, as positions."""
    return _positions("connect_files", text, len(files), (), "", tuple(_strangers(Path(text), files)))


def of_named_files(text: str, rows: LedgerSample, files: Sequence[Path]) -> LedgerSample:
    """Return the sample of such files' rows, `rows`, as one of the kind that reads their names."""
    own = tuple(column for column in rows.columns if column.name not in _OF_NAMES)
    warnings = (*rows.warnings, *_strangers(Path(text), files))
    return LedgerSample(
        rows.form, text, (*own, WRITTEN), rows.rows, rows.separator, warnings, "connect_files", (), _OF_NAMES
    )


def of_sink(text: str, rows: LedgerSample) -> LedgerSample:
    """Return the sample of a sink's folder as one of the kind that reads its manifest."""
    return replace(rows, path=text, columns=(*rows.columns, WRITTEN), kind="spark_files")


def sink_files(folder: Path) -> tuple[Path, ...]:
    """Return the files below a sink's folder, partitions' folders included."""
    return tuple(_files_below(folder))


def is_journal(folder: Path, ledger: Ledger) -> bool:
    """Return whether a local folder has a file of a broker's KahaDB journal, which may be the ledger."""
    return ledger in _OF_JOURNAL and any(
        _begins_journal(path) for path in islice(folder.glob("db-*.log"), _MOST_NAMES)
    )


def system_of(path: Path, ledger: Ledger) -> str | None:
    """Return the kind that reads a local path as the ledger, None where `files` does."""
    if not path.is_dir():
        is_worker = ledger in POSITION_LEDGERS and path.is_file() and is_worker_file(path)
        return "connect_offsets" if is_worker else None
    if ledger in (Ledger.DELIVERED, Ledger.STAGED) and is_sink_folder(path):
        return "spark_files"
    kind = _kind_of_positions(path) if ledger in POSITION_LEDGERS else None
    is_named = ledger in (*POSITION_LEDGERS, Ledger.DELIVERED) and kind is None and bool(range_files(path))
    return "connect_files" if is_named else kind


def _kind_of_positions(folder: Path) -> str | None:
    """Return the kind that reads a local folder as positions, None where its form is not that of a known system."""
    if is_checkpoint(folder):
        return "spark_checkpoint"
    if flink_metadata(folder):
        return "flink_checkpoints"
    if has_share_state(folder):
        return "kafka_share_group"
    return "trident" if server_logs(folder) else None


def _positions(
    kind: str,
    text: str,
    rows: int,
    options: tuple[tuple[str, str | int], ...],
    form: str = "",
    warnings: tuple[str, ...] = (),
) -> LedgerSample:
    return LedgerSample(form, text, (), rows, ",", warnings, kind, options, POSITION_COLUMNS)


def _content(path: Path, place: str, text: str) -> bytes:
    try:
        with opened_file(path) as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise SourceError(f"{place} {text}: {path.name} cannot be read: {error.strerror}") from error


def _fields(key: bytes | None, value: bytes | None) -> tuple[str, list[str], list[str]] | None:
    """Return the connector, the fields of its source partition, and those of its offset that are numbers."""
    try:
        named = exact_json((key or b"").decode())
        offsets = exact_json((value or b"null").decode())
    except (FormatError, UnicodeDecodeError):
        return None
    if not isinstance(named, list) or len(named) != 2 or not isinstance(named[0], str):
        return None
    if not isinstance(named[1], dict):
        return None
    numbers = (
        [name for name, position in offsets.items() if offset_in(position) is not None]
        if isinstance(offsets, dict)
        else []
    )
    return named[0], list(named[1]), numbers


def _begins_with(path: Path, magic: bytes) -> bool:
    try:
        with opened_file(path) as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def _begins_journal(path: Path) -> bool:
    try:
        with opened_file(path) as file:
            return begins_journal(file.read(_HEAD))
    except OSError:
        return False


def _metadata_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if "_metadata" in names:
            yield Path(place) / "_metadata"


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield at most `_MOST_NAMES` files below the folder, without hidden ones and those that are being written."""
    yield from islice(_all_files_below(folder), _MOST_NAMES)


def _all_files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN) and name != SHADOW)
        yield from (Path(place) / name for name in sorted(names) if not name.startswith(_HIDDEN))


def _is_range(path: Path, pattern: re.Pattern[str]) -> bool:
    try:
        range_name(path.name, pattern)
    except FormatError:
        return False
    return True


def _strangers(folder: Path, files: Sequence[Path]) -> Iterator[str]:
    """Yield a warning if the folder has other files than those that are named by offsets."""
    known = set(files)
    others = [path.name for path in _files_below(folder) if path not in known]
    if others:
        yield f"{len(others)} files are not named by offsets, such as {others[0]}: the ledger does not cover with them"
