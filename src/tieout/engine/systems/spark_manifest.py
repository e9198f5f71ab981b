"""Parses the manifest of a Structured Streaming file sink, `_spark_metadata`, which lists the sink's output files.

Each batch has a log file with one JSON object per added file. Every tenth one is `N.compact`, which contains the files
of all batches up to it. A folder may have other part files, of batches that failed before their log was written.

Source: `FileStreamSinkLog`, `CompactibleFileStreamLog`, `SinkFileStatus` of Apache Spark 4.1 (sql/core).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from tieout.engine.limits import is_time, number_in
from tieout.engine.systems.json_texts import FormatError, json_object, offset_in

_VERSION: Final = "v1"
_NAME: Final = re.compile(r"(0|[1-9][0-9]{0,18})(\.compact)?")
_ADD, _DELETE = "add", "delete"


@dataclass(frozen=True)
class LogName:
    """The name of a log file: its batch, and whether it contains the files of all batches up to it."""

    batch: int
    is_compact: bool


@dataclass(frozen=True)
class SinkFile:
    """One line of a log: a file's path as written by the query, its size in bytes, and the action.

    `modified_millis` is when the file was written, in milliseconds since 1970, None if the line does not say it.
    """

    path: str
    size: int
    is_added: bool
    modified_millis: int | None = None


def log_name(name: str) -> LogName | None:
    """Return the parsed name of a log file, None for another name.

    >>> log_name("9.compact"), log_name("09")
    (LogName(batch=9, is_compact=True), None)
    """
    match = _NAME.fullmatch(name)
    batch = None if match is None else number_in(match[1])
    return None if match is None or batch is None else LogName(batch, match[2] is not None)


def logged_files(content: bytes) -> tuple[SinkFile, ...]:
    r"""Return the lines of a log file.

    >>> logged_files(b'v1\n{"path":"file:///out/part%201","size":7,"action":"add"}')
    (SinkFile(path='/out/part 1', size=7, is_added=True, modified_millis=None),)

    Raises:
        FormatError: if it is of another version, cut off, or has a line that is not a file's.
    """
    try:
        version, *lines = content.decode().split("\n")
    except UnicodeDecodeError:
        raise FormatError("expected UTF-8, found other bytes") from None
    if version != _VERSION:
        raise FormatError(f"expected version {_VERSION} on the first line, found {version[:20]!r}")
    # No line is empty: Spark writes a newline before each file, and none after the last.
    return tuple(_sink_file(json_object(line)) for line in lines)


def _sink_file(fields: Mapping[str, object]) -> SinkFile:
    path, size, action = fields.get("path"), offset_in(fields.get("size")), fields.get("action")
    if not isinstance(path, str) or size is None or action not in (_ADD, _DELETE):
        raise FormatError("expected path, size and action of a file, found a line without one of them")
    if fields.get("isDir") is True:
        raise FormatError("expected a file, found a folder")
    try:
        decoded = unquote(urlsplit(path).path, errors="strict")
    except ValueError:
        raise FormatError("expected a path as a URI, found none") from None
    parts = [part for part in decoded.split("/") if part]
    if not parts or "\0" in decoded or any(part in (".", "..") for part in parts):
        raise FormatError("expected the path of a file, found one that leads elsewhere")
    millis = offset_in(fields.get("modificationTime"))
    return SinkFile(
        "/" + "/".join(parts), size, action == _ADD, millis if millis and is_time(millis) else None
    )


def needed_logs(names: Iterable[LogName]) -> list[LogName]:
    """Return the logs that list the output, in order: the last compact one and all after it.

    Without a compact one, return all.
    """
    logs = list(names)
    start = max((name.batch for name in logs if name.is_compact), default=-1)
    return sorted(
        (name for name in logs if name.batch > start or (name.is_compact and name.batch == start)),
        key=lambda name: name.batch,
    )


def output_of(logs: Mapping[LogName, tuple[SinkFile, ...]]) -> tuple[dict[str, SinkFile], tuple[str, ...]]:
    """Return the output files by path, and the missing log files.

    The last compact log and all after it count; without a compact one, all from 0 on.
    """
    chosen = needed_logs(logs)
    files: dict[str, SinkFile] = {}
    for name in chosen:
        for file in logs[name]:
            if file.is_added:
                files[file.path] = file
            else:
                files.pop(file.path, None)
    begins_at = chosen[0].batch if chosen and chosen[0].is_compact else 0
    return files, tuple(_missing([name.batch for name in chosen], begins_at))


def _missing(batches: list[int], expected: int) -> Iterator[str]:
    """Yield the batches without a log before the last batch with a log."""
    for batch in batches:
        if batch > expected:
            yield str(expected) if batch == expected + 1 else f"{expected} to {batch - 1}"
        expected = batch + 1


def origin_of(paths: Iterable[str], folder: str, exists: Callable[[str], bool]) -> str:
    """Return the folder of the files when the manifest was written; it may have been moved since.

    It is the part of a path before its shortest suffix that is a file in the folder; the folder itself if all paths
    start with it, or no file exists.

    Args:
        paths: The files' paths in the manifest.
        folder: The current folder of the manifest.
        exists: Whether a path relative to that folder is a file.
    """
    ordered = sorted(paths)
    if all(path.startswith(f"{folder}/") for path in ordered):
        return folder
    for path in ordered:
        parts = path.split("/")
        for count in range(1, len(parts)):
            if exists("/".join(parts[-count:])):
                return "/".join(parts[:-count])
    return folder
