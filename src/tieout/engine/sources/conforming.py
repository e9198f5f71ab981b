"""From a source's own columns to the canonical ones, as the contract maps them, for every kind of source.

A row that does not conform is kept beside the others with the reason, and counted: a wrong value is never
silently null. The contract's expressions are analysed without Spark's ANSI mode, in which one wrong value
would end the whole job. A conversion that fails gives null there; so an expression that gives null although
every column it names has a value makes the row a faulty one. An expression that may mean null says so by the
function it uses (`MAY_BE_NULL`). A row for which `where` is null is left out, as SQL has it; where the condition has a
negation it is a faulty one, for whoever writes `kind <> 'heartbeat'` wants the rows without a kind.
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
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tieout.contracts import LedgerSpec
from tieout.contracts.columns import CONTENT_COLUMNS
from tieout.engine.ledger import (
    CONTENT_WORDS,
    EFFECT_OUTCOMES,
    OUTCOMES,
    SCHEMAS,
    TRANSACTION_STATES,
    UNKNOWN,
    lacking_word,
)
from tieout.engine.limits import EXPECTED_TIME
from tieout.engine.sources.casting import in_calendar, is_date_text, is_rounded_text, strict
from tieout.engine.sources.expressions import (
    NOT_ANALYSED,
    exact,
    expression_of,
    expressions_of,
    negates,
    numbers_in,
    require_plain,
)
from tieout.engine.sources.json_numbers import MARKED
from tieout.engine.sources.named_columns import head_of, heads_in, is_path, paths_of, without_literals
from tieout.engine.sources.source import BLOCK, COUNT, FAULT, FILE, HIDDEN, LACKS, ROW, TEXT, UNSURE
from tieout.errors import SourceError
from tieout.model import Ledger

MAY_BE_NULL: Final = re.compile(
    r"\b(case|if|iff|nullif|nvl2|try_\w+|get_json_object|from_json|from_csv|element_at|get|null)\b|\[",
    re.IGNORECASE,
)
"""What in an expression says that null is one of its values."""
_BELONGS: Final = "_tieout_belongs"
_VALUE: Final = "_tieout_value_"
_OF_THE_LOG: Final = ("offset", "log_start_offset", "last_stable_offset", "end_offset")
"""What a row of the log states, one of them at least."""
_SHOWN_TEXT: Final = 80
_OF_DAY: Final = "a time of day beside the date, as the window is shorter than a day"
_ALL_DIGITS: Final = (
    "a number with all its digits (spreadsheets round long ones; take the file from before that)"
)
_NOBODY_KNOWS: Final = (
    "where: expected true or false, found null, so nobody knows whether the row belongs to the ledger; say what null "
    "means with coalesce(…, false), coalesce(…, true), IS DISTINCT FROM or <=>"
)


@dataclass(frozen=True)
class Conformed:
    """The canonical rows and, by `FAULT`, those that are none; `present` names the source's columns.

    `notes` say which texts were stored as another type. `left_out` are the rows that `where` leaves out.
    """

    rows: DataFrame
    present: frozenset[str]
    notes: tuple[str, ...] = ()
    left_out: DataFrame | None = None


def empty_contents(
    spark: SparkSession, columns: Mapping[str, str], present: frozenset[str]
) -> dict[str, str]:
    """Return what content columns that are made of one column are of an empty text.

    An unquoted field of CSV without a character is null, but many programs write an empty text so.
    """
    names = [name for name in CONTENT_COLUMNS if name in present and name != "record_timestamp"]
    made = {name: columns.get(name, f"`{name}`") for name in names}
    alone = {name: text for name, text in made.items() if len(heads_in(text)) == 1}
    heads = sorted({head for text in alone.values() for head in heads_in(text)})
    if not alone:
        return {}
    with lenient(spark):
        empty = spark.createDataFrame([("",) * len(heads)], heads)
        try:
            values = empty.select(*[F.expr(text).cast(StringType()) for text in alone.values()]).collect()[0]
        except NOT_ANALYSED:
            return {}  # an expression fails on an empty text, so no row's value is made of one
    return {name: value for name, value in zip(alone, values, strict=True) if value is not None}


def conformed(source: DataFrame, ledger: Ledger, spec: LedgerSpec, *, takes_dates: bool = True) -> Conformed:
    """Return the source's rows in the ledger's schema, beside them `FAULT` and the place of the faulty ones.

    Without `takes_dates` a date is no time: one of a window of an hour would lie in that of midnight.

    | message_id | … | FAULT                             | FILE   | TEXT            |
    |------------|---|-----------------------------------|--------|-----------------|
    | 17         | … | null                              | a.json | null            |
    | null       | … | offset: expected a whole number … | a.json | {"offset": "x"} |

    Raises:
        SourceError: where an expression of the contract is no SQL or names what is not there.
    """
    schema = SCHEMAS[ledger]
    names = [
        name
        for name in source.columns
        if name not in (*HIDDEN, COUNT, LACKS, UNSURE) and not name.startswith(MARKED)
    ]
    mapping = _mapping(schema, spec.columns, names)
    lacks, more = LACKS in source.columns, [name for name in (COUNT, LACKS, UNSURE) if name in source.columns]
    with lenient(source.sparkSession):
        computed = [text for text in (*mapping.values(), spec.where or "") if not is_path(text)]
        shielded = _with_known_times(source, {name for text in computed for name in heads_in(text)})
        valued, left_out = _with_values(shielded, ledger, spec, mapping, names)
        types = {field.name: field.dataType for field in valued.schema.fields}
        faults = [F.col(FAULT), *(_fault_of(types, ledger, field, takes_dates) for field in schema.fields)]
        fault = F.coalesce(*faults, _fault_of_row(ledger, frozenset(mapping)))
        # Each step names what the next one uses more than once: it is then worked out once.
        rows = (
            valued.where(F.coalesce(F.col(_BELONGS), F.lit(False)) | F.col(FAULT).isNotNull())
            .select("*", *(_value_of(types, field, takes_dates) for field in schema.fields))
            .select(*schema.names, fault.alias(FAULT), FILE, TEXT, BLOCK, ROW, *more)
            .withColumn(TEXT, F.when(F.col(FAULT).isNotNull(), F.col(TEXT)))
        )
    notes, present = tuple(_notes(types, schema)), frozenset(mapping)
    if UNSURE in source.columns:
        rows = _without_unsure(rows, mapping).drop(UNSURE)
    if not lacks:
        return Conformed(rows, present, notes, left_out)
    told = rows.withColumn("content", _content_with_lacking(mapping)).drop(LACKS)
    return Conformed(told, present | {"content"}, notes, left_out)


def _without_unsure(rows: DataFrame, mapping: Mapping[str, str]) -> DataFrame:
    """Return the rows without content that is made of what may not have been written so: it is unknown.

    An id that is made of it stays: it finds its message, or is none.
    """
    made = [
        (name, F.arrays_overlap(UNSURE, F.array(*[F.lit(head.lower()) for head in sorted(heads_in(text))])))
        for name, text in mapping.items()
        if name in CONTENT_COLUMNS and heads_in(text)
    ]
    is_any = reduce(Column.__or__, [F.coalesce(is_made, F.lit(False)) for _, is_made in made], F.lit(False))
    known = {name: F.when(~F.coalesce(is_made, F.lit(False)), F.col(name)) for name, is_made in made}
    return rows.withColumns({**known, "content": F.when(is_any, UNKNOWN).otherwise(F.col("content"))})


def _content_with_lacking(mapping: Mapping[str, str]) -> Column:
    """Return `content`, of rows that say nothing else with the content columns that their file does not have."""
    lacking = [
        F.when(
            F.arrays_overlap(LACKS, F.array(*[F.lit(head.lower()) for head in sorted(heads_in(text))])), name
        )
        for name, text in mapping.items()
        if name in CONTENT_COLUMNS and heads_in(text)
    ]
    names = F.array_compact(F.array(*lacking)) if lacking else F.array().cast("array<string>")
    return F.coalesce("content", F.when(F.size(names) > 0, lacking_word(names)))


def _notes(types: Mapping[str, DataType], schema: StructType) -> Iterator[str]:
    for field in schema.fields:
        kind = types.get(_VALUE + field.name)
        if isinstance(field.dataType, StringType) and isinstance(kind, DoubleType | FloatType):
            yield f"{field.name}: its source has floating-point numbers; 101.0 is read as 101"


def _with_known_times(source: DataFrame, used: set[str]) -> DataFrame:
    """Return the rows with null for dates and times outside of the calendar, whose rows are faulty ones.

    These are the columns, of `used`, that expressions compute with: to cast such a date, or to add to such a time, ends
    the job in every mode.
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
    faults, known = [F.col(FAULT)], {}
    for field in fields:
        column = F.col(f"`{field.name.replace('`', '``')}`")
        known[field.name] = in_calendar(column, field.dataType)
        found = _found(column.cast(StringType()), field.name, EXPECTED_TIME)
        faults.append(F.when(column.isNotNull() & known[field.name].isNull(), found))
    return source.withColumns({FAULT: F.coalesce(*faults), **known})


