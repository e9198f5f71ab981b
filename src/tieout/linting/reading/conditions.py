"""Conditions on profiles in Spring and Quarkus: `prod & eu`, `!test`, `(a | b) & c`, and lists of these."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from tieout.linting.placeholders import is_placeholder

PLATFORM: Final = "cloud platform "
"""Prefix of a platform's name, which a condition treats as a profile."""

_DEFAULT: Final = "default"
"""The profile that is active if no other one is. Docs: Spring Boot, Profiles."""

_TOKEN: Final = re.compile(r"[&|,()!]|[^&|,()!]+")


def profiles_in(condition: str) -> tuple[str, ...]:
    """Return the profiles that a condition names; the whole text if it contains a placeholder.

    >>> profiles_in("prod & !eu, (a | prod)"), profiles_in("${A:b,c}")
    (('prod', 'eu', 'a'), ('${A:b,c}',))
    """
    tokens = (part for part in _tokens(condition) if part not in "&|,()!")
    return tuple(name for name in dict.fromkeys(tokens) if name != _DEFAULT)


def holds(condition: str, active: Collection[str]) -> bool:
    """Return whether the condition is met with these active profiles; False if it does not parse.

    >>> [holds(text, ["prod", "eu"]) for text in ("prod & eu", "!test", "a, eu", "(a | prod) & !eu", "prod & (", "a")]
    [True, True, True, False, False, False]
    >>> holds("default", []), holds("default", ["a"])
    (True, False)
    """
    profiles = {*active} if any(not name.startswith(PLATFORM) for name in active) else {*active, _DEFAULT}
    return _Parser(list(_tokens(condition)), profiles).parse(",")


def _tokens(condition: str) -> Iterator[str]:
    if is_placeholder(condition) and not re.match(r"\s*!\s*\w", condition):
        yield condition
        return
    for match in _TOKEN.finditer(condition):
        if match[0].strip():
            yield match[0].strip()


@dataclass
class _Parser:
    """Evaluates a condition's tokens by recursive descent: `,` and `|`, then `&`, then names and parentheses."""

    tokens: list[str]
    names: Collection[str]

    def parse(self, mark: str) -> bool:
        truths = [self._next(mark)]
        while self.tokens[:1] == [mark]:
            del self.tokens[0]
            truths.append(self._next(mark))
        return all(truths) if mark == "&" else any(truths)

    def _next(self, mark: str) -> bool:
        return self.parse({",": "|", "|": "&"}[mark]) if mark != "&" else self._single()

    def _single(self) -> bool:
        symbol = self.tokens.pop(0) if self.tokens else ""
        if symbol == "!":
            return not self._single()
        if symbol != "(":
            return symbol in self.names
        truth = self.parse(",")
        del self.tokens[:1]
        return truth
