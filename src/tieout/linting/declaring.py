"""Reads the settings that a contract declares, in itself and in the files and clusters that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Final

from tieout.contracts import Contract
from tieout.contracts.scalars import Setting
from tieout.errors import ConnectionNotFoundError, SettingsFileError, SourceError
from tieout.linting.catalogue import tokens
from tieout.linting.clusters import cluster_settings, topics_of
from tieout.linting.naming import LAST_COUNTS, STYLED, canonical, meaning, restyled, set_twice
from tieout.linting.pipeline import SECTIONS, Part, Pipeline, Trouble
from tieout.linting.placeholders import is_placeholder
from tieout.linting.programs import CLIENT, software_of, unreleased_version
from tieout.linting.reading import Place, Reading, read_settings
from tieout.linting.reading.frameworks import FRAMEWORK_DEFAULTS, client_settings, framework_of
from tieout.linting.values import CHECKED_SETTINGS, is_name_only
from tieout.linting.valuing import judged_values

FILE: Final = "file"
CONNECTION: Final = "connection"

_QUERYABLE: Final = ("broker",)
_ADVICE: Final = {
    FILE: "name a file that is there, relative to the contract's folder, and in one of the formats of this page",
    CONNECTION: "name a connection to the cluster, and see that it answers",
}
_NAME_SETTINGS: Final = ("name", "group.id", "topic")
_PROFILE: Final = "spring.profiles.active"
_NAMES_SHOWN: Final = 4
_MOST_PIPELINES: Final = 500


@dataclass(frozen=True)
class _Source:
    """Settings from a place in a file or from a cluster, and where each was found."""

    label: str
    settings: Mapping[str, str]
    where: Mapping[str, str]
    framework: str = ""
    is_literal: bool = False
    is_complete: bool = True
    alternatives: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)


_NO_SOURCE: Final = _Source("", {}, {})


@dataclass(frozen=True)
class Declared:
    """A contract's parts, each once per differing place of its file, and the problems of the declaration."""

    contract: Contract
    parts: Mapping[str, tuple[Part, ...]]
    troubles: tuple[Trouble, ...]

    def __getitem__(self, section: str) -> Part:
        """Return the first part of a section."""
        return self.parts[section][0]

    def pipelines(self) -> Iterator[Pipeline]:
        """Yield the possible pipelines: every combination of the parts' places.

        Above a limit, each place is combined only with the first place of the other parts.
        """
        if prod(len(parts) for parts in self.parts.values()) <= _MOST_PIPELINES:
            for parts in product(*(self.parts[section] for section in SECTIONS)):
                yield Pipeline(self.contract, dict(zip(SECTIONS, parts, strict=True)))
            return
        first = {section: self.parts[section][0] for section in SECTIONS}
        for section in SECTIONS:
            for part in self.parts[section]:
                yield Pipeline(self.contract, {**first, section: part})


def declared(contract: Contract, *, query_clusters: bool = True) -> Declared:
    """Return what the contract declares, with the files and the cluster that it names.

    A file or cluster that cannot be read becomes a trouble. Without `query_clusters` no cluster is contacted.
    """
    parts: dict[str, tuple[Part, ...]] = {}
    troubles: list[Trouble] = []
    for section in SECTIONS:
        settings: Mapping[str, Setting] = getattr(contract.settings, section)
        parts[section], problems = _Section(contract, section, settings).parts(query_clusters=query_clusters)
        troubles += problems
    return Declared(contract, parts, tuple(dict.fromkeys(troubles)))


