"""What checking one run came to, as a value that needs no Great Expectations to be read."""

from __future__ import annotations

from dataclasses import dataclass

from tieout.model import CheckResult


@dataclass(frozen=True)
class CheckReport:
    """One result for each rule of the suites, in their order, and what they were checked with.

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
