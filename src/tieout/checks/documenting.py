"""Great Expectations' own pages, Data Docs: one site per pipeline, with a page for each run that was checked.

The library builds them; this module only chooses the place. Docs: docs/how-to/use-the-checks-elsewhere.md.
"""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any, Final

from great_expectations import ValidationDefinition
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.base import DataContextConfig, FilesystemStoreBackendDefaults

from tieout.checks import DATA_DOCS_SITE
from tieout.checks.declaring import declared_for
from tieout.checks.loading import loaded
from tieout.checks.parameters import parameters_of
from tieout.checks.running import GX_LOCK, batch_definition, run_uuid
from tieout.contracts import Contract
from tieout.model import Window
from tieout.shipped import EXPECTATIONS, shipped

MOST_LISTED: Final = 200
"""How many results a site's index lists; it is rebuilt from all of them after each run."""


def build_data_docs(database_url: str, run_id: str, contract: Contract, window: Window, folder: Path) -> Path:
    """Add the page of one run's checks to the site below `folder`, and return the site's index.

    This evaluates the rules once more, on the same rows. Concurrent runs wait for each other.
    """
    run, parameters = run_uuid(run_id), parameters_of(contract)
    suite = loaded(declared_for(contract.guarantee, shipped(EXPECTATIONS)), parameters)
    for expectation in suite.expectations:
        expectation.description = f"{expectation.meta['rule']}: {expectation.meta['why']}"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{contract.pipeline} {window.start:%Y-%m-%d %H%M} to {window.end:%Y-%m-%d %H%M}"
    with (
        (folder / ".lock").open("w") as lock,
        GX_LOCK,
        batch_definition(database_url, run, _configuration(folder), name) as (context, definition),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        validation = ValidationDefinition(
            name=name, data=definition, suite=context.suites.add_or_update(suite)
        )
        context.validation_definitions.add_or_update(validation)
        validation.run(expectation_parameters=dict(parameters), run_id=RunIdentifier(run_name=run_id))
        context.build_data_docs()
    return folder / DATA_DOCS_SITE / "index.html"


def _configuration(folder: Path) -> DataContextConfig:
    defaults = FilesystemStoreBackendDefaults(root_directory=str(folder))
    sites: dict[str, Any] = json.loads(json.dumps(defaults.data_docs_sites))
    for site in sites.values():
        site["show_how_to_buttons"] = False
        site["site_index_builder"] = {
            "class_name": "DefaultSiteIndexBuilder",
            "validation_results_limit": MOST_LISTED,
        }
    return DataContextConfig(store_backend_defaults=defaults, data_docs_sites=sites)
