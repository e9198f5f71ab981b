"""The page on delivery semantics says nothing that golden histories, recordings and the simulation do not bear out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from tieout.model import BreakClass, Cause, Locus

REPOSITORY = Path(__file__).parents[3]
SIMULATED = {
    ("LOG_DUPLICATE", "retry without idempotence"),  # the fault retry_deduplicated
    ("PHANTOM_ABORTED", "aborted transaction read"),  # the fault aborted_read
}
"""What no history expects, but a fault of the simulation is: the score says whether its cause was always told."""
PAGE = REPOSITORY / "docs/explanation/delivery-semantics.md"


def _rows() -> list[tuple[str, str, str]]:
    """Return class, locus and cause of each failure on the page."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and line.count("|") == 6]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [(row[2], row[3], row[4]) for row in cells if row[0] != "Failure"]


def _borne_out() -> set[tuple[str, str]]:
    """Return the pairs of class and cause that a golden history expects, a recorder knew, or the simulation found."""
    pairs = set()
    for file in (REPOSITORY / "tests/engine/cases").glob("*.yml"):
        for case in yaml.safe_load(file.read_text()):
            expected = [case.get("expect") or {}, *(each.get("expect", {}) for each in case.get("also", ()))]
            pairs |= {
                (b["class"], b["cause"]) for e in expected for b in e.get("breaks") or () if b.get("cause")
            }
    for truth in REPOSITORY.glob("examples/*/truth.json"):
        for stage in json.loads(truth.read_text())["stages"]:
            for known in stage["contracts"].values():
                pairs |= {(b["class"], b["cause"]) for b in known["breaks"]}
    score = (REPOSITORY / "docs/reference/score.md").read_text()
    found = set(re.findall(r"^\| ([a-z ]+) \| (\d+) \| \2 \| \2 \|", score, re.MULTILINE))
    return pairs | {
        (name, cause) for name, cause in SIMULATED if cause in {reported for reported, _ in found}
    }


def test_every_word_is_one_of_the_engines() -> None:
    """A class, locus or cause that the engine cannot print would send a reader looking for it."""
    rows = _rows()

    assert len(rows) > 30
    for name, locus, cause in rows:
        assert name in set(BreakClass)
        assert locus in {"", *Locus}
        assert cause in {"", *Cause}


def test_every_cause_is_borne_out() -> None:
    """Each cause on the page is one that a history, a recording or the simulation shows for that class."""
    reported = {(name, cause) for name, _, cause in _rows() if cause}

    assert len(reported) > 10
    assert reported <= _borne_out()
