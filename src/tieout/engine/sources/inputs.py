"""The files behind a path of a contract: found, digested and looked through once before Spark reads them.

A job that meets one broken file dies as a whole, so what can be told without parsing is told here, in one
streaming pass: whether the file can be opened, whether its compression is whole, whether a Parquet or ORC
file has its ends.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from tieout.encodings import encoding_in, encoding_of, write_as_utf8
from tieout.engine.sources.copies import copy_path
from tieout.engine.sources.file_faults import (
    CHUNK,
    GZIP_WINDOW,
    LEFT_OUT,
    UNFINISHED,
    is_left_out,
    is_unfinished,
    taken_for_empty,
    unpacked,
    without_ends,
)
from tieout.engine.sources.parquet_pages import oversized_page
from tieout.engine.sources.unpacked import Watch, fault_of_packed
from tieout.engine.unlisted import answer, matched, reason_unlisted
from tieout.errors import SourceError, SourceUnreachableError
from tieout.regular_files import OF_CONTENT, State, opened_file, pattern_of, state_of
from tieout.settings import unpacking

_JARS: Final = {
    "s3a": "org.apache.hadoop:hadoop-aws in the version of Spark's Hadoop",
    "abfss": "org.apache.hadoop:hadoop-azure in the version of Spark's Hadoop",
    "gs": "the Cloud Storage connector for Hadoop",
}
"""Which jar reads what is no file system of this machine. Source: "Cloud Integration" of Spark's guide."""
_MOST_CAUSES: Final = 10

