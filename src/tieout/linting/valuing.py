"""Judging the values that are set: those that a program does not take, and those that somebody else fills in."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from tieout.linting.pipeline import Part, Trouble
from tieout.linting.placeholders import is_placeholder
from tieout.linting.values import LOOKED_AT, OWN, is_mere_name, refusal

_QUOTED: Final = re.compile(r"""(["'])(?P<value>.*?)\1(?:\s*[#!;].*)?""")
_COMMENT: Final = re.compile(r"(?P<value>.*?)\s+(?:#|//|;).*", re.DOTALL)
_QUOTES: Final = "the quotes are part of the value there"
_BEHIND: Final = "what is behind it is no comment there, but part of the value"


def judged_values(part: Part, literal: Collection[str] = ()) -> tuple[frozenset[str], list[Trouble]]:
    """Return the settings whose values are not known, and what is to be told of values.

    `literal` are settings from a file in which quotes, and what looks like a comment behind a value, are part of it.
    """
    unknown, troubles = set(), []
    for setting, value in part.settings.items():
        trouble = _trouble(part, setting, value, is_literal=setting in literal)
        if trouble is None:
            continue
        troubles.append(trouble)
        if trouble.rule != "value_quoted":
            unknown.add(setting)
    return frozenset(unknown), troubles


def _trouble(part: Part, setting: str, value: str, *, is_literal: bool) -> Trouble | None:
    if setting not in LOOKED_AT[part.section] and setting not in OWN:
        return None
    if is_mere_name(part.section, setting):
        return _quoted(part, setting, value) if is_literal else None
    expected = refusal(part.section, setting, value, part.software, part.versions)
    is_open = is_placeholder(value) and not (is_literal and _QUOTED.fullmatch(value))
    if expected is None and not (is_open and _is_any_text(part, setting)):
        return None
    where, advice = _in(part.files.get(setting)), expected or "another value"
    if is_open:
        failure = f"a placeholder, which is filled in elsewhere: its value is left open{where}"
        return Trouble(
            "value_open", part.section, setting, value, failure, "declare what it is filled in with"
        )
    if not part.is_client_known:
        failure = f"no client that is known takes this value, so it is left open{where}"
        return Trouble("value_open", part.section, setting, value, failure, advice)
    reason = f": {_written_otherwise(value)}" if _written_otherwise(value) else ""
    failure = (
        f"none of the values that {' or '.join(part.software)} takes for it{where}{reason}; "
        "the program does not start with it, or goes by another value than is written"
    )
    return Trouble("value_unknown", part.section, setting, value, failure, advice)


def _is_any_text(part: Part, setting: str) -> bool:
    return refusal(part.section, setting, "", part.software, part.versions) is None


def _quoted(part: Part, setting: str, value: str) -> Trouble | None:
    reason = _written_otherwise(value)
    if reason is None:
        return None
    failure = f"{reason}{_in(part.files.get(setting))}"
    return Trouble("value_quoted", part.section, setting, value, failure, "write the value alone")


def _written_otherwise(value: str) -> str | None:
    """Return what is written around a value that the file's format takes for a part of it.

    >>> _written_otherwise('"all"'), _written_otherwise("all # safe"), _written_otherwise("all")
    ('the quotes are part of the value there', 'what is behind it is no comment there, but part of the value', None)
    """
    return next(_reasons(value), None)


def _reasons(value: str) -> Iterator[str]:
    if _QUOTED.fullmatch(value):
        yield _QUOTES
    if _COMMENT.fullmatch(value):
        yield _BEHIND


def _in(where: str | None) -> str:
    return f" (in {where})" if where else ""
