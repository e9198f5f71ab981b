"""Limits on packed text files and endless lines: counts what Spark would hold in memory, before Spark reads them.

Spark holds a line as a whole, and a hundred kilobytes of a packed file may be gigabytes of one.
"""

from __future__ import annotations

import bz2
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tieout.settings import UNPACKED_FILE_MB, UNPACKED_RECORD_MB, Unpacking

PIECE: Final = 1 << 20
_SEPARATE: Final = (".bz2", ".zst")


class Watch:
    """Counts a text's bytes and those of its longest line, piece by piece, each of at most `PIECE` bytes.

    Of a packed file's text it keeps the digest: the archive has a time of its own, so two of one text may differ.
    """

    def __init__(self, limits: Unpacking, *, is_packed: bool) -> None:
        self._limits, self._is_packed = limits, is_packed
        self._total = self._line = 0
        self._text = hashlib.sha256()

    @property
    def digest(self) -> str:
        """The SHA-256 in hex of the content unpacked so far."""
        return self._text.hexdigest()

    def add(self, piece: bytes) -> str | None:
        """Add a piece of the text, and return a fault if a limit is exceeded, else None."""
        self._total += len(piece)
        if self._is_packed:
            self._text.update(piece)
        if self._is_packed and self._total > self._limits.file:
            most = self._limits.file >> 20
            return f"expected at most {most} MB unpacked, found more; {UNPACKED_FILE_MB} allows more"
        ends = [place for place in (piece.find(b"\n"), piece.find(b"\r")) if place >= 0]
        longest = self._line + (min(ends) if ends else len(piece))
        last = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        self._line = len(piece) - last - 1 if ends else longest
        if longest > self._limits.line:
            most = self._limits.line >> 20
            return (
                f"expected lines of at most {most} MB, found a longer one; {UNPACKED_RECORD_MB} allows more"
            )
        return None


def fault_of_packed(path: Path, watch: Watch) -> str | None:
    """Return what of a bzip2 or zstd file is too large, or that it is cut off; None of any other.

    What else is wrong with a file shows when it is read. Spark reads a bzip2 file that ends within the first bytes of
    a stream without an error.
    """
    if path.suffix not in _SEPARATE:
        return None
    try:
        return next((fault for piece in _pieces(path) if (fault := watch.add(piece)) is not None), None)
    except EOFError:
        return "the bzip2 file is cut off" if path.suffix == ".bz2" else None
    except OSError:
        return None


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the unpacked content, of a bzip2 file one stream after another."""
    if path.suffix == ".bz2":
        with bz2.open(path, "rb") as unpacked:
            while piece := unpacked.read(PIECE):
                yield piece
        return
    import pyarrow as pa  # noqa: PLC0415 - takes a while to load, and few files need it

    with pa.input_stream(str(path), compression="zstd") as stream:
        while piece := stream.read(PIECE):
            yield piece