_REMOTE: Final = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")
DUMP: Final = "dump"
"""The format of texts that no Spark reader is given: `opened` decodes them."""
_PACKED: Final = (".gz", ".bz2", ".zst")
_TEXTS: Final = ("jsonl", "csv", "text")
"""The formats that Spark reads as lines of UTF-8."""
_PART: Final = re.compile(r"(?:^|/)part-\d+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_NO_NAME: Final = "expected a path in UTF-8, found other bytes; rename it"
_LINKED: Final = "name what it leads to in path, or copy it into the folder"


@dataclass(frozen=True)
class Input:
    """One file: how Spark finds it, how people call it, what it held, and why it cannot be read, if so.

    `size` counts bytes, as they lie there; `state` is what the file system said of a local file when its bytes were
    digested, which any write changes. `copy` is the file on this machine that Spark is given instead of one that it
    cannot read. `note` names another encoding than UTF-8, or a byte order mark. `text_digest` is of what a packed file
    holds.
    """

    path: str
    name: str
    digest: str
    fault: str | None = None
    size: int = 0
    copy: str | None = None
    note: str | None = None
    state: State | None = None
    text_digest: str | None = None

    @property
    def read_path(self) -> str:
        """The path that Spark is given, with its wildcards escaped."""
        return spark_path(self.copy or self.path)


@dataclass(frozen=True)
class Inputs:
    """The files of one source; `missing` are the paths of the contract that led to none."""

    files: tuple[Input, ...]
    missing: tuple[str, ...]

    @property
    def readable(self) -> tuple[Input, ...]:
        """The files that Spark may be given."""
        return tuple(file for file in self.files if file.fault is None)

    @property
    def faults(self) -> tuple[str, ...]:
        """One line for each file that cannot be read and each path without a file."""
        broken = tuple(f"{file.name}: {file.fault}" for file in self.files if file.fault is not None)
        return broken + tuple(f"{path}: no such file" for path in self.missing)

    @property
    def encodings(self) -> tuple[str, ...]:
        """One line for each readable file in another encoding than UTF-8, or with a byte order mark."""
        return tuple(f"{file.name}: {file.note}" for file in self.readable if file.note is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the files: `faults`, then `encodings`."""
        return (*self.faults, *self.encodings)

    @property
    def copies(self) -> tuple[tuple[Input, Input], ...]:
        """The local files that hold what an earlier one holds, byte for byte, packed or not, each with that one.

        Parts that one job of Spark's wrote are no copies of each other: it gives every row to one of them.
        """
        first: dict[str, Input] = {}
        told = [file for file in self.readable if file.size and file.digest.startswith(OF_CONTENT)]
        pairs = [(file, first.setdefault(file.text_digest or file.digest, file)) for file in told]
        return tuple(
            (file, original)
            for file, original in pairs
            if file is not original and (_job_of(file) is None or _job_of(file) != _job_of(original))
        )

    @property
    def size(self) -> int:
        """The bytes of all files together, as they lie there."""
        return sum(file.size for file in self.files)

    @property
    def digests(self) -> tuple[str, ...]:
        """What each file held, one line a file, in the order of the names."""
        return tuple(f"{file.digest}  {file.name}" for file in self.files)


def inputs_of(spark: SparkSession, paths: Sequence[str], base_dir: Path, file_format: str) -> Inputs:
    """Return the files that the paths, wildcards and folders lead to, each once, ordered by name."""
    found: dict[str, Input] = {}
    missing = []
    for path in paths:
        files = _remote(spark, path, file_format) if is_remote(path) else _local(path, base_dir, file_format)
        found.update((file.path, _unless_unfinished(file, path)) for file in files)
        if not files:
            missing.append(path)
    ordered = sorted(found.values(), key=lambda file: file.name)
    return Inputs(tuple(ordered), tuple(missing))


def _unless_unfinished(file: Input, path: str) -> Input:
    """Return the file, with a fault where its name says that it holds other rows, or fewer, than it is to hold."""
    is_whole = file.fault is not None or not file.size or not is_unfinished(file.name, path)
    return file if is_whole else replace(file, fault=UNFINISHED)


def is_remote(path: str) -> bool:
    """Return whether only Hadoop can read the path.

    >>> is_remote("s3a://bucket/orders"), is_remote("/data/orders")
    (True, False)
    """
    return _REMOTE.match(path) is not None


def local_path(uri: str) -> Path:
    """Return the file that a `file:` URI names.

    >>> local_path("file:///tmp/a%20b.jsonl").as_posix()
    '/tmp/a b.jsonl'
    """
    return Path(unquote(urlsplit(uri).path)) if uri.startswith("file:") else Path(uri)


def name_of(path: Path, base_dir: Path) -> str:
    r"""Return the path as people know it: relative to the contract's folder where it lies below it.

    Bytes that are no text stand as escapes, as in `a\udcff.jsonl`, for a statement is text.
    """
    full, base = path.absolute(), base_dir.absolute()
    name = str(full.relative_to(base)) if full.is_relative_to(base) else str(full)
    return name.encode("utf-8", "backslashreplace").decode()


def spark_path(path: str) -> str:
    r"""Return the path with the characters escaped that Hadoop would take for wildcards.

    >>> spark_path("/tmp/a[1].jsonl")
    '/tmp/a\\[1\\].jsonl'
    """
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", path)


def _local(path: str, base_dir: Path, file_format: str) -> list[Input]:
    plain = base_dir.absolute() / path
    pattern = pattern_of(path, base_dir)
    matches, closed = matched(plain, pattern)
    files = sorted({*closed, *(file for match in matches for file in files_in(Path(match)))})
    root = None if answer(plain.is_file, otherwise=True) else _root_of(plain, pattern)
    return inputs_in(files, base_dir, file_format, root)


def inputs_in(files: Iterable[Path], base_dir: Path, file_format: str, root: Path | None) -> list[Input]:
    """Return these local files, digested; `root` is the folder that they must lie in, None where each was named."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(
            pool.map(lambda file: _as_utf8(_inspected(file, base_dir, file_format, root), file_format), files)
        )


def files_in(path: Path) -> Iterator[Path]:
    """Give the file itself, or every file below a folder but `_…` and `.…`, which Spark too sets aside.

    A folder that cannot be looked through is given as well, to be named: it cannot be read as a file either.
    """
    if not answer(path.is_dir, otherwise=False):
        yield Path(os.path.normpath(path))
        return
    closed: list[OSError] = []
    for folder, folders, names in os.walk(path, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        yield from (Path(folder) / name for name in names if not name.startswith(("_", ".")))
        # What lies behind a link to a folder is not looked for: the link is named instead.
        yield from (Path(folder) / name for name in folders if (Path(folder) / name).is_symlink())
    yield from (Path(error.filename) for error in closed)


def _root_of(plain: Path, pattern: str) -> Path:
    """Return the folder that the contract names: the path itself, or what of a pattern stands before its wildcards."""
    if answer(plain.is_dir, otherwise=False):
        return _real(plain)
    parts = Path(pattern).parts
    fixed = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return _real(Path(*parts[:fixed]))


def _real(path: Path) -> Path:
    """Return the path with its links followed; of one that leads to itself, or where nobody may look, the path."""
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return path


def _job_of(file: Input) -> str | None:
    """Return the id of the job of Spark's that wrote the file, None where its name tells none."""
    found = _PART.search(file.name)
    return None if found is None else found[1]


def _inspected(path: Path, base_dir: Path, file_format: str, root: Path | None) -> Input:
    """Return the file, digested; `root` is the folder that it must lie in, links followed, None where it was named."""
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
                    fault = watch.take(chunk)
        size = length
        if archive is not None and fault is None and size and not archive.eof:
            fault = "the gzip file is cut off"
        if size and is_left_out(path.name):
            fault = LEFT_OUT
        fault = fault or (taken_for_empty(path.name, partial(_head, path)) if size else None)
        fault = fault or (without_ends(path, size) if file_format == "parquet" else None)
        fault = fault or (fault_of_packed(path, watch) if is_text else None)
        fault = fault or (oversized_page(path, limits) if file_format == "parquet" else None)
    except OSError as error:
        return Input(str(path), name, "unread", f"cannot be read: {reason_unlisted(path) or error.strerror}")
    text_digest = f"{OF_CONTENT}{watch.digest}" if is_packed else None
    found = f"{OF_CONTENT}{digest.hexdigest()}"
    return Input(str(path), name, found, fault, size, state=state, text_digest=text_digest)


def _is_text(path: Path) -> bool:
    """Return whether the path is UTF-8; Java is handed no other."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_utf8(file: Input, file_format: str) -> Input:
    """Return the file with a copy of its text that Spark can read, where the text is in another encoding."""
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


def _remote_head(system: Any, path: Any) -> bytes:
    stream = system.open(path)
    try:
        read = (stream.read() for _ in range(10))
        return bytes(value for value in read if value >= 0)
    finally:
        stream.close()


def _remote(spark: SparkSession, path: str, file_format: str) -> list[Input]:
    """Return the files of a path that only Hadoop can read, known by length and time, not by content."""
    try:
        return _listed(spark, path, file_format)
    except (Py4JJavaError, CapturedException) as error:
        raise _unreached(path, error) from None


def _unreached(path: str, error: Py4JJavaError | CapturedException) -> SourceError:
    """Return why a path that only Hadoop can read cannot be read, in words that say what to do."""
    causes: list[Any] = [error.java_exception if isinstance(error, Py4JJavaError) else error._origin]
    while (cause := causes[-1].getCause()) is not None and len(causes) < _MOST_CAUSES:
        causes.append(cause)
    told = [str(cause.getMessage() or "").partition("\n")[0] for cause in causes]
    scheme = path.partition("://")[0]
    if any("No FileSystem for scheme" in one or ("Class " in one and " not found" in one) for one in told):
        jar = _JARS.get(scheme, "the jar of that file system")
        return SourceError(
            f"{path}: expected a file system that Spark has a jar for, found none for {scheme}://; name {jar} in "
            "spark.jars or spark.jars.packages of Spark's configuration (SPARK_CONF_DIR/spark-defaults.conf), or copy "
            "the files to a folder"
        )
    kind = causes[-1].getClass().getSimpleName()
    if scheme.lower() in ("http", "https"):
        return SourceError(
            f"{path}: expected files that can be listed, found a web address; download them, and name the folder"
        )
    return SourceUnreachableError(
        f"{path}: expected to list it, found {kind}: {told[-1] or 'no further words'}; check its address and the "
        "rights and credentials of Spark's configuration for it"
    )


def _listed(spark: SparkSession, path: str, file_format: str) -> list[Input]:
    jvm: Any = spark._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    system = hadoop_path.getFileSystem(spark._jsc.hadoopConfiguration())
    found = []
    for match in system.globStatus(hadoop_path) or ():
        files = system.listFiles(match.getPath(), True)
        while files.hasNext():
            status = files.next()
            name, uri, size = status.getPath().getName(), status.getPath().toString(), status.getLen()
            if match.isFile() or not name.startswith(("_", ".")):
                digest = f"length:{size} modified:{status.getModificationTime()}"
                fault = LEFT_OUT if size and is_left_out(name) else None
                if size and fault is None:
                    fault = taken_for_empty(name, partial(_remote_head, system, status.getPath()))
                file = Input(uri, uri, digest, fault, size)
                head = partial(_remote_head, system, status.getPath())
                found.append(_noted(file, head) if size and fault is None and file_format in _TEXTS else file)
    return found


def _noted(file: Input, head: Callable[[], bytes]) -> Input:
    """Return the remote file with what its encoding is; the text of one that is not UTF-8 is not copied to here."""
    encoding = encoding_of(head())
    if encoding.is_utf8:
        return replace(file, note=encoding.note)
    found = f"expected UTF-8 outside this machine's own file systems, found {encoding.name}"
    return replace(file, fault=f"{found}; convert it")
