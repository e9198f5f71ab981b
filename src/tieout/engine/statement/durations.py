"""Durations in words, for the notes and limits of a statement."""

from __future__ import annotations

from datetime import timedelta


def in_words(length: timedelta) -> str:
    """Return a length of time in words, to the second.

    >>> in_words(timedelta(hours=4, minutes=59, seconds=58)), in_words(timedelta(seconds=90)), in_words(timedelta())
    ('4 h 59 min 58 s', '1 min 30 s', '0 s')
    """
    seconds = round(length.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"