class _Section:
    """Reads one section of a contract's settings."""

    def __init__(self, contract: Contract, section: str, settings: Mapping[str, Setting]) -> None:
        self.contract = contract
        self.section = section
        self.settings = {name: _text_of(value) for name, value in settings.items()}
        self.troubles: list[Trouble] = []

    def parts(self, *, query_clusters: bool) -> tuple[tuple[Part, ...], list[Trouble]]:
        """Return the part once for each place in its file, and its problems."""
        client = self.settings.get(CLIENT, "")
        software, versions, unknown = software_of(self.section, client)
        self.troubles += [unknown] if unknown is not None else unreleased_version(self.section, client)
        reserved = (CLIENT, FILE, CONNECTION) if self.section in _QUERYABLE else (CLIENT, FILE)
        declared_settings = {name: value for name, value in self.settings.items() if name not in reserved}
        is_styled = software == ("kafka-python",) or client.lower().startswith(STYLED)
        empty = Part(
            self.section, software, versions, is_declared=bool(self.settings), is_client_known=unknown is None
        )
        settings = self._restyled(declared_settings) if is_styled else declared_settings
        base = replace(
            empty,
            settings=canonical(software, settings),
            alternatives=self._alternatives(software, settings, "the contract"),
        )
        sources = self._sources(
            base, any_style=is_styled or "kafka-python" in software, query_clusters=query_clusters
        )
        is_understood = sources is not None
        parts = [
            self._judged(base, source, is_understood=is_understood) for source in sources or [_NO_SOURCE]
        ]
        return tuple(parts), self.troubles

    def _restyled(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a client with its own style of names and values, in Kafka's style."""
        names = {restyled(self.section, name): name for name in settings}
        return client_settings(
            Place(settings={name: settings[old] for name, old in names.items()}, written=names)
        )

    def _sources(self, base: Part, *, any_style: bool, query_clusters: bool) -> list[_Source] | None:
        """Return the places of the file, or the cluster's settings; None if neither could be understood."""
        connection = self.settings.get(CONNECTION, "") if self.section in _QUERYABLE else ""
        file = self.settings.get(FILE, "")
        sources: list[_Source] | None = [_NO_SOURCE]
        try:
            if file:
                sources = self._of_file(file, base, any_style=any_style)
            if connection and query_clusters:
                cluster_values = canonical(base.software, cluster_settings(self.contract, connection))
                label = f"the cluster of connection {connection}"
                where = dict.fromkeys(cluster_values, label)
                sources = [
                    replace(
                        each,
                        settings={**each.settings, **cluster_values},
                        where={**each.where, **where},
                        label=label,
                    )
                    for each in sources or [_NO_SOURCE]
                ]
        except (SettingsFileError, SourceError, ConnectionNotFoundError) as error:
            key = FILE if isinstance(error, SettingsFileError) else CONNECTION
            self._report("settings_unreadable", key, self.settings[key], str(error), _ADVICE[key])
            return None
        return sources

    def _of_file(self, file: str, base: Part, *, any_style: bool) -> list[_Source] | None:
        reading = read_settings(
            self.contract.base_dir / file,
            self.section,
            versions=base.versions,
            profile=base.settings.get(_PROFILE, ""),
            any_style=any_style,
        )
        for note in reading.notes:
            self._report("file_read_as", FILE, file, f"{file} {note}", _READ_AS)
        for warning in reading.warnings:
            self._report(
                "file_not_read", FILE, file, f"{file} {warning}", "name the file that the program reads"
            )
        if not reading.places:
            self._report(
                "settings_not_understood",
                FILE,
                file,
                _no_known_setting(self.section, file, reading),
                _UNDERSTOOD,
            )
            return None
        places = _distinct(self.section, _named_places(reading.places, self._names(base)))
        if len(places) > 1:
            names = [place.name or "the top" for place in places]
            failure = (
                f"{file} has settings for {self.section} in {len(places)} places that differ: "
                f"{_first_names(names, '; ')}. "
                "Which of them is meant is left open"
            )
            self._report("settings_several", FILE, file, failure, _CHOICE)
        return [self._source(file, place, reading, base, is_one=len(places) == 1) for place in places]

    def _source(self, file: str, place: Place, reading: Reading, base: Part, *, is_one: bool) -> _Source:
        received, is_ordered = client_settings(place), reading.is_ordered
        settings = canonical(base.software, received, is_ordered=is_ordered)
        label = file if is_one else f"{file} ({place.name or 'the top'})"
        confirmed = {
            name
            for name in settings
            if meaning(name, base.settings.get(name, "")) == meaning(name, settings[name])
        }
        where = dict.fromkeys(settings, label)
        for name, written in place.written.items():
            if name in where and written not in (name, *settings):
                where[name] = f"{label}: {written}"
        return _Source(
            label,
            settings,
            where,
            framework_of(place),
            reading.is_literal,
            reading.is_complete,
            alternatives={
                **self._alternatives(base.software, received, label, is_ordered=is_ordered),
                **dict.fromkeys(reading.unread & settings.keys() - confirmed, (None,)),
            },
        )

    def _alternatives(
        self, software: tuple[str, ...], settings: Mapping[str, str], where: str, *, is_ordered: bool = False
    ) -> dict[str, tuple[str | None, ...]]:
        """Return the second values of settings that are set under two names, and report them."""
        alternatives: dict[str, tuple[str | None, ...]] = {}
        for name, alias in set_twice(software, settings, is_ordered=is_ordered).items():
            failure = (
                f"{where} sets {alias} to {settings[alias]}, which is another name of it for {LAST_COUNTS}: what is "
                "set last counts, and in which order a mapping is gone through cannot be told"
            )
            self._report("setting_twice", name, settings[name], failure, "set it once, under one name")
            alternatives[name] = (None if is_placeholder(settings[alias]) else settings[alias],)
        return alternatives

    def _names(self, base: Part) -> frozenset[str]:
        """Return the possible names of the contract's place: its connector, group or topics."""
        names = {base.settings[name] for name in _NAME_SETTINGS if base.has(name)}
        group = self.contract.group
        return frozenset(names or {group, group.removeprefix("connect-"), *topics_of(self.contract)})

    def _judged(self, base: Part, source: _Source, *, is_understood: bool) -> Part:
        """Return the part with the place's settings, which override the contract's, and its unknown values."""
        for name in sorted(base.settings.keys() & source.settings.keys()):
            declared_value, read = base.settings[name], source.settings[name]
            if meaning(name, declared_value) != meaning(name, read):
                failure = (
                    f"the contract says {declared_value}, and {source.label} says {read}, "
                    "which is what the program goes by, so it counts"
                )
                advice = "leave the setting out of the contract, or make both say the same"
                self._report("settings_disagree", name, declared_value, failure, advice)
        sets = FRAMEWORK_DEFAULTS.get(source.framework, {}).get(self.section, {})
        part = replace(
            base,
            software=("java",) if source.framework and CLIENT not in self.settings else base.software,
            settings={**sets, **base.settings, **source.settings},
            files={**dict.fromkeys(sets, f"{source.label}, by {source.framework}"), **source.where},
            is_understood=is_understood,
            is_complete=source.is_complete,
            alternatives={**base.alternatives, **dict.fromkeys(source.settings, ()), **source.alternatives},
        )
        unknown, troubles = judged_values(part, source.where if source.is_literal else ())
        self.troubles += troubles
        return replace(part, unknown=unknown)

    def _report(self, rule: str, setting: str, value: str, failure: str, advice: str) -> None:
        self.troubles.append(Trouble(rule, self.section, setting, value, failure, advice))


_READ_AS: Final = "see that the program reads it so, and write into the contract what is not read"
_UNDERSTOOD: Final = (
    "name the file, or the part of it, that holds the settings under the names that the program knows, or write them "
    "into the contract"
)
_CHOICE: Final = "say which is meant: by name, as in connector: {name: orders-sink}, or in a file of its own"


def _no_known_setting(section: str, file: str, reading: Reading) -> str:
    names_found = f"it holds {_first_names(reading.names)}" if reading.names else "it holds none at all"
    return f"{file}: no setting for {section} is known in it, so nothing is known of how that is set; {names_found}"


def _first_names(names: Sequence[str], separator: str = ", ") -> str:
    """Return the first names and the number of the others.

    >>> _first_names(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d and 2 more'
    """
    more = len(names) - _NAMES_SHOWN
    return separator.join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _distinct(section: str, places: Sequence[Place]) -> tuple[Place, ...]:
    """Return the places without those that set the checked settings like an earlier one."""
    distinct: dict[tuple[object, ...], Place] = {}
    for place in places:
        checked_values = sorted(
            (name, "" if is_name_only(section, name) else value)
            for name, value in place.settings.items()
            if name in CHECKED_SETTINGS[section]
        )
        distinct.setdefault((framework_of(place), *checked_values), place)
    return tuple(distinct.values())


def _named_places(places: tuple[Place, ...], names: frozenset[str]) -> tuple[Place, ...]:
    """Return the places with one of the names, or all places if none has."""
    in_paths = {"-".join(tokens(name)) for name in names}
    matching = [
        place
        for place in places
        if names & {place.settings.get(setting, "") for setting in _NAME_SETTINGS}
        or in_paths & set(place.path[-1:])
    ]
    return tuple(matching) or places


def _text_of(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()
