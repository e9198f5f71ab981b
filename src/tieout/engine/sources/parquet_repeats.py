"""Bounds on the size of a Parquet file's rows, whose repeated values are stored once and read many times.

A dictionary holds each value of a column once, and a run says in a few bytes how often it follows itself. So three
kilobytes may be a terabyte, although every page is small.
Source: Encodings.md of apache/parquet-format (dictionary encoding, RLE).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tieout.settings import UNPACKED_FILE_MB

_ROWS: Final = 65_536
_FREE_ROWS: Final = 1_000_000
_ROWS_PER_BYTE: Final = 100
"""Rows of evidence differ: even packed a row takes more than a hundredth of a byte."""
_SMALL: Final = 1 << 10
"""A dictionary of up to so many bytes is not examined: as much in each row is no more than a long row."""


def fault_of_rows(rows: int, size: int) -> str | None:
    """Return a fault where there are more rows than a file of `size` bytes can plausibly hold.

    >>> fault_of_rows(20_000_000, 3_000)
    'expected at most 100 rows a byte, found 20000000 rows in 3000 bytes'
    """
    if rows <= max(_FREE_ROWS, size * _ROWS_PER_BYTE):
        return None
    return f"expected at most {_ROWS_PER_BYTE} rows a byte, found {rows} rows in {size} bytes"


@dataclass(frozen=True)
class Repeated:
    """A column of a row group, by its path: `count` values are stored in a dictionary of `dictionary` bytes."""

    group: int
    name: str
    dictionary: int
    count: int

    @property
    def most(self) -> int:
        """The upper bound of the values' bytes: as if each were the whole dictionary."""
        return self.dictionary * self.count if self.dictionary > _SMALL else 0


def fault_of_values(path: Path, columns: Sequence[Repeated], most: int) -> str | None:
    """Return a fault where the file's repeated values exceed `most` bytes; they are counted only where they might."""
    if sum(column.most for column in columns) <= most:
        return None
    total = 0
    for column in columns:
        for found in _bytes_of(path, column) if column.most else ():
            total += found
            if total > most:
                return (
                    f"column {column.name}: expected values of at most {most >> 20} MB in all, found more; "
                    f"{UNPACKED_FILE_MB} allows more"
                )
    return None


def _bytes_of(path: Path, column: Repeated) -> Iterator[int]:
    """Yield the size in bytes of the values of some rows, each of which Parquet stores once."""
    import pyarrow as pa  # noqa: PLC0415 - takes a while to load
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    with pq.ParquetFile(path, read_dictionary=[column.name]) as file:
        for batch in file.iter_batches(_ROWS, row_groups=[column.group], columns=[column.name]):
            for values in _leaves(batch.column(0)):
                if isinstance(values, pa.DictionaryArray):
                    lengths = pc.binary_length(values.dictionary)
                    yield int(pc.sum(pc.take(lengths, values.indices)).as_py() or 0)
                else:
                    yield int(values.nbytes)


def _leaves(values: Any) -> Iterator[Any]:
    """Yield the arrays of values that an array of objects or lists is made of."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(values, pa.StructArray):
        for number in range(values.type.num_fields):
            yield from _leaves(values.field(number))
    elif isinstance(values, pa.MapArray):
        yield from _leaves(values.keys)
        yield from _leaves(values.items)
    elif isinstance(values, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        yield from _leaves(values.values)
    else:
        yield values
