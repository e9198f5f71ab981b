"""Ranges of a program's versions in a contract: `java-3.0` is any 3.0.x, `java` any version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_CLIENT: Final = re.compile(r"(?P<name>[A-Za-z][A-Za-z_-]*?)(?:[-_ ]?v?(?P<version>\d+(?:\.\d+){0,3}))?")
_UNBOUNDED: Final = 1_000_000
_LENGTH: Final = 4

Point = tuple[int, ...]


@dataclass(frozen=True)
class Versions:
    """A half-open range of versions; `text` is the declared version, empty for all versions."""

    low: Point = (0,) * _LENGTH
    high: Point = (_UNBOUNDED,) * _LENGTH
    text: str = ""

    @classmethod
    def of(cls, text: str) -> Versions:
        """Return the versions that start with these numbers.

        >>> Versions.of("3.0").overlap("3.0.1", "3.1")
        True
        >>> Versions.of("3.0").overlap("3.1", "")
        False
        """
        numbers = [int(number) for number in text.split(".")]
        return cls(_padded(numbers), _padded([*numbers[:-1], numbers[-1] + 1]), text)

    @classmethod
    def since(cls, text: str) -> Versions:
        """Return that version and all later ones; all versions for an empty text."""
        return cls(low=_point(text)) if text else cls()

    def is_among(self, released: Mapping[int, int | None]) -> bool:
        """Return whether such versions were released; `released` has the last minor version of each major one.

        >>> [Versions.of(text).is_among({3: 9, 4: None}) for text in ("3", "3.9.1", "4.7", "3.10", "17")]
        [True, True, True, False, False]
        """
        major, *more = (int(number) for number in self.text.split("."))
        last = released.get(major, -1)
        return last is None or (more[0] if more else 0) <= last

    def overlap(self, since: str, until: str) -> bool:
        """Return whether some of the versions are in [`since`, `until`); an empty bound is unbounded."""
        first = _point(since) if since else (0,) * _LENGTH
        end = _point(until) if until else (_UNBOUNDED,) * _LENGTH
        return self.low < end and first < self.high

    def within(self, since: str) -> bool:
        """Return whether all of the versions are at or after `since`."""
        return self.low >= _point(since)


ALL: Final = Versions()


def split_client(text: str) -> tuple[str, Versions] | None:
    """Return the program and versions that a contract's `client` names; None if the text has another form.

    >>> name, versions = split_client("kafka-python-2.2")
    >>> name, versions.text
    ('kafka-python', '2.2')
    """
    match = _CLIENT.fullmatch(text.strip())
    if match is None:
        return None
    version = match["version"]
    return match["name"].lower(), Versions.of(version) if version else Versions()


def _point(text: str) -> Point:
    return _padded([int(number) for number in text.split(".")])


def _padded(numbers: list[int]) -> Point:
    return tuple([*numbers, *[0] * _LENGTH][:_LENGTH])
