"""Where in a document settings of one part stand, under whatever names and wrappers.

A program's settings may stand at the top, or below any number of keys: a connector's `config`, a framework's prefix, a
container's environment. A name's longest end that the program knows is the setting, what is before it the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tieout.linting.catalogue import (
    is_exact,
    is_named,
    is_telling,
    is_telling_alone,
    known_name,
    tokens,
)
from tieout.linting.reading.entries import Entry
from tieout.linting.reading.inert import handed_on_from, is_in_quotes, unknown_to_spring
from tieout.linting.values import LOOKED_AT

_WRAPPERS: Final = frozenset(
    (
        "config", "configs", "configuration", "configurations", "properties", "props", "settings", "options", "info",
        "environment", "env", "spec", "data", "cfg", "conf", "overrides", "override", "stringdata", "parameters",
    )
)  # fmt: skip
"""Words that say nothing of whose settings they hold."""

_WRITERS: Final = frozenset(("producer", "producers", "outgoing"))
_READERS: Final = frozenset(("consumer", "consumers", "incoming"))
_STREAMS: Final = frozenset(("streams",))
_ADMINS: Final = frozenset(("admin",))
_ROLES: Final = {
    "producer": (_WRITERS, _READERS | _STREAMS | _ADMINS),
    "consumer": (_READERS, _WRITERS | _STREAMS | _ADMINS),
    "streams": (_STREAMS, _WRITERS | _READERS | _ADMINS),
}
"""Words in a place's path that say it is this part's, and that it is another's."""

_SHARED: Final = frozenset(("default", "defaults", "common", "shared", "base", "global"))
_BASES: Final = (
    (("kafka",), ("mp", "messaging")),
    (("mp", "messaging", "connector"), ("mp", "messaging")),
    (("spring", "kafka"), ("spring", "cloud", "stream")),
    (("spring", "cloud", "stream", "kafka", "binder"), ("spring", "cloud", "stream", "kafka", "bindings")),
    (("spring", "cloud", "stream", "kafka", "default"), ("spring", "cloud", "stream", "kafka", "bindings")),
)
"""Places whose settings hold in others, which are not below them: SmallRye's and Spring Cloud Stream's."""

_NOT_OF_STREAMS: Final = (("spring", "kafka", "producer"), ("spring", "kafka", "consumer"))
"""What Spring hands on to clients alone, and not to those of Streams. Docs: Spring Boot, Kafka Streams."""

_CONNECTORS: Final = {"pulsar": "pulsar"}
"""What SmallRye's connectors are called that are not Kafka's."""

_SERVICES: Final = ("services",)

_PREFIXES: Final = {"connect": frozenset(("connect",)), "streams": frozenset(("ksql",))}
"""What images and programs put before a part's settings, beside others that stand as they are: Debezium's image of
Connect, ksqlDB."""

_CLUSTERS: Final = "clusters"
"""MirrorMaker's list of its clusters, whose names are before the settings that hold for one of them alone.

Docs: Kafka, Geo-Replication, Configuring Geo-Replication.
"""

_IN_PIECES: Final = ("connect", "streams", "flink", "spark", "storm", "pulsar", "activemq")
"""Parts of which a file says one, however it is ordered."""

_TABLE: Final = re.compile(r"(connector|format|topic|topic-pattern)$|(properties|scan|key|value)\.")
"""Settings of a table in Flink that say which one it is."""

Path = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """Settings of one part that stand together; `written` has the name of each as the file has it."""

    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    path: Path = ()

    def over(self, other: Place) -> Place:
        """Return both, where this one's settings count before the other's and come after them."""
        return replace(
            self,
            settings={**_without(other.settings, self.settings), **self.settings},
            written={**other.written, **self.written},
        )


def _without(settings: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in others}


