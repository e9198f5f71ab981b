"""What a contract declares of a pipeline's settings, with the defaults where it declares nothing.

Truth has three values here: a condition holds, does not hold, or may hold, because a default depends on a version that
the contract does not name, or a value is a placeholder that somebody else fills in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tieout.contracts import Contract
from tieout.contracts.scalars import Setting
from tieout.errors import ConnectionNotFoundError, SettingsFileError, SourceError
from tieout.linting.clusters import cluster_settings
from tieout.linting.defaults import CLIENTS, OLDEST, OTHER_NAMES, Default, defaults_of
from tieout.linting.files import read_settings
from tieout.linting.versions import ALL, Versions, split_client

Truth = bool | None

CLIENT: Final = "client"
FILE: Final = "file"
CONNECTION: Final = "connection"
SECTIONS: Final = (
    "producer", "consumer", "broker", "connect", "connector", "streams",
    "flink", "spark", "storm", "pulsar", "activemq",
)  # fmt: skip
"""The parts of a pipeline, in the order in which they are told."""

STANDALONE: Final = "offset.storage.file.filename"
"""What only a standalone worker of Kafka Connect has."""

_OF_CLIENTS: Final = ("producer", "consumer")
_ASKED: Final = ("broker",)
_ADVICE: Final = {
    FILE: "name a file that is there, relative to the contract's folder",
    CONNECTION: "name a connection to the cluster, and see that it answers",
}
_SOFTWARE: Final = {"broker": "kafka"}
_SAME: Final = {
    "librdkafka": {
        "request.required.acks": "acks",
        "message.send.max.retries": "retries",
        "max.in.flight": "max.in.flight.requests.per.connection",
    },
    "kafka": {"default.replication.factor": "replication.factor", "log.retention.ms": "retention.ms"},
    "spark": {"spark.sql.streaming.checkpointLocation": "checkpointLocation"},
}
"""Other names of a setting; where both are set, the more particular one counts, such as a topic's own."""

_ANY_CASE: Final = {
    "spark": ("checkpointLocation", "failOnDataLoss", "startingOffsets", "kafka.isolation.level")
}
"""Settings that a program knows in whatever case they are written."""

