"""The manifest of a Structured Streaming file sink, `_spark_metadata`: which files of its folder are its output.

Each batch has a log file with one JSON object for each file that it added. Every tenth one is `N.compact`, which holds
what all up to it added. A folder may have other part files: those of batches that ended before their log was written.

Source: `FileStreamSinkLog`, `CompactibleFileStreamLog`, `SinkFileStatus` of Apache Spark 4.1 (sql/core).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from tieout.engine.limits import number_in
from tieout.engine.systems.json_texts import FormatError, json_object, offset_in

_VERSION: Final = "v1"
_NAME: Final = re.compile(r"(0|[1-9][0-9]{0,18})(\.compact)?")
_ADD, _DELETE = "add", "delete"


@dataclass(frozen=True)
class LogName:
    """The name of a log file: its batch, and whether it holds what all batches up to it added."""

    batch: int
    is_compact: bool


@dataclass(frozen=True)
class SinkFile:
    """One line of a log: a file's path as the query wrote it, its bytes, and whether it was added or deleted."""

    path: str
    size: int
    is_added: bool


def log_name(name: str) -> LogName | None:
    """Return what a log file's name says, None of another name.

    >>> log_name("9.compact"), log_name("09")
    (LogName(batch=9, is_compact=True), None)
    """
    found = _NAME.fullmatch(name)
    batch = None if found is None else number_in(found[1])
    return None if found is None or batch is None else LogName(batch, found[2] is not None)


def logged_files(content: bytes) -> tuple[SinkFile, ...]:
    r"""Return the lines of a log file.

    >>> logged_files(b'v1\n{"path":"file:///out/part%201","size":7,"action":"add"}')
    (SinkFile(path='/out/part 1', size=7, is_added=True),)

    Raises:
        FormatError: where it is of another version, cut off, or has another line than that of a file.
    """
    try:
        version, *lines = content.decode().split("\n")
    except UnicodeDecodeError:
        raise FormatError("expected UTF-8, found other bytes") from None
    if version != _VERSION:
        raise FormatError(f"expected version {_VERSION} on the first line, found {version[:20]!r}")
    # No line is empty: Spark writes a line's end before each file, and none behind the last.
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
    return SinkFile("/" + "/".join(parts), size, action == _ADD)


def needed_logs(names: Iterable[LogName]) -> list[LogName]:
    """Return the logs that list the output, in order: the last compact one and all after it.

    Without a compact one, return all.
    """
    known = list(names)
    start = max((name.batch for name in known if name.is_compact), default=-1)
    return sorted(
        (name for name in known if name.batch > start or (name.is_compact and name.batch == start)),
        key=lambda name: name.batch,
    )


def output_of(logs: Mapping[LogName, tuple[SinkFile, ...]]) -> tuple[dict[str, SinkFile], tuple[str, ...]]:
    """Return the files that are the output, by path, and the log files that are missing.

    The last compact log and all after it count; without a compact one, all from 0 on.
    """
    chosen = needed_logs(logs)
    found: dict[str, SinkFile] = {}
    for name in chosen:
        for file in logs[name]:
            if file.is_added:
                found[file.path] = file
            else:
                found.pop(file.path, None)
    begins_at = chosen[0].batch if chosen and chosen[0].is_compact else 0
    return found, tuple(_missing([name.batch for name in chosen], begins_at))


def _missing(batches: list[int], expected: int) -> Iterator[str]:
    """Yield the batches without a log before the last one that has one."""
    for batch in batches:
        if batch > expected:
            yield str(expected) if batch == expected + 1 else f"{expected} to {batch - 1}"
        expected = batch + 1


def origin_of(paths: Iterable[str], folder: str, is_there: Callable[[str], bool]) -> str:
    """Return the folder that the files were in when the manifest was written, which may have been moved since.

    It is what stands before the shortest end of a path that leads to a file in the folder; the folder itself where all
    paths begin with it, and where no file is there.

    Args:
        paths: The files' paths in the manifest.
        folder: The folder where the manifest lies now.
        is_there: Whether a path relative to that folder is a file.
    """
    known = sorted(paths)
    if all(path.startswith(f"{folder}/") for path in known):
        return folder
    for path in known:
        parts = path.split("/")
        for count in range(1, len(parts)):
            if is_there("/".join(parts[-count:])):
                return "/".join(parts[:-count])
    return folder
