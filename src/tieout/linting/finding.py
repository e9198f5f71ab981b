"""A finding of the linter about one setting, as a value for text, JSON and pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tieout.model import BreakClass, Cause, Severity


@dataclass(frozen=True)
class Finding:
    """One declared setting, or default, that is in conflict with the contract's guarantee.

    `value` is the declared value, None if the default applies; `default` is that of the declared client and version,
    empty if there is none. `classes` are the possible consequences, by docs/reference/taxonomy.md; empty if the program
    refuses to start or the consequence is not known. A finding that is not certain holds for only some of the versions
    or values that the contract leaves open.
    """

    rule: str
    severity: Severity
    section: str
    setting: str
    value: str | None
    default: str
    classes: tuple[BreakClass, ...]
    cause: Cause | None
    failure: str
    advice: str
    source: str
    file: str | None = None
    is_certain: bool = True

    @property
    def subject(self) -> str:
        """The setting and its value: `producer.acks = 1`, `consumer.commits (not set)`."""
        name = f"{self.section}.{self.setting}" if self.setting else self.section
        return f"{name} (not set)" if self.value is None else f"{name} = {self.value}"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {
            "rule": self.rule,
            "severity": self.severity.value,
            "section": self.section,
            "setting": self.setting,
            "value": self.value,
            "default": self.default,
            "file": self.file,
            "classes": [name.value for name in self.classes],
            "cause": self.cause.value if self.cause else None,
            "failure": self.failure,
            "advice": self.advice,
            "source": self.source,
            "is_certain": self.is_certain,
        }
