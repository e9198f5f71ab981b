"""A statement as one HTML page, without other files and without scripts.

Everything from the statement is escaped, and the page's own policy forbids scripts and remote content, so
that ids and payloads from other people's systems stay text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from tieout.contracts import shown_position
from tieout.reporting.alerts import printable
from tieout.reporting.sheet import COUNTS, accounts, place_of

INCIDENTS_SHOWN: Final = 500
BREAKS_SHOWN: Final = 200
PARTITIONS_SHOWN: Final = 200
EVIDENCE_LIMIT: Final = 20_000

MEANINGS: Final = {
    "KEPT": "the guarantee was kept",
    "BROKEN": "the guarantee was broken",
    "PENDING": "messages are still in flight; judge this window again",
    "UNKNOWN": "the evidence does not tell",
}


def render_html(statement: Mapping[str, Any], breaks_sample: Sequence[Mapping[str, Any]]) -> str:
    """Return the page for a statement and some of its breaks, given as in `breaks.jsonl`."""
    return _template().render(
        statement=statement,
        meaning=MEANINGS[statement["verdict"]],
        accounts=accounts(statement),
        count_names=COUNTS,
        partitions=statement["partitions"][:PARTITIONS_SHOWN],
        incidents=statement["incidents"][:INCIDENTS_SHOWN],
        breaks=breaks_sample[:BREAKS_SHOWN],
    )


def _template() -> Template:
    return environment().get_template("statement.html.j2")


@cache
def environment() -> Environment:
    """Return the environment of every page: it escapes values, and undefined ones are errors."""
    made = Environment(
        loader=PackageLoader("tieout.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= FILTERS
    made.globals |= {"place_of": _place, "shown": shown_position}
    return made


def _words(name: str) -> str:
    return printable(name.replace("_", " "))


def _line(value: object) -> str:
    """Return a value as one visible, bounded line; an empty one is a dash."""
    return "-" if value is None else printable(str(value))


def _place(row: Mapping[str, Any]) -> str:
    return printable(place_of(row["topic"], row["partition"]))


def _evidence(evidence: object) -> str:
    """Return a break's evidence as indented JSON in ASCII, cut if it is too long to read."""
    text = json.dumps(evidence, indent=1, default=str)
    return text if len(text) <= EVIDENCE_LIMIT else text[:EVIDENCE_LIMIT] + "\n… the rest is in breaks/"


def _ratio(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.6g}"


FILTERS: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType(
    {"words": _words, "line": _line, "evidence": _evidence, "ratio": _ratio}
)
"""Filters that make values from other people's systems safe for a page, by their names in templates."""
