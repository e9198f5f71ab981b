"""The reader of the kind `jdbc`: a table or query of PostgreSQL, as one consistent snapshot.

The rows stream through the driver into temporary files, in the text format of PostgreSQL's COPY
(https://www.postgresql.org/docs/current/sql-copy.html), and from there into Spark, so that neither side holds them
in memory, no driver jar is needed, and the password is in no plan. The files are on the driver's disk: Spark runs
where it can read them, in local mode or beside a shared temporary folder.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from psycopg2 import sql
from psycopg2.extensions import connection as PgConnection
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    TimestampType,
)

from tieout.contracts import JdbcSource
from tieout.contracts.times import epoch_millis
from tieout.engine.evidence import EARLIEST_PLAUSIBLE
from tieout.engine.ledger import CONTENT_WORDS
from tieout.engine.sources.casting import strict
from tieout.engine.sources.jdbc_parts import parts
from tieout.engine.sources.paths import spark_path
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, TEXT, Reach, Reading, Request, is_reserved
from tieout.errors import SourceError
from tieout.settings import UNPACKED_RECORD_MB, unpacking
from tieout.warehouse import copied, relation, snapshot

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
"""PostgreSQL's type numbers and the types in expressions; any other type is the text that PostgreSQL prints."""
_AS_IS: Final[dict[int, DataType]] = {700: FloatType(), 701: DoubleType()}
"""The types that a column keeps if no expression uses it: their text need not be the exact number."""
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
"""The escapes of COPY for characters that would, or might, end a line or a value."""
_NO_CHARACTER: Final = "\0"
"""A character that PostgreSQL rejects in a text (https://www.postgresql.org/docs/current/datatype-character.html)."""
_VALUES: Final = "_tieout_values"
_OVERSIZED: Final = "{} rows: expected at most {} MB in a row, found more; {} allows more"


@dataclass(frozen=True)
class _Column:
    """One column of the table or query, and its type's number in PostgreSQL."""

    name: str
    oid: int


