"""The largest numbers and times that evidence may state, so that nothing that a run computes from them overflows.

An offset of 2^63 - 1 fits its column, but the next one does not; the difference of two sequences may be twice as
large as either. So whole numbers end at 2^62, which no counter reaches, and times end with Python's calendar. A larger
value is a fault of its row.
"""

from __future__ import annotations

from typing import Final

LARGEST: Final = (1 << 62) - 1
"""The largest whole number, and below zero the smallest."""
LARGEST_INT: Final = (1 << 31) - 1
"""The largest partition number, leader epoch and producer epoch."""
LATEST_MILLIS: Final = 253402300799999
"""The last millisecond of the year 9999."""
EARLIEST_MILLIS: Final = -62135596800000
"""The first millisecond of the year 1."""
EXPECTED_TIME: Final = "a time of the years 1 to 9999"
_DIGITS: Final = 19
_SHOWN: Final = 40


def is_time(millis: int) -> bool:
    """Return whether this many milliseconds since 1970 are a time of the calendar."""
    return EARLIEST_MILLIS <= millis <= LATEST_MILLIS


def number_in(text: str, largest: int = LARGEST) -> int | None:
    """Return the whole number in a text, None where it is none, or larger than `largest`.

    >>> number_in("17"), number_in("-1"), number_in("9" * 5000), number_in("4", largest=3), number_in("x")
    (17, -1, None, None, None)
    """
    digits = text.removeprefix("-")
    if (
        not (digits.isascii() and digits.isdecimal())
        or len(digits.lstrip("0")) > _DIGITS
        or len(digits) > _SHOWN
    ):
        return None
    number = int(text)
    return number if abs(number) <= largest else None


def shown(text: str) -> str:
    """Return the text for a message, cut short.

    >>> shown("17"), len(shown("9" * 5000))
    ('17', 41)
    """
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
