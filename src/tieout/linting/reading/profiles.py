"""Profiles of Spring and Quarkus: settings for some environments, and settings for all."""

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
"""The name of an entry with the profile that activates its file."""

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
_SEPARATOR: Final = re.compile(r"\s*[,|]\s*")
_PREFIX: Final = re.compile(r"%(?:\{(?P<several>[^{}]+)\}|(?P<one>.+))")
_DEVELOPMENT_PROFILES: Final = frozenset(("dev", "test"))
_DEPLOYED: Final = "prod"
_MOST_COMBINED: Final = 64
_LONGEST_CONDITION: Final = 10_000
_MOST_NESTED: Final = 50


@dataclass(frozen=True)
class Selection:
    """Entries that are active together; `profile` is their condition, empty if they are always active."""

    profile: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class _Piece:
    """Entries under one condition, empty if they are always active; marked ones have Quarkus's prefix `%prod.…`.

    `of_file` is the profile of a file for one profile.
    """

    condition: str
    entries: tuple[Entry, ...]
    is_marked: bool = False
    of_file: str = ""


@dataclass(frozen=True)
class _Active:
    """The profiles known to be active, in order; if `is_open`, others may be active too."""

    names: tuple[str, ...]
    is_open: bool


def selected(documents: Sequence[list[Entry]], profile: str) -> Iterator[Selection]:
    """Yield the first selection of all documents and embedded files, then the others, each in place of its first."""
    files: dict[tuple[str, ...], dict[int, list[Entry]]] = {}
    for entry in (entry for document in documents for entry in document if entry.root):
        by_index = files.setdefault(entry.segments[: entry.root], {})
        by_index.setdefault(entry.document, []).append(entry)
    outer = [[entry for entry in document if not entry.root] for document in documents]
    all_selections = [
        selections(file_documents, profile)
        for file_documents in (
            outer,
            *(list(by_index.values()) for by_index in files.values()),
        )
    ]
    first = [choices[0] for choices in all_selections]
    yield _merged(first)
    for index, choices in enumerate(all_selections):
        for selection in choices[1:]:
            yield _merged([*first[:index], selection, *first[index + 1 :]])


def _merged(chosen: Sequence[Selection]) -> Selection:
    names = ", ".join(dict.fromkeys(each.profile for each in chosen if each.profile))
    return Selection(names, tuple(entry for each in chosen for entry in each.entries))


def selections(documents: Sequence[Sequence[Entry]], chosen: str = "") -> list[Selection]:
    """Return the entries active with the known profiles only, and with each combination of possible ones.

    Later documents override earlier ones; among profile files, the later profile does. Active profiles are chosen when
    the program starts, unless the file or the contract names them; profiles that these include are active too. Each
    combination of possible profiles is a selection, up to a limit.
    """
    pieces = [piece for document in documents for piece in _pieces(document)]
    active = _active(pieces, chosen)
    files = ("", *active.names)
    pieces.sort(key=lambda piece: (piece.is_marked, (*files, piece.of_file).index(piece.of_file)))
    by_conditions: dict[tuple[str, ...], Selection] = {}
    for possible in _combined(pieces, active):
        conditions = tuple(
            dict.fromkeys(piece.condition for piece in pieces if _is_met(piece, {*active.names, *possible}))
        )
        if conditions not in by_conditions:
            by_conditions[conditions] = Selection(
                ", ".join(filter(None, conditions)), _entries(pieces, conditions)
            )
    return list(by_conditions.values())


def _combined(pieces: Sequence[_Piece], active: _Active) -> Iterator[frozenset[str]]:
    """Yield the sets of further profiles that may be active: none, each one, each two, and so on.

    After the limit, only the sets of profiles that one condition names follow.
    """
    of_pieces = [tuple(_possible(piece, active)) for piece in pieces]
    names = dict.fromkeys(chain.from_iterable(of_pieces))
    subsets = chain.from_iterable(combinations(names, count) for count in range(len(names) + 1))
    yield from map(frozenset, islice(subsets, _MOST_COMBINED))
    yield from map(frozenset, of_pieces)


def _possible(piece: _Piece, active: _Active) -> Iterator[str]:
    """Yield the piece's profiles that may be active; development and test profiles of Quarkus never are.

    If the active profiles are known, only a placeholder or a platform may be active besides them.
    """
    for name in profiles_in(piece.condition):
        is_development = piece.is_marked and name in _DEVELOPMENT_PROFILES
        is_unknown = active.is_open or is_placeholder(name) or name.startswith(PLATFORM)
        if name not in active.names and is_unknown and not is_development:
            yield name


