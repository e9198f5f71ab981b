"""The truth: what each fault did, in the taxonomy's words, written while it is done.

A line of `truth.jsonl` is one break that a right judge must find; what is in no line must not be found. The summary
counts every message once. Classes, loci and causes: docs/reference/taxonomy.md, sections 3 and 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from tieout.model import BreakClass, Cause, Locus

DISPOSITIONS: Final = {
    BreakClass.LOST: "lost",
    BreakClass.IN_FLIGHT: "in_flight",
    BreakClass.DEAD_LETTERED: "dead_lettered",
    BreakClass.FILTERED: "filtered",
    BreakClass.COMPACTED: "compacted",
    BreakClass.UNVERIFIABLE: "unverifiable",
    BreakClass.NOT_SENT: "failed",
    BreakClass.PHANTOM_ABORTED: "failed",
}
"""Under what a statement counts a message of the class, where it is not `delivered`."""
UNPROVEN: Final = "unproven"
"""Under what it counts a send that nobody knows the outcome of."""


@dataclass(frozen=True)
class Finding:
    """What a right judge says of one break; no cause is right to tell where the vocabulary has no word for it.

    `admissible` are the causes that the evidence cannot tell apart, the true one among them.
    """

    name: BreakClass
    locus: Locus = Locus.UNKNOWN
    cause: Cause = Cause.UNKNOWN
    flags: tuple[str, ...] = ()
    admissible: tuple[Cause, ...] = ()


Place = tuple[str, int, int]
"""Topic, partition, offset."""


@dataclass
class Truth:
    """Collects what happened: breaks go to `write` at once, counts stay."""

    write: Callable[[dict[str, Any]], None]
    messages: int = 0
    breaks: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    dispositions: Counter[str] = field(default_factory=Counter)
    episodes: Counter[str] = field(default_factory=Counter)

    def unbroken(
        self, name: BreakClass, count: int, flags: Iterable[str] = (), disposition: str | None = None
    ) -> None:
        """Count messages that have no break, each with its class and `flags`."""
        self.messages += count
        self.classes[name.value] += count
        self.dispositions[disposition or DISPOSITIONS.get(name, "delivered")] += count
        self._flag(name, flags, count)

    def broken(
        self, fault: str, message_id: str, finding: Finding, place: Place | None, *, is_sent: bool = True
    ) -> None:
        """Write the break of one message; one that nobody sent is in no count of messages."""
        if is_sent:
            self.unbroken(finding.name, 1, finding.flags)
        else:
            self.classes[finding.name.value] += 1
            self._flag(finding.name, finding.flags, 1)
        self._write(fault, "message", finding, place, message_id)

    def broken_at(self, fault: str, kind: str, finding: Finding, place: Place) -> None:
        """Write a break of a position, a commit, a transaction or an order."""
        self.classes[finding.name.value] += 1
        self._flag(finding.name, finding.flags, 1)
        self._write(fault, kind, finding, place, None)

    def _flag(self, name: BreakClass, flags: Iterable[str], count: int) -> None:
        if name not in (BreakClass.DELIVERED, BreakClass.RECOVERED, BreakClass.NOT_SENT):
            self.flags[name.value] += count
        for flag in flags:
            self.flags[flag] += count

    def _write(
        self, fault: str, kind: str, finding: Finding, place: Place | None, message_id: str | None
    ) -> None:
        self.breaks += 1
        topic, partition, offset = place or (None, None, None)
        self.write(
            {
                "fault": fault,
                "kind": kind,
                "class": finding.name.value,
                "flags": sorted(finding.flags),
                "message_id": message_id,
                "topic": topic,
                "partition": partition,
                "offset": offset,
                "locus": finding.locus.value,
                "cause": finding.cause.value,
                "admissible": [cause.value for cause in finding.admissible or _only(finding.cause)],
            }
        )


def _only(cause: Cause) -> tuple[Cause, ...]:
    return () if cause is Cause.UNKNOWN else (cause,)
