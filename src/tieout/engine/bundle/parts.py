"""The files of a bundle, written by Spark: the rows that the task judged, as Parquet, the statement and the breaks.

The rows are those that prematch left, with the tables about clean messages, so that the size of a bundle depends on
what is broken. The statement has the digests of the sources' files.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import duckdb
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, TimestampType

from tieout.contracts import Contract
from tieout.contracts.columns import CONTENT_COLUMNS
from tieout.engine.bundle.packing import BREAKS, CONTRACT, EVIDENCE, SCRIPT, STATEMENT, BundleRequest, Facts
from tieout.engine.bundle.script import verification
from tieout.engine.judging.breaks import BREAK_COLUMNS
from tieout.engine.judging.canonical import TABLES
from tieout.engine.judging.task import readable
from tieout.engine.judging.terms import Terms
from tieout.engine.reconciling import Reconciliation
from tieout.engine.session import is_full
from tieout.errors import BundleError
from tieout.model import Identity

MASKED: Final = frozenset({*(name for name in CONTENT_COLUMNS if name.endswith("_hash")), "reason"})
"""The columns that are derived from a message's contents, or may quote them, in any table."""
_FIXED_BYTES: Final = 8


def write_parts(
    run: Reconciliation,
    contract: Contract,
    folder: Path,
    request: BundleRequest,
    progress: Callable[[str], None],
) -> Facts:
    """Write the parts of a bundle into an empty folder, and return the content of the manifest besides digests.

    Reports the size of the evidence before any of it is written.

    Raises:
        BundleError: where there is more of it than requested, or where contents cannot be left out.
    """
    mask = None if request.has_contents else _masking(contract)
    rows = {name: _masked_rows(name, rows, mask) for name, rows in run.inputs.rows.items()}
    sizes = {name: size for name, size in _sizes(rows).items() if size[0]}
    _refuse_more(sizes, request.max_mb, progress)
    (folder / EVIDENCE).mkdir()
    for name in sizes:
        _written(rows[name], folder / EVIDENCE / f"{name}.parquet")
    # The evidence has the rows behind a break as well.
    columns = (
        BREAK_COLUMNS if request.has_contents else [name for name in BREAK_COLUMNS if name != "evidence"]
    )
    _written(run.breaks.rows(columns), folder / BREAKS)
    terms = run.inputs.terms if mask is None else _masked_terms(run.inputs.terms, mask)
    tables = {name: rows[name].columns for name in sizes}
    script = verification(tables, terms, run.inputs.deleted, run.inputs.steps, duckdb.__version__)
    (folder / SCRIPT).write_text(script, encoding="utf-8")
    (folder / CONTRACT).write_text(contract.to_json() + "\n", encoding="utf-8")
    text = json.dumps(run.statement, ensure_ascii=False, indent=2)
    (folder / STATEMENT).write_text(text + "\n", encoding="utf-8")
    return Facts(
        statement=run.statement,
        rows={name: count for name, (count, _) in sizes.items()},
        duckdb=duckdb.__version__,
        has_contents=request.has_contents,
    )


def _masking(contract: Contract) -> str:
    """Return a salt for the hashes of contents, which is not kept: equal hashes stay equal, and none can be guessed.

    Raises:
        BundleError: where messages are identified by content.
    """
    if contract.identity is Identity.CONTENT:
        raise BundleError(
            f"--without-contents: {contract.pipeline} identifies messages by their content, so that its break ids are "
            "made of it; expected identity message_id or position"
        )
    return secrets.token_hex(32)


def _masked_rows(table: str, rows: DataFrame, mask: str | None) -> DataFrame:
    """Return a table's rows as the task takes them: times without a zone, hashes of contents masked by `mask`."""
    selected = rows.select(*readable(table, rows))
    columns: list[Column] = []
    for field in selected.schema:
        column = F.col(field.name)
        if isinstance(field.dataType, TimestampType):
            column = column.cast("timestamp_ntz")
        elif mask is not None and field.name in MASKED:
            column = F.sha2(F.concat(F.lit(mask), column), 256)
        columns.append(column.alias(field.name))
    return selected.select(*columns)


def _masked_terms(terms: Terms, mask: str) -> Terms:
    """Return the variables with the hashes of empty contents masked, as rows have them."""
    known: Mapping[str, str] = terms.values["empty_contents"]
    masked = {name: hashlib.sha256((mask + text).encode()).hexdigest() for name, text in known.items()}
    return replace(terms, values={**terms.values, "empty_contents": masked})


def _sizes(rows: Mapping[str, DataFrame]) -> dict[str, tuple[int, int]]:
    """Return per table its number of rows, and the bytes of their values before compression."""
    sizes = {}
    for name, table in rows.items():
        size: Column = F.lit(0)
        for field in table.schema:
            is_text = isinstance(field.dataType, StringType)
            text = F.col(field.name) if is_text else F.to_json(F.struct(field.name))
            is_fixed = TABLES[name][field.name] in _FIXED
            length = F.lit(_FIXED_BYTES) if is_fixed else F.octet_length(text)
            size = size + F.when(F.col(field.name).isNull(), 0).otherwise(length)
        row = table.agg(
            F.count("*").alias("rows"), F.coalesce(F.sum(size), F.lit(0)).alias("bytes")
        ).collect()[0]
        sizes[name] = (row["rows"], row["bytes"])
    return sizes


_FIXED: Final = frozenset({"BIGINT", "INTEGER", "BOOLEAN", "TIMESTAMP", "DECIMAL(38,0)"})


def _refuse_more(sizes: Mapping[str, tuple[int, int]], max_mb: int, progress: Callable[[str], None]) -> None:
    count, size = (sum(each) for each in zip(*sizes.values(), strict=True)) if sizes else (0, 0)
    evidence_size = (
        f"{count} rows of evidence in {len(sizes)} tables, {size / (1 << 20):.1f} megabytes uncompressed"
    )
    progress(f"the bundle holds {evidence_size}")
    if size > max_mb << 20:
        raise BundleError(
            f"the bundle would hold {evidence_size}: expected at most {max_mb} megabytes; raise --max-mb, or bundle "
            "a shorter window"
        )


def _written(rows: DataFrame, file: Path) -> None:
    """Write rows as one Parquet file.

    Raises:
        OSError: where the folder's device has no space left.
    """
    folder = file.with_suffix(".folder")
    try:
        rows.coalesce(1).write.parquet(folder.absolute().as_uri())
    except Exception as error:
        if is_full(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from error
        raise
    (part,) = folder.glob("part-*.parquet")
    part.replace(file)
    shutil.rmtree(folder)
