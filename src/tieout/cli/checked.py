"""The output of `tieout check`: contracts and the findings about their settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tieout.contracts import Contract
from tieout.errors import ContractError
from tieout.linting import Finding
from tieout.linting.findings_text import counted, findings_text
from tieout.linting.linting import UNREADABLE
from tieout.reporting.alerts import printable

Checked = tuple[Contract, tuple[Finding, ...]]
"""A valid contract and the findings about its settings."""


def checked_text(contract: Contract, findings: Sequence[Finding]) -> str:
    """Return the text of a valid contract and the findings about its settings."""
    ledgers = ", ".join(ledger.value for ledger in contract.ledgers)
    return (
        f"{contract.pipeline}: valid; {contract.guarantee} for group {printable(contract.group)}\n"
        f"  ledgers: {ledgers}\n  digest: {contract.digest}\n"
        f"  settings: {_settings(contract, findings)}\n{findings_text(findings)}"
    )


def checked_json(checked: Sequence[Checked], errors: Sequence[ContractError]) -> dict[str, Any]:
    """Return the valid contracts with their findings, and the errors of the others: docs/reference/linter.md."""
    return {
        "contracts": [
            {
                "pipeline": contract.pipeline,
                "guarantee": contract.guarantee.value,
                "group": contract.group,
                "ledgers": [ledger.value for ledger in contract.ledgers],
                "digest": contract.digest,
                "findings": [finding.as_dict() for finding in found],
            }
            for contract, found in checked
        ],
        "errors": [{"file": error.file, "line": error.line, "reason": error.reason} for error in errors],
    }


def has_unreadable(checked: Sequence[Checked]) -> bool:
    """Return whether a settings file that a contract names could not be read: a mistake in the contract."""
    return any(finding.rule == UNREADABLE for _, found in checked for finding in found)


def _settings(contract: Contract, findings: Sequence[Finding]) -> str:
    if not any(contract.settings.model_dump().values()):
        return "none declared, so nothing is said of them"
    return counted(findings) or f"nothing in them speaks against {contract.guarantee}"
