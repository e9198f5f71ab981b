"""Which versions of a program a contract may mean: `java-3.0` is any 3.0.x, `java` any at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_CLIENT: Final = re.compile(r"(?P<name>[A-Za-z][A-Za-z_-]*?)(?:[-_ ]?v?(?P<version>\d+(?:\.\d+){0,3}))?")
_NEVER: Final = 1_000_000
_LENGTH: Final = 4

Point = tuple[int, ...]


@dataclass(frozen=True)
class Versions:
    """A half-open range of versions; `text` is what was declared, empty for all of them."""

    low: Point = (0,) * _LENGTH
    high: Point = (_NEVER,) * _LENGTH
    text: str = ""

    @classmethod
    def of(cls, text: str) -> Versions:
        """Return the versions that begin with these numbers.

        >>> Versions.of("3.0").overlap("3.0.1", "3.1")
        True
        >>> Versions.of("3.0").overlap("3.1", "")
        False
        """
        numbers = [int(number) for number in text.split(".")]
        return cls(_padded(numbers), _padded([*numbers[:-1], numbers[-1] + 1]), text)

    @classmethod
    def since(cls, text: str) -> Versions:
        """Return that version and all later ones; all there are for an empty text."""
        return cls(low=_point(text)) if text else cls()

    def is_among(self, released: Mapping[int, int | None]) -> bool:
        """Return whether there are such versions, where `released` has the last minor one of each major one.

        >>> [Versions.of(text).is_among({3: 9, 4: None}) for text in ("3", "3.9.1", "4.7", "3.10", "17")]
        [True, True, True, False, False]
        """
        major, *more = (int(number) for number in self.text.split("."))
        last = released.get(major, -1)
        return last is None or (more[0] if more else 0) <= last

    def overlap(self, since: str, until: str) -> bool:
        """Return whether some of the versions are at or after `since` and before `until`; empty is unbounded."""
        first = _point(since) if since else (0,) * _LENGTH
        end = _point(until) if until else (_NEVER,) * _LENGTH
        return self.low < end and first < self.high

    def within(self, since: str) -> bool:
        """Return whether all of the versions are at or after `since`."""
        return self.low >= _point(since)


ALL: Final = Versions()


def split_client(text: str) -> tuple[str, Versions] | None:
    """Return the program and its versions that a contract's `client` names; None where it is no such text.

    >>> name, versions = split_client("kafka-python-2.2")
    >>> name, versions.text
    ('kafka-python', '2.2')
    """
    found = _CLIENT.fullmatch(text.strip())
    if found is None:
        return None
    version = found["version"]
    return found["name"].lower(), Versions.of(version) if version else Versions()


def _point(text: str) -> Point:
    return _padded([int(number) for number in text.split(".")])


def _padded(numbers: list[int]) -> Point:
    return tuple([*numbers, *[0] * _LENGTH][:_LENGTH])
