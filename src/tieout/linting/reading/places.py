"""Finds the places in a document that hold settings of one part, under any names and wrappers.

A program's settings may be at the top, or below any number of keys: a connector's `config`, a framework's prefix, a
container's environment. The longest suffix of a name that the program knows is the setting; the rest is the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tieout.linting.catalogue import (
    is_distinctive,
    is_distinctive_alone,
    is_exact,
    is_named,
    known_name,
    tokens,
)
from tieout.linting.reading.entries import Entry
from tieout.linting.reading.inert import is_in_quotes, passed_through_from, unknown_to_spring
from tieout.linting.values import CHECKED_SETTINGS

_WRAPPERS: Final = frozenset(
    (
        "config", "configs", "configuration", "configurations", "properties", "props", "settings", "options", "info",
        "environment", "env", "spec", "data", "cfg", "conf", "overrides", "override", "stringdata", "parameters",
    )
)  # fmt: skip
"""Words that do not show whose settings they hold."""

_WRITERS: Final = frozenset(("producer", "producers", "outgoing"))
_READERS: Final = frozenset(("consumer", "consumers", "incoming"))
_STREAMS: Final = frozenset(("streams",))
_ADMINS: Final = frozenset(("admin",))
_ROLES: Final = {
    "producer": (_WRITERS, _READERS | _STREAMS | _ADMINS),
    "consumer": (_READERS, _WRITERS | _STREAMS | _ADMINS),
    "streams": (_STREAMS, _WRITERS | _READERS | _ADMINS),
}
"""Words in a place's path that show that it belongs to this part, and to another part."""

_SHARED_NAMES: Final = frozenset(("default", "defaults", "common", "shared", "base", "global"))
_INHERITED: Final = (
    (("kafka",), ("mp", "messaging")),
    (("mp", "messaging", "connector"), ("mp", "messaging")),
    (("spring", "kafka"), ("spring", "cloud", "stream")),
    (("spring", "cloud", "stream", "kafka", "binder"), ("spring", "cloud", "stream", "kafka", "bindings")),
    (("spring", "cloud", "stream", "kafka", "default"), ("spring", "cloud", "stream", "kafka", "bindings")),
)
"""Places whose settings also apply to places that are not below them: SmallRye's and Spring Cloud Stream's."""

_CLIENTS_ONLY: Final = (("spring", "kafka", "producer"), ("spring", "kafka", "consumer"))
"""Settings that Spring passes to clients, but not to those of Streams. Docs: Spring Boot, Kafka Streams."""

_CONNECTORS: Final = {"pulsar": "pulsar"}
"""The names of SmallRye's connectors for systems other than Kafka."""

_SERVICES: Final = ("services",)

_PREFIXES: Final = {"connect": frozenset(("connect",)), "streams": frozenset(("ksql",))}
"""Prefixes that images and programs add to a part's settings, next to settings without it: Debezium's image of Connect,
ksqlDB."""

_CLUSTERS: Final = "clusters"
"""MirrorMaker's list of clusters, whose names are prefixes of settings for one of them.

Docs: Kafka, Geo-Replication, Configuring Geo-Replication.
"""

_SINGLE_PROGRAM: Final = ("connect", "streams", "flink", "spark", "storm", "pulsar", "activemq")
"""Parts of which a file configures only one, possibly in several places."""

_TABLE: Final = re.compile(r"(connector|format|topic|topic-pattern)$|(properties|scan|key|value)\.")
"""Settings of a Flink table that identify it."""

Path = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """Settings of one part in one place; `written` has the name of each as in the file."""

    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    path: Path = ()

    def over(self, other: Place) -> Place:
        """Return both places' settings; this one's override the other's and come after them."""
        return replace(
            self,
            settings={**_without(other.settings, self.settings), **self.settings},
            written={**other.written, **self.written},
        )


def _without(settings: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in others}


