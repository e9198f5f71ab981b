"""Finds, digests and checks the files of a contract's path before Spark reads them.

One broken file fails a whole job, so everything that can be checked without parsing is checked here, in one streaming
pass: whether the file can be opened, whether its compression is complete, whether a Parquet or ORC file has its start
and end.
"""

from __future__ import annotations

import glob
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from tieout.encodings import encoding_in, write_as_utf8
from tieout.engine.sources.copies import copy_path
from tieout.engine.sources.file_faults import (
    CHUNK,
    GZIP_WINDOW,
    LEFT_OUT,
    NO_ARCHIVE,
    UNFINISHED,
    empty_archive_fault,
    is_left_out,
    is_unfinished,
    packing_mismatch,
    unpacked,
    without_ends,
)
from tieout.engine.sources.inputs import Input, Inputs
from tieout.engine.sources.left_out import skipped_in, unfinished_writes
from tieout.engine.sources.parquet_pages import oversized_page
from tieout.engine.sources.paths import is_remote, name_of
from tieout.engine.sources.remote_files import remote_inputs
from tieout.engine.sources.unpacked import Watch, fault_of_packed
from tieout.engine.unlisted import answer, matched, reason_unlisted
from tieout.regular_files import OF_CONTENT, opened_file, pattern_of, state_of
from tieout.settings import unpacking

DUMP: Final = "dump"
"""The format of texts that Spark does not read: `opened` decodes them."""
_PACKED: Final = (".gz", ".bz2", ".zst")
_TEXTS: Final = ("jsonl", "csv", "text")
"""The formats that Spark reads as lines of UTF-8."""
_NO_NAME: Final = "expected a path in UTF-8, found other bytes; rename it"
_LINKED: Final = "name what it leads to in path, or copy it into the folder"


def inputs_of(spark: SparkSession, paths: Sequence[str], base_dir: Path, file_format: str) -> Inputs:
    """Return the files of the paths, wildcards and folders, each once, ordered by name."""
    by_path: dict[str, Input] = {}
    without_file = []
    for path in paths:
        if is_remote(path):
            files = remote_inputs(spark, path, is_text=file_format in _TEXTS)
        else:
            files = _local(path, base_dir, file_format)
        by_path.update((file.path, _with_unfinished_fault(file, path)) for file in files)
        if not files:
            without_file.append(path)
    ordered = sorted(by_path.values(), key=lambda file: file.name)
    return Inputs(tuple(ordered), tuple(without_file))


def _with_unfinished_fault(file: Input, path: str) -> Input:
    """Return the file, with a fault if its name is that of an unfinished file or a backup."""
    is_whole = file.fault is not None or not file.size or not is_unfinished(file.name, path)
    return file if is_whole else replace(file, fault=UNFINISHED)


def _local(path: str, base_dir: Path, file_format: str) -> list[Input]:
    absolute = base_dir.absolute() / path
    pattern = pattern_of(path, base_dir)
    matches, closed = matched(absolute, pattern)
    files = sorted({*closed, *(file for match in matches for file in files_in(Path(match)))})
    if answer(absolute.is_file, otherwise=True):
        return inputs_in(files, base_dir, file_format, None)
    folders = [Path(match) for match in matches if answer(Path(match).is_dir, otherwise=False)]
    unread = {path: fault for folder in folders for path, fault in skipped_in(folder)}
    unread |= unfinished_writes(files, _named_root(absolute, pattern))
    inputs = inputs_in(files, base_dir, file_format, _root_of(absolute, pattern))
    return inputs + [
        Input(str(path), name_of(path, base_dir), "unread", fault) for path, fault in unread.items()
    ]


