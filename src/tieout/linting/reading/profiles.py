"""Profiles of Spring and Quarkus: settings that hold in some environments, and those that hold in all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tieout.linting.reading.entries import Entry

_ON_PROFILE: Final = (
    "spring.config.activate.on-profile",
    "spring.config.activate.on-cloud-platform",
    "spring.profiles",
)
_ACTIVE: Final = "spring.profiles.active"
_OR: Final = re.compile(r"\s*[,|]\s*")
_NEVER_DEPLOYED: Final = ("dev", "test")
_DEPLOYED: Final = "prod"


@dataclass(frozen=True)
class Selection:
    """Entries that hold together; `profile` is the one they are of, empty where they hold without any."""

    profile: str
    entries: tuple[Entry, ...]


def selections(documents: Sequence[Sequence[Entry]], chosen: str = "") -> list[Selection]:
    """Return what holds without a profile, and with each that the documents have; or with the active ones alone.

    The later document counts. Which profiles are active is said where the program is started, unless the file or the
    contract says it.
    """
    common: list[Entry] = []
    own: dict[str, list[Entry]] = {}
    said = chosen
    for document in documents:
        profile = next((e.value for e in document if e.written in _ON_PROFILE), "")
        said = said or next((e.value for e in document if e.written == _ACTIVE and not profile), "")
        for entry in document:
            marked, rest = _marked(entry)
            _into(own, common, marked or profile).append(rest)
    if not said and _is_marked(own.get(_DEPLOYED, ())):
        said = _DEPLOYED
    if not said:
        deployed = [name for name in own if name not in _NEVER_DEPLOYED or not _is_marked(own[name])]
        return [Selection("", tuple(common)), *(Selection(name, (*common, *own[name])) for name in deployed)]
    active = frozenset(_OR.split(said))
    held = tuple(entry for name in own if _is_active(name, active) for entry in own[name])
    unsure = [name for name in own if _is_active(name, active) is None]
    known = (*common, *held)
    return [
        Selection(said if held else "", known),
        *(Selection(name, (*known, *own[name])) for name in unsure),
    ]


def _is_active(profile: str, active: frozenset[str]) -> bool | None:
    """Return whether settings of the profile hold; None where it is an expression that is not worked out here.

    >>> [_is_active(text, frozenset(["prod"])) for text in ("prod", "dev | prod", "!dev", "dev", "prod & eu")]
    [True, True, True, False, None]
    """
    if "&" in profile or "(" in profile:
        return None
    words = _OR.split(profile)
    return any(word[1:] not in active if word.startswith("!") else word in active for word in words)


def _into(own: dict[str, list[Entry]], common: list[Entry], profile: str) -> list[Entry]:
    return own.setdefault(profile, []) if profile else common


def _is_marked(entries: Sequence[Entry]) -> bool:
    return any(entry.written.startswith("%") for entry in entries)


def _marked(entry: Entry) -> tuple[str, Entry]:
    """Return the profile that Quarkus's `%prod.` names, and the entry without it."""
    first = entry.segments[0]
    if not first.startswith("%") or len(first) == 1 or len(entry.segments) == 1:
        return "", entry
    return first[1:], replace(entry, segments=entry.segments[1:], leaf=max(entry.leaf - 1, 0))
