"""The reader of the kind `files`: JSON lines, CSV, Parquet and ORC, wherever Spark can read them; tables: tables.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StringType, StructType

from tieout.contracts import FilesSource
from tieout.engine.sources.column_types import TypesDifferError, by_recast, recast, united, with_one_type
from tieout.engine.sources.columnar_footers import with_footer_faults
from tieout.engine.sources.csv_lines import csv_rows, with_header_faults
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.inputs import Input, Inputs
from tieout.engine.sources.json_lines import inferred, json_rows
from tieout.engine.sources.lacking import columnar_groups, json_with_lacking, with_lacking
from tieout.engine.sources.lines import block_of, uri_of
from tieout.engine.sources.listing import of_these_files
from tieout.engine.sources.nanoseconds import Columns, by_columns, in_microseconds
from tieout.engine.sources.parquet_copies import COPIED, with_texts
from tieout.engine.sources.paths import is_remote, name_of
from tieout.engine.sources.rotated_copies import rotated_copies
from tieout.engine.sources.source import (
    BLOCK,
    FAULT,
    FILE,
    ROW,
    TEXT,
    Reading,
    Request,
    is_of_spark,
    is_reserved,
    unread,
    within_reach,
)
from tieout.engine.sources.tables import CALLED, read_tables
from tieout.engine.sources.written_meanwhile import writes_to
from tieout.engine.table_folders import SINK_MANIFEST, is_sink_folder, table_format
from tieout.errors import SourceError

_SAME_NAME: Final = "COLUMN_ALREADY_EXISTS"
_TWICE: Final = "a key stands twice in one of its objects"
_ALIKE: Final = "two of its columns are called the same but for capital letters: rename one"
_OTHER_CHECKSUM: Final = (
    "it does not fit its checksum in .{}.crc: it is damaged, or was replaced; then remove the checksum"
)
_DOES_NOT_READ: Final = "does not read through; it is corrupt, or not what the contract says"

_CHECKSUM: Final = "ChecksumException"
_NO_CODEC: Final = re.compile(r"\.compress\.(?P<codec>\w+)Codec was not found")
_OTHER_CODEC: Final = (
    "it is packed with {}, which Spark does not unpack here: write it with snappy, gzip, zstd, lz4 or none"
)


def read(spec: FilesSource, request: Request) -> Reading:
    """Return the rows of all files behind the paths; what cannot be read is counted and named.

    JSON lines and CSV are read line by line, so a quoted line break in CSV is a malformed row, and told as what
    it is. CSV values are text; a quote within quotes is doubled unless `options.escape` says otherwise. A key
    that stands twice in a JSON object says two things: its file does not read.

    Raises:
        SourceError: for files that are a table's, for what is no table although
            the contract says so, and where Spark reads other files than were digested.
    """
    if spec.is_table:
        return read_tables(spec, request)
    inputs = inputs_of(request.spark, spec.path, request.base_dir, spec.format)
    _refuse_chosen_files(spec, request, inputs)
    return reading_of(spec, request, inputs)


def _refuse_chosen_files(spec: FilesSource, request: Request, inputs: Inputs) -> None:
    """Refuse files of which something beside them says which ones count.

    Of a table some Parquet files are of earlier versions, whose rows it no longer has; of a file sink of Structured
    Streaming some are of batches that were never committed. Tables are looked for on this machine alone.

    Raises:
        SourceError: naming the folder.
    """
    local = {Path(file.path).parent for file in inputs.files if not is_remote(file.path)}
    remote = next((file.path for file in inputs.files if f"/{SINK_MANIFEST}/" in file.path), None)
    if remote is not None:
        _refuse_sink(request, remote.partition(f"/{SINK_MANIFEST}/")[0])
    for folder in sorted({folder for parent in local for folder in (parent, *parent.parents)}):
        if is_sink_folder(folder):
            _refuse_sink(request, name_of(folder, request.base_dir))
        found = table_format(folder) if spec.format == "parquet" else None
        if found is not None:
            raise SourceError(
                f"{request.place}: expected Parquet files that are no table's, found those of the "
                f"{CALLED[found]} table "
                f"{name_of(folder, request.base_dir)}, removed ones included; read it with format: {found}"
            )


def _refuse_sink(request: Request, name: str) -> None:
    raise SourceError(
        f"{request.place}: expected files that are all output, found those of {name}, where {SINK_MANIFEST} says which "
        "ones are; read the folder with kind: spark_files"
    )


def reading_of(spec: FilesSource, request: Request, inputs: Inputs) -> Reading:
    """Return the rows of these files, of which somebody else said that they are the ones to read.

    Raises: what `read` raises.
    """
    if spec.format == "csv":
        inputs = with_header_faults(request, inputs, spec.reader_options)
    inputs = with_footer_faults(request.spark, inputs, spec.format)
    readable = inputs.readable
    if not readable:
        return unread(inputs, request.now)
    try:
        rows = _rows(spec, request, readable)
    except Exception as error:
        if not isinstance(error, TypesDifferError) and not is_of_spark(error):
            raise
        checked = inputs if isinstance(error, TypesDifferError) else _checked(spec, request, inputs)
        if checked == inputs and spec.format in ("parquet", "orc"):
            checked = with_one_type(inputs, spec.format, partial(_schema_of, spec, request), request.uses)
        if checked == inputs:
            raise SourceError(
                f"{request.place}: the files cannot be read together: {_reason(error)}"
            ) from error
        return reading_of(spec, request, checked)
    return Reading(
        rows=rows,
        is_present=True,
        read_at=request.now,
        size=inputs.size,
        digests=inputs.digests,
        unparsed_inputs=len(inputs.faults),
        notes=inputs.notes,
        writes=partial(writes_to, inputs.readable, may_grow=spec.format in ("jsonl", "csv")),
        reread=lambda: reading_of(spec, request, _checked(spec, request, inputs)),
        is_columnar=spec.format in ("parquet", "orc"),
        copies=(*inputs.copied, *_rotated(spec, inputs)),
    )


def _rotated(spec: FilesSource, inputs: Inputs) -> tuple[tuple[str, str], ...]:
    is_text = spec.format in ("jsonl", "csv")
    return rotated_copies(inputs.readable, has_header=spec.format == "csv") if is_text else ()


def _reason(error: Exception) -> str:
    text = error.getMessage() if isinstance(error, PySparkException) else None
    return " ".join((text or type(error).__name__).split())


def _rows(spec: FilesSource, request: Request, files: Sequence[Input]) -> DataFrame:
    options = spec.reader_options
    if spec.format == "jsonl":
        return json_with_lacking(request, files, json_rows(request, files, options))
    if spec.format == "csv":
        return csv_rows(request, files, options)
    return _columnar_rows(request, spec.format, files, options)


def _columnar_rows(
    request: Request, file_format: str, files: Sequence[Input], options: Mapping[str, str]
) -> DataFrame:
    parts = [
        with_lacking(recast(_of_one_shape(request, file_format, alike, options), columns), lacks)
        for lacks, members in columnar_groups(request, file_format, files)
        for columns, alike in by_recast(members).items()
    ]
    return united(parts)


def _of_one_shape(
    request: Request, file_format: str, files: Sequence[Input], options: Mapping[str, str]
) -> DataFrame:
    """Return the rows of files that all have the columns that contents are made of, or all lack them."""
    if file_format != "parquet":
        return _columnar_part(request, file_format, files, options, None)
    parts = []
    for columns, members in _readable(request, files):
        part = _columnar_part(request, file_format, members, options, columns.schema)
        unused = [F.lit(None).cast(StringType()).alias(name) for name, _ in columns.refused]
        parts.append(in_microseconds(part, columns.nanoseconds).select("*", *unused))
    return united(parts)


def _readable(request: Request, files: Sequence[Input]) -> Iterator[tuple[Columns, list[Input]]]:
    """Give the Parquet files in groups with the columns that Spark reads of them; UUIDs that are used as text.

    Raises:
        SourceError: where the contract uses a column that Spark refuses and that no text stands for.
    """
    for columns, members in by_columns(request.spark, files):
        used = [(name, kind) for name, kind in columns.refused if request.uses(name)]
        unreadable = next((f"{name} of the type {kind}" for name, kind in used if kind != COPIED), None)
        if unreadable is not None:
            raise SourceError(
                f"{request.place}: {members[0].name}: expected columns of types that Spark reads, found {unreadable}, "
                "which the contract uses; write it as text or as a number"
            )
        if used:
            texts = [name for name, _ in used]
            copies = [with_texts(file, columns.names, texts, request.place) for file in members]
            yield from by_columns(request.spark, copies)
        else:
            yield columns, members


def _columnar_part(
    request: Request,
    file_format: str,
    files: Sequence[Input],
    options: Mapping[str, str],
    schema: StructType | None,
) -> DataFrame:
    reader = request.spark.read.format(file_format).options(**{"mergeSchema": "true", **options})
    source = (reader if schema is None else reader.schema(schema)).load([file.read_path for file in files])
    nothing: DataType = StringType()
    own = [F.col(f"`{name.replace('`', '``')}`") for name in source.columns if not is_reserved(name)]
    return within_reach(of_these_files(source, files), request.reach).select(
        *own,
        uri_of(source, files).alias(FILE),
        F.lit(None).cast(nothing).alias(TEXT),
        block_of(source).alias(BLOCK),
        F.monotonically_increasing_id().cast(LongType()).alias(ROW),
        F.lit(None).cast(nothing).alias(FAULT),
    )


def _checked(spec: FilesSource, request: Request, inputs: Inputs) -> Inputs:
    """Return the inputs after each was read through by itself; those that Spark gives up on carry a fault."""
    files = tuple(file if file.fault else _read_through(spec, request, file) for file in inputs.files)
    return Inputs(files, inputs.missing)


def _schema_of(spec: FilesSource, request: Request, file: Input) -> StructType:
    """Return the columns of a Parquet or ORC file as it has them."""
    rows = _columnar_rows(replace(request, reach=None), spec.format, [replace(file, recast=())], {})
    return StructType([field for field in rows.schema if not is_reserved(field.name)])


def _read_through(spec: FilesSource, request: Request, file: Input) -> Input:
    path, is_text = file.read_path, spec.format in ("jsonl", "csv")
    try:
        whole = replace(request, reach=None)
        rows = request.spark.read.text(path) if is_text else _columnar_rows(whole, spec.format, [file], {})
        rows.write.format("noop").mode("overwrite").save()
        if spec.format == "jsonl":
            inferred(request.spark, [file], {})
    except Exception as error:
        if not is_of_spark(error):
            raise
        return replace(file, fault=_fault_of(error, file, is_json=spec.format == "jsonl"))
    return file


def _fault_of(error: Exception, file: Input, *, is_json: bool) -> str:
    if _condition(error) == _SAME_NAME:
        return _TWICE if is_json else _ALIKE
    if _CHECKSUM in str(error):
        return _OTHER_CHECKSUM.format(Path(file.path).name)
    return _unreadable(str(error))


def _unreadable(error: str) -> str:
    """Return why a file does not read through: for want of what unpacks it, or for a reason of its own.

    >>> _unreadable("Class org.apache.hadoop.io.compress.BrotliCodec was not found").partition(":")[0]
    'it is packed with Brotli, which Spark does not unpack here'
    """
    found = _NO_CODEC.search(error)
    return _OTHER_CODEC.format(found["codec"]) if found else _DOES_NOT_READ


def _condition(error: Exception) -> str | None:
    return error.getCondition() if isinstance(error, PySparkException) else None
