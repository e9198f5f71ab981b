"""Scores how many of the injected breaks a run found, per class, locus, flag and cause.

Precision is the share of found breaks that are true, recall the share of true breaks that were found. A break is named
by its message, else by its class and position. A cause may be left open, which costs recall and no precision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tieout.model import NON_MESSAGE_CLASSES, Cause

NAMED: Final = 10
"""How many kinds of differences are kept, each with one break as its example."""

Subject = tuple[object, ...]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """One break on which truth and run do not agree; one side may be missing."""

    subject: Subject
    truth: str
    found: str


@dataclass
class Line:
    """The score of one class, locus, flag or cause."""

    truth: int = 0
    found: int = 0
    matched: int = 0

    @property
    def precision(self) -> float:
        """The share of what was found that is true; 1 where nothing was found."""
        return self.matched / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """The share of what is true that was found; 1 where nothing is true."""
        return self.matched / self.truth if self.truth else 1.0

    @property
    def is_perfect(self) -> bool:
        """Whether everything was found and nothing else."""
        return self.matched == self.found == self.truth


@dataclass
class Section:
    """The scores of one kind: classes, loci, flags or causes."""

    title: str
    lines: dict[str, Line] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    def line(self, name: str) -> Line:
        """Return the score of a name."""
        return self.lines.setdefault(name, Line())

    def count(self, subject: Subject, truth: Iterable[str], found: Iterable[str]) -> None:
        """Count the true and the found names of one subject."""
        expected, reported = Counter(truth), Counter(found)
        for name in expected | reported:
            line = self.line(name)
            line.truth += expected[name]
            line.found += reported[name]
            line.matched += min(expected[name], reported[name])
        if expected != reported:
            self._note(Difference(subject, _words(expected), _words(reported)))

    def _note(self, difference: Difference) -> None:
        """Keep the first difference of each kind, so that many of one do not hide another."""
        kind = (difference.truth, difference.found)
        is_new = kind not in {(known.truth, known.found) for known in self.differences}
        if is_new and len(self.differences) < NAMED:
            self.differences.append(difference)

    def total(self) -> Line:
        """Return the score over all names."""
        lines = self.lines.values()
        return Line(
            sum(line.truth for line in lines),
            sum(line.found for line in lines),
            sum(line.matched for line in lines),
        )


@dataclass
class Score:
    """A run compared with the truth.

    `listed` counts, of the breaks whose cause is known and was not reported, those whose admissible causes held it.
    """

    classes: Section
    flags: Section
    loci: Section
    causes: Section
    counts: tuple[Difference, ...] = ()
    abstained: int = 0
    listed: int = 0

    @property
    def sections(self) -> tuple[Section, ...]:
        """The four kinds of scores."""
        return self.classes, self.flags, self.loci, self.causes

    @property
    def is_passed(self) -> bool:
        """Whether classes, flags and loci are found without fault, counts agree, and no cause is wrong."""
        exact = all(line.is_perfect for part in self.sections[:3] for line in part.lines.values())
        causes_right = all(line.precision == 1 for line in self.causes.lines.values())
        return exact and causes_right and not self.counts


def score(truth: Iterable[Row], found: Iterable[Row], summary: Row, statement: Row) -> Score:
    """Return the score of the breaks and the statement of a run against the breaks and the summary of the truth."""
    result = Score(Section("class"), Section("flag"), Section("locus"), Section("cause"))
    expected, reported = _by_subject(truth), _by_subject(found)
    for subject in sorted(expected.keys() | reported.keys(), key=str):
        _compare(result, subject, expected.get(subject, []), reported.get(subject, []))
    result.counts = tuple(_counts(summary, statement))
    return result


def _by_subject(rows: Iterable[Row]) -> dict[Subject, list[Row]]:
    by_subject: dict[Subject, list[Row]] = {}
    for row in rows:
        by_subject.setdefault(subject_of(row), []).append(row)
    return by_subject


def subject_of(row: Row) -> Subject:
    """Return what a break is about: its message, or its class and the position at which it stands.

    >>> subject_of({"class": "LOST", "message_id": "m1"})
    ('message', 'm1')
    """
    if row["class"] in NON_MESSAGE_CLASSES:
        return row["class"], row["topic"], row["partition"], row["offset"]
    return "message", row["message_id"]


def _compare(result: Score, subject: Subject, truth: list[Row], found: list[Row]) -> None:
    result.classes.count(subject, _all(truth, "class"), _all(found, "class"))
    result.loci.count(subject, _all(truth, "locus"), _all(found, "locus"))
    result.flags.count(subject, _flags(truth), _flags(found))
    causes, reported = _known_causes(truth), _known_causes(found)
    if reported:
        result.causes.count(subject, causes, reported)
        return
    for cause in causes:
        result.causes.line(cause).truth += 1
        result.abstained += 1
        result.listed += any(cause in row["admissible"] for row in found)


def _all(rows: list[Row], name: str) -> list[str]:
    return [row[name] or "none" for row in rows]


def _flags(rows: list[Row]) -> list[str]:
    return [flag for row in rows for flag in row["flags"]]


def _known_causes(rows: list[Row]) -> list[str]:
    return [row["cause"] for row in rows if row["cause"] not in (None, Cause.UNKNOWN)]


def _counts(summary: Row, statement: Row) -> Iterable[Difference]:
    """Yield where the statement's sums differ from what was done: breaks are not all that is counted."""
    if summary["verdict"] != statement["verdict"]:
        yield Difference(("verdict",), summary["verdict"], statement["verdict"])
    for part in ("classes", "flags"):
        expected, reported = summary[part], statement[part]
        for name in sorted(expected.keys() | reported.keys()):
            if expected.get(name, 0) != reported.get(name, 0):
                yield Difference((part, name), str(expected.get(name, 0)), str(reported.get(name, 0)))
    expected = {**summary["dispositions"], "messages": summary["messages"], "unexplained": 0}
    for name, count in expected.items():
        total = sum(row[name] for row in statement["partitions"])
        if total != count:
            yield Difference(("sum", name), str(count), str(total))


def _words(names: Counter[str]) -> str:
    return ", ".join(sorted(names.elements())) or "nothing"