def inputs_in(files: Iterable[Path], base_dir: Path, file_format: str, root: Path | None) -> list[Input]:
    """Return these local files, digested; they must be below `root`, or None if each was named."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(
            pool.map(lambda file: _as_utf8(_inspected(file, base_dir, file_format, root), file_format), files)
        )


def files_in(path: Path) -> Iterator[Path]:
    """Yield the file itself, or every file below a folder except `_…` and `.…`, which Spark ignores too.

    A folder that cannot be listed is yielded as well, so that it is reported: it cannot be read as a file either.
    """
    if not answer(path.is_dir, otherwise=False):
        yield Path(os.path.normpath(path))
        return
    closed: list[OSError] = []
    for folder, folders, names in os.walk(path, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        yield from (Path(folder) / name for name in names if not name.startswith(("_", ".")))
        # Links to folders are not followed: the link is reported instead.
        yield from (Path(folder) / name for name in folders if (Path(folder) / name).is_symlink())
    yield from (Path(error.filename) for error in closed)


def _root_of(absolute: Path, pattern: str) -> Path:
    """Return the folder that the contract names, with links resolved."""
    return _real(_named_root(absolute, pattern))


def _named_root(absolute: Path, pattern: str) -> Path:
    """Return the folder that the contract names: the path itself, or the part of a pattern before its wildcards."""
    if answer(absolute.is_dir, otherwise=False):
        return absolute
    parts = Path(pattern).parts
    fixed = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:fixed])


def _real(path: Path) -> Path:
    """Return the path with links resolved; the path itself if it links to itself, or may not be read."""
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return path


def _inspected(path: Path, base_dir: Path, file_format: str, root: Path | None) -> Input:
    """Return the file, digested; with links resolved it must be below `root`, unless that is None."""
    name = name_of(path, base_dir)
    if root is not None and not _real(path).is_relative_to(root):
        return Input(
            str(path),
            name,
            "unread",
            f"a link out of the folder {name_of(root, _real(base_dir))}; {_LINKED}",
        )
    if not _is_text(path):
        return Input(str(path), name, "unread", _NO_NAME)
    digest = hashlib.sha256()
    archive = zlib.decompressobj(GZIP_WINDOW) if path.suffix == ".gz" else None
    limits, is_text = unpacking(), file_format in (*_TEXTS, DUMP)
    is_packed = archive is not None or (is_text and path.suffix in _PACKED)
    watch = Watch(limits, is_packed=is_packed)
    fault, length = None, 0
    try:
        state = state_of(path)
        with opened_file(path) as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                length += len(chunk)
                if archive is not None and fault is None:
                    archive, fault = unpacked(archive, chunk, watch)
                elif fault is None and is_text and path.suffix not in _PACKED:
                    fault = watch.add(chunk)
        size = length
        if archive is not None and fault is None and size and not archive.eof:
            fault = "the gzip file is cut off"
        if size and is_left_out(path.name):
            fault = LEFT_OUT
        if not size and is_text and path.suffix in _PACKED:
            fault = NO_ARCHIVE
        fault = (packing_mismatch(path.name, partial(_head, path)) if is_text else None) or fault
        fault = fault or (empty_archive_fault(path.name, partial(_head, path)) if size else None)
        fault = fault or (without_ends(path, size) if file_format == "parquet" else None)
        fault = fault or (fault_of_packed(path, watch) if is_text else None)
        fault = fault or (oversized_page(path, limits) if file_format == "parquet" else None)
    except OSError as error:
        return Input(str(path), name, "unread", f"cannot be read: {reason_unlisted(path) or error.strerror}")
    text_digest = f"{OF_CONTENT}{watch.digest}" if is_packed else None
    content_digest = f"{OF_CONTENT}{digest.hexdigest()}"
    return Input(str(path), name, content_digest, fault, size, state=state, text_digest=text_digest)


def _is_text(path: Path) -> bool:
    """Return whether the path is UTF-8; other paths are not passed to Java."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_utf8(file: Input, file_format: str) -> Input:
    """Return the file with a UTF-8 copy of its text for Spark, if it is in another encoding."""
    if file.fault is not None or not file.size or file_format not in (*_TEXTS, DUMP):
        return file
    path = Path(file.path)
    try:
        encoding = encoding_in(path)
        if encoding.is_utf8 or file_format == DUMP:
            return replace(file, note=encoding.note)
        target = copy_path(".txt")
        write_as_utf8(path, encoding, target)
    except (OSError, EOFError) as error:
        return replace(file, fault=f"cannot be read: {getattr(error, 'strerror', None) or error}")
    return replace(file, note=encoding.note, copy=str(target))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(10)
