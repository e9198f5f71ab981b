"""Findings as text for the terminal: INFO in one line, the others in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tieout.linting.finding import Finding
from tieout.model import Severity
from tieout.reporting.alerts import printable


def findings_text(findings: Sequence[Finding]) -> str:
    """Return the findings as lines that end in a newline; an empty text for none."""
    return "".join(f"{line}\n" for finding in findings for line in _lines(finding))


def counted(findings: Sequence[Finding]) -> str:
    """Return the number of findings of each severity, such as `1 critical, 2 info`."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(f"{counts[severity]} {severity}" for severity in reversed(Severity) if counts[severity])


def _lines(finding: Finding) -> Iterator[str]:
    head = f"  {finding.severity.value:<8}  {printable(finding.subject)}"
    consequences = ", ".join(finding.classes) or "no class of messages"
    if finding.severity is Severity.INFO:
        yield f"{head}: {consequences if finding.classes else printable(finding.failure)} ({finding.rule})"
        return
    yield head + ("" if finding.is_certain else "; may be so, by a version or value that is left open")
    if finding.file:
        yield printable(f"    in:       {finding.file}")
    if finding.default:
        yield printable(f"    default:  {finding.default}")
    if finding.classes:
        cause = f" (cause: {finding.cause})" if finding.cause else ""
        yield f"    leads to: {consequences}{cause}"
    yield printable(f"    how:      {finding.failure}")
    yield printable(f"    set:      {finding.advice}")
    yield printable(f"    source:   {finding.source} ({finding.rule})")