def places_of(section: str, entries: Iterable[Entry], *, any_style: bool = False) -> list[Place]:
    """Return the places of the document that hold settings of the part.

    A place includes the settings of enclosing places. With `any_style` names may be in another style than the
    program's, even next to names in the program's style.
    """
    relevant = [
        entry
        for entry in entries
        if section != "streams" or entry.segments[entry.root :][:3] not in _CLIENTS_ONLY
    ]
    groups = _of_role(section, _groups(section, relevant, any_style=any_style))
    of_part = [path for path, group in groups.items() if _is_of_part(section, path, group)]
    innermost = [path for path in of_part if not any(_applies_to(path, nested) for nested in of_part)]
    labelled = [path for path in innermost if _words(path) & _ROLES.get(section, (frozenset(), None))[0]]
    programs = {_program(path) for path in labelled}
    places = [
        _with_inherited(path, groups)
        for path in innermost
        if path in labelled or _program(path) not in programs
    ]
    return _joined(section, places) if section in _SINGLE_PROGRAM else places


def _program(path: Path) -> Path:
    """Return the service of Docker Compose that contains the place: each service is a program of its own."""
    return path[:2] if path[:1] == _SERVICES else ()


def _joined(section: str, places: list[Place]) -> list[Place]:
    """Return the places of one program, such as a source's and a sink's options, as one place if they agree.

    Tables of Flink have a topic each. They belong to one job if at most one of them may be a sink.
    """
    is_one_job = section == "flink" and sum(not _is_source_table(place) for place in places) <= 1
    settings: dict[str, str] = {}
    for place in places:
        for name, value in place.settings.items():
            is_other = settings.get(name, value) != value
            if is_other and not (is_one_job and _TABLE.match(name) and name not in CHECKED_SETTINGS[section]):
                return places
        settings |= place.settings
    joined = places[0] if places else Place()
    for place in places[1:]:
        joined = replace(joined.over(place), name="", path=())
    return [joined] if places else []


def _is_source_table(place: Place) -> bool:
    """Return whether the place has settings that only a source table has."""
    return any(name.startswith("scan.") or name == "properties.group.id" for name in place.settings)


def _groups(section: str, entries: list[Entry], *, any_style: bool) -> dict[Path, Place]:
    """Return the settings by path without wrappers; settings below more wrappers override those below fewer."""
    strong: list[tuple[Entry, int]] = []
    weak: list[tuple[Entry, int]] = []
    for entry in entries:
        at = _start(section, entry)
        if at is not None:
            (strong if at <= entry.leaf else weak).append((entry, at))
    distinctive = {
        entry.segments[:at]
        for entry, at in strong
        if is_exact(section, _name(entry, at)) and is_distinctive(section, _name(entry, at))
    }
    clusters = {
        name.strip() for entry in entries if _name(entry, 0) == _CLUSTERS for name in entry.value.split(",")
    }
    splittable = [(entry, at) for entry, at in weak if _may_split(section, entry, at, distinctive, clusters)]
    if () in distinctive and not any_style:
        strong = [(entry, at) for entry, at in strong if at or is_exact(section, _name(entry, at))]
    groups: dict[Path, Place] = {}
    order = {id(entry): index for index, entry in enumerate(entries)}
    for entry, at in sorted([*strong, *splittable], key=lambda item: (item[1], order[id(item[0])])):
        name = _name(entry, at)
        _add(groups, _without_wrappers(entry.segments[:at]), known_name(section, name) or name, entry)
    placed = {id(entry) for entry, _ in (*strong, *splittable)}
    for entry in entries:
        if id(entry) not in placed:
            _add_unknown(groups, entry, unknown_to_spring(section, entry))
    return groups


def _add(groups: dict[Path, Place], path: Path, setting: str, entry: Entry) -> None:
    new = Place(".".join(path), {setting: entry.value}, {setting: entry.written}, path)
    groups[path] = new.over(groups[path]) if path in groups else new