def places_of(section: str, entries: Iterable[Entry], *, any_style: bool = False) -> list[Place]:
    """Return the places of the document that hold settings of the part; none where nothing in it is one.

    A place has what stands above it as well. With `any_style` a name may be written as the program does not write it
    where others are as it does.
    """
    own = [
        entry
        for entry in entries
        if section != "streams" or entry.segments[entry.root :][:3] not in _NOT_OF_STREAMS
    ]
    groups = _role_of(section, _groups(section, own, any_style=any_style))
    told = [path for path, group in groups.items() if _is_telling(section, path, group)]
    leaves = [path for path in told if not any(_holds_in(path, other) for other in told)]
    named = [path for path in leaves if _words(path) & _ROLES.get(section, (frozenset(), None))[0]]
    programs = {_program(path) for path in named}
    places = [_whole(path, groups) for path in leaves if path in named or _program(path) not in programs]
    return _joined(section, places) if section in _IN_PIECES else places


def _program(path: Path) -> Path:
    """Return the service of Docker Compose below which the place is: what one says is the part's is not another's."""
    return path[:2] if path[:1] == _SERVICES else ()


def _joined(section: str, places: list[Place]) -> list[Place]:
    """Return what is one program's in several pieces, such as a source's options and a sink's, as one place.

    Tables of Flink each have a topic of their own. They are one job's pieces where one of them at most may be a sink.
    """
    is_one_job = section == "flink" and sum(not _is_source_table(place) for place in places) <= 1
    settings: dict[str, str] = {}
    for place in places:
        for name, value in place.settings.items():
            is_other = settings.get(name, value) != value
            if is_other and not (is_one_job and _TABLE.match(name) and name not in LOOKED_AT[section]):
                return places
        settings |= place.settings
    whole = places[0] if places else Place()
    for place in places[1:]:
        whole = replace(whole.over(place), name="", path=())
    return [whole] if places else []


def _is_source_table(place: Place) -> bool:
    """Return whether the place has settings of a table that is read, as no sink has them."""
    return any(name.startswith("scan.") or name == "properties.group.id" for name in place.settings)


def _groups(section: str, entries: list[Entry], *, any_style: bool) -> dict[Path, Place]:
    """Return the settings by the path before them, wrappers left out; below more wrappers counts before below fewer."""
    strong: list[tuple[Entry, int]] = []
    weak: list[tuple[Entry, int]] = []
    for entry in entries:
        at = _start(section, entry)
        if at is not None:
            (strong if at <= entry.leaf else weak).append((entry, at))
    telling = {
        entry.segments[:at]
        for entry, at in strong
        if is_exact(section, _name(entry, at)) and is_telling(section, _name(entry, at))
    }
    clusters = {
        name.strip() for entry in entries if _name(entry, 0) == _CLUSTERS for name in entry.value.split(",")
    }
    kept = [(entry, at) for entry, at in weak if _may_split(section, entry, at, telling, clusters)]
    if () in telling and not any_style:
        strong = [(entry, at) for entry, at in strong if at or is_exact(section, _name(entry, at))]
    groups: dict[Path, Place] = {}
    order = {id(entry): index for index, entry in enumerate(entries)}
    for entry, at in sorted([*strong, *kept], key=lambda found: (found[1], order[id(found[0])])):
        name = _name(entry, at)
        _add(groups, _plain(entry.segments[:at]), known_name(section, name) or name, entry)
    known = {id(entry) for entry, _ in (*strong, *kept)}
    for entry in entries:
        if id(entry) not in known:
            _add_unknown(groups, entry, unknown_to_spring(section, entry))
    return groups


def _add(groups: dict[Path, Place], path: Path, setting: str, entry: Entry) -> None:
    new = Place(".".join(path), {setting: entry.value}, {setting: entry.written}, path)
    groups[path] = new.over(groups[path]) if path in groups else new


