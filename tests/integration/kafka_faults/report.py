"""The table of faults: what was expected, what was found, and whether every offset is accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

_HEAD = """\
# Kafka's faults, struck for real

What Tieout finds after each of these faults on a real cluster: a controller and two brokers of Kafka {kafka},
killed (`SIGKILL`) and stopped (`SIGSTOP`) as machines fail. Every producer and consumer keeps a ledger of its own;
`log` is read from the brokers' segment files, `committed` from `__consumer_offsets`. What must be found is known from
what was done: to the message, with class, flags, place, locus and cause. `make faults` strikes again, compares,
and writes this page; the tests are in `tests/integration/kafka_faults`.

In each cell stand the verdict, the messages by class, and in brackets the locus and the cause of breaks. *Offsets*
are those of the log within the window; each is in one state of
[the balance](taxonomy.md#5-statement-everything-adds-up-or-the-auditor-is-wrong), and `unexplained` must be 0.

*Played* are the seconds from the making of the topic to the end of its last consumer, beside other faults;
*judged* those that `tieout reconcile` took in a session that runs. This page is of {day}: {judgements} judgements,
and {minutes} minutes from the start of the cluster to the last of them.

| Fault | Configuration | Promised | Expected | Found | Offsets | Unexplained | Played | Judged |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Line:
    """One judgement; `played` and `judged` are seconds."""

    topic: str
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
    case: Mapping[str, Any],
    statement: Mapping[str, Any],
    breaks: Sequence[Mapping[str, Any]],
    seconds: float,
) -> Line:
    """Return the line of a case, given what was found, and in how many seconds."""
    parts = statement["partitions"]
    spans = [part["offsets"] for part in parts if part["offsets"]]
    return Line(
        case["topic"],
        case["fault"],
        case["configuration"],
        case["guarantee"],
        _told(case["verdict"], case["classes"], case["breaks"]),
        _told(statement["verdict"], statement["classes"], breaks),
        sum(span["to"] - span["from"] for span in spans),
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


def page_of(lines: Sequence[Line], kafka: str, day: date, seconds: float) -> str:
    """Return the page: the lines of one run with this version of Kafka, on that day, and how long it took."""
    head = _HEAD.format(kafka=kafka, day=day, judgements=len(lines), minutes=f"{seconds / 60:.1f}")
    return head + table_of(lines)


def _told(verdict: str, classes: Mapping[str, int], breaks: Sequence[Mapping[str, Any]]) -> str:
    """Return verdict, classes and the reasons of breaks in one line.

    >>> _told("BROKEN", {"LOST": 2}, [{"class": "LOST", "locus": "consumer", "cause": "unknown"}] * 2)
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