def _with_values(
    source: DataFrame, ledger: Ledger, spec: LedgerSpec, mapping: Mapping[str, str], names: list[str]
) -> tuple[DataFrame, DataFrame | None]:
    """Return the hidden columns, whether a row belongs to the ledger, and the value of each mapped column.

    Beside them what `where` leaves out, of which only what the condition asks for has to be read.
    """
    place, numbers = f"ledgers.{ledger}", numbers_in(source)
    require_plain(source, spec.expressions_by_path(place), written=lambda text: exact(text, numbers))
    belongs, doubt, left_out = F.lit(True), F.lit(None).cast(StringType()), None
    if spec.where is not None and names:
        belongs = expression_of(source, spec.where, f"{place}.where", names, numbers)
        _check_boolean(source.select(belongs), place)
    values, failures = [], []
    expressions = expressions_of(source, mapping, f"{place}.columns", names, numbers)
    if spec.where is not None and names:
        is_failed = _is_failed(belongs, spec.where, names)
        doubt = F.when(is_failed, "where: a value does not convert")
        if negates(source.sparkSession, spec.where):
            doubt = doubt.when(belongs.isNull() & ~_is_of_the_broker(ledger, expressions), _NOBODY_KNOWS)
        is_other = ~F.coalesce(belongs, F.lit(False))
        left_out = source.where(is_other & F.coalesce(F.col(FAULT), doubt).isNull())
    for name, text in mapping.items():
        value = expressions[name]
        values.append(value.alias(_VALUE + name))
        reason = F.lit(f"{name}: a value does not convert")
        failures.append(F.when(F.coalesce(belongs, F.lit(False)) & _is_failed(value, text, names), reason))
    kept = [
        F.col(name) for name in (*HIDDEN, COUNT, LACKS, UNSURE) if name != FAULT and name in source.columns
    ]
    fault = F.coalesce(F.col(FAULT), doubt, *failures)
    return source.select(*kept, belongs.alias(_BELONGS), fault.alias(FAULT), *values), left_out


