"""The results of checking one run, independent of Great Expectations."""

from __future__ import annotations

from dataclasses import dataclass

from tieout.model import CheckResult, CheckStatus, Severity, Verdict


@dataclass(frozen=True)
class CheckReport:
    """One result for each rule of the suites, in order, with the versions used.

    Attributes:
        results: Never empty; a rule that could not be evaluated is among them with status `error`.
        suite: The suites' names, joined by `+`.
        suite_digest: SHA-256 (hex) over the suites' files as they were read.
        gx_version: The version of Great Expectations.
    """

    results: tuple[CheckResult, ...]
    suite: str
    suite_digest: str
    gx_version: str

    def disagrees_with(self, verdict: Verdict) -> bool:
        """Return whether checks and judge cannot both be right, which is worth an alert of its own.

        One saw a break that the other did not, or the checks could not follow a verdict that claims to know.
        UNKNOWN contradicts nothing but a break: the judge may lack what the checks do not ask for.
        """
        is_broken = any(
            result.severity is Severity.CRITICAL and result.status is CheckStatus.FAIL
            for result in self.results
        )
        if verdict is Verdict.BROKEN:
            return not is_broken
        is_open = any(result.status is CheckStatus.ERROR for result in self.results)
        return is_broken or (is_open and verdict is not Verdict.UNKNOWN)
