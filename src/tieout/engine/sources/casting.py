"""Strict casts into the canonical types: a value is converted exactly, or to null.

Spark's own casts are too lenient (`17.5` becomes 17) or too strict (one wrong value fails the job); here a wrong
value is null, and the caller can compare with the input to see that it was not null before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from tieout.engine.limits import EARLIEST_MILLIS, LARGEST, LATEST_MILLIS

_LONG: Final = LongType()
_WHOLE: Final = r"^\s*([+-]?(?:[0-9]+(?=\.?\s*$)|[0-9]{1,15}(?=\.0)))(?:\.0*)?\s*$"
"""A whole number; one with a fraction of zeros was a double, and is exact up to 15 digits."""
_IN_FULL: Final = "|".join(rf"\.[0-9]{{{power},}}[eE]\+{power}" for power in range(1, 16))
"""At least as many digits after the point as the exponent shifts it, so that no digit of the number is missing."""
_LARGE: Final = rf"^-?[0-9]{{1,17}}((\.[0-9]+)?([eE]([0-9]|1[0-5]))?|(\.[0-9]+)?[eE]\+0|{_IN_FULL})$"
"""Other notations of doubles; a whole one below 2^53 is exact.

Java writes `1.2E7` if the other digits are zeros. With a `+` a spreadsheet or C's `%g` may have rounded the number to a
few digits, so that `1.79517E+12` may be any time within hours.
"""
_WITH_PLUS: Final = r"^\s*-?[0-9]+(\.[0-9]*)?[eE]\+[0-9]+\s*$"
_OF_A_LARGE_DOUBLE: Final = r"^\s*-?[0-9]\.[0-9]+[eE](1[6-9]|[2-9][0-9]|[123][0-9]{2})\s*$"
"""How Java prints a double from 10^16 on, which is beyond what doubles hold exactly."""
_EXACT: Final = 9007199254740992
"""Below 2^53 a double holds a whole number exactly; 2^53 itself may have been 2^53 + 1."""
_SINGLE_EXACT: Final = 16777216
"""The same limit for single precision: 2^24."""
_DATE: Final = r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}"
_OF_DAY: Final = r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?)"
_MINUTE: Final = rf"^({_DATE}[Tt ][0-9]{{2}}:[0-9]{{2}})(?!:)"
_PROGRAM_TIME: Final = (
    rf"^{_DATE}[Tt ][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.,][0-9]+)?)?"
    r" ?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)(\[[A-Za-z0-9_+/-]+\])?\s*$"
)
"""Times with a zone that Spark's cast rejects: without seconds, in lower case, or with a zone name after the offset.

