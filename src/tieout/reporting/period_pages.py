"""A period's report for people: text, Markdown, and a page without other files.

They show the document of `period.py`; long lists are cut with a note. Everything is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tieout.reporting.alerts import printable
from tieout.reporting.markdown import code, incident_table, table
from tieout.reporting.page import environment
from tieout.reporting.period import is_consequence
from tieout.reporting.sheet import Account, accounts
from tieout.reporting.text import aligned, incident_line, words

INCIDENTS_SHOWN: Final = 20
WINDOWS_SHOWN: Final = 50
GAPS_SHOWN: Final = 20
PAGE_WINDOWS: Final = 2_000
_COLUMNS: Final = ("messages", "lost", "further_effects", "in_flight", "breaks")


def period_text(document: Mapping[str, Any]) -> str:
    """Return the report as lines of text, ending in a newline."""
    period = document["period"]
    head = printable(
        f"{document['verdict']}  {period['start']} to {period['end']}, from the {document['source']}"
    )
    sections = [[head], *(_text_of(entry) for entry in document["pipelines"])]
    if not document["pipelines"]:
        sections.append([nothing_judged(document)])
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def nothing_judged(document: Mapping[str, Any]) -> str:
    """Return the sentence for a period without judged windows."""
    of = "" if document["pipeline"] is None else f" of {document['pipeline']}"
    return printable(f"No window{of} was judged in this period.")


def windows_line(entry: Mapping[str, Any]) -> str:
    """Return in words how many windows were judged, of how many, and how they ended."""
    expected = entry["windows_expected"]
    of = (
        "of a number that is not known, as they differ in length"
        if expected is None
        else f"of {expected} expected"
    )
    verdicts = ", ".join(f"{name} {count}" for name, count in entry["verdicts"].items() if count) or "none"
    return f"{entry['windows_judged']} judged {of}: {verdicts}"


def warnings(entry: Mapping[str, Any]) -> list[str]:
    """Return the reasons not to rely on the report's numbers."""
    lines = []
    if entry["windows_unchecked"]:
        lines.append(
            f"{entry['windows_unchecked']} windows were not checked independently; unless BROKEN they count as UNKNOWN"
        )
    if entry["windows_overlapping"]:
        lines.append(
            f"{entry['windows_overlapping']} windows overlap their predecessor: what lies in both is counted twice"
        )
    if entry["sums"]["unexplained"]:
        lines.append(f"{entry['sums']['unexplained']} offsets have no explanation")
    lines += [f"{account.whole.name} does not add up by {account.difference}" for account in _wrong(entry)]
    return lines


def sheet(entry: Mapping[str, Any]) -> tuple[Account, ...]:
    """Return the period's sums as the accounts of one statement."""
    return accounts({"partitions": [{**entry["sums"], "topic": None, "partition": None, "offsets": None}]})


def _wrong(entry: Mapping[str, Any]) -> list[Account]:
    return [account for account in sheet(entry) if account.difference]


def _text_of(entry: Mapping[str, Any]) -> list[str]:
    sums = [
        row
        for account in sheet(entry)
        for row in (
            [words(account.whole.name), str(account.whole.total)],
            *(["  " + words(term.name), str(term.total)] for term in account.terms if term.total),
        )
    ]
    gaps = [f"{gap['start']} to {gap['end']}" for gap in entry["not_judged"]]
    local, before = incidents_of(entry)
    incidents = [printable(_incident(incident)) for incident in local[:INCIDENTS_SHOWN]]
    consequences = [printable(_incident(incident)) for incident in before[:INCIDENTS_SHOWN]]
    sections = (
        ("Attention", warnings(entry)),
        ("Not judged", _cut(gaps, GAPS_SHOWN, len(gaps))),
        ("Sums", aligned(sums)),
        ("Classes", aligned([[printable(name), str(count)] for name, count in entry["classes"].items()])),
        (
            "Open incidents",
            _cut(incidents, INCIDENTS_SHOWN, entry["incidents_total"] - entry["incidents_before"]),
        ),
        ("From an earlier hop", _cut(consequences, INCIDENTS_SHOWN, entry["incidents_before"])),
    )
    guarantees = ", ".join(words(name) for name in entry["guarantees"])
    lines = [
        printable(f"{entry['verdict']}  {entry['pipeline']}, group {entry['group']}, {guarantees}"),
        f"  Windows: {windows_line(entry)}",
        f"  Inputs: {entry['inputs_total']}; the digest of each stands in the report as JSON",
    ]
    for title, section_lines in sections:
        lines += [f"  {title}", *(f"    {line}" for line in section_lines)] if section_lines else []
    return lines


