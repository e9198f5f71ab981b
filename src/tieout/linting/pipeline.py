"""What is known of a pipeline's settings, with the defaults where nothing is set.

Truth has three values here: a condition holds, does not hold, or may hold, because a default depends on a version that
the contract does not name, a value is a placeholder that somebody else fills in, or a file was not understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tieout.contracts import Contract
from tieout.linting.defaults import Default, defaults_of
from tieout.linting.naming import meaning
from tieout.linting.values import kinds_of
from tieout.linting.versions import ALL, Versions

Truth = bool | None

SECTIONS: Final = (
    "producer", "consumer", "share_group", "broker", "connect", "connector", "streams",
    "flink", "spark", "storm", "pulsar", "activemq",
)  # fmt: skip
"""The parts of a pipeline, in the order in which they are told."""

STANDALONE: Final = "offset.storage.file.filename"
"""What only a standalone worker of Kafka Connect has."""

EXACTLY_ONCE: Final = ("exactly_once", "exactly_once_beta", "exactly_once_v2")


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
    """One section of a contract's settings: what is set, by whom, and what holds where nothing is set.

    `unknown` are settings whose value somebody else fills in, or which no program takes. `others` are values that may
    count instead of the one that is set, None for one that nobody here knows. Of a file that was not understood nothing
    is known.
    """

    section: str
    software: tuple[str, ...] = ()
    versions: Versions = ALL
    settings: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    is_declared: bool = False
    unknown: frozenset[str] = frozenset()
    is_understood: bool = True
    is_client_known: bool = True
    is_complete: bool = True
    others: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)

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
        """Return the values that may apply, in lower case; None is one that nobody here knows.

        What no file sets, as the program does not have it, only the contract says.
        """
        value = self.settings.get(setting)
        if value is not None:
            if setting in self.unknown:
                return (None,)
            others = self.others.get(setting, ())
            return (
                meaning(setting, value),
                *(None if other is None else meaning(setting, other) for other in others),
            )
        known = self.defaults(setting)
        if not known and self.is_client_known and not kinds_of(self.section, setting, self.software):
            return ()
        if not self.is_understood:
            return (None,)
        values = {default.value.lower() for default in known}
        is_everywhere = {default.software for default in known} == set(self.software)
        is_all = self.is_complete and (is_everywhere or not known)
        return (*values,) if is_all else (*values, None)

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

    def __getitem__(self, section: str) -> Part:
        """Return a section, an empty one where the contract does not have it."""
        return self.parts[section]

    @property
    def is_understood(self) -> bool:
        """Whether all files of settings were understood."""
        return all(part.is_understood for part in self.parts.values())

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
