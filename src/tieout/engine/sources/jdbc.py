"""The reader of the kind `jdbc`: a table or query of PostgreSQL, as one consistent snapshot.

The rows stream through the driver into a temporary file of JSON lines and from there into Spark, so that
neither side holds them in memory, no driver jar is needed, and the password is in no plan. The file is on the
driver's disk: Spark runs where it can read it, in local mode or beside a shared temporary folder.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from psycopg2 import sql
from psycopg2.extensions import connection as PgConnection
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tieout.contracts import JdbcSource
from tieout.contracts.times import epoch_millis
from tieout.engine.evidence import EARLIEST_PLAUSIBLE
from tieout.engine.sources.casting import strict
from tieout.engine.sources.inputs import Input
from tieout.engine.sources.json_lines import json_objects
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.source import FAULT, FILE, HIDDEN, TEXT, Reach, Reading, Request
from tieout.errors import SourceError
from tieout.warehouse import relation, snapshot

_BYTEA: Final = 17
_BIGINT: Final = 20
_TIMESTAMP: Final = 1114
_TIMESTAMPTZ: Final = 1184
_TYPES: Final[dict[int, DataType]] = {
    16: BooleanType(),
    _BIGINT: LongType(),
    21: LongType(),
    23: LongType(),
    700: DoubleType(),
    701: DoubleType(),
    1082: DateType(),
    _TIMESTAMP: TimestampType(),
    _TIMESTAMPTZ: TimestampType(),
}
"""PostgreSQL's type numbers and what an expression sees; any other type is the text PostgreSQL prints."""
_MODULUS: Final = 1 << 256


@dataclass(frozen=True)
class _Column:
    """One column of the table or query, and its type's number in PostgreSQL."""

    name: str
    oid: int


@dataclass
class _Staging:
    """Takes the rows as they come from the server: into the file, and summed up whatever their order."""

    file: IO[bytes]
    total: int = 0

    def write(self, row: bytes) -> int:
        """Append one row, as psycopg2 hands it over."""
        self.total = (self.total + int.from_bytes(hashlib.sha256(row).digest(), "big")) % _MODULUS
        return self.file.write(row)


