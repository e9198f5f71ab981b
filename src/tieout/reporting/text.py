"""A statement for the terminal: the verdict and why, then its counts, incidents, checks and evidence.

Ids in a statement come from other people's systems; they are printed as one visible, bounded line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tieout.contracts import shown_position
from tieout.reporting.alerts import printable
from tieout.reporting.sheet import Account, Line, accounts, place_of

COLUMNS_SHOWN: Final = 6
INCIDENTS_SHOWN: Final = 20
NOTES_SHOWN: Final = 5
_INDENT: Final = "  "


def render_text(statement: Mapping[str, Any]) -> str:
    """Return the statement as lines of text, without colours, ending in a newline."""
    sections = (
        _head(statement),
        _section("Why", _reasons(statement)),
        _section("Balance", _balance(statement)),
        _section("Classes", _counts(statement["classes"])),
        _section("Flags", _counts(statement["flags"])),
        _section("Budgets", _budgets(statement["budgets"])),
        _section("Latency from acknowledgement to first effect", latency_lines(statement["latency"])),
        _section("Incidents", _incidents(statement)),
        _section(
            "Not judged, by the ledger that would show it (statement.json names the columns)",
            not_judged_lines(statement["not_judged"]),
        ),
        _section("Limits", [printable(limit) for limit in statement.get("limits", ())]),
        _section("Coverage", _coverage(statement["coverage"])),
    )
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _head(statement: Mapping[str, Any]) -> list[str]:
    window = statement["window"]
    return [
        printable(f"{statement['verdict']}  {statement['pipeline']}"),
        printable(
            f"{statement['guarantee']}, group {statement['group']}, {window['start']} to {window['end']}"
        ),
        *(["offsets " + printable(", ".join(ranges_of(statement)))] if "offsets" in window else []),
    ]


def ranges_of(statement: Mapping[str, Any]) -> list[str]:
    """Return the window's ranges of offsets as `TOPIC/PARTITION/FROM-TO`; none for a window of time."""
    return [
        f"{offset_range['topic']}/{offset_range['partition']}/{offset_range['from']}-{offset_range['to']}"
        for offset_range in statement["window"].get("offsets", ())
    ]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *(_INDENT + line for line in lines)] if lines else []


def _reasons(statement: Mapping[str, Any]) -> list[str]:
    return [printable(reason) for reason in statement["reasons"]]


def _balance(statement: Mapping[str, Any]) -> list[str]:
    """Return the sheet as a table: a line per count, a column per partition; zero terms are left out."""
    sheet_accounts = accounts(statement)
    if not sheet_accounts:
        return ["no attempts, effects or log positions in this window"]
    places = [printable(place_of(row["topic"], row["partition"]), 40) for row in statement["partitions"]]
    shown = len(places) if len(places) <= COLUMNS_SHOWN else 0
    rows = [["", "total", *places[:shown]]]
    for account in sheet_accounts:
        rows += _account_rows(account, shown)
    table = aligned(rows)
    return (
        table if shown else [*table, f"{len(places)} partitions; statement.json and statement.html have each"]
    )


def _account_rows(account: Account, shown: int) -> Iterator[list[str]]:
    yield _row(account.whole, "", shown)
    for term in account.terms:
        if any(term.values):
            yield _row(term, "  ", shown)
    if account.difference:
        yield ["  does not add up by", str(account.difference), *([""] * shown)]


def _row(line: Line, indent: str, shown: int) -> list[str]:
    return [indent + words(line.name), str(line.total), *(str(value) for value in line.values[:shown])]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, the first column aligned left and the others right."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _counts(counted: Mapping[str, int]) -> list[str]:
    return aligned([[printable(name), str(count)] for name, count in counted.items()]) if counted else []


def _budgets(budgets: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        printable(f"{name}: {_ratio(budget['observed'])}, {_limit(budget['limit'])}")
        for name, budget in budgets.items()
    ]


def _ratio(observed: float | None) -> str:
    return "infinite" if observed is None else f"{observed:.6g}"


def _limit(limit: float | None) -> str:
    return "no limit declared" if limit is None else f"at most {limit:g}"


def _incidents(statement: Mapping[str, Any]) -> list[str]:
    incidents = statement["incidents"]
    lines = [
        incident_line(incident, statement.get("position_form")) for incident in incidents[:INCIDENTS_SHOWN]
    ]
    more = len(incidents) - len(lines)
    return [*lines, f"and {more} more; {statement['breaks_total']} breaks in all"] if more else lines


def incident_line(incident: Mapping[str, Any], form: str | None = None) -> str:
    """Return one incident in words: how many, of which class, where, why; positions in that form."""
    first, last = (shown_position(incident[name], form) for name in ("first_position", "last_position"))
    positions = "" if first is None else f", positions {first} to {last}"
    place = place_of(incident["topic"], incident["partition"])
    return printable(
        f"{incident['breaks']} {incident['class']} in {place}{positions}; "
        f"at: {incident['locus']}; cause: {incident['cause']}"
    )


def latency_lines(latency: Mapping[str, Any]) -> list[str]:
    """Return the latency as one line, in seconds; none if it was not measured, or no message was delivered.

    >>> latency_lines({"count": 3, "mean_s": 1.5, "p50_s": 1.25, "p95_s": None, "p99_s": 2.0, "max_s": None})
    ['3 messages: mean 1.5 s, p50 1.25 s, p99 2 s']
    >>> latency_lines({"count": 0, "mean_s": None})
    []
    """
    if not latency.get("count"):
        return []
    figures = [
        f"{name.removesuffix('_s')} {value:.6g} s"
        for name, value in latency.items()
        if name.endswith("_s") and value is not None
    ]
    return [f"{latency['count']} messages: {', '.join(figures)}"]


def not_judged_lines(entries: Sequence[Mapping[str, str]]) -> list[str]:
    """Return one line per ledger: the classes that it would show, each under the ledger that its needs name first.

    >>> not_judged_lines([
    ...     {"class": "COMPACTED", "needs": "log"}, {"class": "REDELIVERY", "needs": "read: partition"},
    ...     {"class": "LOG_DUPLICATE", "needs": "log or read: offset"},
    ... ])
    ['log: COMPACTED, LOG_DUPLICATE', 'read: REDELIVERY']
    """
    by_ledger: dict[str, list[str]] = {}
    for entry in entries:
        by_ledger.setdefault(re.split(r"\W", entry["needs"], maxsplit=1)[0], []).append(entry["class"])
    return [printable(f"{ledger}: {', '.join(classes)}") for ledger, classes in by_ledger.items()]


def _coverage(coverage: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = []
    for ledger, ledger_coverage in coverage.items():
        covers = "covers" if ledger_coverage["covers"] else f"DOES NOT COVER: {ledger_coverage['gap']}"
        stated_by = f" ({ledger_coverage['stated_by']})" if ledger_coverage.get("stated_by") else ""
        until = f"{ledger_coverage['complete_until'] or 'unknown'}{stated_by}"
        rows = f"{ledger_coverage['rows']} rows, {ledger_coverage['unparsed']} unreadable"
        lines.append(printable(f"{ledger}: {covers}; complete until {until}; {rows}"))
        notes = ledger_coverage["notes"]
        lines += [_INDENT + printable(note) for note in notes[:NOTES_SHOWN]]
        if len(notes) > NOTES_SHOWN:
            lines.append(f"{_INDENT}and {len(notes) - NOTES_SHOWN} more notes in statement.json")
    return lines


def words(name: str) -> str:
    """Return one of our own names in words.

    >>> words("at_least_once")
    'at least once'
    """
    return name.replace("_", " ")
