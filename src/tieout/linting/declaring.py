"""Reading what a contract declares of a pipeline's settings, in it and in the files and clusters that it names."""

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
from tieout.linting.naming import LAST_COUNTS, STYLED, canonical, given_twice, meaning, restyled
from tieout.linting.pipeline import SECTIONS, Part, Pipeline, Trouble
from tieout.linting.placeholders import is_placeholder
from tieout.linting.programs import CLIENT, no_version, software_of
from tieout.linting.reading import Place, Reading, read_settings
from tieout.linting.reading.frameworks import SETS, framework_of, in_client_words
from tieout.linting.values import LOOKED_AT, is_mere_name
from tieout.linting.valuing import judged_values

FILE: Final = "file"
CONNECTION: Final = "connection"

_ASKED: Final = ("broker",)
_ADVICE: Final = {
    FILE: "name a file that is there, relative to the contract's folder, and in one of the formats of this page",
    CONNECTION: "name a connection to the cluster, and see that it answers",
}
_CALLED: Final = ("name", "group.id", "topic")
_PROFILE: Final = "spring.profiles.active"
_MOST_NAMES: Final = 4
_MOST_PIPELINES: Final = 500


@dataclass(frozen=True)
class _Source:
    """Settings that are not written in the contract, and where they are: in a file's place, or in a cluster."""

    label: str
    settings: Mapping[str, str]
    where: Mapping[str, str]
    framework: str = ""
    is_literal: bool = False
    is_complete: bool = True
    others: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)


_NOWHERE: Final = _Source("", {}, {})


@dataclass(frozen=True)
class Declared:
    """A contract's parts, each as often as its file has places that differ, and what is wrong with the declaration."""

    contract: Contract
    parts: Mapping[str, tuple[Part, ...]]
    troubles: tuple[Trouble, ...]

    def __getitem__(self, section: str) -> Part:
        """Return a section's part, the first of several."""
        return self.parts[section][0]

    def pipelines(self) -> Iterator[Pipeline]:
        """Yield the pipelines that may be meant: each place of each part with each of the others.

        Where those are very many, each place is with the others' first ones.
        """
        if prod(len(parts) for parts in self.parts.values()) <= _MOST_PIPELINES:
            for parts in product(*(self.parts[section] for section in SECTIONS)):
                yield Pipeline(self.contract, dict(zip(SECTIONS, parts, strict=True)))
            return
        first = {section: self.parts[section][0] for section in SECTIONS}
        for section in SECTIONS:
            for part in self.parts[section]:
                yield Pipeline(self.contract, {**first, section: part})


def declared(contract: Contract, *, asks: bool = True) -> Declared:
    """Return what the contract declares, having read the files and asked the cluster that it names.

    What cannot be read or asked becomes a trouble. Without `asks` no cluster is asked, and nothing is known of it.
    """
    parts: dict[str, tuple[Part, ...]] = {}
    troubles: list[Trouble] = []
    for section in SECTIONS:
        given: Mapping[str, Setting] = getattr(contract.settings, section)
        parts[section], found = _Section(contract, section, given).parts(asks=asks)
        troubles += found
    return Declared(contract, parts, tuple(dict.fromkeys(troubles)))