def read(spec: JdbcSource, request: Request) -> Reading:
    """Return the rows of one snapshot, which is complete up to the time it was taken on the server.

    The server is asked for the columns that the contract uses. The digest is the sum of these rows' SHA-256 modulo
    2**256: equal rows in another order are the same evidence.

    Raises:
        SourceError: where the server, the table or a column cannot be reached; without the password.
        ConnectionNotFoundError: where the connection is not defined.
    """
    folder = Path(tempfile.mkdtemp(prefix="tieout-jdbc-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    staged = folder / "rows.jsonl"
    with snapshot(spec, request.place) as session, staged.open("wb") as file:
        read_at = _taken_at(session)
        columns = _columns(session, spec, request.place)
        needed = [column for column in columns if request.needs(column.name)]
        staging = _Staging(file)
        with session.cursor() as cursor:
            cursor.copy_expert(_copy(spec, needed, request.reach).as_string(session), staging)
    name = f"{spec.connection}:{spec.table or 'query'}"
    return Reading(
        rows=_rows(request, staged, columns),
        is_present=True,
        read_at=read_at,
        size=staged.stat().st_size,
        digests=(f"rows-sha256:{staging.total:064x}  {name}",),
    )


def first_rows(spec: JdbcSource, place: str, limit: int) -> list[dict[str, Any]]:
    """Return the first rows of a table or query as PostgreSQL's client gives them, for a look at an unknown source.

    Raises:
        SourceError: where the server or the table cannot be reached; without the password.
        ConnectionNotFoundError: where the connection is not defined.
    """
    with snapshot(spec, place) as session, session.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT * FROM {} AS source LIMIT %s").format(relation(spec)), (limit,))
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _taken_at(session: PgConnection) -> datetime:
    with session.cursor() as cursor:
        cursor.execute("SELECT now()")
        row: tuple[datetime, ...] = cursor.fetchone() or (datetime.now(UTC),)
        return row[0].astimezone(UTC)


def _columns(session: PgConnection, spec: JdbcSource, place: str) -> tuple[_Column, ...]:
    with session.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT * FROM {} AS source LIMIT 0").format(relation(spec)))
        columns = tuple(_Column(column.name, column.type_code) for column in cursor.description or ())
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise SourceError(f"{place}.query: a column name stands twice: {', '.join(names)}")
    return columns


def _copy(spec: JdbcSource, columns: Sequence[_Column], reach: Reach | None) -> sql.Composed:
    """Return the statement that streams each row within reach as one JSON object of texts.

    JSON holds no bare control character, so with two of them as quote and delimiter CSV changes nothing in
    it.
    """
    texts = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(_as_text(column), sql.Identifier(column.name)) for column in columns
    )
    return sql.SQL(
        "COPY (SELECT row_to_json(texts) FROM (SELECT {} FROM {} AS source{}) AS texts) "
        "TO STDOUT WITH (FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01')"
    ).format(texts, relation(spec), _within(columns, reach))


def _within(columns: Sequence[_Column], reach: Reach | None) -> sql.Composable:
    """Return the condition that the server can hold rows against, nothing where it cannot tell how old they are."""
    if reach is None or reach.column is None:
        return sql.SQL("")
    name = reach.column.lower()
    found = next((column for column in columns if column.name.lower() == name), None)
    if found is None or found.oid not in (_BIGINT, _TIMESTAMP, _TIMESTAMPTZ):
        return sql.SQL("")
    begins_at, earliest = (_literal(time, found.oid) for time in (reach.begins_at, EARLIEST_PLAUSIBLE))
    return sql.SQL(" WHERE source.{0} >= {1} OR source.{0} < {2} OR source.{0} IS NULL").format(
        sql.Identifier(found.name), begins_at, earliest
    )


def _literal(time: datetime, oid: int) -> sql.Composable:
    """Return the time as a column of that type has it: with its zone, in UTC, or in milliseconds since 1970."""
    if oid == _BIGINT:
        return sql.Literal(epoch_millis(time))
    return sql.Literal(time if oid == _TIMESTAMPTZ else time.astimezone(UTC).replace(tzinfo=None))


def _as_text(column: _Column) -> sql.Composed:
    form = "encode(source.{}, 'hex')" if column.oid == _BYTEA else "source.{}::text"
    return sql.SQL(form).format(sql.Identifier(column.name))


def _rows(request: Request, staged: Path, columns: Sequence[_Column]) -> DataFrame:
    """Return the staged rows, typed for expressions; columns used as they are stay text, those without use are null."""
    needed = [column for column in columns if request.needs(column.name)]
    unused = [column.name for column in columns if column not in needed]
    texts = StructType([StructField(column.name, StringType()) for column in needed])
    lines = lines_of(request.spark, [Input(str(staged), staged.name, "")])
    rows = json_objects(lines, texts, {})
    plain = {name.lower() for name in request.text_columns}
    typed: list[Column] = []
    faults: list[Column] = [F.col(FAULT)]
    for column in needed:
        raw = F.col(f"`{column.name.replace('`', '``')}`")
        kind = StringType() if column.name.lower() in plain else _TYPES.get(column.oid, StringType())
        value = _typed(raw, kind)
        typed.append(value.alias(column.name))
        faults.append(F.when(raw.isNotNull() & value.isNull(), f"{column.name}: cannot be held by Spark"))
    hidden = [F.col(name) for name in HIDDEN if name not in (FILE, TEXT, FAULT)]
    nowhere = [F.lit(None).cast(StringType()).alias(name) for name in (FILE, TEXT)]
    nulls = [F.lit(None).cast(StringType()).alias(name) for name in unused]
    return rows.select(*typed, *nulls, *nowhere, *hidden, F.coalesce(*faults).alias(FAULT))


def _typed(raw: Column, kind: DataType) -> Column:
    if isinstance(kind, StringType):
        return raw
    if isinstance(kind, DoubleType | DateType):
        return raw.try_cast(kind)
    return strict(raw, StringType(), kind)
