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
"""PostgreSQL's type numbers and what an expression sees; any other type is the text PostgreSQL prints."""
_AS_IS: Final[dict[int, DataType]] = {700: FloatType(), 701: DoubleType()}
"""The types that a column keeps that no expression uses: what they print need not be the number that was meant."""
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
"""How COPY writes characters that would end a line or a value, or might."""
_NO_CHARACTER: Final = "\0"
"""What PostgreSQL refuses in a text (https://www.postgresql.org/docs/current/datatype-character.html)."""
_VALUES: Final = "_tieout_values"
_OVERSIZED: Final = "{} rows: expected at most {} MB in a row, found more; {} allows more"


@dataclass(frozen=True)
class _Column:
    """One column of the table or query, and its type's number in PostgreSQL."""

    name: str
    oid: int


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
    with snapshot(spec, request.place) as session:
        read_at = _taken_at(session)
        columns = _columns(session, spec, request.place)
        needed = _needed(columns, request)
        plain = frozenset(name.lower() for name in request.text_columns)
        rows = _selected(spec, needed, request.reach, plain)
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
    """Return the first rows of a table or query as PostgreSQL's client gives them, for a look at an unknown source.

    Raises:
        SourceError: where the server or the table cannot be reached; without the password.
        ConnectionNotFoundError: where the connection is not defined.
    """
    with snapshot(spec, place) as session, session.cursor() as cursor:
        # No parameters: with them a percent sign in a table's name would stand for one.
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
        found = tuple(_Column(column.name, column.type_code) for column in cursor.description or ())
    columns = tuple(column for column in found if not is_reserved(column.name))
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise SourceError(f"{place}.query: a column name stands twice: {', '.join(names)}")
    return columns


def _needed(columns: Sequence[_Column], request: Request) -> list[_Column]:
    needed = [column for column in columns if request.needs(column.name)]
    alike = Counter(column.name.lower() for column in needed)
    doubled = [column.name for column in needed if alike[column.name.lower()] > 1]
    if doubled:
        raise SourceError(
            f"{request.place}: expected names that differ in more than capital letters, found {', '.join(doubled)}; "
            "use a query that names the right one"
        )
    return needed


def _selected(
    spec: JdbcSource, columns: Sequence[_Column], reach: Reach | None, plain: frozenset[str]
) -> sql.Composed:
    """Return the query that yields each row within reach as texts; it ends in a condition.

    `plain` are the columns, in lower case, that become canonical ones as they are.
    """
    texts = sql.SQL(", ").join(_as_text(column, plain) for column in columns)
    return sql.SQL("SELECT {} FROM {} AS source WHERE {}").format(
        texts, relation(spec), _within(columns, reach)
    )


def _within(columns: Sequence[_Column], reach: Reach | None) -> sql.Composable:
    """Return the condition that the server can hold rows against, true where it cannot tell how old they are."""
    if reach is None or reach.column is None:
        return sql.SQL("true")
    name = reach.column.lower()
    found = next((column for column in columns if column.name.lower() == name), None)
    if found is None or found.oid not in (_BIGINT, _TIMESTAMP, _TIMESTAMPTZ):
        return sql.SQL("true")
    begins_at, earliest = (_literal(time, found.oid) for time in (reach.begins_at, EARLIEST_PLAUSIBLE))
    return sql.SQL("(source.{0} >= {1} OR source.{0} < {2} OR source.{0} IS NULL)").format(
        sql.Identifier(found.name), begins_at, earliest
    )


def _literal(time: datetime, oid: int) -> sql.Composable:
    """Return the time as a column of that type has it: with its zone, in UTC, or in milliseconds since 1970."""
    if oid == _BIGINT:
        return sql.Literal(epoch_millis(time))
    return sql.Literal(time if oid == _TIMESTAMPTZ else time.astimezone(UTC).replace(tzinfo=None))


def _as_text(column: _Column, plain: frozenset[str]) -> sql.Composed:
    """Return the column as text; of a body that is called `content` only whether it is the ledger's word."""
    form = "encode(source.{}, 'hex')" if column.oid == _BYTEA else "source.{}::text"
    if column.name.lower() == "content" and "content" in plain:
        words = ", ".join(f"'{word}'" for word in sorted(CONTENT_WORDS))
        form = f"CASE WHEN {form} IN ({words}) THEN {form} END".replace("{}", "{0}")
    return sql.SQL(form).format(sql.Identifier(column.name))


def _rows(
    request: Request, staged: Sequence[Path], needed: Sequence[_Column], unused: Sequence[str]
) -> DataFrame:
    """Return the staged rows, typed for expressions; columns used as they are stay text, those without use are null."""
    texts = _texts(request.spark, staged, len(needed))
    plain = {name.lower() for name in request.text_columns}
    typed: list[Column] = []
    faults: list[Column] = [F.lit(None).cast(StringType())]
    for number, column in enumerate(needed):
        raw = F.col(f"_{number}")
        types = _AS_IS if column.name.lower() in plain else _TYPES
        kind = types.get(column.oid, StringType())
        value = _typed(raw, kind)
        typed.append(value.alias(column.name))
        faults.append(F.when(raw.isNotNull() & value.isNull(), f"{column.name}: cannot be held by Spark"))
    nowhere = [F.lit(None).cast(StringType()).alias(name) for name in (*unused, FILE, TEXT)]
    return texts.select(*typed, *nowhere, BLOCK, ROW, F.coalesce(*faults).alias(FAULT))


def _texts(spark: SparkSession, staged: Sequence[Path], width: int) -> DataFrame:
    r"""Return the copied rows' values under numbers, as the texts they were.

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
    """Return what was copied as this text: null as such, and what stands behind a backslash as what it means.

    A backslash itself is copied as two, between which what follows no longer means anything else: a character that no
    text of PostgreSQL has stands for it meanwhile.
    """
    meant = F.replace(value, F.lit("\\\\"), F.lit(_NO_CHARACTER))
    for letter, character in _ESCAPES.items():
        meant = F.replace(meant, F.lit("\\" + letter), F.lit(character))
    meant = F.replace(meant, F.lit(_NO_CHARACTER), F.lit("\\"))
    is_plain = ~F.contains(value, F.lit("\\"))
    return F.when(is_plain, value).when(value != r"\N", meant)


def _typed(raw: Column, kind: DataType) -> Column:
    if isinstance(kind, StringType):
        return raw
    if isinstance(kind, DoubleType | FloatType | DateType):
        return raw.try_cast(kind)
    return strict(raw, StringType(), kind)
