"""The independent checks: Great Expectations on the rows that a run left in PostgreSQL.

The judge (`tieout.verdicts`) decides from the statement; the checks apply the same limits to the stored
rows, in SQL of their own, and can only worsen its verdict (docs/decisions/checks-can-only-worsen.md).

Importing this package is cheap. `check_statement` imports Great Expectations, which takes some seconds and some
300 MB, so only the task that checks calls it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from tieout.checks.report import CheckReport
from tieout.contracts import Contract
from tieout.model import Window

__all__ = ["CheckReport", "check_statement", "data_docs", "data_docs_page"]

DATA_DOCS_SITE: Final = Path("uncommitted") / "data_docs" / "local_site"
"""The path of the site that Great Expectations builds below a folder."""


def check_statement(database_url: str, run_id: str, contract: Contract) -> CheckReport:
    """Return the results of the checks of one published run; they read the store and write nothing.

    Calls from several threads run one by one: Great Expectations is not thread-safe.

    Args:
        database_url: The store's libpq URL.
        run_id: The run's UUID.
        contract: The contract that the run was judged by; its limits are the checks' limits.

    Raises:
        UsageError: where `run_id` is not a UUID.
        SuiteError: where a suite cannot be used; nothing is checked then.
        StoreError: where the store cannot be reached. A later retry may help; a finding never raises.
    """
    # The library logs some 200 lines on import under a scheduler with log level INFO.
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    from tieout.checks.running import run_checks  # noqa: PLC0415 - see the module's docstring

    return run_checks(database_url, run_id, contract)


def data_docs(database_url: str, run_id: str, contract: Contract, window: Window, folder: Path) -> Path:
    """Add a run's checks to the site of Data Docs below `folder`, built by Great Expectations; return its index.

    Raises:
        UsageError: where `run_id` is not a UUID.
        SuiteError: where a suite cannot be used.
        StoreError: where the store cannot be reached.
    """
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    from tieout.checks.documenting import build_data_docs  # noqa: PLC0415 - see the module's docstring

    return build_data_docs(database_url, run_id, contract, window, folder)


def data_docs_page(folder: Path, run_id: str) -> Path | None:
    """Return the page of a run in the site below `folder`, the latest of several, or None where there is none."""
    pages = (folder / DATA_DOCS_SITE / "validations").glob(f"*/{run_id}/*/*.html")
    return max(pages, default=None)