Java omits seconds of 0, and prints `2026-11-20T11:00+01:00[Europe/Berlin]` for a time with a zone name.
Docs: `OffsetDateTime.toString`, `ZonedDateTime.toString`; RFC 3339, section 5.6; RFC 9557.
"""
_DAY_MILLIS: Final = 86_400_000


def strict(value: Column, source: DataType, target: DataType, *, takes_dates: bool = True) -> Column:
    """Return the value as the target type; null if it is not valid.

    Text is kept unchanged, without trimming. A whole floating-point number becomes the text of that number, null above
    the limit of exact numbers. Times are ISO 8601, with a point or a comma before the fraction, in UTC if no zone is
    given, or milliseconds since 1970, in the years 1 to 9999; microseconds are kept. A date is its midnight, or null
    without `takes_dates`. A whole number is below 2^62, and may be written `17`, `"17"` or `17.0`; `1.7E+12` lacks most
    digits, so it is not valid.
    """
    if isinstance(source, NullType):
        return F.lit(None).cast(target)
    if isinstance(target, StringType):
        return _text(value, source)
    if isinstance(target, TimestampType):
        return _time(value, source, takes_dates=takes_dates)
    if isinstance(target, IntegralType):
        return _whole(value, source, target)
    if isinstance(target, BooleanType):
        return value if isinstance(source, BooleanType) else _text(value, source).try_cast(target)
    return _nested(value, source, target)


def _text(value: Column, source: DataType) -> Column:
    if isinstance(source, StringType):
        # Of a collation the text alone is kept: ids and digests that differ in capitals are two.
        return value if source == StringType() else value.cast("string")
    if isinstance(source, BinaryType):
        return F.lower(F.hex(value))
    if isinstance(source, StructType | ArrayType | MapType | VariantType):
        return F.to_json(value)
    if isinstance(source, DoubleType | FloatType):
        limit = _SINGLE_EXACT if isinstance(source, FloatType) else _EXACT
        return _bound(value, lambda number: _digits(number, limit))
    return value.cast("string")


def _digits(number: Column, limit: int) -> Column:
    """Return the floating-point number as text, a whole one without its point; null from the limit on, and for NaN."""
    whole = F.when(number == F.floor(number), number.cast("bigint").cast("string"))
    return F.when(F.abs(number) < limit, F.coalesce(whole, number.cast("string")))


def _whole(value: Column, source: DataType, target: DataType) -> Column:
    if isinstance(source, IntegralType):
        return _countable(value.try_cast(target), target)
    if isinstance(source, StringType):
        whole = F.coalesce(F.regexp_extract(value, _WHOLE, 1).try_cast(target), _large(value, target))
        return _bound(whole, lambda number: _countable(number, target))
    if isinstance(source, NumericType):
        whole = value.try_cast("decimal(38,0)")
        is_whole = value == F.floor(value)
        if isinstance(source, DoubleType | FloatType):
            is_whole &= F.abs(value) < (_SINGLE_EXACT if isinstance(source, FloatType) else _EXACT)
        return _bound(F.when(is_whole, whole.try_cast(target)), lambda number: _countable(number, target))
    return F.lit(None).cast(target)


def _countable(number: Column, target: DataType) -> Column:
    """Return the number if it is in the range of runs, else null."""
    return F.when(number.between(-LARGEST, LARGEST), number) if isinstance(target, LongType) else number


def _large(value: Column, target: DataType) -> Column:
    """Return the whole number of a text such as `1.2345678E7`, null for any other text."""

    def whole(number: Column) -> Column:
        is_whole = (number == F.floor(number)) & (F.abs(number) < _EXACT)
        return F.when(is_whole, number.try_cast(target))

    return _bound(F.when(value.rlike(_LARGE), value.try_cast("double")), whole)


def is_rounded_text(value: Column) -> Column:
    """Return whether a text is a number that a spreadsheet rounded, such as `1.79517E+12`."""
    return value.rlike(_WITH_PLUS)


def is_rounded_id(value: Column) -> Column:
    """Return whether a text is a number that lacks digits: in a notation with an exponent, two ids may be one text."""
    is_rounded = is_rounded_text(value) & ~value.rlike(_LARGE)
    return (F.contains(value, F.lit("+")) & is_rounded) | (
        F.contains(value, F.lit(".")) & value.rlike(_OF_A_LARGE_DOUBLE)
    )


def _bound(value: Column, use: Callable[[Column], Column]) -> Column:
    """Return `use` applied to the value, which is evaluated once, however often `use` refers to it.

    Spark generates code for every reference, and Java never compiles methods of more than 8,000 bytes (Spark's
    `CodeGenerator`, `DEFAULT_JVM_HUGE_METHOD_LIMIT`): conforming took eight times as long.
    """
    return F.get(F.transform(F.array(value), use), 0)


def is_date_text(value: Column) -> Column:
    """Return whether a text is a date without a time of day."""
    return value.rlike(rf"^{_DATE}\s*$")


def _time(value: Column, source: DataType, *, takes_dates: bool) -> Column:
    if isinstance(source, TimestampType):
        return in_calendar(value, source)
    if isinstance(source, DateType) and not takes_dates:
        return F.lit(None).cast("timestamp")
    if isinstance(source, TimestampNTZType | DateType):
        return in_calendar(value, source).cast("timestamp")
    if isinstance(source, StringType):
        form = rf"^{_DATE}{_OF_DAY}{'?' if takes_dates else ''}\s*$"
        written = F.when(value.rlike(form), F.replace(value, F.lit(","), F.lit(".")).try_cast("timestamp"))
        times = _bound(written, lambda time: in_calendar(time, TimestampType()))
        in_program_form = _bound(_in_program_form(value), lambda time: in_calendar(time, TimestampType()))
        return F.coalesce(times, _bound(_whole(value, source, _LONG), _millis), in_program_form)
    if isinstance(source, NumericType):
        return _millis(_whole(value, source, _LONG))
    return F.lit(None).cast("timestamp")


def _in_program_form(value: Column) -> Column:
    """Return the time of a text in a form of ISO 8601 that Spark's cast rejects, else null."""
    normalized = F.substring_index(F.regexp_replace(value, _MINUTE, "$1:00"), "[", 1)
    return F.when(value.rlike(_PROGRAM_TIME), F.translate(normalized, ",tz", ".TZ").try_cast("timestamp"))


def in_calendar(value: Column, kind: DataType) -> Column:
    """Return the date or time if it is in the years 1 to 9999, the range of Python and of casts, else null."""
    if isinstance(kind, DateType):
        days = F.unix_date(value)
        return F.when(days.between(EARLIEST_MILLIS // _DAY_MILLIS, LATEST_MILLIS // _DAY_MILLIS), value)
    # Of a time without a zone the same number is asked for: a cast changes none in UTC.
    micros = F.unix_micros(value.cast("timestamp"))
    return F.when(micros.between(EARLIEST_MILLIS * 1000, LATEST_MILLIS * 1000 + 999), value)


def _millis(value: Column) -> Column:
    return F.timestamp_millis(F.when(value.between(EARLIEST_MILLIS, LATEST_MILLIS), value))


def _nested(value: Column, source: DataType, target: DataType) -> Column:
    if isinstance(source, StringType):
        return F.from_json(value, target.simpleString(), {"mode": "PERMISSIVE"})
    if isinstance(source, ArrayType | StructType | MapType):
        return value.try_cast(target)
    return F.lit(None).cast(target)
