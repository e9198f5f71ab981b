"""Audit bundles of golden histories, made without Spark."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from tests.engine.histories import Case
from tests.judging.kernel import PROGRAM, arrow_of, kernel_statement, scope_of

from tieout.engine.bundle.packing import BREAKS, CONTRACT, EVIDENCE, SCRIPT, STATEMENT, Facts, pack
from tieout.engine.bundle.script import verification
from tieout.engine.judging.terms import terms_of

_LABELS = {"run_id": "a-run", "generated_at": "2026-11-20T12:00:00Z"}
_OF_BREAK = (
    "break_id",
    "class",
    "flags",
    "message_id",
    "topic",
    "partition",
    "offset",
    "locus",
    "cause",
    "incident_id",
)
_TYPES = {"flags": pa.list_(pa.string()), "partition": pa.int32(), "offset": pa.int64()}
Edit = Callable[[Path], None]
_STATEMENTS: Final[dict[str, dict[str, Any]]] = {}
"""The statement of each history that was bundled: judging it takes longer than all the rest."""


def bundle_of(case: Case, file: Path, *, before_packing: Edit | None = None) -> str:
    """Write the bundle of a history, its parts edited before their digests are taken; return its digest."""
    folder = file.with_suffix(".parts")
    (folder / EVIDENCE).mkdir(parents=True)
    if str(case) not in _STATEMENTS:
        _STATEMENTS[str(case)] = kernel_statement(case)
    statement = deepcopy(_STATEMENTS[str(case)]) | _LABELS
    breaks = statement.pop("breaks")
    columns = {}
    for ledger, rows in case.rows.items():
        name, table = f"evidence_{ledger.value}", arrow_of(ledger, rows)
        columns[name] = table.column_names
        pq.write_table(table, folder / EVIDENCE / f"{name}.parquet")
    schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in _OF_BREAK])
    pq.write_table(pa.Table.from_pylist(breaks, schema=schema), folder / BREAKS)
    terms = terms_of(scope_of(case, case.rows, case.present))
    (folder / SCRIPT).write_text(verification(columns, terms, (), PROGRAM, duckdb.__version__))
    (folder / CONTRACT).write_text(case.contract.to_json())
    (folder / STATEMENT).write_text(json.dumps(statement))
    if before_packing is not None:
        before_packing(folder)
    rows_of = dict.fromkeys(columns, 0)
    return pack(folder, Facts(statement, rows_of, duckdb.__version__, has_contents=True), file)


def with_changed(file: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """Return a copy of a bundle in which the bytes of one part are others, and its manifest the same."""
    copy = file.with_name(f"changed-{file.name}")
    with zipfile.ZipFile(file) as given, zipfile.ZipFile(copy, "w") as written:
        for entry in given.infolist():
            data = given.read(entry)
            written.writestr(entry.filename, change(data) if entry.filename == name else data)
    return copy
