"""Files that Spring and Quarkus read together: `application.yml`, and beside it one for each profile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MEMBER: Final = re.compile(r"application(?:-(?P<profile>[\w.-]+))?(?P<kind>\.ya?ml|\.properties)")
_KINDS: Final = (".yml", ".yaml", ".properties")
"""The later kind counts. Docs: Spring Boot, Externalized Configuration, External Application Properties."""


@dataclass(frozen=True)
class Member:
    """A file of a family, and the profile with which it counts, empty where it always does."""

    file: Path
    profile: str = ""


def family_of(file: Path) -> tuple[Member, ...]:
    """Return the file and those that are read together with it, the one that counts last at the end.

    Raises nothing: where a folder cannot be listed, the file is alone.
    """
    if not _MEMBER.fullmatch(file.name):
        return (Member(file),)
    try:
        names = {each.name for each in file.parent.iterdir()} | {file.name}
    except OSError:
        names = {file.name}
    found = [match for match in map(_MEMBER.fullmatch, names) if match]
    found.sort(key=lambda match: (match["profile"] or "", _KINDS.index(match["kind"])))
    return tuple(Member(file.with_name(match[0]), match["profile"] or "") for match in found)
