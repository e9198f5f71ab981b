"""Profiles of Spring and Quarkus: settings that hold in some environments, and those that hold in all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from typing import Final

from tieout.linting.placeholders import is_placeholder
from tieout.linting.reading.conditions import PLATFORM, holds, profiles_in
from tieout.linting.reading.entries import Entry, key_of

OF_FILE: Final = "profile of the file"
"""The name of an entry that says with which profile its file counts."""

_ON_PROFILE: Final = ("spring.config.activate.onprofile", "spring.profiles", OF_FILE)
_ON_PLATFORM: Final = "spring.config.activate.oncloudplatform"
_ACTIVE: Final = ("spring.profiles.active", "quarkus.profile", "smallrye.config.profile", "mp.config.profile")
_INCLUDED: Final = (
    "spring.profiles.include",
    "quarkus.config.profile.parent",
    "smallrye.config.profile.parent",
)
_GROUP: Final = ("spring", "profiles", "group")
_INDEX: Final = re.compile(r"\[\d+\]")
_OR: Final = re.compile(r"\s*[,|]\s*")
_MARK: Final = re.compile(r"%(?:\{(?P<several>[^{}]+)\}|(?P<one>.+))")
_NEVER_DEPLOYED: Final = frozenset(("dev", "test"))
_DEPLOYED: Final = "prod"
_MOST_COMBINED: Final = 64
_MOST_SIGNS: Final = 10_000
_MOST_NESTED: Final = 50


@dataclass(frozen=True)
class Selection:
    """Entries that hold together; `profile` is the condition under which they do, empty where they do without any."""

    profile: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class _Piece:
    """Entries under one condition, empty where they always hold; marked ones are Quarkus's `%prod.…`.

    `of_file` is the profile of a file that holds no other one's.
    """

    condition: str
    entries: tuple[Entry, ...]
    is_marked: bool = False
    of_file: str = ""


@dataclass(frozen=True)
class _Active:
    """The profiles that are known to be active, in their order; where it is open, others may be as well."""

    names: tuple[str, ...]
    is_open: bool


def selected(documents: Sequence[list[Entry]], profile: str) -> Iterator[Selection]:
    """Yield the first selection of the documents and of each file in them, and beside these each of the others."""
    files: dict[tuple[str, ...], dict[int, list[Entry]]] = {}
    for entry in (entry for document in documents for entry in document if entry.root):
        within = files.setdefault(entry.segments[: entry.root], {})
        within.setdefault(entry.document, []).append(entry)
    own = [[entry for entry in document if not entry.root] for document in documents]
    found = [
        selections(each, profile) for each in (own, *(list(within.values()) for within in files.values()))
    ]
    first = [each[0] for each in found]
    yield _together(first)
    for index, each in enumerate(found):
        for selection in each[1:]:
            yield _together([*first[:index], selection, *first[index + 1 :]])


def _together(chosen: Sequence[Selection]) -> Selection:
    names = ", ".join(dict.fromkeys(each.profile for each in chosen if each.profile))
    return Selection(names, tuple(entry for each in chosen for entry in each.entries))


def selections(documents: Sequence[Sequence[Entry]], chosen: str = "") -> list[Selection]:
    """Return what holds where no more profiles are active than are known to be, and with those that may be as well.

    The later document counts, of files that are profiles' own that of the later profile. Which profiles are active is
    said where the program is started, unless the file or the contract says it in plain words; what these include is
    active with them. Of those that may be, one, several or none are: each combination is a selection, unless they are
    very many.
    """
    pieces = [piece for document in documents for piece in _pieces(document)]
    active = _active(pieces, chosen)
    files = ("", *active.names)
    pieces.sort(key=lambda piece: (piece.is_marked, (*files, piece.of_file).index(piece.of_file)))
    found: dict[tuple[str, ...], Selection] = {}
    for more in _combined(pieces, active):
        held = tuple(
            dict.fromkeys(piece.condition for piece in pieces if _holds(piece, {*active.names, *more}))
        )
        if held not in found:
            found[held] = Selection(", ".join(filter(None, held)), _entries(pieces, held))
    return list(found.values())


def _combined(pieces: Sequence[_Piece], active: _Active) -> Iterator[frozenset[str]]:
    """Yield the profiles that may be active beside those that are: none, each, two of them, and so on.

    Where these are cut off, those that one condition names together come after them.
    """
    named = [tuple(_possible(piece, active)) for piece in pieces]
    names = dict.fromkeys(chain.from_iterable(named))
    several = chain.from_iterable(combinations(names, count) for count in range(len(names) + 1))
    yield from map(frozenset, islice(several, _MOST_COMBINED))
    yield from map(frozenset, named)


def _possible(piece: _Piece, active: _Active) -> Iterator[str]:
    """Yield the profiles of the piece that may be active: of Quarkus's marks never those of development and tests.

    Where it is known which are active, only what somebody else fills in, or a platform, may be one.
    """
    for name in profiles_in(piece.condition):
        is_never = piece.is_marked and name in _NEVER_DEPLOYED
        is_unknown = active.is_open or is_placeholder(name) or name.startswith(PLATFORM)
        if name not in active.names and is_unknown and not is_never:
            yield name


def _entries(pieces: Sequence[_Piece], conditions: Sequence[str]) -> tuple[Entry, ...]:
    return tuple(entry for piece in pieces if piece.condition in conditions for entry in piece.entries)


def _pieces(document: Sequence[Entry]) -> Iterator[_Piece]:
    """Yield what the document says under its own condition, and what each of Quarkus's marks is before."""
    conditions = [_said(document, (key,)) for key in _ON_PROFILE]
    conditions += [f"{PLATFORM}{entry.value}" for entry in document if key_of(entry) == _ON_PLATFORM]
    condition = _together_met([each for each in conditions if each])
    marked: dict[str, list[Entry]] = {}
    for entry in document:
        mark, rest = _marked(entry)
        marked.setdefault(mark, []).append(rest)
    of_file = _said(document, (OF_FILE,))
    yield _Piece(condition, tuple(marked.pop("", ())), of_file=of_file)
    for mark, entries in marked.items():
        yield _Piece(
            _together_met([each for each in (condition, mark) if each]),
            tuple(entries),
            is_marked=True,
            of_file=of_file,
        )


