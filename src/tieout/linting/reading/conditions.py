"""Conditions of profiles, as Spring and Quarkus write them: `prod & eu`, `!test`, `(a | b) & c`, lists of these."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from tieout.linting.placeholders import is_placeholder

PLATFORM: Final = "cloud platform "
"""What is before the name of a platform, which stands in a condition as a profile does."""

_DEFAULT: Final = "default"
"""The profile that is active where no other one is. Docs: Spring Boot, Profiles."""

_TOKEN: Final = re.compile(r"[&|,()!]|[^&|,()!]+")


def profiles_in(condition: str) -> tuple[str, ...]:
    """Return the profiles that a condition names; all of it where somebody else fills it in.

    >>> profiles_in("prod & !eu, (a | prod)"), profiles_in("${A:b,c}")
    (('prod', 'eu', 'a'), ('${A:b,c}',))
    """
    words = (part for part in _tokens(condition) if part not in "&|,()!")
    return tuple(word for word in dict.fromkeys(words) if word != _DEFAULT)


def holds(condition: str, active: Collection[str]) -> bool:
    """Return whether the condition is met where these profiles are active; one that is no condition is not.

    >>> [holds(text, ["prod", "eu"]) for text in ("prod & eu", "!test", "a, eu", "(a | prod) & !eu", "prod & (", "a")]
    [True, True, True, False, False, False]
    >>> holds("default", []), holds("default", ["a"])
    (True, False)
    """
    names = {*active} if any(not name.startswith(PLATFORM) for name in active) else {*active, _DEFAULT}
    return _Reader(list(_tokens(condition)), names).any_of(",")


def _tokens(condition: str) -> Iterator[str]:
    if is_placeholder(condition) and not re.match(r"\s*!\s*\w", condition):
        yield condition
        return
    for found in _TOKEN.finditer(condition):
        if found[0].strip():
            yield found[0].strip()


@dataclass
class _Reader:
    """The way through a condition's words: lists of alternatives, of what holds together, of names and brackets."""

    words: list[str]
    names: Collection[str]

    def any_of(self, mark: str) -> bool:
        truths = [self._next(mark)]
        while self.words[:1] == [mark]:
            del self.words[0]
            truths.append(self._next(mark))
        return all(truths) if mark == "&" else any(truths)

    def _next(self, mark: str) -> bool:
        return self.any_of({",": "|", "|": "&"}[mark]) if mark != "&" else self._single()

    def _single(self) -> bool:
        word = self.words.pop(0) if self.words else ""
        if word == "!":
            return not self._single()
        if word != "(":
            return word in self.names
        truth = self.any_of(",")
        del self.words[:1]
        return truth
