"""OpenLineage facets of a judged window: its evidence as inputs, and the verdict as an assertion about it.

Airflow's OpenLineage provider requests them from the task `check`, if it is installed and has a transport.
Names of datasets: OpenLineage documentation, "Naming Conventions". Docs: docs/reference/metrics.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import data_quality_assertions_dataset, input_statistics_input_dataset

from tieout import connections, settings
from tieout.brokers.connection_fields import fields_of
from tieout.contracts import Contract, JdbcSource, PulsarCursorSource, PulsarSource, Source, cluster_topic
from tieout.errors import TieoutError
from tieout.model import CheckStatus, Severity, Verdict
from tieout.orchestration.connections import export_connections
from tieout.pulsar import Administration

if TYPE_CHECKING:
    from tieout.orchestration.concluding import Conclusion

_NO_PROOF: Final = (Verdict.PENDING, Verdict.UNKNOWN)
"""Verdicts that prove neither that the guarantee was kept nor that it was broken."""

_POSTGRES: Final = 5432


def lineage_of(contract: Contract, concluded: Conclusion) -> OperatorLineage:
    """Return the ledgers as inputs, with their rows, and the result store's runs as the output.

    The ledger of effects carries the assertions: one for each check, and one for the guarantee, which is left out where
    the verdict proves neither.
    """
    export_connections(contract.connections)
    coverage = concluded.statement["coverage"]
    inputs = []
    for ledger, spec in contract.ledgers.items():
        counted = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=coverage.get(ledger.value, {}).get("rows")
        )
        facets = {"inputStatistics": counted}
        if ledger is contract.effect_ledger:
            facets["dataQualityAssertions"] = (
                data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
                    assertions=list(_assertions(contract, concluded))
                )
            )
        inputs += [
            InputDataset(namespace, name, inputFacets=facets)
            for namespace, name in _datasets(spec.source, contract.base_dir)
        ]
    return OperatorLineage(inputs=inputs, outputs=[_store()])


def _assertions(
    contract: Contract, concluded: Conclusion
) -> Iterator[data_quality_assertions_dataset.Assertion]:
    made = data_quality_assertions_dataset.Assertion
    if concluded.verdict not in _NO_PROOF:
        yield made(
            assertion="tieout.guarantee",
            success=concluded.verdict is Verdict.KEPT,
            severity="error",
            name=f"{contract.guarantee} for group {contract.group}",
            expected=Verdict.KEPT.value,
            actual=concluded.verdict.value,
        )
    for result in concluded.results:
        yield made(
            assertion=f"tieout.{result.rule}",
            success=result.status is CheckStatus.PASS,
            severity="error" if result.severity is Severity.CRITICAL else "warn",
            name=result.rule,
            expected=result.limit,
            actual=result.observed,
        )


def _datasets(source: Source, base_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of the datasets of a ledger; none where the connection is unknown."""
    with suppress(TieoutError):
        if isinstance(source, JdbcSource):
            found = connections.connection(source.connection)
            schema, _, table = (source.table or "query").rpartition(".")
            server = f"postgres://{found.host}:{found.port or _POSTGRES}"
            yield server, f"{found.schema}.{schema or 'public'}.{table}"
            return
        if (of_cluster := cluster_topic(source)) is not None:
            connection, topic = of_cluster
            servers = fields_of(connection, connection).servers()
            yield f"kafka://{servers.split(',', maxsplit=1)[0].strip()}", topic
            return
        if isinstance(source, PulsarSource | PulsarCursorSource) and source.connection is not None:
            broker = Administration.of(source.connection, source.connection)
            yield f"pulsar://{broker.host}:{broker.port}", f"persistent://{source.topic_path}"
            return
    named = getattr(source, "path", None) or ()
    for path in (named,) if isinstance(named, str) else named:
        place = urlsplit(path)
        if place.netloc:
            yield f"{place.scheme}://{place.netloc}", place.path.lstrip("/")
        else:
            yield "file", str(base_dir / path)


def _store() -> OutputDataset:
    """Return the result store's table of runs."""
    url = urlsplit(settings.required_database_url())
    server = f"postgres://{url.hostname or 'localhost'}:{url.port or _POSTGRES}"
    return OutputDataset(server, f"{url.path.lstrip('/')}.tieout.run")
