"""A statement as Markdown, for a pull request or a ticket.

Values from other people's systems are in code spans: inside one, GitHub Flavored Markdown
(https://github.github.com/gfm/, "Code spans", "Tables") knows no HTML, link, image, mention or issue number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tieout.contracts import shown_position
from tieout.model import CheckStatus
from tieout.reporting.alerts import printable
from tieout.reporting.page import MEANINGS
from tieout.reporting.sheet import Account, accounts, place_of
from tieout.reporting.text import (
    COLUMNS_SHOWN,
    INCIDENTS_SHOWN,
    NOTES_SHOWN,
    latency_lines,
    not_judged_lines,
    ranges_of,
    words,
)

_TICKS: Final = re.compile("`+")


def render_markdown(statement: Mapping[str, Any]) -> str:
    """Return the statement as Markdown, ending in a newline; values from elsewhere are code spans."""
    window = statement["window"]
    verdict = statement["verdict"]
    parts = [
        f"# {verdict}: {code(statement['pipeline'])}",
        f"{words(statement['guarantee'])}: {MEANINGS[verdict]}.",
        _table(
            ("", ""),
            (
                ("Window", f"{code(window['start'])} to {code(window['end'])}"),
                *(("Offsets", code(name, in_table=True)) for name in ranges_of(statement)),
                ("Group", code(statement["group"], in_table=True)),
                ("Identity", words(statement["identity"])),
                ("Run", code(statement["run_id"], in_table=True)),
                ("Generated at", code(statement["generated_at"])),
                ("Contract", code(statement["contract_digest"], in_table=True)),
            ),
        ),
        _section("Why", _bullets(statement["reasons"])),
        _section("Balance", _balance(statement)),
        _section("Classes", _counts(statement["classes"])),
        _section("Flags", _counts(statement["flags"])),
        _section(
            "Latency from acknowledgement to first effect", _bullets(latency_lines(statement["latency"]))
        ),
        _section("Incidents", _incidents(statement)),
        _section("Checks that did not pass", _checks(statement["checks"])),
        _section(
            "Not judged, by the ledger that would show it",
            _bullets(not_judged_lines(statement["not_judged"])),
        ),
        _section("Limits", _bullets(statement.get("limits", ()))),
        _section("Coverage", _coverage(statement["coverage"])),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def code(value: object, *, in_table: bool = False, limit: int = 300) -> str:
    r"""Return a value as one code span that it cannot end; an empty one is a dash.

    In a table a bar is escaped: renderers differ in which backslash before a bar ends a cell.

    >>> code("a`b"), code("x|y", in_table=True), code(None)
    ('`` a`b ``', '`x\\u007cy`', '-')
    """
    if value is None or value == "":
        return "-"
    text = printable(str(value), limit)
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    padded = f" {text} " if longest or text != text.strip() else text
    return fence + (padded.replace("|", "\\u007c") if in_table else padded) + fence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """Return a table of Markdown cells; the columns in `numbers` are aligned to the right."""
    return _table(head, rows, frozenset(numbers))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    rule = ["---:" if place in numbers else "---" for place in range(len(head))]
    lines = [_cells(row) for row in rows]
    return "\n".join([_cells(head), _cells(rule), *lines]) if lines else ""


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {code(line)}" for line in lines)


def _balance(statement: Mapping[str, Any]) -> str:
    """Return the sheet as a table: a row per count, a column per partition; zero terms are left out."""
    sheet_accounts = accounts(statement)
    if not sheet_accounts:
        return "No attempts, effects or log positions in this window."
    partitions = statement["partitions"]
    shown = partitions if len(partitions) <= COLUMNS_SHOWN else []
    head = ["", "total", *(code(place_of(row["topic"], row["partition"]), in_table=True) for row in shown)]
    rows = [row for account in sheet_accounts for row in _account_rows(account, len(shown))]
    body = _table(head, rows, frozenset(range(1, len(head))))
    more = f"\n\n{len(partitions)} partitions; statement.json and statement.html have each."
    return body if len(shown) == len(partitions) else body + more


def _account_rows(account: Account, shown: int) -> list[list[str]]:
    whole = account.whole
    rows = [[f"**{words(whole.name)}**", str(whole.total), *map(str, whole.values[:shown])]]
    rows += [
        [words(term.name), str(term.total), *map(str, term.values[:shown])]
        for term in account.terms
        if any(term.values)
    ]
    if account.difference:
        rows.append(["**does not add up by**", str(account.difference), *([""] * shown)])
    return rows


def _counts(counted: Mapping[str, int]) -> str:
    rows = [(code(name, in_table=True), str(count)) for name, count in counted.items()]
    return _table(("Name", "Count"), rows, frozenset({1}))


def _incidents(statement: Mapping[str, Any]) -> str:
    incidents = statement["incidents"]
    more = len(incidents) - INCIDENTS_SHOWN
    tail = f"\n\nand {more} more; {statement['breaks_total']} breaks in all." if more > 0 else ""
    return incident_table(incidents[:INCIDENTS_SHOWN], statement.get("position_form")) + tail


def incident_table(incidents: Iterable[Mapping[str, Any]], form: str | None = None) -> str:
    """Return incidents as a table, empty without any; positions in that form."""
    rows = [
        (
            code(incident["class"], in_table=True),
            str(incident["breaks"]),
            code(place_of(incident["topic"], incident["partition"]), in_table=True),
            _positions(incident, form),
            code(incident["locus"], in_table=True),
            code(incident["cause"], in_table=True),
        )
        for incident in incidents
    ]
    return _table(("Class", "Breaks", "Partition", "Positions", "Locus", "Cause"), rows, frozenset({1}))


def _positions(incident: Mapping[str, Any], form: str | None) -> str:
    form = incident.get("position_form", form)
    first, last = (shown_position(incident[name], form) for name in ("first_position", "last_position"))
    return "-" if first is None else f"{code(first, in_table=True)} to {code(last, in_table=True)}"


def _checks(checks: Iterable[Mapping[str, Any]]) -> str:
    rows = [
        tuple(
            code(check[name], in_table=True) for name in ("rule", "severity", "status", "observed", "limit")
        )
        for check in checks
        if check["status"] != CheckStatus.PASS
    ]
    return _table(("Rule", "Severity", "Status", "Observed", "Limit"), rows)


def _until(ledger_coverage: Mapping[str, Any]) -> str:
    """Return until when a ledger is complete, and who stated it."""
    stated_by = ledger_coverage.get("stated_by")
    until = code(ledger_coverage["complete_until"], in_table=True)
    return f"{until}<br>{code(stated_by, in_table=True)}" if stated_by else until


def _coverage(coverage: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (
            code(ledger, in_table=True),
            "yes" if ledger_coverage["covers"] else f"**no**: {code(ledger_coverage['gap'], in_table=True)}",
            _until(ledger_coverage),
            str(ledger_coverage["rows"]),
            str(ledger_coverage["unparsed"]),
            "<br>".join(code(note, in_table=True) for note in ledger_coverage["notes"][:NOTES_SHOWN]) or "-",
        )
        for ledger, ledger_coverage in coverage.items()
    ]
    head = ("Ledger", "Covers", "Complete until", "Rows", "Unreadable", "Notes")
    return _table(head, rows, frozenset({3, 4}))
