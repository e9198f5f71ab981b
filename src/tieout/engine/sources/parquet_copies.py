"""Copies of Parquet files whose UUIDs a contract uses: Spark refuses the type, so the copy has them as text.

The text is the usual one: 8-4-4-4-12 hexadecimal digits in lower case. Pyarrow reads and writes some rows at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from tieout.engine.sources.copies import copy_path
from tieout.engine.sources.inputs import Input
from tieout.engine.sources.paths import is_remote
from tieout.errors import SourceError

COPIED: Final = "UUID"
"""The type, as Parquet prints it, that a copy has as text."""
_ROWS: Final = 65_536


def with_texts(file: Input, kept: Sequence[str], texts: Sequence[str], place: str) -> Input:
    """Return the file with a copy of it that has the columns `kept`, and the columns `texts` as text.

    Raises:
        SourceError: where the file is not on this machine's file systems, or pyarrow cannot read it.
    """
    import pyarrow as pa  # noqa: PLC0415 - takes a while to load, and few files need it
    import pyarrow.parquet as pq  # noqa: PLC0415

    if is_remote(file.path):
        raise SourceError(
            f"{place}: {file.name}: column {texts[0]} is a {COPIED}, which is read from this machine's file systems "
            "only; copy the file here, or write the column as text"
        )
    target = copy_path(".parquet")
    try:
        with pq.ParquetFile(file.path) as source:
            columns = [name for name in source.schema_arrow.names if name in {*kept, *texts}]
            schema = pa.schema([_field(source.schema_arrow.field(name), texts) for name in columns])
            with pq.ParquetWriter(target, schema) as copy:
                for batch in source.iter_batches(_ROWS, columns=columns):
                    arrays = [_array(batch.column(name), name in texts) for name in columns]
                    copy.write_batch(pa.record_batch(arrays, schema=schema))
    except pa.ArrowException as error:
        raise SourceError(f"{place}: {file.name}: its column {texts[0]} cannot be read: {error}") from error
    return replace(file, copy=str(target))


def _field(field: Any, texts: Sequence[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.field(field.name, pa.string()) if field.name in texts else field


def _array(values: Any, is_text: bool) -> Any:
    """Return the values, sixteen bytes each as the UUID that they are where they are to be text."""
    import pyarrow as pa  # noqa: PLC0415

    if not is_text:
        return values
    stored = values.storage if isinstance(values, pa.ExtensionArray) else values
    texts = [None if one is None else str(UUID(bytes=one)) for one in stored.to_pylist()]
    return pa.array(texts, pa.string())