class _Section:
    """One section of a contract's settings while it is read."""

    def __init__(self, contract: Contract, section: str, given: Mapping[str, Setting]) -> None:
        self.contract = contract
        self.section = section
        self.given = {name: _written(value) for name, value in given.items()}
        self.troubles: list[Trouble] = []

    def parts(self, *, asks: bool) -> tuple[tuple[Part, ...], list[Trouble]]:
        """Return the part once for each place that its file has, and what is wrong with it."""
        client = self.given.get(CLIENT, "")
        software, versions, unknown = software_of(self.section, client)
        self.troubles += [unknown] if unknown is not None else no_version(self.section, client)
        told = (CLIENT, FILE, CONNECTION) if self.section in _ASKED else (CLIENT, FILE)
        own = {name: value for name, value in self.given.items() if name not in told}
        is_styled = software == ("kafka-python",) or client.lower().startswith(STYLED)
        empty = Part(
            self.section, software, versions, is_declared=bool(self.given), is_client_known=unknown is None
        )
        given = self._restyled(own) if is_styled else own
        base = replace(
            empty,
            settings=canonical(software, given),
            others=self._others(software, given, "the contract"),
        )
        sources = self._sources(base, any_style=is_styled or "kafka-python" in software, asks=asks)
        is_understood = sources is not None
        parts = [self._judged(base, source, is_understood=is_understood) for source in sources or [_NOWHERE]]
        return tuple(parts), self.troubles

    def _restyled(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return what the contract says of a client that writes names and words in its own way, in Kafka's."""
        names = {restyled(self.section, name): name for name in own}
        return in_client_words(Place(settings={name: own[old] for name, old in names.items()}, written=names))

    def _sources(self, base: Part, *, any_style: bool, asks: bool) -> list[_Source] | None:
        """Return the places of the file, or what the cluster says; None where they tell nothing."""
        connection = self.given.get(CONNECTION, "") if self.section in _ASKED else ""
        file = self.given.get(FILE, "")
        found: list[_Source] | None = [_NOWHERE]
        try:
            if file:
                found = self._of_file(file, base, any_style=any_style)
            if connection and asks:
                asked = canonical(base.software, cluster_settings(self.contract, connection))
                label = f"the cluster of connection {connection}"
                where = dict.fromkeys(asked, label)
                found = [
                    replace(
                        each, settings={**each.settings, **asked}, where={**each.where, **where}, label=label
                    )
                    for each in found or [_NOWHERE]
                ]
        except (SettingsFileError, SourceError, ConnectionNotFoundError) as error:
            key = FILE if isinstance(error, SettingsFileError) else CONNECTION
            self._tell("settings_unreadable", key, self.given[key], str(error), _ADVICE[key])
            return None
        return found

    def _of_file(self, file: str, base: Part, *, any_style: bool) -> list[_Source] | None:
        reading = read_settings(
            self.contract.base_dir / file,
            self.section,
            versions=base.versions,
            profile=base.settings.get(_PROFILE, ""),
            any_style=any_style,
        )
        for note in reading.notes:
            self._tell("file_read_as", FILE, file, f"{file} {note}", _READ_AS)
        for warning in reading.warnings:
            self._tell(
                "file_not_read", FILE, file, f"{file} {warning}", "name the file that the program reads"
            )
        if not reading.places:
            self._tell(
                "settings_not_understood",
                FILE,
                file,
                _nothing_known(self.section, file, reading),
                _UNDERSTOOD,
            )
            return None
        places = _different(self.section, _meant(reading.places, self._names(base)))
        if len(places) > 1:
            names = [place.name or "the top" for place in places]
            failure = (
                f"{file} has settings for {self.section} in {len(places)} places that differ: {_some(names, '; ')}. "
                "Which of them is meant is left open"
            )
            self._tell("settings_several", FILE, file, failure, _CHOICE)
        return [self._source(file, place, reading, base, is_one=len(places) == 1) for place in places]

    def _source(self, file: str, place: Place, reading: Reading, base: Part, *, is_one: bool) -> _Source:
        given, is_ordered = in_client_words(place), reading.is_ordered
        settings = canonical(base.software, given, is_ordered=is_ordered)
        label = file if is_one else f"{file} ({place.name or 'the top'})"
        said = {
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
            others={
                **self._others(base.software, given, label, is_ordered=is_ordered),
                **dict.fromkeys(reading.unread & settings.keys() - said, (None,)),
            },
        )

    def _others(
        self, software: tuple[str, ...], given: Mapping[str, str], where: str, *, is_ordered: bool = False
    ) -> dict[str, tuple[str | None, ...]]:
        """Return the values of settings that are given under two names, and tell of these."""
        others: dict[str, tuple[str | None, ...]] = {}
        for name, other in given_twice(software, given, is_ordered=is_ordered).items():
            failure = (
                f"{where} sets {other} to {given[other]}, which is another name of it for {LAST_COUNTS}: what is set "
                "last counts, and in which order a mapping is gone through cannot be told"
            )
            self._tell("setting_twice", name, given[name], failure, "set it once, under one name")
            others[name] = (None if is_placeholder(given[other]) else given[other],)
        return others

    def _names(self, base: Part) -> frozenset[str]:
        """Return what a place that is meant may be called: the connector, the group, the topics of the contract."""
        own = {base.settings[name] for name in _CALLED if base.has(name)}
        group = self.contract.group
        return frozenset(own or {group, group.removeprefix("connect-"), *topics_of(self.contract)})

    def _judged(self, base: Part, source: _Source, *, is_understood: bool) -> Part:
        """Return the part with the place's settings, which count before the contract's, and what their values are."""
        for name in sorted(base.settings.keys() & source.settings.keys()):
            own, read = base.settings[name], source.settings[name]
            if meaning(name, own) != meaning(name, read):
                failure = (
                    f"the contract says {own}, and {source.label} says {read}, "
                    "which is what the program goes by, so it counts"
                )
                advice = "leave the setting out of the contract, or make both say the same"
                self._tell("settings_disagree", name, own, failure, advice)
        sets = SETS.get(source.framework, {}).get(self.section, {})
        part = replace(
            base,
            software=("java",) if source.framework and CLIENT not in self.given else base.software,
            settings={**sets, **base.settings, **source.settings},
            files={**dict.fromkeys(sets, f"{source.label}, by {source.framework}"), **source.where},
            is_understood=is_understood,
            is_complete=source.is_complete,
            others={**base.others, **dict.fromkeys(source.settings, ()), **source.others},
        )
        unknown, troubles = judged_values(part, source.where if source.is_literal else ())
        self.troubles += troubles
        return replace(part, unknown=unknown)

    def _tell(self, rule: str, setting: str, value: str, failure: str, advice: str) -> None:
        self.troubles.append(Trouble(rule, self.section, setting, value, failure, advice))


_READ_AS: Final = "see that the program reads it so, and write into the contract what is not read"
_UNDERSTOOD: Final = (
    "name the file, or the part of it, that holds the settings under the names that the program knows, or write them "
    "into the contract"
)
_CHOICE: Final = "say which is meant: by name, as in connector: {name: orders-sink}, or in a file of its own"


def _nothing_known(section: str, file: str, reading: Reading) -> str:
    found = f"it holds {_some(reading.names)}" if reading.names else "it holds none at all"
    return f"{file}: no setting for {section} is known in it, so nothing is known of how that is set; {found}"


def _some(names: Sequence[str], between: str = ", ") -> str:
    """Return the first names, and how many more there are.

    >>> _some(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d and 2 more'
    """
    more = len(names) - _MOST_NAMES
    return between.join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _different(section: str, places: Sequence[Place]) -> tuple[Place, ...]:
    """Return the places without those that set what rules look at as one before them does."""
    kept: dict[tuple[object, ...], Place] = {}
    for place in places:
        said = sorted(
            (name, "" if is_mere_name(section, name) else value)
            for name, value in place.settings.items()
            if name in LOOKED_AT[section]
        )
        kept.setdefault((framework_of(place), *said), place)
    return tuple(kept.values())


def _meant(places: tuple[Place, ...], names: frozenset[str]) -> tuple[Place, ...]:
    """Return the places that are called by one of the names, or all where none is."""
    in_paths = {"-".join(tokens(name)) for name in names}
    called = [
        place
        for place in places
        if names & {place.settings.get(setting, "") for setting in _CALLED} or in_paths & set(place.path[-1:])
    ]
    return tuple(called) or places


def _written(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()
