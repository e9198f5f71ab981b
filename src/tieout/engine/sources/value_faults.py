"""Why a value of a source is not valid as a ledger's column, or a row as a ledger's row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    TimestampType,
)

from tieout.engine.ledger import CONTENT_WORDS, EFFECT_OUTCOMES, OUTCOMES, TRANSACTION_STATES
from tieout.engine.sources.casting import is_date_text, is_rounded_id, is_rounded_text
from tieout.model import Ledger

VALUE: Final = "_tieout_value_"
"""Prefix of the columns that hold what a source has for a ledger's column, before it is cast."""
_OF_THE_LOG: Final = ("offset", "log_start_offset", "last_stable_offset", "end_offset")
"""Columns of which a row of the log must have at least one."""
SHOWN_TEXT: Final = 80
_OF_DAY: Final = "a time of day beside the date, as the window is shorter than a day"
_ALL_DIGITS: Final = (
    "a number with all its digits (spreadsheets round long ones; take the file from before that)"
)


def fault_of_value(
    types: Mapping[str, DataType], ledger: Ledger, field: StructField, takes_dates: bool
) -> Column | None:
    """Return why the column's value is not valid for its type or its allowed values; null if it is, or is null.

    Return None for columns that need no check: unmapped ones, and those that already have the type, unless `strict`
    rejects some of its values.
    """
    name = VALUE + field.name
    if name not in types:
        return None
    allowed = _words(ledger, field.name)
    if allowed:
        expected = f"one of {', '.join(sorted(allowed))}"
        return F.when(~F.col(field.name).isin(*allowed), mismatch(F.col(field.name), field.name, expected))
    if field.name == "message_id" and isinstance(types[name], StringType):
        text = F.col(name).cast("string")  # without the column's collation, which not every function takes
        return F.when(is_rounded_id(text), mismatch(text, field.name, _ALL_DIGITS))
    if types[name] == field.dataType and not isinstance(field.dataType, LongType | TimestampType):
        return None
    expected = _described(field.dataType)
    is_other = F.col(name).isNotNull() & F.col(field.name).isNull()
    if isinstance(field.dataType, StringType):
        return fault_of_text(F.col(name), F.col(field.name), types[name], field.name)
    raw = F.hex(name) if isinstance(types[name], BinaryType) else F.col(name).cast("string")
    description = F.lit(expected)
    if isinstance(field.dataType, IntegralType | TimestampType) and isinstance(types[name], StringType):
        description = F.when(is_rounded_text(raw), _ALL_DIGITS).otherwise(description)
    if isinstance(field.dataType, TimestampType) and not takes_dates:
        description = F.when(is_date_text(raw), _OF_DAY).otherwise(description)
    return F.when(is_other, mismatch(raw, field.name, description))


def fault_of_text(value: Column, text: Column, kind: DataType, name: str) -> Column:
    """Return why a value has no text, null if it has one, or is none: NaN is what pandas writes for no value."""
    is_other, expected = value.isNotNull() & text.isNull(), "text"
    if isinstance(kind, DoubleType | FloatType):
        is_other &= ~F.isnan(value)
        power = 24 if isinstance(kind, FloatType) else 53
        expected = f"text, or a floating-point number below 2^{power}: from there on it may be another one"
    raw = F.hex(value) if isinstance(kind, BinaryType) else value.cast("string")
    return F.when(is_other, mismatch(raw, name, expected))


def mismatch(value: Column, name: str, expected: Column | str) -> Column:
    """Return the expected value of a column and the text that was found, shortened."""
    description = F.lit(expected) if isinstance(expected, str) else expected
    return F.concat(
        F.lit(f"{name}: expected "), description, F.lit(", found "), F.substring(value, 1, SHOWN_TEXT)
    )


def fault_of_row(ledger: Ledger, mapped: frozenset[str]) -> Column | None:
    """Return why the row is faulty as a whole, None if no row can be: one of the log is a record or states bounds."""
    if ledger is not Ledger.LOG or not mapped:
        return None
    stated = [F.col(VALUE + name).isNotNull() for name in _OF_THE_LOG if name in mapped]
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
