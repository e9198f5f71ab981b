"""Profiles of Spring and Quarkus: settings that hold in some environments, and those that hold in all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tieout.linting.placeholders import is_placeholder
from tieout.linting.reading.entries import Entry, key_of

_ON_PROFILE: Final = ("spring.config.activate.onprofile", "spring.profiles")
_ON_PLATFORM: Final = "spring.config.activate.oncloudplatform"
_ACTIVE: Final = ("spring.profiles.active", "quarkus.profile", "smallrye.config.profile", "mp.config.profile")
_INCLUDED: Final = (
    "spring.profiles.include",
    "quarkus.config.profile.parent",
    "smallrye.config.profile.parent",
)
_GROUP: Final = ("spring", "profiles", "group")
_PLATFORM: Final = "cloud platform "
_INDEX: Final = re.compile(r"\[\d+\]")
_OR: Final = re.compile(r"\s*[,|]\s*")
_MARK: Final = re.compile(r"%(?:\{(?P<several>[^{}]+)\}|(?P<one>.+))")
_NEVER_DEPLOYED: Final = frozenset(("dev", "test"))
_DEPLOYED: Final = "prod"


@dataclass(frozen=True)
class Selection:
    """Entries that hold together; `profile` is the one they are of, empty where they hold without any."""

    profile: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class _Piece:
    """Entries under one condition, empty where they always hold; marked ones are Quarkus's `%prod.…`."""

    condition: str
    entries: tuple[Entry, ...]
    is_marked: bool = False


@dataclass(frozen=True)
class _Active:
    """The profiles that are known to be active; where it is open, any other may be as well."""

    names: frozenset[str]
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
    """Return what holds in any case, and with each profile that may be active beside it.

    The later document counts. Which profiles are active is said where the program is started, unless the file or the
    contract says it in plain words; what these include is active with them.
    """
    pieces = [piece for document in documents for piece in _pieces(document)]
    pieces.sort(key=lambda piece: piece.is_marked)
    active = _active(pieces, chosen)
    truths = {piece.condition: _holds(piece, active) for piece in pieces if piece.condition}
    held = [condition for condition, truth in truths.items() if truth]
    unsure = [condition for condition, truth in truths.items() if truth is None]
    return [
        Selection(", ".join(held), _entries(pieces, held)),
        *(Selection(condition, _entries(pieces, [*held, condition])) for condition in unsure),
    ]


def _entries(pieces: Sequence[_Piece], conditions: Sequence[str]) -> tuple[Entry, ...]:
    return tuple(
        entry
        for piece in pieces
        if not piece.condition or piece.condition in conditions
        for entry in piece.entries
    )


def _pieces(document: Sequence[Entry]) -> Iterator[_Piece]:
    """Yield what the document says under its own condition, and what each of Quarkus's marks is before."""
    conditions = [entry.value for entry in document if key_of(entry) in _ON_PROFILE]
    conditions += [f"{_PLATFORM}{entry.value}" for entry in document if key_of(entry) == _ON_PLATFORM]
    condition = " & ".join(conditions)
    marked: dict[str, list[Entry]] = {}
    for entry in document:
        mark, rest = _marked(entry)
        marked.setdefault(mark, []).append(rest)
    yield _Piece(condition, tuple(marked.pop("", ())))
    for mark, entries in marked.items():
        yield _Piece(mark, tuple(entries), is_marked=True)


def _active(pieces: Sequence[_Piece], chosen: str) -> _Active:
    """Return the profiles that the contract, or else the file, says are active, with those that they take in."""
    always = [piece for piece in pieces if not piece.condition]
    said = chosen or next((text for piece in reversed(always) if (text := _said(piece, _ACTIVE))), "")
    is_deployed = any(piece.is_marked and _DEPLOYED in _OR.split(piece.condition) for piece in pieces)
    if not said and is_deployed:
        said = _DEPLOYED
    included = [_said(piece, _INCLUDED) for piece in always]
    words = _words((said, *included))
    groups = {name: members for piece in always for name, members in _groups(piece).items()}
    names: set[str] = set()
    while words:
        name = words.pop()
        if name not in names:
            names.add(name)
            words += _words((groups.get(name, ""),))
    is_changed = any(_said(piece, (*_ACTIVE, *_INCLUDED)) for piece in pieces if piece.condition)
    is_filled_in = any(is_placeholder(name) for name in (*names, *groups))
    plain = frozenset(name for name in names if not is_placeholder(name))
    return _Active(plain, is_open=not said or is_changed or is_filled_in)


def _words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in _OR.split(text) if word]


def _said(piece: _Piece, keys: tuple[str, ...]) -> str:
    return ",".join(entry.value for entry in piece.entries if _INDEX.sub("", key_of(entry)) in keys)


def _groups(piece: _Piece) -> dict[str, str]:
    """Return the profiles that a name of the piece's groups stands for."""
    groups: dict[str, str] = {}
    for entry in piece.entries:
        segments = entry.segments[entry.root :]
        if segments[: len(_GROUP)] == _GROUP and len(segments) > len(_GROUP):
            name = _INDEX.sub("", ".".join(segments[len(_GROUP) :]))
            groups[name] = f"{groups[name]},{entry.value}" if name in groups else entry.value
    return groups


def _holds(piece: _Piece, active: _Active) -> bool | None:
    """Return whether the piece holds; of Quarkus's marks those of development and tests never do, unless chosen."""
    truth = _is_active(piece.condition, active)
    is_never = piece.is_marked and set(_OR.split(piece.condition)) <= _NEVER_DEPLOYED
    return False if truth is None and is_never else truth


def _is_active(condition: str, active: _Active) -> bool | None:
    """Return whether a condition is met; None where that is open, or it is an expression that is not worked out here.

    >>> known = _Active(frozenset(["prod"]), is_open=False)
    >>> [_is_active(text, known) for text in ("prod", "dev | prod", "!dev", "dev", "prod & eu")]
    [True, True, True, False, None]
    >>> [_is_active(text, replace(known, is_open=True)) for text in ("prod", "!dev", "dev")]
    [True, None, None]
    """
    words = _OR.split(condition)
    is_filled_in = any(is_placeholder(word.removeprefix("!")) for word in words)
    if "&" in condition or "(" in condition or _PLATFORM in condition or is_filled_in:
        return None
    if any(word in active.names for word in words):
        return True
    if active.is_open:
        return None
    return any(word.startswith("!") and word[1:] not in active.names for word in words)


def _marked(entry: Entry) -> tuple[str, Entry]:
    """Return the profiles that Quarkus's `%prod.` or `%{prod,staging}.` names, and the entry without them."""
    before, (first, *rest) = entry.segments[: entry.root], entry.segments[entry.root :]
    found = _MARK.fullmatch(first)
    if found is None or not rest:
        return "", entry
    leaf = entry.leaf - 1 if entry.leaf > entry.root else entry.leaf
    return found["several"] or found["one"], replace(entry, segments=(*before, *rest), leaf=leaf)
