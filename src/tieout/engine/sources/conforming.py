"""Maps a source's own columns to the canonical ones by the contract, for every kind of source.

A row that does not conform is kept with the reason, and counted: a wrong value never silently becomes null. The
contract's expressions are analysed without Spark's ANSI mode, in which one wrong value would fail the whole job. A
failed conversion gives null there; so a row is faulty if an expression gives null although all its columns have a
value. An expression that may intentionally be null uses one of the functions in `MAY_BE_NULL`. A row for which `where`
is null is excluded, as in SQL; but if the condition has a negation the row is faulty, because `kind <> 'heartbeat'` is
probably meant to include rows without a kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tieout.contracts import LedgerSpec
from tieout.contracts.columns import CONTENT_COLUMNS
from tieout.engine.ledger import CONTENT_WORDS, SCHEMAS, UNKNOWN, lacking_word
from tieout.engine.limits import EXPECTED_TIME
from tieout.engine.sources.casting import in_calendar, strict
from tieout.engine.sources.constant_expressions import require_columns
from tieout.engine.sources.expressions import (
    NOT_ANALYSED,
    exact,
    expression_of,
    expressions_of,
    negates,
    numbers_in,
    require_plain,
)
from tieout.engine.sources.inexact_ids import REASON, is_inexact
from tieout.engine.sources.json_numbers import MARKED
from tieout.engine.sources.named_columns import head_of, heads_in, is_path, paths_of, without_literals
from tieout.engine.sources.omitted_columns import omitted_columns
from tieout.engine.sources.other_spellings import fault_of_spelling
from tieout.engine.sources.source import BLOCK, COUNT, FAULT, FILE, HIDDEN, LACKS, ROW, TEXT, UNSURE
from tieout.engine.sources.value_faults import VALUE, fault_of_row, fault_of_value, mismatch
from tieout.errors import SourceError
from tieout.model import Ledger

MAY_BE_NULL: Final = re.compile(
    r"\b(case|if|iff|nullif|nvl2|try_\w+|get_json_object|from_json|from_csv|element_at|get|null)\b|\[",
    re.IGNORECASE,
)
"""Functions and operators that say that an expression may intentionally be null."""
_BELONGS: Final = "_tieout_belongs"
_WHERE_IS_NULL: Final = (
    "where: expected true or false, found null, so nobody knows whether the row belongs to the ledger; say what null "
    "means with coalesce(…, false), coalesce(…, true), IS DISTINCT FROM or <=>"
)
_OMITTED: Final = "{}: no line has the field {}, so it is null in every row"


@dataclass(frozen=True)
class Conformed:
    """The canonical rows, faulty ones with a `FAULT`; `present` names the source's columns.

    `notes` say which texts were stored as another type. `left_out` are the rows that `where` excludes.
    """

    rows: DataFrame
    present: frozenset[str]
    notes: tuple[str, ...] = ()
    left_out: DataFrame | None = None


def empty_contents(
    spark: SparkSession, columns: Mapping[str, str], present: frozenset[str]
) -> dict[str, str]:
    """Return the values that content columns computed from one column have for an empty text.

    An empty unquoted field of CSV is read as null, but many programs write an empty text that way.
    """
    names = [name for name in CONTENT_COLUMNS if name in present and name != "record_timestamp"]
    expressions = {name: columns.get(name, f"`{name}`") for name in names}
    alone = {name: text for name, text in expressions.items() if len(heads_in(text)) == 1}
    heads = sorted({head for text in alone.values() for head in heads_in(text)})
    if not alone:
        return {}
    with lenient(spark):
        empty = spark.createDataFrame([("",) * len(heads)], heads)
        try:
            values = empty.select(*[F.expr(text).cast("string") for text in alone.values()]).collect()[0]
        except NOT_ANALYSED:
            return {}  # an expression fails on an empty text, so no row's value is made of one
    return {name: value for name, value in zip(alone, values, strict=True) if value is not None}


def conformed(source: DataFrame, ledger: Ledger, spec: LedgerSpec, *, takes_dates: bool = True) -> Conformed:
    """Return the source's rows in the ledger's schema, with `FAULT` and the place of faulty rows.

    Without `takes_dates` a date is not a valid time: with hourly windows it would always fall into that of midnight.

    | message_id | … | FAULT                             | FILE   | TEXT            |
    |------------|---|-----------------------------------|--------|-----------------|
    | 17         | … | null                              | a.json | null            |
    | null       | … | offset: expected a whole number … | a.json | {"offset": "x"} |

    Raises:
        SourceError: if an expression of the contract is not valid SQL or names an unknown column.
    """
    schema = SCHEMAS[ledger]
    names = [
        name
        for name in source.columns
        if name not in (*HIDDEN, COUNT, LACKS, UNSURE) and not name.startswith(MARKED)
    ]
    omitted = omitted_columns(spec, names)
    mapping = _mapping(schema, {k: v for k, v in spec.columns.items() if k not in omitted}, names)
    has_lacking, more = (
        LACKS in source.columns,
        [name for name in (COUNT, LACKS, UNSURE) if name in source.columns],
    )
    with lenient(source.sparkSession):
        computed = [text for text in (*mapping.values(), spec.where or "") if not is_path(text)]
        shielded = _with_known_times(source, {name for text in computed for name in heads_in(text)})
        valued, left_out = _with_values(shielded, ledger, spec, mapping, names)
        types = {field.name: field.dataType for field in valued.schema.fields}
        faults = [
            *(fault_of_value(types, ledger, field, takes_dates) for field in schema.fields),
            fault_of_row(ledger, frozenset(mapping)),
        ]
        fault = F.coalesce(F.col(FAULT), *[one for one in faults if one is not None])
        if spec.where is not None:
            # Else the condition is always true, and Spark pushes it down, through all that makes a fault.
            valued = valued.where(F.coalesce(F.col(_BELONGS), F.lit(False)) | F.col(FAULT).isNotNull())
        # Each step names the columns that the next one uses more than once, so that they are evaluated once.
        rows = (
            valued.select("*", *(_value_of(types, field, takes_dates) for field in schema.fields))
            .select(*schema.names, fault.alias(FAULT), FILE, TEXT, BLOCK, ROW, *more)
            .withColumn(TEXT, F.when(F.col(FAULT).isNotNull(), F.col(TEXT)))
        )
    notes = (*(_OMITTED.format(*one) for one in omitted.items()), *_notes(types, schema))
    present = frozenset(mapping)
    if UNSURE in source.columns:
        rows = _without_unsure(rows, mapping).drop(UNSURE)
    if not has_lacking:
        return Conformed(rows, present, notes, left_out)
    with_content = rows.withColumn("content", _content_with_lacking(mapping)).drop(LACKS)
    return Conformed(with_content, present | {"content"}, notes, left_out)


def _without_unsure(rows: DataFrame, mapping: Mapping[str, str]) -> DataFrame:
    """Return the rows with null for content computed from values that may be inexact: it is unknown.

    An id computed from such a value is kept: it matches its message, or none.
    """
    made = [
        (name, F.arrays_overlap(UNSURE, F.array(*[F.lit(head.lower()) for head in sorted(heads_in(text))])))
        for name, text in mapping.items()
        if name in CONTENT_COLUMNS and heads_in(text)
    ]
    is_any = reduce(Column.__or__, [F.coalesce(is_made, F.lit(False)) for _, is_made in made], F.lit(False))
    contents = {name: F.when(~F.coalesce(is_made, F.lit(False)), F.col(name)) for name, is_made in made}
    return rows.withColumns({**contents, "content": F.when(is_any, UNKNOWN).otherwise(F.col("content"))})


def _content_with_lacking(mapping: Mapping[str, str]) -> Column:
    """Return `content`; for rows without it, it names the content columns that their file lacks."""
    lacking_columns = [
        F.when(
            F.arrays_overlap(LACKS, F.array(*[F.lit(head.lower()) for head in sorted(heads_in(text))])), name
        )
        for name, text in mapping.items()
        if name in CONTENT_COLUMNS and heads_in(text)
    ]
    names = F.array_compact(F.array(*lacking_columns)) if lacking_columns else F.array().cast("array<string>")
    return F.coalesce("content", F.when(F.size(names) > 0, lacking_word(names)))


def _notes(types: Mapping[str, DataType], schema: StructType) -> Iterator[str]:
    for field in schema.fields:
        kind = types.get(VALUE + field.name)
        if isinstance(field.dataType, StringType) and isinstance(kind, DoubleType | FloatType):
            yield f"{field.name}: its source has floating-point numbers; 101.0 is read as 101"


def _with_known_times(source: DataFrame, used: set[str]) -> DataFrame:
    """Return the rows with null for dates and times outside of the calendar; such rows are faulty.

    Only for columns in `used`, which expressions compute with: casting such a date, or adding to such a time, fails the
    job in every mode.
    """
    heads = {name.lower() for name in used}
    kinds = (DateType, TimestampType, TimestampNTZType)
    fields = [
        field
        for field in source.schema.fields
        if isinstance(field.dataType, kinds) and field.name.lower() in heads and field.name not in HIDDEN
    ]
    if not fields:
        return source
    faults, times = [F.col(FAULT)], {}
    for field in fields:
        column = F.col(f"`{field.name.replace('`', '``')}`")
        times[field.name] = in_calendar(column, field.dataType)
        fault = mismatch(column.cast("string"), field.name, EXPECTED_TIME)
        faults.append(F.when(column.isNotNull() & times[field.name].isNull(), fault))
    return source.withColumns({FAULT: F.coalesce(*faults), **times})


def _with_values(
    source: DataFrame, ledger: Ledger, spec: LedgerSpec, mapping: Mapping[str, str], names: list[str]
) -> tuple[DataFrame, DataFrame | None]:
    """Return the hidden columns, whether a row belongs to the ledger, and the value of each mapped column.

    Also return the rows that `where` excludes; for them only the condition's columns must be read.
    """
    place, numbers = f"ledgers.{ledger}", numbers_in(source)
    require_plain(source, spec.expressions_by_path(place), written=lambda text: exact(text, numbers))
    belongs, doubt, left_out = F.lit(True), F.lit(None).cast("string"), None
    if spec.where is not None and names:
        belongs = expression_of(source, spec.where, f"{place}.where", names, numbers)
        _check_boolean(source.select(belongs), place)
    values, failures = [], []
    expressions = expressions_of(source, mapping, f"{place}.columns", names, numbers)
    require_columns(mapping, spec.where if names else None, names, place)
    if spec.where is not None and names:
        is_failed = _is_failed(belongs, spec.where, names)
        doubt = F.when(is_failed, "where: a value does not convert")
        if negates(source.sparkSession, spec.where):
            doubt = doubt.when(belongs.isNull() & ~_is_of_the_broker(ledger, expressions), _WHERE_IS_NULL)
        spelling = fault_of_spelling(source, spec.where, names, "where")
        doubt = doubt if spelling is None else F.coalesce(doubt, spelling)
        is_other = ~F.coalesce(belongs, F.lit(False))
        left_out = source.where(is_other & F.coalesce(F.col(FAULT), doubt).isNull())
    for name, text in mapping.items():
        value = expressions[name]
        values.append(value.alias(VALUE + name))
        reason = F.lit(f"{name}: a value does not convert")
        failures.append(F.when(F.coalesce(belongs, F.lit(False)) & _is_failed(value, text, names), reason))
        spelling = fault_of_spelling(source, text, names, name)
        if spelling is not None:
            failures.append(F.when(F.coalesce(belongs, F.lit(False)), spelling))
        if name == "message_id":
            failures.append(F.when(is_inexact(source, text, names), REASON))
    kept = [
        F.col(name) for name in (*HIDDEN, COUNT, LACKS, UNSURE) if name != FAULT and name in source.columns
    ]
    fault = F.coalesce(F.col(FAULT), doubt, *failures)
    return source.select(*kept, belongs.alias(_BELONGS), fault.alias(FAULT), *values), left_out


def _is_of_the_broker(ledger: Ledger, expressions: Mapping[str, Column]) -> Column:
    """Return whether a row of the log is a transaction marker, or states only bounds: no application wrote it."""
    if ledger is not Ledger.LOG:
        return F.lit(False)
    is_control, offset = expressions.get("is_control", F.lit(False)), expressions.get("offset")
    is_marker = F.coalesce(is_control.cast("boolean"), F.lit(False))
    return is_marker if offset is None else is_marker | offset.isNull()


def _mapping(schema: StructType, columns: Mapping[str, str], names: list[str]) -> dict[str, str]:
    """Return the expression of every canonical column that the source has, in the order of the schema."""
    if not names:
        return {}
    source_names = {name.lower(): name for name in names}
    mapping = {}
    for name in schema.names:
        if name in columns:
            mapping[name] = columns[name]
        elif name in source_names:
            mapping[name] = _own_column(name, source_names[name])
    return mapping


def _own_column(name: str, source_name: str) -> str:
    """Return the expression of a canonical column that the source has under the same name.

    Many sources have a message's payload in `content`: without a mapping only canonical values are used, and others are
    null. If the contract maps the column, another value is an error.
    """
    if name != "content":
        return f"`{source_name}`"
    allowed = ", ".join(f"'{content_word}'" for content_word in sorted(CONTENT_WORDS))
    return f"if(cast(`{source_name}` as string) in ({allowed}), cast(`{source_name}` as string), null)"


def _is_failed(value: Column, text: str, names: list[str]) -> Column:
    """Return whether the expression gives null although all columns that it names have a value."""
    if is_path(text) or MAY_BE_NULL.search(without_literals(text)):
        return F.lit(False)
    source_names = {name.lower() for name in names}
    paths = sorted({path for path in paths_of(text) if head_of(path).lower() in source_names})
    has_values = [F.expr(path).isNotNull() for path in paths]
    if not has_values:
        return F.lit(False)
    failed = value.isNull()
    for has_value in has_values:
        failed = failed & has_value
    return failed


def _value_of(types: Mapping[str, DataType], field: StructField, takes_dates: bool) -> Column:
    name = VALUE + field.name
    if name not in types:
        return F.expr(f"CAST(NULL AS {field.dataType.simpleString()}) AS {field.name}")
    value = strict(F.col(name), types[name], field.dataType, takes_dates=takes_dates)
    if field.name == "message_id":
        # An empty text is no id: it would make one message of all rows without an id.
        value = F.nullif(value, F.lit(""))
    if field.name == "record_timestamp":
        # A record keeps milliseconds of what its producer says. Source: "Record" in Kafka's "Message Format".
        value = F.date_trunc("millisecond", value)
    return value.alias(field.name)


def _check_boolean(belongs: DataFrame, place: str) -> None:
    kind = belongs.schema[0].dataType
    if not isinstance(kind, BooleanType):
        raise SourceError(
            f"{place}.where: expected a condition, found an expression of type {kind.simpleString()}"
        )


@contextmanager
def lenient(spark: SparkSession) -> Iterator[None]:
    """Analyse the block's expressions without ANSI mode; they keep the mode that they were analysed in."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
