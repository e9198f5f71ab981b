"""What the linter says about one setting, as a value that text, JSON and pages are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tieout.model import BreakClass, Cause, Severity


@dataclass(frozen=True)
class Finding:
    """One declared setting, or default, that does not go with what the contract promises.

    `value` is what is declared, None where the default applies; `default` is that of the declared client and
    version, empty where there is none. `classes` are what can follow, in the words of docs/reference/taxonomy.md,
    empty where the program refuses to start or nothing could be said. A finding that is not certain holds for some
    of the versions, or values, that the contract leaves open.
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
        """The setting and its value as one would write them: `producer.acks = 1`, `consumer.commits (not set)`."""
        name = f"{self.section}.{self.setting}" if self.setting else self.section
        return f"{name} (not set)" if self.value is None else f"{name} = {self.value}"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as JSON knows it."""
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