def _add_unknown(groups: dict[Path, Place], entry: Entry, full_name: str | None) -> None:
    """Add an unknown name to the settings next to it: it may be a misspelt one.

    `full_name` is used instead of the name's end, if that end alone would be a known name.
    """
    for index in range(len(entry.segments) - 1, -1, -1):
        path = _without_wrappers(entry.segments[:index])
        if path in groups:
            name = full_name or (f'"{_name(entry, index)}"' if is_in_quotes(entry) else _name(entry, index))
            if name not in groups[path].settings:
                _add(groups, path, name, entry)
            return


def _start(section: str, entry: Entry) -> int | None:
    """Return the index at which the longest known setting in the entry's name starts, or None.

    A checked key is a setting of its own, not a member of a family named like the enclosing keys: in
    `spark: {options: {failOnDataLoss: false}}` they only wrap it.
    """
    if is_in_quotes(entry) or unknown_to_spring(section, entry) is not None:
        return None
    passed_through = passed_through_from(entry.segments[entry.root :]) + entry.root
    is_key = known_name(section, _name(entry, entry.leaf)) in CHECKED_SETTINGS[section]
    for index in range(len(entry.segments)):
        name = _name(entry, index)
        if index < entry.leaf and is_key and not is_named(section, name):
            continue
        if is_exact(section, name) if index >= passed_through else known_name(section, name) is not None:
            return index
    return None


def _name(entry: Entry, index: int) -> str:
    return ".".join(entry.segments[index:])


def _may_split(section: str, entry: Entry, index: int, distinctive: set[Path], clusters: set[str]) -> bool:
    """Return whether a setting may start within a key: not next to settings with exact names."""
    between = entry.segments[entry.leaf : index]
    labels = _ROLES.get(section, (frozenset(), frozenset()))[0] | _PREFIXES.get(section, frozenset())
    is_labelled = all(
        segment in clusters or set(tokens(segment)) & (labels | _WRAPPERS) for segment in between
    )
    return is_labelled or not any(
        entry.segments[: len(path)] == path for path in distinctive if len(path) <= entry.leaf
    )


def _without_wrappers(segments: Path) -> Path:
    """Return the path without wrapper words: `consumerProperties` becomes `consumer`."""
    words = ("-".join(word for word in tokens(segment) if word not in _WRAPPERS) for segment in segments)
    return tuple(word for word in words if word)


def _words(path: Path) -> frozenset[str]:
    return frozenset(word for segment in path for word in segment.split("-"))


def is_of_another(section: str, segments: Path) -> bool:
    """Return whether the name shows that a setting belongs to another part.

    >>> is_of_another("producer", ("kafka", "consumerProperties")), is_of_another("producer", ("kafka",))
    (True, False)
    """
    return bool(_words(_without_wrappers(segments)) & _ROLES.get(section, (frozenset(), frozenset()))[1])


def _of_role(section: str, groups: dict[Path, Place]) -> dict[Path, Place]:
    """Return the groups without those of other parts."""
    return {path: group for path, group in groups.items() if not is_of_another(section, path)}


def _is_of_part(section: str, path: Path, group: Place) -> bool:
    """Return whether a place belongs to the part, and not to another program with a setting of the same name."""
    if not path:
        return any(is_distinctive_alone(section, name) for name in group.settings)
    if path[:2] == ("mp", "messaging") and path[2:3] != ("connector",):
        connector = _CONNECTORS.get(section, "kafka")
        return connector in group.settings.get("connector", connector)
    return any(is_distinctive(section, name) for name in group.settings)


def _applies_to(path: Path, other: Path) -> bool:
    """Return whether the settings of a place also apply to the other."""
    if path == other:
        return False
    if other[: len(path)] == path:
        return True
    if path and path[-1] in _SHARED_NAMES and other[: len(path) - 1] == path[:-1]:
        return not set(other[len(path) - 1 :]) & _SHARED_NAMES
    return any(
        path[: len(base)] == base and other[: len(reach)] == reach and other[: len(base)] != base
        for base, reach in _INHERITED
    )


def _with_inherited(path: Path, groups: Mapping[Path, Place]) -> Place:
    place = groups[path]
    inherited = sorted((other for other in groups if _applies_to(other, path)), key=len, reverse=True)
    for other in inherited:
        place = place.over(groups[other])
    return place