def _together_met(conditions: Sequence[str]) -> str:
    """Return the condition that all of them are met, a placeholder where that is too long to work out."""
    one = conditions[0] if len(conditions) == 1 else " & ".join(f"({each})" for each in conditions)
    is_long = len(one) > _MOST_SIGNS or one.count("(") + one.count("!") > _MOST_NESTED
    return "<long condition>" if is_long else one


def _active(pieces: Sequence[_Piece], chosen: str) -> _Active:
    """Return the profiles that the contract, or else the file, says are active, with those that they take in."""
    always = [piece for piece in pieces if not piece.condition]
    said = chosen or next((text for piece in reversed(always) if (text := _said(piece.entries, _ACTIVE))), "")
    is_deployed = any(piece.is_marked and _DEPLOYED in profiles_in(piece.condition) for piece in pieces)
    if not said and is_deployed:
        said = _DEPLOYED
    included = [_said(piece.entries, _INCLUDED) for piece in always]
    words = _words((*included, said))[::-1]
    groups = {name: members for piece in always for name, members in _groups(piece).items()}
    names: dict[str, None] = {}
    while words:
        name = words.pop()
        if name not in names:
            names[name] = None
            words += _words((groups.get(name, ""),))[::-1]
    is_changed = any(_said(piece.entries, (*_ACTIVE, *_INCLUDED)) for piece in pieces if piece.condition)
    is_filled_in = any(is_placeholder(name) for name in (*names, *groups))
    plain = tuple(name for name in names if not is_placeholder(name))
    return _Active(plain, is_open=not said or is_changed or is_filled_in)


def _words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in _OR.split(text) if word]


def _said(entries: Sequence[Entry], keys: tuple[str, ...]) -> str:
    return ",".join(entry.value for entry in entries if _INDEX.sub("", key_of(entry)) in keys)


def _groups(piece: _Piece) -> dict[str, str]:
    """Return the profiles that a name of the piece's groups stands for."""
    groups: dict[str, str] = {}
    for entry in piece.entries:
        segments = entry.segments[entry.root :]
        if segments[: len(_GROUP)] == _GROUP and len(segments) > len(_GROUP):
            name = _INDEX.sub("", ".".join(segments[len(_GROUP) :]))
            groups[name] = f"{groups[name]},{entry.value}" if name in groups else entry.value
    return groups


def _holds(piece: _Piece, names: set[str]) -> bool:
    return not piece.condition or holds(piece.condition, names)


def _marked(entry: Entry) -> tuple[str, Entry]:
    """Return the profiles that Quarkus's `%prod.` or `%{prod,staging}.` names, and the entry without them."""
    before, (first, *rest) = entry.segments[: entry.root], entry.segments[entry.root :]
    found = _MARK.fullmatch(first)
    if found is None or not rest:
        return "", entry
    leaf = entry.leaf - 1 if entry.leaf > entry.root else entry.leaf
    return found["several"] or found["one"], replace(entry, segments=(*before, *rest), leaf=leaf)
