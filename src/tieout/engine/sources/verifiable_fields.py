"""Expressions over the fields of events of Kafka's verifiable clients."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.engine.sources.source import TEXT

_VALUE: Final = r"^(?:(.*)\.)?([0-9]{1,18})$"
ANSWERS: Final = ("producer_send_success", "producer_send_error")
"""The events that answer one send."""
UNCOUNTABLE: Final = 10**18
"""The value of a total that is larger, or no number: no client sends or consumes so many."""


def event_time(column: str = "timestamp") -> Column:
    """Return the event's time, or null where it has none that can be one."""
    millis = F.col(column).try_cast("bigint")
    return F.timestamp_millis(F.when(millis.between(0, 253402300799999), millis))


def number_of(column: str) -> Column:
    """Return the number that a value of the producer counts with: 17 of `17` and of `2.17`, else null."""
    number = F.regexp_extract(column, _VALUE, 2)
    return F.when(number != "", number.try_cast("bigint"))


def prefix_of(column: str) -> Column:
    """Return the prefix of the number: `2` of `2.17`, empty for `17`."""
    return F.regexp_extract(column, _VALUE, 1)


def is_true(column: str) -> Column:
    """Return whether a JSON field is true; false, never null, without it."""
    return F.coalesce(F.lower(column) == "true", F.lit(False))


def hashed(column: str) -> Column:
    """Return the SHA-256 of the text's UTF-8 bytes, in hexadecimal."""
    return F.sha2(F.encode(column, "UTF-8"), 256)


def content_state() -> Column:
    """Return `unknown` where a line does not say which key its record has: third-party clients leave it out."""
    return F.when(~F.col(TEXT).rlike(r'"key"\s*:'), "unknown")