_RETENTION: Final = {"log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
"""Settings that say `retention.ms` in another unit, the one that counts first."""

_WORDS: Final = {
    "-1": {"acks": "all"},
    "largest": {"auto.offset.reset": "latest"},
    "end": {"auto.offset.reset": "latest"},
    "smallest": {"auto.offset.reset": "earliest"},
    "beginning": {"auto.offset.reset": "earliest"},
    "error": {"auto.offset.reset": "none"},
}
"""Values that mean the same as another."""


def either(*truths: Truth) -> Truth:
    """Return whether one of them holds.

    >>> either(False, None), either(None, True), either(False, False)
    (None, True, False)
    """
    return True if True in truths else None if None in truths else False


def both(*truths: Truth) -> Truth:
    """Return whether all of them hold.

    >>> both(True, None), both(None, False), both(True, True)
    (None, False, True)
    """
    return False if False in truths else None if None in truths else True


def never(truth: Truth) -> Truth:
    """Return whether it does not hold.

    >>> never(None), never(True)
    (None, False)
    """
    return None if truth is None else not truth


@dataclass(frozen=True)
class Part:
    """One section of a contract's settings: what is set, by whom, and what holds where nothing is set."""

    section: str
    software: tuple[str, ...] = ()
    versions: Versions = ALL
    settings: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    is_declared: bool = False

    def has(self, setting: str) -> bool:
        """Return whether the setting is set to something."""
        return bool(self.settings.get(setting))

    def text(self, setting: str) -> str | None:
        """Return the value as it was written, None where it is not set."""
        return self.settings.get(setting)

    def defaults(self, setting: str) -> tuple[Default, ...]:
        """Return the defaults that may apply."""
        return tuple(defaults_of(self.software, setting, self.versions))

    def values(self, setting: str) -> tuple[str | None, ...]:
        """Return the values that may apply, in lower case; None is one that nobody here knows."""
        value = self.settings.get(setting)
        if value is None:
            known = self.defaults(setting)
            values = {default.value.lower() for default in known}
            is_everywhere = {default.software for default in known} == set(self.software)
            return (*values,) if is_everywhere or not known else (*values, None)
        return (None,) if "${" in value else (_meaning(setting, value),)

    def is_any(self, setting: str, *wanted: str) -> Truth:
        """Return whether the setting is one of the values; without value or default it is none of them."""
        held = [None if value is None else value in wanted for value in self.values(setting)]
        if not held or not any(each is not False for each in held):
            return False
        return True if all(held) else None

    def is_below(self, setting: str, limit: float) -> Truth:
        """Return whether the setting is a number below the limit."""
        held: list[Truth] = []
        for value in self.values(setting):
            try:
                held.append(float(value or "") < limit)
            except ValueError:
                held.append(None)
        if not held or not any(each is not False for each in held):
            return False
        return True if all(held) else None

    def runs_since(self, version: str) -> Truth:
        """Return whether the part runs that version or a later one."""
        if not self.versions.overlap(version, ""):
            return False
        return True if self.versions.within(version) else None


@dataclass(frozen=True)
class Trouble:
    """Something about the declaration itself: a file that does not read, a word that means nothing here."""

    rule: str
    section: str
    setting: str
    value: str
    failure: str
    advice: str


@dataclass(frozen=True)
class Pipeline:
    """A contract with everything that is declared about how its pipeline is set."""

    contract: Contract
    parts: Mapping[str, Part]
    troubles: tuple[Trouble, ...] = ()

    def __getitem__(self, section: str) -> Part:
        """Return a section, an empty one where the contract does not have it."""
        return self.parts[section]

    @property
    def has_exact_sources(self) -> Truth:
        """Whether Connect's workers write sources in transactions, which a standalone worker never does."""
        connect = self["connect"]
        is_standalone = connect.has(STANDALONE)
        return both(not is_standalone, connect.is_any("exactly.once.source.support", "enabled"))

    @property
    def has_transactions(self) -> Truth:
        """Whether the topic's records are written in transactions."""
        connect, streams, producer = self["connect"], self["streams"], self["producer"]
        known = (
            producer.has("transactional.id"),
            self.has_exact_sources if connect.is_declared else False,
            streams.is_any("processing.guarantee", *EXACTLY_ONCE) if streams.is_declared else False,
        )
        if True in known or producer.is_declared or connect.is_declared or streams.is_declared:
            return either(*known)
        return None


EXACTLY_ONCE: Final = ("exactly_once", "exactly_once_beta", "exactly_once_v2")


def declared(contract: Contract, *, asks: bool = True) -> Pipeline:
    """Return what the contract declares, having read the files and asked the cluster that it names.

    What cannot be read or asked becomes a trouble. Without `asks` no cluster is asked, and nothing is known of it.
    """
    parts, troubles = {}, []
    for section in SECTIONS:
        given: Mapping[str, Setting] = getattr(contract.settings, section)
        part, found = _part(contract, section, given, asks=asks)
        parts[section] = part
        troubles += found
    return Pipeline(contract, parts, tuple(troubles))


def _part(
    contract: Contract, section: str, given: Mapping[str, Setting], *, asks: bool
) -> tuple[Part, list[Trouble]]:
    troubles = []
    told = (CLIENT, FILE, CONNECTION) if section in _ASKED else (CLIENT, FILE)
    own = {name: _written(value) for name, value in given.items() if name not in told}
    software, versions, unknown = _software(section, _written(given.get(CLIENT, "")))
    if unknown is not None:
        troubles.append(unknown)
    own = _canonical(software, own)
    read: dict[str, str] = {}
    files: dict[str, str] = {}
    for key in told[1:]:
        named = _written(given.get(key, ""))
        if not named or (key == CONNECTION and not asks):
            continue
        try:
            found = _canonical(software, _read(contract, key, named))
        except (SettingsFileError, SourceError, ConnectionNotFoundError) as error:
            troubles.append(Trouble("settings_unreadable", section, key, named, str(error), _ADVICE[key]))
            continue
        label = named if key == FILE else f"the cluster of connection {named}"
        troubles += [
            _disagreement(section, name, own[name], found[name], label)
            for name in sorted(own.keys() & found.keys())
            if _meaning(name, own[name]) != _meaning(name, found[name])
        ]
        read, files = {**read, **found}, {**files, **dict.fromkeys(found, label)}
    return Part(section, software, versions, {**own, **read}, files, bool(given)), troubles


def _read(contract: Contract, key: str, named: str) -> dict[str, str]:
    """Return the settings where they really are: in a file, or in what a cluster answers."""
    return read_settings(contract.base_dir / named) if key == FILE else cluster_settings(contract, named)


def _software(section: str, client: str) -> tuple[tuple[str, ...], Versions, Trouble | None]:
    """Return whose defaults apply in which versions; of any known client where the contract names none."""
    own = CLIENTS if section in _OF_CLIENTS else (_SOFTWARE.get(section, section),)
    if not client:
        return own, Versions.since(OLDEST.get(own[0], "")), None
    found = split_client(client)
    name = OTHER_NAMES.get(found[0], found[0]) if found else ""
    if found and name in own:
        return (name,), found[1] if found[1].text else Versions.since(OLDEST.get(name, "")), None
    failure = "the program's defaults are not known, so those of all known ones are taken as possible"
    advice = f"write one of {', '.join(own)}, and its version: {own[0]}-4.0"
    return own, Versions(), Trouble("client_unknown", section, CLIENT, client, failure, advice)


def _disagreement(section: str, name: str, own: str, read: str, file: str) -> Trouble:
    return Trouble(
        "settings_disagree",
        section,
        name,
        own,
        f"the contract says {own}, and {file} says {read}, which is what the program goes by, so it counts",
        "leave the setting out of the contract, or make both say the same",
    )


def _canonical(software: tuple[str, ...], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings under the names that the rules know."""
    if software == ("kafka-python",):
        return {name.replace("_", "."): value for name, value in settings.items()}
    same = {other: name for program in software for other, name in _SAME.get(program, {}).items()}
    renamed = {same[name]: value for name, value in settings.items() if name in same}
    known = {**renamed, **{name: value for name, value in settings.items() if name not in same}}
    cases = {name.lower(): name for program in software for name in _ANY_CASE.get(program, ())}
    known = {cases.get(name.lower(), name): value for name, value in known.items()}
    if software == ("kafka",):
        for name, unit in _RETENTION.items():
            if name in known and known[name].lstrip("-").isdigit():
                known.setdefault("retention.ms", str(int(known[name]) * unit))
    return known


def _meaning(setting: str, value: str) -> str:
    lower = value.lower()
    return _WORDS.get(lower, {}).get(setting, lower)


def _written(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()
