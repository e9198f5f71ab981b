"""The unpacked sizes of a Parquet file's pages, read from their headers.

A reader takes the memory that a page's header asks for, and unpacks it whole. The headers are structs in Thrift's
compact protocol, one before each page, so all of them are read without unpacking any.

Source: parquet.thrift of apache/parquet-format (`PageHeader`), thrift-compact-protocol.md of apache/thrift.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from tieout.engine.sources.parquet_repeats import Repeated, fault_of_rows, fault_of_values
from tieout.settings import UNPACKED_RECORD_MB, Unpacking

_FOOTER: Final = (
    "expected a footer that can be read, found none, so that what its pages unpack to is not known: damaged, "
    "encrypted, or with a type of more than 100 levels; write the file anew"
)
_HEADER: Final = 1 << 10
"""Most headers are much shorter; a larger one is read again with more."""
_LARGEST_HEADER: Final = 16 << 20
"""A header has the least and the largest value of its page."""
_KIND, _UNPACKED, _PACKED = 1, 2, 3
"""The fields of a header with the kind and the bytes of its page."""
_DICTIONARY: Final = 2
"""The kind of page that has a column's values once each."""
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_INTS: Final = (4, 5, 6)
_DEEPEST: Final = 8


def oversized_page(path: Path, limits: Unpacking) -> str | None:
    """Return a fault: a page beyond the limit, an invalid page header, or rows that are too large; None if none.

    A page that cannot be read here has an unknown size unpacked, so it is a fault. So is a footer that pyarrow cannot
    read and Spark can, such as one with a type of more than a hundred levels: its pages were not checked.
    """
    import pyarrow as pa  # noqa: PLC0415 - takes a while to load
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        footer = pq.read_metadata(path)
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        if fault := fault_of_rows(sum(group.num_rows for group in groups), path.stat().st_size):
            return fault
        repeated = []
        with path.open("rb") as file:
            for number, group in enumerate(groups):
                for column in (group.column(place) for place in range(footer.num_columns)):
                    dictionary, fault = _dictionary_of(file, column, limits.record)
                    if fault is not None:
                        return f"column {column.path_in_schema}: {fault}"
                    repeated.append(Repeated(number, column.path_in_schema, dictionary, column.num_values))
        return fault_of_values(path, repeated, limits.file)
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError):
        return _FOOTER


def _dictionary_of(file: IO[bytes], column: Any, most: int) -> tuple[int, str | None]:
    """Return the bytes of the column's dictionary, and the fault of its pages, if any.

    `column` is its part of the footer.
    """
    # A file begins with four letters: some writers put 0 where there is no dictionary.
    starts = (column.dictionary_page_offset, column.data_page_offset)
    start = min((place for place in starts if place), default=0)
    try:
        dictionary = 0
        for kind, size in _pages(file, start, start + column.total_compressed_size):
            if not 0 <= size <= most:
                return 0, (
                    f"expected pages of at most {most >> 20} MB unpacked, found a larger one; "
                    f"{UNPACKED_RECORD_MB} allows more"
                )
            dictionary += size if kind == _DICTIONARY else 0
    except (ValueError, IndexError):
        return 0, (
            "expected a page's header, found what is none, so that what the page unpacks to is not known: "
            "damaged or encrypted; write the file anew"
        )
    return dictionary, None


def _pages(file: IO[bytes], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the kind and the unpacked bytes of each page of a column."""
    while start < end:
        size = _HEADER
        while True:
            file.seek(start)
            reader = _Compact(file.read(size))
            try:
                fields = reader.ints()
            except IndexError:
                if size >= _LARGEST_HEADER:
                    raise
                size *= 16
                continue
            break
        yield fields.get(_KIND, 0), fields[_UNPACKED]
        if fields[_PACKED] < 0:
            raise ValueError("expected a page's size, found a negative one")
        start += reader.position + fields[_PACKED]


class _Compact:
    """Reads a struct in the compact protocol and skips its fields."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def ints(self) -> dict[int, int]:
        """Return the struct's whole numbers by field number.

        Raises:
            IndexError: where the data ends before it.
            ValueError: where it is none.
        """
        found, field = {}, 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            if head & 0x0F in _INTS:
                found[field] = self._zigzag()
            else:
                self._skip(head & 0x0F, _DEEPEST)
        if not {_UNPACKED, _PACKED} <= found.keys():
            raise ValueError("expected the header of a page, found another struct")
        return found

    def _byte(self) -> int:
        byte = self._data[self.position]
        self.position += 1
        return byte

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number
            if shift > 63:
                raise ValueError("expected a number of at most 10 bytes")

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _skip(self, kind: int, depth: int) -> None:
        if depth == 0:
            raise ValueError("expected a header of few levels")
        if kind in _INTS:
            self._varint()
        elif kind == _BYTE:
            self.position += 1
        elif kind == _DOUBLE:
            self.position += 8
        elif kind == _BINARY:
            length = self._varint()
            self.position += length
        elif kind == _STRUCT:
            while head := self._byte():
                if not head >> 4:
                    self._zigzag()
                self._skip(head & 0x0F, depth - 1)
        elif kind not in (_TRUE, _FALSE):
            # Headers of pages have neither lists nor maps.
            raise ValueError(f"expected a type of a page's header, found {kind}")
