"""Running the suites: an ephemeral context, a batch of one row, a result for each declared rule.

This is the only module that talks to Great Expectations' machinery; `tieout.checks.check_statement` is its
door.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

import great_expectations as gx
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.datasource.fluent.interfaces import Batch, TestConnectionError

from tieout.checks.declaring import DeclaredRule, Force, declared_for, suites_folder
from tieout.checks.loading import loaded
from tieout.checks.parameters import parameters_of
from tieout.checks.report import CheckReport
from tieout.contracts import Contract
from tieout.errors import StoreError, UsageError
from tieout.model import CheckResult, CheckStatus

_ONE_AT_A_TIME: Final = threading.Lock()
"""Great Expectations parses $PARAMETERs with one shared parser: two threads break each other's checks."""

_URL: Final = "postgresql+psycopg2://?application_name=tieout-checks"
"""Names the driver; where the server is stands in libpq's own URL, which is passed on to it as it is."""

_CONNECT_TIMEOUT_SECONDS: Final = 10


def run_checks(database_url: str, run_id: str, contract: Contract) -> CheckReport:
    """Return what the suites of the contract's guarantee find in one stored run (see `check_statement`)."""
    run = _uuid(run_id)
    declared = declared_for(contract.guarantee, suites_folder())
    parameters = parameters_of(contract)
    suite = loaded(declared, parameters)
    with _ONE_AT_A_TIME, _batch_of(database_url, run) as batch:
        validation = batch.validate(suite, expectation_parameters=dict(parameters))
    found = {result.expectation_config.meta["rule"]: result for result in validation.results}
    results = tuple(_result(rule, found.get(rule.rule)) for rule in declared.rules)
    return CheckReport(results, declared.name, declared.digest, gx.__version__)


def _uuid(run_id: str) -> UUID:
    """Return a run's id; it gets into a query, so nothing but a UUID does.

    Raises:
        UsageError: where it is not one.
    """
    try:
        return UUID(run_id)
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"run_id: expected a UUID, found {run_id!r}") from error


@contextmanager
def _batch_of(database_url: str, run: UUID) -> Iterator[Batch]:
    """Give a batch of the run's row, and close every connection afterwards.

    The library fetches a batch's whole query, so that is one short row; rules fetch the rest by its run_id.

    Raises:
        StoreError: where the store cannot be reached or has no such table.
    """
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    arguments: dict[str, Any] = {"dsn": database_url}
    if "connect_timeout" not in database_url:
        arguments["connect_timeout"] = _CONNECT_TIMEOUT_SECONDS
    try:
        source = context.data_sources.add_sql(
            "store", connection_string=_URL, kwargs={"connect_args": arguments}
        )
    except TestConnectionError as error:
        raise _unreachable(error) from None
    query = f"select run_id, verdict from tieout.run where run_id = '{run}'"  # noqa: S608 - a UUID
    try:
        yield source.add_query_asset("run", query=query).add_batch_definition_whole_table("run").get_batch()
    finally:
        source.get_execution_engine().engine.dispose()
        source.get_engine().dispose()


def _unreachable(error: Exception) -> StoreError:
    """Return what libpq said, unless it said it about the URL, which may hold a password."""
    told = str(error)
    reason = (
        told.splitlines()[0]
        .partition("(psycopg2.OperationalError) ")[2]
        .removesuffix("')")
        .removesuffix("\\n")
    )
    return StoreError(
        f"the checks' connection: expected a PostgreSQL that accepts connections, found: "
        f"{reason or 'a URL that libpq does not understand (not shown)'}; check TIEOUT_DATABASE_URL"
    )


def _result(rule: DeclaredRule, found: ExpectationValidationResult | None) -> CheckResult:
    """Return one rule's result; what was not evaluated, however the library says so, is an error."""
    if found is None:
        return CheckResult(rule.rule, rule.severity, CheckStatus.ERROR, "not evaluated", "")
    told = exceptions_in(found.exception_info)
    details = found.result.get("details")
    if told or details is None:
        observed = "; ".join(told) or "the library gave neither a result nor a reason"
        return CheckResult(rule.rule, rule.severity, CheckStatus.ERROR, observed, "")
    status = CheckStatus.PASS if found.success is True else _failed(rule)
    return CheckResult(
        rule.rule, rule.severity, status, str(found.result["observed_value"]), details["limit"]
    )


def _failed(rule: DeclaredRule) -> CheckStatus:
    """Return `fail` for what is shown, and `error` for what leaves open whether the guarantee was kept.

    A critical `fail` makes the verdict BROKEN, an `error` UNKNOWN: a defective statement is no proof of a
    break.
    """
    return CheckStatus.ERROR if rule.forces is Force.UNKNOWN else CheckStatus.FAIL


def exceptions_in(information: object) -> tuple[str, ...]:
    """Return the messages of the exceptions in a result's `exception_info`.

    It has two shapes: one exception's fields, where the rule raised, or a dictionary of those by metric,
    where its query did.

    >>> exceptions_in({"raised_exception": False, "exception_message": None})
    ()
    >>> exceptions_in({"('a metric',)": {"raised_exception": True, "exception_message": "no such table"}})
    ('no such table',)
    """
    if not isinstance(information, Mapping):
        return ()
    if "raised_exception" in information:
        if not information["raised_exception"]:
            return ()
        return (str(information.get("exception_message") or "an exception without a message"),)
    nested = (exceptions_in(item) for item in information.values())
    return tuple(message for messages in nested for message in messages)