def _is_of_the_broker(ledger: Ledger, expressions: Mapping[str, Column]) -> Column:
    """Return whether a row of the log is a transaction's marker, or states bounds alone: no application wrote it."""
    if ledger is not Ledger.LOG:
        return F.lit(False)
    is_control, offset = expressions.get("is_control", F.lit(False)), expressions.get("offset")
    is_marker = F.coalesce(is_control.cast(BooleanType()), F.lit(False))
    return is_marker if offset is None else is_marker | offset.isNull()


def _mapping(schema: StructType, columns: Mapping[str, str], names: list[str]) -> dict[str, str]:
    """Return the expression of every canonical column that the source has, in the order of the schema."""
    if not names:
        return {}
    own = {name.lower(): name for name in names}
    found = {}
    for name in schema.names:
        if name in columns:
            found[name] = columns[name]
        elif name in own:
            found[name] = _own_column(name, own[name])
    return found


def _own_column(name: str, source_name: str) -> str:
    """Return the expression of a canonical column that the source has under the same name.

    Many sources call a message's body `content`: there only the ledger's own word is one, and anything else says
    nothing. Where the contract maps the column, another word is a wrong value.
    """
    if name != "content":
        return f"`{source_name}`"
    words = ", ".join(f"'{word}'" for word in sorted(CONTENT_WORDS))
    return f"if(cast(`{source_name}` as string) in ({words}), cast(`{source_name}` as string), null)"


def _is_failed(value: Column, text: str, names: list[str]) -> Column:
    """Return whether the expression gives null although everything it names has a value."""
    if is_path(text) or MAY_BE_NULL.search(without_literals(text)):
        return F.lit(False)
    own = {name.lower() for name in names}
    paths = sorted({path for path in paths_of(text) if head_of(path).lower() in own})
    there = [F.expr(path).isNotNull() for path in paths]
    if not there:
        return F.lit(False)
    failed = value.isNull()
    for is_there in there:
        failed = failed & is_there
    return failed


