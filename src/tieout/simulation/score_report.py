"""A score in words: as text for the terminal, and as the page docs/reference/score.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tieout.simulation.scoring import Line, Score, Section

_HEAD: Final = ("", "truth", "found", "matched", "precision", "recall")
_TITLES: Final = {"class": "Classes", "flag": "Flags", "locus": "Loci", "cause": "Causes"}


def score_text(score: Score) -> str:
    """Return the score as text: a table a kind, what differs, and how it ends."""
    lines: list[str] = []
    for section in score.sections:
        rows = [_HEAD, *_rows(section)]
        widths = [max(len(row[index]) for row in rows) for index in range(len(_HEAD))]
        lines.append(_TITLES[section.title])
        lines += ["  " + _aligned(row, widths) for row in rows]
        lines.append("")
    lines += [*_remarks(score), ""]
    lines.append("passed" if score.is_passed else "NOT PASSED")
    return "\n".join(lines) + "\n"


def score_json(score: Score) -> dict[str, Any]:
    """Return the score as JSON knows it: `passed`, a list a kind, what differs, and the causes that were left open."""
    differences = [*((part.title, part.differences) for part in score.sections), ("count", score.counts)]
    return {
        "passed": score.is_passed,
        **{_TITLES[section.title].lower(): _lines(section) for section in score.sections},
        "differences": [
            {"kind": kind, "subject": list(one.subject), "truth": one.truth, "found": one.found}
            for kind, found in differences
            for one in found
        ],
        "causes_left_open": score.abstained,
        "causes_listed_as_admissible": score.listed,
    }


def _lines(section: Section) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "truth": line.truth,
            "found": line.found,
            "matched": line.matched,
            "precision": line.precision,
            "recall": line.recall,
        }
        for name, line in (*sorted(section.lines.items()), ("all", section.total()))
    ]


def score_page(score: Score, summary: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """Return the score as a Markdown page; `about` is what else the reader should know of the run."""
    lines = [
        "# How well the engine names what was done",
        "",
        "Written by `tieout score --report`; do not edit. `make score` writes it anew, from a million messages.",
        "",
        "A run over a pipeline with faults of [the simulation](simulation.md), held against what was done to it.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in _about(summary, about).items()),
        "",
    ]
    for section in score.sections:
        lines += [f"## {_TITLES[section.title]}", ""]
        lines += [_markdown((section.title, *_HEAD[1:])), "|---|---:|---:|---:|---:|---:|"]
        lines += [_markdown(row) for row in _rows(section)]
        lines.append("")
    lines += ["## Result", "", *(f"- {line.strip()}" for line in _remarks(score)), ""]
    lines.append("**Passed.**" if score.is_passed else "**Not passed.**")
    return "\n".join(lines) + "\n"


def _about(summary: Mapping[str, Any], about: Mapping[str, str]) -> dict[str, str]:
    struck = sum(summary["faults"].values())
    return {
        "messages": f"{summary['messages']:,}",
        "faults": f"{len(summary['faults'])} kinds, {struck:,} times",
        "breaks": f"{summary['breaks']:,}",
        "seed": str(summary["seed"]),
        "verdict": summary["verdict"],
        **about,
    }


def _rows(section: Section) -> Iterator[tuple[str, ...]]:
    for name, line in sorted(section.lines.items()):
        yield _row(name, line)
    yield _row("all", section.total())


def _row(name: str, line: Line) -> tuple[str, ...]:
    shares = (_share(line.precision), _share(line.recall))
    return name, str(line.truth), str(line.found), str(line.matched), *shares


def _share(value: float) -> str:
    """Return a share such that only a perfect one reads 1.0000.

    >>> _share(1.0), _share(0.99999)
    ('1.0000', '0.9999')
    """
    return f"{value:.4f}" if value in (0.0, 1.0) else f"{min(value, 0.9999):.4f}"


def _aligned(row: Iterable[str], widths: list[int]) -> str:
    name, *numbers = row
    rest = "  ".join(number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
    return f"{name.ljust(widths[0])}  {rest}"


def _markdown(row: Iterable[str]) -> str:
    return f"| {' | '.join(row)} |"


def _remarks(score: Score) -> Iterator[str]:
    """Yield what the tables do not say: causes left open, sums that differ, and the first differing breaks."""
    yield (
        f"causes left open: {score.abstained}, of which {score.listed} list the true cause as admissible; "
        "leaving a cause open is right where the evidence admits several"
    )
    for difference in score.counts:
        what = " ".join(map(str, difference.subject))
        yield f"statement, {what}: expected {difference.truth}, found {difference.found}"
    for section in score.sections:
        for difference in section.differences:
            what = " ".join(map(str, difference.subject))
            yield f"{section.title} of {what}: expected {difference.truth}, found {difference.found}"
