"""The recorder's knowledge of an example, from its own actions and observations: never from running Tieout.

The terms (classes, loci, causes, verdicts) are those of docs/reference/taxonomy.md. `breaks` lists every
message whose class is not DELIVERED, RECOVERED or NOT_SENT, so that a test can compare message by message.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """One message of another class than delivered, and the offsets of all its visible positions.

    If a class is about the order of two messages, `message_id` is None and `offsets` are theirs.
    """

    break_class: str
    message_id: str | None
    topic: str
    partition: int
    offsets: tuple[int, ...]
    locus: str | None = None
    cause: str | None = None
    flags: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the finding under the names that `truth.json` uses."""
        fields = asdict(self)
        return {"class": fields.pop("break_class"), **fields, "offset": self.offsets[0]}


@dataclass(frozen=True)
class Expectation:
    """The expected statement of one contract at one stage of the evidence."""

    verdict: str
    counts: Mapping[str, int]
    classes: Mapping[str, int]
    breaks: tuple[Finding, ...] = ()
    not_sent: tuple[str, ...] = ()
    ratios: Mapping[str, float] = field(default_factory=dict)

    def with_verdict(self, verdict: str) -> Expectation:
        """Return the same facts with another verdict."""
        return replace(self, verdict=verdict)

    def to_json(self) -> dict[str, object]:
        """Return the expectation under the names that `truth.json` uses."""
        return {
            "verdict": self.verdict,
            "counts": dict(self.counts),
            "classes": dict(self.classes),
            "flags": dict(sorted(Counter(flag for finding in self.breaks for flag in finding.flags).items())),
            "ratios": dict(self.ratios),
            "not_sent": sorted(self.not_sent),
            "breaks": [finding.to_json() for finding in self.breaks],
        }


@dataclass(frozen=True)
class Stage:
    """The evidence at one time; `overlay` is the folder to copy over `evidence/` to obtain it."""

    name: str
    contracts: Mapping[str, Expectation]
    overlay: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the stage under the names that `truth.json` uses."""
        contracts = {name: expectation.to_json() for name, expectation in self.contracts.items()}
        return {"stage": self.name, "overlay": self.overlay, "contracts": contracts}


def write_truth(path: Path, facts: Mapping[str, object], stages: Iterable[Stage]) -> None:
    """Write `truth.json`, one finding per line; its keys are described in examples/README.md."""
    document = {**facts, "stages": [stage.to_json() for stage in stages]}
    path.write_text(_readable(document) + "\n")


def _readable(value: object, indent: str = "") -> str:
    """Return the value as JSON with each container of plain values on one line.

    >>> print(_readable({"verdict": "BROKEN", "breaks": [{"message_id": "a-1", "flags": ["LATE"]}]}))
    {
      "verdict": "BROKEN",
      "breaks": [
        {"message_id": "a-1", "flags": ["LATE"]}
      ]
    }
    """
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(_is_nested(child) for child in children):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {_readable(child, inner)}" for key, child in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _readable(child, inner) for child in children) + f"\n{indent}]"


def _is_nested(value: object) -> bool:
    """Return whether the value has non-empty containers in it, or is a list of several containers."""
    if isinstance(value, dict):
        return any(isinstance(child, (dict, list)) and child for child in value.values()) or len(value) > 3
    return isinstance(value, list) and any(isinstance(child, (dict, list)) for child in value)