def incidents_of(entry: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return a pipeline's incidents that happened at its hop, and those that an earlier hop has already."""
    local = [incident for incident in entry["incidents"] if not is_consequence(incident)]
    return local, [incident for incident in entry["incidents"] if is_consequence(incident)]


def origin_words(incident: Mapping[str, Any]) -> str:
    """Return at which hop an incident happened, with the ids of that hop's incidents; empty if it is not known."""
    origin = incident.get("origin")
    if origin is None:
        return ""
    ids = ", ".join(earlier["incident_id"] for earlier in origin["earlier"])
    return f"{origin['words']}{f' (incident {ids})' if ids else ''}"


def _incident(incident: Mapping[str, Any]) -> str:
    line = f"{incident['window']['start']}: {incident_line(incident, incident.get('position_form'))}"
    origin = origin_words(incident)
    return f"{line}; {origin}" if origin else line


def _cut(lines: Sequence[str], shown: int, total: int) -> list[str]:
    more = total - min(len(lines), shown)
    return [*lines[:shown], *([f"and {more} more"] if more > 0 else [])]


def period_markdown(document: Mapping[str, Any]) -> str:
    """Return the report as Markdown, ending in a newline; values from elsewhere are code spans."""
    period = document["period"]
    parts = [
        f"# {document['verdict']}: {code(period['start'])} to {code(period['end'])}",
        f"Made at {code(document['generated_at'])} from the {document['source']}.",
        *(_markdown_of(entry) for entry in document["pipelines"]),
    ]
    if not document["pipelines"]:
        parts.append(code(nothing_judged(document)))
    return "\n\n".join(parts) + "\n"


def _markdown_of(entry: Mapping[str, Any]) -> str:
    rows = [
        row
        for account in sheet(entry)
        for row in (
            (f"**{words(account.whole.name)}**", str(account.whole.total)),
            *((words(term.name), str(term.total)) for term in account.terms if term.total),
        )
    ]
    gaps = [f"- {code(gap['start'])} to {code(gap['end'])}" for gap in entry["not_judged"]]
    local, before = incidents_of(entry)
    consequences = [f"- {code(_incident(incident))}" for incident in before[:INCIDENTS_SHOWN]]
    windows = [
        (
            code(row["start"]),
            code(row["end"]),
            row["verdict"],
            *(str(row[name]) for name in _COLUMNS),
            code(row["inputs_digest"][:16]),
        )
        for row in entry["windows"][:WINDOWS_SHOWN]
    ]
    more = len(entry["windows"]) - len(windows)
    head = ("From", "To", "Verdict", *(words(name) for name in _COLUMNS), "Inputs")
    parts = [
        f"## {entry['verdict']}: {code(entry['pipeline'])}, group {code(entry['group'])}",
        f"{', '.join(words(name) for name in entry['guarantees'])}. Windows: {windows_line(entry)}.",
        "\n".join(f"- **{line}**" for line in warnings(entry)),
        "### Not judged\n\n" + "\n".join(_cut(gaps, GAPS_SHOWN, len(gaps))) if gaps else "",
        "### Sums\n\n" + table(("", "total"), rows, {1}),
        "### Open incidents\n\n" + incident_table(local[:INCIDENTS_SHOWN]) if local else "",
        "### From an earlier hop\n\n"
        + "\n".join(_cut(consequences, INCIDENTS_SHOWN, entry["incidents_before"]))
        if before
        else "",
        "### Windows\n\n" + table(head, windows, range(3, 3 + len(_COLUMNS))) if windows else "",
        f"and {more} more windows; the report as JSON has all." if more > 0 else "",
    ]
    return "\n\n".join(part for part in parts if part)


def period_html(document: Mapping[str, Any]) -> str:
    """Return the report as one page without other files and without scripts."""
    return (
        environment()
        .get_template("period.html.j2")
        .render(
            report=document,
            sheet=sheet,
            warnings=warnings,
            windows_line=windows_line,
            nothing_judged=nothing_judged,
            incidents_of=incidents_of,
            origin_words=origin_words,
            columns=_COLUMNS,
            windows_shown=PAGE_WINDOWS,
        )
    )
