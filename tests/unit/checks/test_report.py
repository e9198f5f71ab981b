"""A report knows whether it contradicts the judge."""

from __future__ import annotations

import pytest

from tieout.checks import CheckReport
from tieout.model import CheckResult, CheckStatus, Severity, Verdict

PASSED = CheckResult("a", Severity.CRITICAL, CheckStatus.PASS, "0", "0")
BROKEN = CheckResult("b", Severity.CRITICAL, CheckStatus.FAIL, "1", "0")
WARNED = CheckResult("c", Severity.WARNING, CheckStatus.FAIL, "1", "0")
OPEN = CheckResult("d", Severity.CRITICAL, CheckStatus.ERROR, "?", "0")


@pytest.mark.parametrize(
    ("results", "contradicted"),
    [
        ((PASSED,), {Verdict.BROKEN}),
        ((PASSED, WARNED), {Verdict.BROKEN}),
        ((PASSED, BROKEN), {Verdict.KEPT, Verdict.PENDING, Verdict.UNKNOWN}),
        ((PASSED, OPEN), {Verdict.BROKEN, Verdict.KEPT, Verdict.PENDING}),
        ((BROKEN, OPEN), {Verdict.KEPT, Verdict.PENDING, Verdict.UNKNOWN}),
    ],
)
def test_disagrees_with_verdicts_that_it_cannot_follow(
    results: tuple[CheckResult, ...], contradicted: set[Verdict]
) -> None:
    """A break that only one side saw, or a claim that the checks cannot follow, is a contradiction."""
    report = CheckReport(results, "suite", "digest", "1.24.1")

    assert {verdict for verdict in Verdict if report.disagrees_with(verdict)} == contradicted