def _add_unknown(groups: dict[Path, Place], entry: Entry, whole: str | None) -> None:
    """Add what no program knows to the settings it stands beside: it may be one of them misspelt.

    `whole` is the name that it then has, where its end alone would be one that is known.
    """
    for at in range(len(entry.segments) - 1, -1, -1):
        path = _plain(entry.segments[:at])
        if path in groups:
            name = whole or (f'"{_name(entry, at)}"' if is_in_quotes(entry) else _name(entry, at))
            if name not in groups[path].settings:
                _add(groups, path, name, entry)
            return


def _start(section: str, entry: Entry) -> int | None:
    """Return where in the entry's name the longest setting that is known begins; None where none is.

    A key that rules look at is itself, and no member of the family that the keys around it are called like: in
    `spark: {options: {failOnDataLoss: false}}` they only wrap it.
    """
    if is_in_quotes(entry) or unknown_to_spring(section, entry) is not None:
        return None
    handed_on = handed_on_from(entry.segments[entry.root :]) + entry.root
    is_key = known_name(section, _name(entry, entry.leaf)) in LOOKED_AT[section]
    for at in range(len(entry.segments)):
        name = _name(entry, at)
        if at < entry.leaf and is_key and not is_named(section, name):
            continue
        if is_exact(section, name) if at >= handed_on else known_name(section, name) is not None:
            return at
    return None


def _name(entry: Entry, at: int) -> str:
    return ".".join(entry.segments[at:])


def _may_split(section: str, entry: Entry, at: int, telling: set[Path], clusters: set[str]) -> bool:
    """Return whether a setting may begin within a key: not in a key beside settings that stand there as they are."""
    between = entry.segments[entry.leaf : at]
    own = _ROLES.get(section, (frozenset(), frozenset()))[0] | _PREFIXES.get(section, frozenset())
    is_labelled = all(segment in clusters or set(tokens(segment)) & (own | _WRAPPERS) for segment in between)
    return is_labelled or not any(
        entry.segments[: len(path)] == path for path in telling if len(path) <= entry.leaf
    )


def _plain(segments: Path) -> Path:
    """Return the path without words that only wrap: `consumerProperties` is `consumer`."""
    words = ("-".join(word for word in tokens(segment) if word not in _WRAPPERS) for segment in segments)
    return tuple(word for word in words if word)


def _words(path: Path) -> frozenset[str]:
    return frozenset(word for segment in path for word in segment.split("-"))


def is_of_another(section: str, segments: Path) -> bool:
    """Return whether the name says that what stands there is another part's.

    >>> is_of_another("producer", ("kafka", "consumerProperties")), is_of_another("producer", ("kafka",))
    (True, False)
    """
    return bool(_words(_plain(segments)) & _ROLES.get(section, (frozenset(), frozenset()))[1])


def _role_of(section: str, groups: dict[Path, Place]) -> dict[Path, Place]:
    """Return the groups that are not said to be another part's."""
    return {path: group for path, group in groups.items() if not is_of_another(section, path)}


def _is_telling(section: str, path: Path, group: Place) -> bool:
    """Return whether a place is one of the part's, and not another program's with a setting of the same name."""
    if not path:
        return any(is_telling_alone(section, name) for name in group.settings)
    if path[:2] == ("mp", "messaging") and path[2:3] != ("connector",):
        own = _CONNECTORS.get(section, "kafka")
        return own in group.settings.get("connector", own)
    return any(is_telling(section, name) for name in group.settings)


def _holds_in(path: Path, other: Path) -> bool:
    """Return whether the settings of a place hold in the other as well."""
    if path == other:
        return False
    if other[: len(path)] == path:
        return True
    if path and path[-1] in _SHARED and other[: len(path) - 1] == path[:-1]:
        return not set(other[len(path) - 1 :]) & _SHARED
    return any(
        path[: len(base)] == base and other[: len(reach)] == reach and other[: len(base)] != base
        for base, reach in _BASES
    )


def _whole(path: Path, groups: Mapping[Path, Place]) -> Place:
    found = groups[path]
    above = sorted((other for other in groups if _holds_in(other, path)), key=len, reverse=True)
    for other in above:
        found = found.over(groups[other])
    return found
