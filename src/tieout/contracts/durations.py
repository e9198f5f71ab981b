"""Durations in a contract: `15m`, `1h30m`, `250ms`, or ISO 8601 such as `PT15M`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_SHORT: Final = re.compile(
    r"(?:(?P<weeks>\d{1,12})w)?(?:(?P<days>\d{1,12})d)?(?:(?P<hours>\d{1,12})h)?"
    r"(?:(?P<minutes>\d{1,12})m)?(?:(?P<seconds>\d{1,12})s)?(?:(?P<milliseconds>\d{1,12})ms)?"
)
_ISO: Final = re.compile(
    r"P(?:(?P<weeks>\d{1,12})W)?(?:(?P<days>\d{1,12})D)?"
    r"(?:T(?:(?P<hours>\d{1,12})H)?(?:(?P<minutes>\d{1,12})M)?(?:(?P<seconds>\d{1,12}(?:\.\d{1,6})?)S)?)?"
)
LONGEST: Final = timedelta(days=36_525)
"""A hundred years; the sum of two such durations still fits a `timedelta`."""

PATTERN: Final = r"^(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$|^P[0-9WDTHMS.]+$"
"""A regular expression for editors: it refuses most wrong durations, `parse_duration` refuses all of them."""


def parse_duration(text: str) -> timedelta:
    """Return the duration of a text, at most a hundred years.

    >>> parse_duration("1h30m"), parse_duration("PT0.25S")
    (datetime.timedelta(seconds=5400), datetime.timedelta(microseconds=250000))

    Raises:
        ValueError: if the text is not a duration, or has months or years, whose length varies.
    """
    match = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    parts = (
        {} if match is None else {unit: float(n) for unit, n in match.groupdict().items() if n is not None}
    )
    if not parts or text.endswith("T"):
        raise ValueError(f"expected a duration such as 15m, 1h30m, 250ms, 7d or PT15M, found {text!r}")
    try:
        duration = timedelta(**parts)
    except OverflowError:
        duration = timedelta.max
    if duration > LONGEST:
        raise ValueError(f"expected a duration of at most a hundred years, found {text!r}")
    return duration


def format_duration(duration: timedelta) -> str:
    """Return the one canonical text of a duration that is not negative.

    >>> format_duration(timedelta(minutes=90)), format_duration(timedelta(0))
    ('1h30m', '0s')
    """
    millis, micros = divmod(duration.microseconds, 1000)
    if micros:
        return f"PT{duration.days * 86_400 + duration.seconds}.{duration.microseconds:06d}S"
    minutes, seconds = divmod(duration.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    counts = ((duration.days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s"), (millis, "ms"))
    return "".join(f"{count}{unit}" for count, unit in counts if count) or "0s"
