"""Running the suites: an ephemeral context, a batch of one row, a result for each declared rule.

This is the only module that talks to Great Expectations' machinery; `tieout.checks.check_statement` is its
entry point.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import great_expectations as gx
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults
from great_expectations.datasource.fluent import GxDatasourceWarning
from great_expectations.datasource.fluent.interfaces import TestConnectionError
from sqlalchemy.exc import OperationalError

from tieout.checks.declaring import DeclaredRule, Force, declared_for
from tieout.checks.loading import loaded
from tieout.checks.parameters import parameters_of
from tieout.checks.report import CheckReport
from tieout.contracts import Contract
from tieout.errors import StoreError, UsageError
from tieout.model import CheckResult, CheckStatus
from tieout.shipped import EXPECTATIONS, shipped

GX_LOCK: Final = threading.Lock()
"""Great Expectations parses $PARAMETERs with one shared parser: two threads break each other's checks."""

_URL: Final = "postgresql+psycopg2://?application_name=tieout-checks"
"""Names the driver; the server's address is in libpq's URL, which is passed on unchanged."""

_OPERATIONAL: Final = "sqlalchemy.exc.OperationalError"
"""SQLAlchemy's error for failures outside the query: connection, timeout, shutdown."""

_CONNECT_TIMEOUT_SECONDS: Final = 10


def run_checks(database_url: str, run_id: str, contract: Contract) -> CheckReport:
    """Return what the suites of the contract's guarantee find in one stored run (see `check_statement`)."""
    run = run_uuid(run_id)
    declared = declared_for(contract.guarantee, shipped(EXPECTATIONS))
    parameters = parameters_of(contract)
    suite = loaded(declared, parameters)
    try:
        # Without the default page of results, which creates a folder in /tmp each time.
        configuration = DataContextConfig(store_backend_defaults=InMemoryStoreBackendDefaults())
        with GX_LOCK, batch_definition(database_url, run, configuration, "run") as (_, definition):
            validation = definition.get_batch().validate(suite, expectation_parameters=dict(parameters))
    except OperationalError as error:
        raise _query_error(str(error)) from None
    _refuse_lost_connection(validation.results)
    found = {result.expectation_config.meta["rule"]: result for result in validation.results}
    results = tuple(_result(rule, found.get(rule.rule)) for rule in declared.rules)
    return CheckReport(results, declared.name, declared.digest, gx.__version__)


def run_uuid(run_id: str) -> UUID:
    """Return a run's id, which becomes part of a query, so only a UUID is accepted.

    Raises:
        UsageError: where it is not one.
    """
    try:
        return UUID(run_id)
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"run_id: expected a UUID, found {run_id!r}") from error


@contextmanager
def batch_definition(
    database_url: str, run: UUID, configuration: DataContextConfig, asset: str
) -> Iterator[tuple[Any, Any]]:
    """Give a context and the definition of a batch of the run's row; closes every connection afterwards.

    The library fetches a batch's whole query, so the batch is one short row; rules fetch the rest by its run_id.

    Raises:
        StoreError: where the store cannot be reached or has no such table.
    """
    context = gx.get_context(mode="ephemeral", project_config=configuration)
    context.variables.progress_bars = {"globally": False}
    arguments: dict[str, Any] = {"dsn": database_url}
    if "connect_timeout" not in database_url:
        arguments["connect_timeout"] = _CONNECT_TIMEOUT_SECONDS
    try:
        with warnings.catch_warnings():
            # The PostgreSQL source that it recommends requires a host; here libpq's URL has it.
            warnings.simplefilter("ignore", GxDatasourceWarning)
            source = context.data_sources.add_sql(
                "store", connection_string=_URL, kwargs={"connect_args": arguments}
            )
    except TestConnectionError as error:
        raise _unreachable(error) from None
    query = f"select run_id, verdict from tieout.run where run_id = '{run}'"  # noqa: S608 - a UUID
    try:
        yield context, source.add_query_asset(asset, query=query).add_batch_definition_whole_table("run")
    finally:
        source.get_execution_engine().engine.dispose()
        source.get_engine().dispose()


