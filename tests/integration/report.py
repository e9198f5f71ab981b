"""A table of faults: what was expected, what was found, and whether every offset is accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TABLE_HEAD = """\
| Fault | Configuration | Promised | Expected | Found | Offsets | Unexplained | Played | Judged |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Line:
    """One judgement; `played` and `judged` are seconds."""

    name: str
    fault: str
    configuration: str
    guarantee: str
    expected: str
    found: str
    offsets: int
    unexplained: int
    played: int
    judged: float


def line_of(
    name: str,
    case: Mapping[str, Any],
    statement: Mapping[str, Any],
    breaks: Sequence[Mapping[str, Any]],
    seconds: float,
) -> Line:
    """Return the line of a case of what was played under this name: what was found, and in how many seconds."""
    parts = statement["partitions"]
    spans = [part["offsets"] for part in parts if part["offsets"]]
    return Line(
        name,
        case["fault"],
        case["configuration"],
        case["guarantee"],
        _verdict_line(case["verdict"], case["classes"], case["breaks"]),
        _verdict_line(statement["verdict"], statement["classes"], breaks),
        sum(count for span in spans for name, count in span.items() if name not in ("from", "to"))
        + sum(part["unexplained"] for part in parts),
        sum(part["unexplained"] for part in parts),
        case["seconds"],
        seconds,
    )


def table_of(lines: Sequence[Line]) -> str:
    """Return the lines as rows of a table, ordered by what was done."""
    rows = []
    for line in sorted(lines, key=lambda line: (line.fault, line.guarantee, line.configuration)):
        found = "as expected" if line.found == line.expected else f"**{line.found}**"
        cells = [line.fault, line.configuration, f"`{line.guarantee}`", line.expected, found]
        numbers = [str(line.offsets), str(line.unexplained), str(line.played), f"{line.judged:.1f}"]
        rows.append(f"| {' | '.join(cells)} | {' | '.join(numbers)} |\n")
    return "".join(rows)


def _verdict_line(verdict: str, classes: Mapping[str, int], breaks: Sequence[Mapping[str, Any]]) -> str:
    """Return verdict, classes and the reasons of breaks in one line.

    >>> _verdict_line("BROKEN", {"LOST": 2}, [{"class": "LOST", "locus": "consumer", "cause": "unknown"}] * 2)
    'BROKEN: 2 LOST (consumer)'
    """
    reasons: dict[str, Counter[str]] = {}
    for found in breaks:
        cause = "" if found["cause"] == "unknown" else f": {found['cause']}"
        locus = "" if found["locus"] == "unknown" else f"{found['locus']}{cause}"
        reasons.setdefault(found["class"], Counter())[locus] += 1
    words = []
    for name, count in sorted(classes.items()):
        why = [
            f"{number} {text}" if len(reasons[name]) > 1 else text
            for text, number in sorted(reasons.get(name, Counter()).items())
            if text
        ]
        words.append(f"{count} {name}" + (f" ({'; '.join(why)})" if why else ""))
    return f"{verdict}: {', '.join(words)}"
