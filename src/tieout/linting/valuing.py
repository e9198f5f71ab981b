"""Checks the values of settings: values that no program accepts, and placeholders."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from tieout.linting.pipeline import Part, Trouble
from tieout.linting.placeholders import is_placeholder
from tieout.linting.values import CHECKED_SETTINGS, OWN_SETTINGS, is_name_only, refusal

_QUOTED: Final = re.compile(r"""(["'])(?P<value>.*?)\1(?:\s*[#!;].*)?""")
_COMMENT: Final = re.compile(r"(?P<value>.*?)\s+(?:#|//|;).*", re.DOTALL)
_QUOTES: Final = "the quotes are part of the value there"
_TRAILING_COMMENT: Final = "what is behind it is no comment there, but part of the value"


def judged_values(part: Part, literal: Collection[str] = ()) -> tuple[frozenset[str], list[Trouble]]:
    """Return the settings whose values are not known, and the problems of values.

    `literal` are settings from a file in which quotes and trailing comments are part of the value.
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
    if setting not in CHECKED_SETTINGS[part.section] and setting not in OWN_SETTINGS:
        return None
    if is_name_only(part.section, setting):
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
    reason = f": {_literal_part_reason(value)}" if _literal_part_reason(value) else ""
    failure = (
        f"none of the values that {' or '.join(part.software)} takes for it{where}{reason}; "
        "the program does not start with it, or goes by another value than is written"
    )
    return Trouble("value_unknown", part.section, setting, value, failure, advice)


def _is_any_text(part: Part, setting: str) -> bool:
    return refusal(part.section, setting, "", part.software, part.versions) is None


def _quoted(part: Part, setting: str, value: str) -> Trouble | None:
    reason = _literal_part_reason(value)
    if reason is None:
        return None
    failure = f"{reason}{_in(part.files.get(setting))}"
    return Trouble("value_quoted", part.section, setting, value, failure, "write the value alone")


def _literal_part_reason(value: str) -> str | None:
    """Return a remark on quotes or a comment that the file's format makes part of the value, or None.

    >>> _literal_part_reason('"all"'), _literal_part_reason("all # safe"), _literal_part_reason("all")
    ('the quotes are part of the value there', 'what is behind it is no comment there, but part of the value', None)
    """
    return next(_reasons(value), None)


def _reasons(value: str) -> Iterator[str]:
    if _QUOTED.fullmatch(value):
        yield _QUOTES
    if _COMMENT.fullmatch(value):
        yield _TRAILING_COMMENT


def _in(file: str | None) -> str:
    return f" (in {file})" if file else ""