def read(spec: JdbcSource, request: Request) -> Reading:
    """Return the rows of one snapshot, which is complete up to the time it was taken on the server.

    Only the columns that the contract uses are selected. The digest is the sum of these rows' SHA-256 modulo 2**256:
    equal rows in another order are the same evidence.

    Raises:
        SourceError: if the server, the table or a column cannot be reached; without the password.
        ConnectionNotFoundError: if the connection is not defined.
    """
    folder = Path(tempfile.mkdtemp(prefix="tieout-jdbc-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with snapshot(spec, request.place) as session:
        read_at = _taken_at(session)
        columns = _columns(session, spec, request.place)
        needed = _needed(columns, request)
        unmapped = frozenset(name.lower() for name in request.text_columns)
        rows = _selected(spec, needed, request.reach, unmapped)
        table = relation(spec) if spec.table else None
        statements = [
            sql.SQL("COPY ({} AND {}) TO STDOUT").format(rows, part).as_string(session)
            for part in parts(session, table, rows)
        ]
        copy = copied(session, statements, folder, spec.connection, request.place)
    name = f"{spec.connection}:{spec.table or 'query'}"
    oversized = _OVERSIZED.format(copy.oversized, unpacking().line >> 20, UNPACKED_RECORD_MB)
    return Reading(
        rows=_rows(request, copy.files, needed, [column.name for column in columns if column not in needed]),
        is_present=True,
        read_at=read_at,
        taken_at=read_at,
        size=sum(file.stat().st_size for file in copy.files),
        digests=(f"rows-sha256:{copy.digest:064x}  {name}",),
        unparsed_inputs=copy.oversized,
        notes=(oversized,) if copy.oversized else (),
    )


def first_rows(spec: JdbcSource, place: str, limit: int) -> list[dict[str, Any]]:
    """Return the first rows of a table or query as PostgreSQL's client returns them, to sample an unknown source.

    Raises:
        SourceError: if the server or the table cannot be reached; without the password.
        ConnectionNotFoundError: if the connection is not defined.
    """
    with snapshot(spec, place) as session, session.cursor() as cursor:
        # No parameters: with them a percent sign in a table's name would be a placeholder.
        rows = sql.SQL("SELECT * FROM {} AS source LIMIT {}")
        cursor.execute(rows.format(relation(spec), sql.Literal(limit)))
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
        all_columns = tuple(_Column(column.name, column.type_code) for column in cursor.description or ())
    columns = tuple(column for column in all_columns if not is_reserved(column.name))
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise SourceError(f"{place}.query: a column name stands twice: {', '.join(names)}")
    return columns


def _needed(columns: Sequence[_Column], request: Request) -> list[_Column]:
    needed = [column for column in columns if request.needs(column.name)]
    counts = Counter(column.name.lower() for column in needed)
    doubled = [column.name for column in needed if counts[column.name.lower()] > 1]
    if doubled:
        raise SourceError(
            f"{request.place}: expected names that differ in more than capital letters, found {', '.join(doubled)}; "
            "use a query that names the right one"
        )
    return needed


def _selected(
    spec: JdbcSource, columns: Sequence[_Column], reach: Reach | None, unmapped: frozenset[str]
) -> sql.Composed:
    """Return the query that yields each row within reach as texts; it ends in a condition.

    `unmapped` are the columns, in lower case, that become canonical ones without an expression.
    """
    texts = sql.SQL(", ").join(_as_text(column, unmapped) for column in columns)
    return sql.SQL("SELECT {} FROM {} AS source WHERE {}").format(
        texts, relation(spec), _within(columns, reach)
    )


def _within(columns: Sequence[_Column], reach: Reach | None) -> sql.Composable:
    """Return the condition for rows within reach, which is true if the server does not know their age."""
    if reach is None or reach.column is None:
        return sql.SQL("true")
    name = reach.column.lower()
    time_column = next((column for column in columns if column.name.lower() == name), None)
    if time_column is None or time_column.oid not in (_BIGINT, _TIMESTAMP, _TIMESTAMPTZ):
        return sql.SQL("true")
    begins_at, earliest = (_literal(time, time_column.oid) for time in (reach.begins_at, EARLIEST_PLAUSIBLE))
    return sql.SQL("(source.{0} >= {1} OR source.{0} < {2} OR source.{0} IS NULL)").format(
        sql.Identifier(time_column.name), begins_at, earliest
    )


def _literal(time: datetime, oid: int) -> sql.Composable:
    """Return the time as a literal for a column of that type: with zone, in UTC, or in milliseconds since 1970."""
    if oid == _BIGINT:
        return sql.Literal(epoch_millis(time))
    return sql.Literal(time if oid == _TIMESTAMPTZ else time.astimezone(UTC).replace(tzinfo=None))


def _as_text(column: _Column, unmapped: frozenset[str]) -> sql.Composed:
    """Return the column as text; an unmapped column `content` only if it has an allowed value."""
    form = "encode(source.{}, 'hex')" if column.oid == _BYTEA else "source.{}::text"
    if column.name.lower() == "content" and "content" in unmapped:
        allowed = ", ".join(f"'{content_word}'" for content_word in sorted(CONTENT_WORDS))
        form = f"CASE WHEN {form} IN ({allowed}) THEN {form} END".replace("{}", "{0}")
    return sql.SQL(form).format(sql.Identifier(column.name))


def _rows(
    request: Request, staged: Sequence[Path], needed: Sequence[_Column], unused: Sequence[str]
) -> DataFrame:
    """Return the staged rows, typed for expressions; unmapped columns stay text, unused ones are null."""
    texts = _texts(request.spark, staged, len(needed))
    unmapped = {name.lower() for name in request.text_columns}
    typed: list[Column] = []
    faults: list[Column] = [F.lit(None).cast("string")]
    for number, column in enumerate(needed):
        raw = F.col(f"_{number}")
        types = _AS_IS if column.name.lower() in unmapped else _TYPES
        kind = types.get(column.oid, StringType())
        value = _typed(raw, kind)
        typed.append(value.alias(column.name))
        if request.uses(column.name):
            faults.append(F.when(raw.isNotNull() & value.isNull(), f"{column.name}: cannot be held by Spark"))
    nowhere = [F.lit(None).cast("string").alias(name) for name in (*unused, FILE, TEXT)]
    return texts.select(*typed, *nowhere, BLOCK, ROW, F.coalesce(*faults).alias(FAULT))


def _texts(spark: SparkSession, staged: Sequence[Path], width: int) -> DataFrame:
    r"""Return the copied rows' values in numbered columns, as their original texts.

    | _0          | _1   | BLOCK | ROW |
    |-------------|------|-------|-----|
    | a line\nfeed | null | 0     | 0   |
    """
    values = F.split("value", "\t")
    lines = spark.read.text([spark_path(str(file)) for file in staged]).select(
        values.alias(_VALUES),
        F.col("_metadata.file_block_start").alias(BLOCK),
        F.monotonically_increasing_id().alias(ROW),
    )
    texts = [_unescaped(F.get(_VALUES, number)).alias(f"_{number}") for number in range(width)]
    return lines.select(*texts, BLOCK, ROW)


def _unescaped(value: Column) -> Column:
    """Return the value of a text in COPY's format: null, or the text with its escapes replaced.

    An escaped backslash is first replaced by a character that PostgreSQL's texts cannot contain, so that it does not
    combine with the next character.
    """
    unescaped = F.replace(value, F.lit("\\\\"), F.lit(_NO_CHARACTER))
    for letter, character in _ESCAPES.items():
        unescaped = F.replace(unescaped, F.lit("\\" + letter), F.lit(character))
    unescaped = F.replace(unescaped, F.lit(_NO_CHARACTER), F.lit("\\"))
    has_no_escape = ~F.contains(value, F.lit("\\"))
    return F.when(has_no_escape, value).when(value != r"\N", unescaped)


def _typed(raw: Column, kind: DataType) -> Column:
    if isinstance(kind, StringType):
        return raw
    if isinstance(kind, DoubleType | FloatType | DateType):
        return raw.try_cast(kind)
    return strict(raw, StringType(), kind)