def _entries(pieces: Sequence[_Piece], conditions: Sequence[str]) -> tuple[Entry, ...]:
    return tuple(entry for piece in pieces if piece.condition in conditions for entry in piece.entries)


def _pieces(document: Sequence[Entry]) -> Iterator[_Piece]:
    """Yield the document's entries without a prefix, and those of each of Quarkus's profile prefixes."""
    conditions = [_value_of(document, (key,)) for key in _ON_PROFILE]
    conditions += [f"{PLATFORM}{entry.value}" for entry in document if key_of(entry) == _ON_PLATFORM]
    condition = _all_of([each for each in conditions if each])
    marked: dict[str, list[Entry]] = {}
    for entry in document:
        mark, unprefixed = _without_prefix(entry)
        marked.setdefault(mark, []).append(unprefixed)
    of_file = _value_of(document, (OF_FILE,))
    yield _Piece(condition, tuple(marked.pop("", ())), of_file=of_file)
    for mark, entries in marked.items():
        yield _Piece(
            _all_of([each for each in (condition, mark) if each]),
            tuple(entries),
            is_marked=True,
            of_file=of_file,
        )


def _all_of(conditions: Sequence[str]) -> str:
    """Return the conjunction of the conditions, or a placeholder if it is too long to evaluate."""
    condition = conditions[0] if len(conditions) == 1 else " & ".join(f"({each})" for each in conditions)
    is_long = (
        len(condition) > _LONGEST_CONDITION or condition.count("(") + condition.count("!") > _MOST_NESTED
    )
    return "<long condition>" if is_long else condition


def _active(pieces: Sequence[_Piece], chosen: str) -> _Active:
    """Return the profiles that the contract, or else the file, declares active, with those that they include."""
    always = [piece for piece in pieces if not piece.condition]
    declared = chosen or next(
        (text for piece in reversed(always) if (text := _value_of(piece.entries, _ACTIVE))), ""
    )
    is_deployed = any(piece.is_marked and _DEPLOYED in profiles_in(piece.condition) for piece in pieces)
    if not declared and is_deployed:
        declared = _DEPLOYED
    included = [_value_of(piece.entries, _INCLUDED) for piece in always]
    pending = _split_names((*included, declared))[::-1]
    groups = {name: members for piece in always for name, members in _groups(piece).items()}
    names: dict[str, None] = {}
    while pending:
        name = pending.pop()
        if name not in names:
            names[name] = None
            pending += _split_names((groups.get(name, ""),))[::-1]
    is_changed = any(_value_of(piece.entries, (*_ACTIVE, *_INCLUDED)) for piece in pieces if piece.condition)
    is_filled_in = any(is_placeholder(name) for name in (*names, *groups))
    known = tuple(name for name in names if not is_placeholder(name))
    return _Active(known, is_open=not declared or is_changed or is_filled_in)


def _split_names(texts: Iterable[str]) -> list[str]:
    return [name for text in texts for name in _SEPARATOR.split(text) if name]


def _value_of(entries: Sequence[Entry], keys: tuple[str, ...]) -> str:
    return ",".join(entry.value for entry in entries if _INDEX.sub("", key_of(entry)) in keys)


def _groups(piece: _Piece) -> dict[str, str]:
    """Return the piece's profile groups: the profiles of each name."""
    groups: dict[str, str] = {}
    for entry in piece.entries:
        segments = entry.segments[entry.root :]
        if segments[: len(_GROUP)] == _GROUP and len(segments) > len(_GROUP):
            name = _INDEX.sub("", ".".join(segments[len(_GROUP) :]))
            groups[name] = f"{groups[name]},{entry.value}" if name in groups else entry.value
    return groups


def _is_met(piece: _Piece, names: set[str]) -> bool:
    return not piece.condition or holds(piece.condition, names)


def _without_prefix(entry: Entry) -> tuple[str, Entry]:
    """Return the profiles of Quarkus's prefix `%prod.` or `%{prod,staging}.`, and the entry without it."""
    outer, (first, *remaining) = entry.segments[: entry.root], entry.segments[entry.root :]
    match = _PREFIX.fullmatch(first)
    if match is None or not remaining:
        return "", entry
    leaf = entry.leaf - 1 if entry.leaf > entry.root else entry.leaf
    return match["several"] or match["one"], replace(entry, segments=(*outer, *remaining), leaf=leaf)
