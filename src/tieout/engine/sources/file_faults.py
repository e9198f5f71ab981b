"""Finds a file's faults by its name, its first and last bytes, and its unpacked content."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tieout.engine.sources.unpacked import Watch

CHUNK: Final = 1 << 20
"""The number of bytes that are read, or unpacked, at once."""
GZIP_WINDOW: Final = 31
_BZIP2: Final = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
"""The start of a bzip2 file: the mark of a block, or of the end if it is empty."""
_UNCHECKED: Final = (".lz4", ".snappy")
_ARCHIVES: Final = (
    (b"\x1f\x8b", "gzip", ".gz"),
    (b"\x28\xb5\x2f\xfd", "zstd", ".zst"),
    (b"PK\x03\x04", "zip", ""),
    (b"\xfd7zXZ\x00", "xz", ""),
    (b"7z\xbc\xaf", "7z", ""),
    (b"\x04\x22\x4d\x18", "lz4", ""),
)
"""The first bytes of packed files, their names, and the suffix with which Spark unpacks them."""
LEFT_OUT: Final = (
    "Spark leaves out files of such a name; expected one without a leading _ or ., or final ._COPYING_"
)


_UNFINISHED: Final = (
    *(".tmp", ".temp", ".part", ".partial", ".inprogress", ".pending", ".crdownload", ".filepart"),
    *(".bak", ".swp", "~"),
)
"""Suffixes of files that are being written, and of editors' backups."""
UNFINISHED: Final = (
    "files of such a name are being written, or were put aside: rename it once it is whole, take it away, or end path "
    "as its name ends"
)


def is_unfinished(name: str, path: str) -> bool:
    """Return whether a file of a path has the name of an unfinished file or a backup, unless the path itself has it.

    >>> [is_unfinished(name, "out/*") for name in ("out/a.jsonl", "out/a.jsonl.tmp", "out/a.jsonl~")]
    [False, True, True]
    >>> is_unfinished("out/a.jsonl.tmp", "out/*.tmp")
    False
    """
    return name.endswith(_UNFINISHED) and not path.endswith(_UNFINISHED)


def is_left_out(name: str) -> bool:
    """Return whether Spark silently ignores a file of this name, even if its path is given.

    >>> [is_left_out(name) for name in ("_late.jsonl", ".late.jsonl", "x._COPYING_", "late_.jsonl", "_metadata")]
    [True, True, True, False, False]
    """
    if name.startswith(("_metadata", "_common_metadata")):
        return False
    return name.startswith(".") or name.endswith("._COPYING_") or (name.startswith("_") and "=" not in name)


def unpacked(archive: Any, chunk: bytes, watch: Watch) -> tuple[Any, str | None]:
    """Check the chunk as the archive's next part; a gzip file may consist of several concatenated members."""
    try:
        while chunk:
            if archive.eof:
                archive = zlib.decompressobj(GZIP_WINDOW)
            fault = watch.add(archive.decompress(chunk, CHUNK))
            while fault is None and archive.unconsumed_tail:
                fault = watch.add(archive.decompress(archive.unconsumed_tail, CHUNK))
            if fault is not None:
                return archive, fault
            chunk = archive.unused_data
    except zlib.error:
        return archive, "the gzip file is corrupt"
    return archive, None


NO_ARCHIVE: Final = "expected a packed file, found one without a byte: even of no rows a packed file has some"


def empty_archive_fault(name: str, head: Callable[[], bytes]) -> str | None:
    """Return the fault of a packed file that Spark may read as empty, without an error.

    >>> empty_archive_fault("a.jsonl.bz2", lambda: b'{"id": 1}')
    'not a bzip2 file, which its name says it is'
    >>> empty_archive_fault("a.jsonl.gz", lambda: b"") is None
    True
    """
    ending = next((ending for ending in (".bz2", *_UNCHECKED) if name.endswith(ending)), None)
    if ending in _UNCHECKED:
        return (
            f"a {ending} file is not told apart from a damaged one: expected gz, bz2, zst or no compression"
        )
    if ending is not None and not _BZIP2.match(head()):
        return "not a bzip2 file, which its name says it is"
    return None


def packing_mismatch(name: str, head: Callable[[], bytes]) -> str | None:
    r"""Return the fault of a text file that is packed without the suffix, or has the suffix without being packed.

    >>> packing_mismatch("a.jsonl", lambda: b"PK\x03\x04")
    'a zip file; expected text, or text packed as gz, bz2 or zst: unpack it'
    >>> packing_mismatch("a.jsonl", lambda: b"{}"), packing_mismatch("a.gz", lambda: b"")
    (None, None)
    """
    first = head()
    kind, ending = next(
        ((kind, ending) for begins, kind, ending in _ARCHIVES if first.startswith(begins)), ("", "")
    )
    named_kind = next(
        (archive for _, archive, suffix in _ARCHIVES if suffix and name.lower().endswith(suffix)), ""
    )
    if named_kind and first and kind != named_kind:
        return f"not a {named_kind} file, which its name says it is"
    if kind and kind != named_kind:
        advice = f"let its name end in {ending}" if ending else "unpack it"
        article = "an" if kind in ("xz", "lz4") else "a"
        return f"{article} {kind} file; expected text, or text packed as gz, bz2 or zst: {advice}"
    return None


def without_ends(path: Path, size: int) -> str | None:
    """Return the fault of a Parquet file that lacks the magic bytes at its start or end."""
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(max(0, size - 4))
        tail = file.read(4)
    if head == tail == b"PAR1" and size >= 12:
        return None
    return (
        "the Parquet file is cut off or corrupt" if head == b"PAR1" else "it is no Parquet file, or corrupt"
    )
