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
from pyspark.sql.types import DataType, StringType, StructType

from tieout.contracts import FilesSource
from tieout.engine.sources.column_types import TypesDifferError, by_recast, recast, united, with_one_type
from tieout.engine.sources.columnar_footers import with_footer_faults
from tieout.engine.sources.csv_lines import csv_rows, with_header_faults
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.inputs import Input, Inputs
from tieout.engine.sources.json_lines import inferred, json_rows
from tieout.engine.sources.lacking import columnar_groups, json_with_lacking, with_lacking
from tieout.engine.sources.lines import block_of, lines_of, uri_of
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
_DUPLICATE_KEY: Final = "a key stands twice in one of its objects"
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
    """Return the rows of all files of the paths; unreadable rows and files are counted and named.

    JSON lines and CSV are read line by line, so a quoted line break in CSV is a malformed row, and reported as such.
    CSV values are text; a quote within quotes is doubled unless `options.escape` says otherwise. A file with a
    duplicate key in a JSON object is unreadable.

    Raises:
        SourceError: for files of a table, for a path that is not the declared table, and if Spark reads other files
            than were digested.
    """
    if spec.is_table:
        return read_tables(spec, request)
    inputs = inputs_of(request.spark, spec.path, request.base_dir, spec.format)
    _refuse_chosen_files(spec, request, inputs)
    return reading_of(spec, request, inputs)


def _refuse_chosen_files(spec: FilesSource, request: Request, inputs: Inputs) -> None:
    """Refuse files of a folder whose metadata says which files count.

    Some Parquet files of a table belong to earlier versions; some files of Structured Streaming's file sink belong to
    batches that were never committed. Tables are detected on this machine only.

    Raises:
        SourceError: with the folder.
    """
    local = {Path(file.path).parent for file in inputs.files if not is_remote(file.path)}
    remote = next((file.path for file in inputs.files if f"/{SINK_MANIFEST}/" in file.path), None)
    if remote is not None:
        _refuse_sink(request, remote.partition(f"/{SINK_MANIFEST}/")[0])
    for folder in sorted({folder for parent in local for folder in (parent, *parent.parents)}):
        if is_sink_folder(folder):
            _refuse_sink(request, name_of(folder, request.base_dir))
        table = table_format(folder) if spec.format == "parquet" else None
        if table is not None:
            raise SourceError(
                f"{request.place}: expected Parquet files that are no table's, found those of the "
                f"{CALLED[table]} table "
                f"{name_of(folder, request.base_dir)}, removed ones included; read it with format: {table}"
            )


def _refuse_sink(request: Request, name: str) -> None:
    raise SourceError(
        f"{request.place}: expected files that are all output, found those of {name}, where {SINK_MANIFEST} says which "
        "ones are; read the folder with kind: spark_files"
    )


def reading_of(spec: FilesSource, request: Request, inputs: Inputs) -> Reading:
    """Return the rows of these files, which the caller has selected.

    Raises: as `read`.
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
            checked = with_one_type(inputs, spec.format, partial(_schema_of, spec, request), request)
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
        with_lacking(recast(_by_content_columns(request, file_format, alike, options), columns), lacks)
        for lacks, members in columnar_groups(request, file_format, files)
        for columns, alike in by_recast(members).items()
    ]
    return united(parts)


def _by_content_columns(
    request: Request, file_format: str, files: Sequence[Input], options: Mapping[str, str]
) -> DataFrame:
    """Return the rows of files that all have the columns of the content, or all lack them."""
    if file_format != "parquet":
        return _columnar_part(request, file_format, files, options, None)
    parts = []
    for columns, members in _readable(request, files):
        part = _columnar_part(request, file_format, members, options, columns.schema)
        unused = [F.lit(None).cast("string").alias(name) for name, _ in columns.refused]
        parts.append(in_microseconds(part, columns.nanoseconds).select("*", *unused))
    return united(parts)


def _readable(request: Request, files: Sequence[Input]) -> Iterator[tuple[Columns, list[Input]]]:
    """Yield groups of Parquet files with the columns that Spark reads of them, and UUIDs that are used as text.

    Raises:
        SourceError: if the contract uses a column that Spark cannot read and that has no text form.
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
    text_type: DataType = StringType()
    data_columns = [F.col(f"`{name.replace('`', '``')}`") for name in source.columns if not is_reserved(name)]
    return within_reach(of_these_files(source, files), request.reach).select(
        *data_columns,
        uri_of(source, files).alias(FILE),
        F.lit(None).cast(text_type).alias(TEXT),
        block_of(source).alias(BLOCK),
        F.monotonically_increasing_id().cast("bigint").alias(ROW),
        F.lit(None).cast(text_type).alias(FAULT),
    )


def _checked(spec: FilesSource, request: Request, inputs: Inputs) -> Inputs:
    """Return the inputs after reading each separately; those that Spark fails on have a fault."""
    files = tuple(file if file.fault else _read_through(spec, request, file) for file in inputs.files)
    return Inputs(files, inputs.missing)


def _schema_of(spec: FilesSource, request: Request, file: Input) -> StructType:
    """Return the columns of a Parquet or ORC file, unconverted."""
    rows = _columnar_rows(replace(request, reach=None), spec.format, [replace(file, recast=())], {})
    return StructType([field for field in rows.schema if not is_reserved(field.name)])


def _read_through(spec: FilesSource, request: Request, file: Input) -> Input:
    path, is_text = file.read_path, spec.format in ("jsonl", "csv")
    try:
        whole = replace(request, reach=None)
        rows = request.spark.read.text(path) if is_text else _columnar_rows(whole, spec.format, [file], {})
        rows.write.format("noop").mode("overwrite").save()
        if spec.format == "jsonl":
            inferred(lines_of(request.spark, [file]), [file], {})
    except Exception as error:
        if not is_of_spark(error):
            raise
        return replace(file, fault=_fault_of(error, file, is_json=spec.format == "jsonl"))
    return file


def _fault_of(error: Exception, file: Input, *, is_json: bool) -> str:
    if _condition(error) == _SAME_NAME:
        return _DUPLICATE_KEY if is_json else _ALIKE
    if _CHECKSUM in str(error):
        return _OTHER_CHECKSUM.format(Path(file.path).name)
    return _unreadable(str(error))


def _unreadable(error: str) -> str:
    """Return why a file is unreadable: its codec is not available, or another reason.

    >>> _unreadable("Class org.apache.hadoop.io.compress.BrotliCodec was not found").partition(":")[0]
    'it is packed with Brotli, which Spark does not unpack here'
    """
    codec = _NO_CODEC.search(error)
    return _OTHER_CODEC.format(codec["codec"]) if codec else _DOES_NOT_READ


def _condition(error: Exception) -> str | None:
    return error.getCondition() if isinstance(error, PySparkException) else None
