"""The known settings of a pipeline, with defaults for those that are not set.

Truth has three values: a condition holds, does not hold, or may hold (None), because a default depends on a version
that the contract does not name, a value is a placeholder, or a file was not understood.
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
"""The parts of a pipeline, in the order of the report."""

STANDALONE: Final = "offset.storage.file.filename"
"""A setting that only a standalone worker of Kafka Connect has."""

EXACTLY_ONCE: Final = ("exactly_once", "exactly_once_beta", "exactly_once_v2")


def either(*truths: Truth) -> Truth:
    """Return whether at least one truth holds.

    >>> either(False, None), either(None, True), either(False, False)
    (None, True, False)
    """
    return True if True in truths else None if None in truths else False


def both(*truths: Truth) -> Truth:
    """Return whether all truths hold.

    >>> both(True, None), both(None, False), both(True, True)
    (None, False, True)
    """
    return False if False in truths else None if None in truths else True


def negated(truth: Truth) -> Truth:
    """Return the negation of a truth.

    >>> negated(None), negated(True)
    (None, False)
    """
    return None if truth is None else not truth


@dataclass(frozen=True)
class Part:
    """One section of a contract's settings, with the file of each and the program's defaults.

    `unknown` are settings whose value is a placeholder or is accepted by no program. `alternatives` are values that may
    count instead of the one that is set, None for a value that is not known. Nothing is known of a file that was not
    understood.
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
    alternatives: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)

    def has(self, setting: str) -> bool:
        """Return whether the setting is set to something."""
        return bool(self.settings.get(setting))

    def text(self, setting: str) -> str | None:
        """Return the value as written, None if it is not set."""
        return self.settings.get(setting)

    def defaults(self, setting: str) -> tuple[Default, ...]:
        """Return the defaults that may apply."""
        return tuple(defaults_of(self.software, setting, self.versions))

    def values(self, setting: str) -> tuple[str | None, ...]:
        """Return the values that may apply, in lower case; None stands for an unknown value.

        A setting that the program does not have is set by no file, only by the contract.
        """
        value = self.settings.get(setting)
        if value is not None:
            if setting in self.unknown:
                return (None,)
            alternatives = self.alternatives.get(setting, ())
            return (
                meaning(setting, value),
                *(
                    None if alternative is None else meaning(setting, alternative)
                    for alternative in alternatives
                ),
            )
        defaults = self.defaults(setting)
        if not defaults and self.is_client_known and not kinds_of(self.section, setting, self.software):
            return ()
        if not self.is_understood:
            return (None,)
        values = {default.value.lower() for default in defaults}
        is_everywhere = {default.software for default in defaults} == set(self.software)
        is_all = self.is_complete and (is_everywhere or not defaults)
        return (*values,) if is_all else (*values, None)

    def is_any(self, setting: str, *expected: str) -> Truth:
        """Return whether the setting has one of the values; False without value and default."""
        truths = [None if value is None else value in expected for value in self.values(setting)]
        if not truths or not any(each is not False for each in truths):
            return False
        return True if all(truths) else None

    def is_below(self, setting: str, limit: float) -> Truth:
        """Return whether the setting is a number below the limit."""
        truths: list[Truth] = []
        for value in self.values(setting):
            try:
                truths.append(float(value or "") < limit)
            except ValueError:
                truths.append(None)
        if not truths or not any(each is not False for each in truths):
            return False
        return True if all(truths) else None

    def runs_since(self, version: str) -> Truth:
        """Return whether the part runs that version or a later one."""
        if not self.versions.overlap(version, ""):
            return False
        return True if self.versions.within(version) else None


@dataclass(frozen=True)
class Trouble:
    """A problem of the declaration itself: an unreadable file, or a value that is not known."""

    rule: str
    section: str
    setting: str
    value: str
    failure: str
    advice: str


@dataclass(frozen=True)
class Pipeline:
    """A contract with all declared settings of its pipeline."""

    contract: Contract
    parts: Mapping[str, Part]

    def __getitem__(self, section: str) -> Part:
        """Return a section; it is empty if the contract does not have it."""
        return self.parts[section]

    @property
    def is_understood(self) -> bool:
        """Whether all files of settings were understood."""
        return all(part.is_understood for part in self.parts.values())

    @property
    def has_exact_sources(self) -> Truth:
        """Whether Connect's workers write source records in transactions; a standalone worker never does."""
        connect = self["connect"]
        is_standalone = connect.has(STANDALONE)
        return both(not is_standalone, connect.is_any("exactly.once.source.support", "enabled"))

    @property
    def has_transactions(self) -> Truth:
        """Whether the topic's records are written in transactions."""
        connect, streams, producer = self["connect"], self["streams"], self["producer"]
        truths = (
            producer.has("transactional.id"),
            self.has_exact_sources if connect.is_declared else False,
            streams.is_any("processing.guarantee", *EXACTLY_ONCE) if streams.is_declared else False,
        )
        if True in truths or producer.is_declared or connect.is_declared or streams.is_declared:
            return either(*truths)
        return None