def _value_of(types: Mapping[str, DataType], field: StructField, takes_dates: bool) -> Column:
    name = _VALUE + field.name
    if name not in types:
        return F.lit(None).cast(field.dataType).alias(field.name)
    value = strict(F.col(name), types[name], field.dataType, takes_dates=takes_dates)
    if field.name == "message_id":
        # An empty text names nothing: as an id it would make one message of all that has none.
        value = F.nullif(value, F.lit(""))
    if field.name == "record_timestamp":
        # A record keeps milliseconds of what its producer says. Source: "Record" in Kafka's "Message Format".
        value = F.date_trunc("millisecond", value)
    return value.alias(field.name)


def _fault_of(types: Mapping[str, DataType], ledger: Ledger, field: StructField, takes_dates: bool) -> Column:
    """Return why the column's value is not one of its type or of its words; null where it is, or is null.

    What has the very type is not asked, unless there are values of it that `strict` refuses.
    """
    name = _VALUE + field.name
    if name not in types:
        return F.lit(None).cast(StringType())
    words = _words(ledger, field.name)
    if words:
        expected = f"one of {', '.join(sorted(words))}"
        return F.when(~F.col(field.name).isin(*words), _found(F.col(field.name), field.name, expected))
    if types[name] == field.dataType and not isinstance(field.dataType, LongType | TimestampType):
        return F.lit(None).cast(StringType())
    expected = _described(field.dataType)
    is_other = F.col(name).isNotNull() & F.col(field.name).isNull()
    if isinstance(field.dataType, StringType) and isinstance(types[name], DoubleType | FloatType):
        # What pandas writes where there is no value.
        is_other &= ~F.isnan(name)
        power = 24 if isinstance(types[name], FloatType) else 53
        expected = f"text, or a floating-point number below 2^{power}: from there on it may be another one"
    raw = F.hex(name) if isinstance(types[name], BinaryType) else F.col(name).cast("string")
    told = F.lit(expected)
    if isinstance(field.dataType, IntegralType | TimestampType) and isinstance(types[name], StringType):
        told = F.when(is_rounded_text(raw), _ALL_DIGITS).otherwise(told)
    if isinstance(field.dataType, TimestampType) and not takes_dates:
        told = F.when(is_date_text(raw), _OF_DAY).otherwise(told)
    return F.when(is_other, _found(raw, field.name, told))


def _found(value: Column, name: str, expected: Column | str) -> Column:
    """Return what was expected of a column and the text that was found, cut short."""
    told = F.lit(expected) if isinstance(expected, str) else expected
    return F.concat(F.lit(f"{name}: expected "), told, F.lit(", found "), F.substring(value, 1, _SHOWN_TEXT))


def _fault_of_row(ledger: Ledger, mapped: frozenset[str]) -> Column:
    """Return why the row says nothing whatever its columns hold: one of the log is a record, or states bounds."""
    if ledger is not Ledger.LOG or not mapped:
        return F.lit(None).cast(StringType())
    stated = [F.col(_VALUE + name).isNotNull() for name in _OF_THE_LOG if name in mapped]
    expected = f"offset: expected a record's offset, or one of {', '.join(_OF_THE_LOG[1:])}"
    return F.when(~reduce(Column.__or__, stated, F.lit(False)), F.lit(expected))


def _words(ledger: Ledger, column: str) -> frozenset[str]:
    if column == "outcome":
        return OUTCOMES if ledger is Ledger.PRODUCED else EFFECT_OUTCOMES
    return {"transaction_state": TRANSACTION_STATES, "content": CONTENT_WORDS}.get(column, frozenset())


def _described(kind: DataType) -> str:
    if isinstance(kind, TimestampType):
        return (
            "an ISO 8601 time or milliseconds since 1970, of the years 1 to 9999 (others: "
            "timestamp_seconds(cast(COLUMN as bigint)), timestamp_micros(cast(COLUMN as bigint)), "
            "to_timestamp(COLUMN, FORMAT))"
        )
    if isinstance(kind, BooleanType):
        return "true or false"
    names = {"bigint": "a whole number below 2^62", "int": "a whole number below 2^31"}
    return names.get(kind.simpleString(), kind.simpleString())


def _check_boolean(belongs: DataFrame, place: str) -> None:
    kind = belongs.schema[0].dataType
    if not isinstance(kind, BooleanType):
        raise SourceError(
            f"{place}.where: expected a condition, found an expression of type {kind.simpleString()}"
        )


@contextmanager
def lenient(spark: SparkSession) -> Iterator[None]:
    """Analyse without ANSI mode what is built inside; expressions keep the mode they were analysed in."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
