"""What an engine says now, held against the snapshots: every difference in a line, whoever judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tests.snapshots.keeping import Snapshot, snapshot_of

Judge = Callable[[Sequence[Any]], Iterable[tuple[int, Mapping[str, Any]]]]
"""Yields of each history its place and its statement, with its `breaks`, in any order."""

_PLACE: Final = ("class", "message_id", "topic", "partition", "offset")
_ABSENT: Final = "nothing"


def judged(judge: Judge, histories: Mapping[str, Any], digest_of: Callable[[Any], str]) -> Iterator[Snapshot]:
    """Yield what the judge says of each history, as snapshots."""
    named = list(histories.items())
    for place, found in judge([history for _, history in named]):
        name, history = named[place]
        yield snapshot_of(name, digest_of(history), found)


def compared(kept: Mapping[str, Snapshot], found: Sequence[Snapshot], *, is_whole: bool) -> list[str]:
    """Return every difference as `history: field: expected …, found …`; empty where there is none.

    `is_whole` says that all histories were judged: then those which are kept and were not found are told as well.
    """
    reported = []
    for one in found:
        lines = _differences(kept[one.name], one) if one.name in kept else ["no snapshot: it is new"]
        reported += [f"{one.name}: {line}" for line in lines]
    gone = set(kept) - {one.name for one in found} if is_whole else set()
    return reported + [f"{name}: this history is no more" for name in sorted(gone)]


def _differences(kept: Snapshot, found: Snapshot) -> list[str]:
    if kept.digest != found.digest:
        return ["this history is another one now: what is judged changed, whatever judges it"]
    return [*_unlike("", kept.statement, found.statement), *_unlike_breaks(kept.breaks, found.breaks)]


def _unlike(where: str, expected: Any, found: Any) -> Iterator[str]:
    """Yield a line for each leaf in which two values of JSON differ; 1 and 1.0 are two."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for name in sorted({*expected, *found}):
            inside = f"{where}.{name}" if where else name
            yield from _unlike(inside, expected.get(name, _ABSENT), found.get(name, _ABSENT))
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for place, pair in enumerate(zip(expected, found, strict=True)):
            yield from _unlike(f"{where}[{place}]", *pair)
    elif repr(expected) != repr(found):
        yield f"{where}: expected {expected!r}, found {found!r}"


def _unlike_breaks(
    expected: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield the differences of breaks, paired by id, then by class and place: so a changed id is told as that."""
    left = list(found)
    missing = []
    for one in expected:
        same = _taken(left, one, ("break_id",))
        if same is None:
            missing.append(one)
        else:
            yield from _unlike(_named(one), one, same)
    for one in missing:
        same = _taken(left, one, _PLACE)
        if same is None:
            yield f"{_named(one)}: missing"
        else:
            yield from _unlike(_named(one), one, same)
    yield from (f"{_named(one)}: unexpected" for one in left)
    ids = [[one["break_id"] for one in side] for side in (expected, found)]
    if ids[0] != ids[1] and sorted(ids[0]) == sorted(ids[1]):
        yield "breaks: the same, in another order"


def _taken(
    left: list[Mapping[str, Any]], expected: Mapping[str, Any], keys: Sequence[str]
) -> Mapping[str, Any] | None:
    """Return the first of the breaks left that is like the wanted one in these keys, and take it out."""
    for place, one in enumerate(left):
        if all(one[key] == expected[key] for key in keys):
            return left.pop(place)
    return None


def _named(one: Mapping[str, Any]) -> str:
    place = f"{one['topic']}-{one['partition']}/{one['offset']}"
    return f"break {one['class']} {one['message_id']} at {place}"
