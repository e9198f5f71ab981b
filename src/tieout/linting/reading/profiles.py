"""Profiles of Spring and Quarkus: settings that hold in some environments, and those that hold in all."""

from __future__ import annotations

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
_NEVER_DEPLOYED: Final = ("dev", "test")
_DEPLOYED: Final = "prod"


@dataclass(frozen=True)
class Selection:
    """Entries that hold together; `profile` is the one they are of, empty where they hold without any."""

    profile: str
    entries: tuple[Entry, ...]


def selections(documents: Sequence[Sequence[Entry]], chosen: str = "") -> list[Selection]:
    """Return what holds without a profile, and with each that the documents have, or of the chosen one alone.

    The later document counts. Which profile is active is said where the program is started, unless the file or the
    contract says it.
    """
    common: list[Entry] = []
    own: dict[str, list[Entry]] = {}
    active = chosen
    for document in documents:
        profile = next((e.value for e in document if e.written in _ON_PROFILE), "")
        active = active or next((e.value for e in document if e.written == _ACTIVE), "")
        for entry in document:
            marked, rest = _marked(entry)
            _into(own, common, marked or profile).append(rest)
    if _DEPLOYED in own and not active and any(entry.written.startswith("%") for entry in own[_DEPLOYED]):
        active = _DEPLOYED
    names = [name for name in own if name == active] or [
        name for name in own if name not in _NEVER_DEPLOYED or not _is_marked(own[name])
    ]
    with_profile = [Selection(name, (*common, *own[name])) for name in names]
    return with_profile if names == [active] else [Selection("", tuple(common)), *with_profile]


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