def _unreachable(error: Exception) -> StoreError:
    """Return libpq's error, except those about the URL, which may hold a password."""
    found = _reason(str(error)) or "a URL that libpq does not understand (not shown)"
    return StoreError(
        f"the checks' connection: expected a PostgreSQL that accepts connections, found: {found}; "
        "check TIEOUT_DATABASE_URL"
    )


def _query_error(message: str) -> StoreError:
    return StoreError(f"the checks' queries: {_reason(message)}; nothing was concluded, run them again")


def _reason(message: str) -> str:
    r"""Return the first line of libpq's error in a library's message, or '' where there is none.

    >>> _reason("due to OperationalError('(psycopg2.OperationalError) no route\\n')")
    'no route'
    """
    reason = message.partition("(psycopg2.")[2].partition(") ")[2]
    return next(iter(reason.replace("\\n", "\n").splitlines()), "").removesuffix("')").strip()


def _refuse_lost_connection(results: Iterable[ExpectationValidationResult]) -> None:
    """Refuse results of a lost connection or a timeout: that is no finding, and a retry may help.

    Raises:
        StoreError: where a query ended in the server's or the connection's failure, not in the query's own.
    """
    for result in results:
        for raised in exceptions_in(result.exception_info):
            if _OPERATIONAL in raised.traceback:
                raise _query_error(raised.message)


def _result(rule: DeclaredRule, found: ExpectationValidationResult | None) -> CheckResult:
    """Return one rule's result; a rule that was not evaluated, however the library reports it, is an error."""
    if found is None:
        return CheckResult(rule.rule, rule.severity, CheckStatus.ERROR, "not evaluated", "")
    details = found.result.get("details")
    messages = [raised.message.partition("\n")[0] for raised in exceptions_in(found.exception_info)]
    if messages or details is None:
        observed = "; ".join(messages) or "the library gave neither a result nor a reason"
        return CheckResult(rule.rule, rule.severity, CheckStatus.ERROR, observed, "")
    status = (
        CheckStatus.PASS if found.success is True else _failed(rule, is_confirmed=details["is_confirmed"])
    )
    return CheckResult(
        rule.rule, rule.severity, status, str(found.result["observed_value"]), details["limit"]
    )


def _failed(rule: DeclaredRule, *, is_confirmed: bool) -> CheckStatus:
    """Return `fail` for a proved failure, and `error` where it is open whether the guarantee was kept.

    A critical `fail` makes the verdict BROKEN, an `error` UNKNOWN: neither a defective statement nor breaks
    that the evidence does not cover are proof.
    """
    is_open = rule.forces is Force.UNKNOWN or (rule.forces is Force.BROKEN and not is_confirmed)
    return CheckStatus.ERROR if is_open else CheckStatus.FAIL


@dataclass(frozen=True)
class Raised:
    """One exception that the library caught and reported."""

    message: str
    traceback: str


def exceptions_in(information: object) -> tuple[Raised, ...]:
    """Return the exceptions in a result's `exception_info`.

    It has two forms: the fields of one exception, where the rule raised, or a dictionary of those by metric,
    where its query raised.

    >>> exceptions_in({"raised_exception": False, "exception_message": None})
    ()
    >>> by_metric = {"('a metric',)": {"raised_exception": True, "exception_message": "no such table"}}
    >>> [raised.message for raised in exceptions_in(by_metric)]
    ['no such table']
    """
    if not isinstance(information, Mapping):
        return ()
    if "raised_exception" in information:
        if not information["raised_exception"]:
            return ()
        message = information.get("exception_message") or "an exception without a message"
        return (Raised(str(message), str(information.get("exception_traceback"))),)
    return tuple(raised for item in information.values() for raised in exceptions_in(item))
