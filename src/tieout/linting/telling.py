"""Findings for the terminal: what was found in full, and what is merely worth knowing in a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tieout.linting.finding import Finding
from tieout.model import Severity
from tieout.reporting.alerts import plain


def findings_text(found: Sequence[Finding]) -> str:
    """Return the findings as lines that end in a newline; nothing of them for none."""
    return "".join(f"{line}\n" for finding in found for line in _lines(finding))


def counted(found: Sequence[Finding]) -> str:
    """Return how many findings there are of each severity, such as `1 critical, 2 info`."""
    counts = Counter(finding.severity for finding in found)
    return ", ".join(f"{counts[severity]} {severity}" for severity in reversed(Severity) if counts[severity])


def _lines(finding: Finding) -> Iterator[str]:
    head = f"  {finding.severity.value:<8}  {plain(finding.subject)}"
    what = ", ".join(finding.classes) or "no class of messages"
    if finding.severity is Severity.INFO:
        yield f"{head}: {what if finding.classes else plain(finding.failure)} ({finding.rule})"
        return
    yield head + ("" if finding.is_certain else "; may be so, by a version or value that is left open")
    if finding.file:
        yield plain(f"    in:       {finding.file}")
    if finding.default:
        yield plain(f"    default:  {finding.default}")
    if finding.classes:
        cause = f" (cause: {finding.cause})" if finding.cause else ""
        yield f"    leads to: {what}{cause}"
    yield plain(f"    how:      {finding.failure}")
    yield plain(f"    set:      {finding.advice}")
    yield plain(f"    source:   {finding.source} ({finding.rule})")
