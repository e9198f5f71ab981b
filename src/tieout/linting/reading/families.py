"""Files that Spring and Quarkus read together: `application.yml`, and one file per profile in the same folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MEMBER: Final = re.compile(r"application(?:-(?P<profile>[\w.-]+))?(?P<kind>\.ya?ml|\.properties)")
_KINDS: Final = (".yml", ".yaml", ".properties")
"""Later kinds override earlier ones. Docs: Spring Boot, Externalized Configuration, External Application Properties."""


@dataclass(frozen=True)
class Member:
    """A file of a family, and the profile that activates it, empty if it is always active."""

    file: Path
    profile: str = ""


def family_of(file: Path) -> tuple[Member, ...]:
    """Return the file and those that are read together with it; later ones override earlier ones.

    Raises nothing: if the folder cannot be listed, only the file is returned.
    """
    if not _MEMBER.fullmatch(file.name):
        return (Member(file),)
    try:
        names = {each.name for each in file.parent.iterdir()} | {file.name}
    except OSError:
        names = {file.name}
    matches = [match for match in map(_MEMBER.fullmatch, names) if match]
    matches.sort(key=lambda match: (match["profile"] or "", _KINDS.index(match["kind"])))
    return tuple(Member(file.with_name(match[0]), match["profile"] or "") for match in matches)
