"""The base of all rules: one SQL query that gives one row of numbers, and a decision on it in Python.

Great Expectations passes many checks without data: empty batches, NULLs, limits that are None. Rules here need all
their data. A missing run row, missing partition rows, or a NULL among the numbers raises: the library
records an exception, and `running` reports status `error`.
"""

# ruff: noqa: S608 - what gets into the SQL are names from fixed sets, see `refuse_unknown`

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, TypeAlias

from great_expectations.expectations import UnexpectedRowsExpectation

from tieout.checks.parameters import UNLIMITED
from tieout.model import SET_ASIDE_AND_DELIVERED, BreakClass

Row: TypeAlias = Mapping[str, Any]

Parameter: TypeAlias = dict[str, str]
"""`{"$PARAMETER": name}`, which the library replaces by the value before a rule is evaluated."""

COUNT_COLUMNS: Final = (
    *("attempts", "acked_attempts", "failed_attempts", "unknown_attempts", "messages", "resends"),
    *("accepted", "unproven", "failed"),
    *("delivered", "filtered", "dead_lettered", "compacted", "lost", "in_flight", "unverifiable"),
    *("effects", "first_effects", "further_effects", "phantom_effects", "unverifiable_effects"),
    "unexplained",
)
"""The counts of one row of tieout.statement_partition."""

COUNTED_NAMES: Final = frozenset({*BreakClass, "OVERDUE", "POSSIBLE_DUPLICATE", SET_ASIDE_AND_DELIVERED})
"""The names that a rule can use in tieout.statement_count: the classes, and flags that are no class."""

_IS_COMPLETE: Final = """(
    (select count(*) from tieout.statement_partition p where p.run_id = run.run_id)
      = jsonb_array_length(stored.statement -> 'partitions')
    and (select count(*) from tieout.statement_count c where c.run_id = run.run_id)
      = (select count(*) from jsonb_object_keys(stored.statement -> 'classes'))
      + (select count(*) from jsonb_object_keys(stored.statement -> 'flags'))
)"""


@dataclass(frozen=True)
class Finding:
    """Whether a rule holds, the observed and the allowed value, and whether evidence confirms the observation."""

    holds: bool
    observed: str
    limit: str
    is_confirmed: bool = True


class UnusableRowsError(Exception):
    """The stored rows do not say what the rule asks for."""


class MeasureRule(UnexpectedRowsExpectation):  # type: ignore[misc]  # the library is untyped for us
    """A rule over numbers: `measures` names them with their SQL, `judged` decides on them.

    SQL expressions may use `run` (the batch: run_id, verdict) and `stored` (the whole row of tieout.run).
    They have no colon before a word, which SQLAlchemy would read as a parameter, and no braces.
    """

    # Replaced by `query` at validation, when $PARAMETERs have their values.
    unexpected_rows_query: str = "select 1 from {batch}"

    metric_dependencies: ClassVar[tuple[str, ...]] = ("unexpected_rows_query.table",)

    @classmethod
    def arguments(cls) -> frozenset[str]:
        """Return the names of the arguments that a suite may give: the rule's own, none of the library's."""
        return frozenset(cls.__fields__) - frozenset(UnexpectedRowsExpectation.__fields__)

    def refuse_unusable(self) -> None:
        """Refuse arguments that cannot be used; called with the parameters' values in place.

        Raises:
            ValueError: where a name is not known, a list lacks something, or a limit is none.
        """

    @abstractmethod
    def measures(self) -> dict[str, str]:
        """Return a scalar SQL expression for each number."""

    @abstractmethod
    def judged(self, row: Row) -> Finding:
        """Return the decision on a row that has the measures, `run_id` and `verdict`, none of them NULL."""

    def query(self) -> str:
        """Return the SQL that gives the numbers in one row."""
        columns = "".join(f",\n  {expression} as {name}" for name, expression in self.measures().items())
        return (
            f"select run.run_id, run.verdict, {_IS_COMPLETE} as is_complete{columns}\n"
            "from {batch} run join tieout.run stored on stored.run_id = run.run_id"
        )

    def get_validation_dependencies(
        self, execution_engine: Any = None, runtime_configuration: dict[str, Any] | None = None
    ) -> Any:
        """Return what the library must fetch: the one row of `query`."""
        self.unexpected_rows_query = self.query()
        return super().get_validation_dependencies(execution_engine, runtime_configuration)

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002 - the library's signature
        execution_engine: Any = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        found = self.judged(only_row(metrics["unexpected_rows_query.table"]))
        details = {"limit": found.limit, "is_confirmed": found.is_confirmed}
        result = {"observed_value": found.observed, "details": details}
        return {"success": found.holds, "result": result}


class PartitionRule(MeasureRule):
    """A rule that each partition row of the statement satisfies by itself."""

    @abstractmethod
    def condition(self) -> str:
        """Return a SQL condition over the columns of `p`, a row of tieout.statement_partition."""

    @abstractmethod
    def sentence(self) -> str:
        """Return the condition for people."""

    def measures(self) -> dict[str, str]:
        """Return the number of rows, how many violate the condition or leave it open, and one of those."""
        violating = f"p.run_id = run.run_id and ({self.condition()}) is not true"
        place = "coalesce(p.topic, '(no topic)') || '/' || coalesce(p.partition::text, '(no partition)')"
        source = "from tieout.statement_partition p where"
        return {
            "partitions": f"(select count(*) {source} p.run_id = run.run_id)",
            "violations": f"(select count(*) {source} {violating})",
            "example": f"coalesce((select min({place}) {source} {violating}), '')",
        }

    def judged(self, row: Row) -> Finding:
        """Return whether no row violates the condition."""
        observed = f"{row['violations']} of {row['partitions']} partitions differ"
        if row["violations"]:
            observed += f", such as {row['example']}"
        return Finding(row["violations"] == 0, observed, self.sentence())


def only_row(rows: list[dict[str, Any]]) -> Row:
    """Return the one row of a rule's query.

    Raises:
        UnusableRowsError: where the run is not stored, not all its rows are, or a number is NULL.
    """
    if len(rows) != 1:
        raise UnusableRowsError(f"expected the run's row, found {len(rows)}; was the run published?")
    row = rows[0]
    if row["is_complete"] is not True:
        raise UnusableRowsError("expected all partition and count rows of the statement, found others")
    missing = sorted(name for name, value in row.items() if value is None)
    if missing:
        raise UnusableRowsError(f"expected a value, found NULL: {', '.join(missing)}")
    return row


def total_of(column: str) -> str:
    """Return SQL for a column's sum over the partitions: 0 without any, NULL where one is NULL."""
    return (
        f"(select case when count(*) = count(p.{column}) then coalesce(sum(p.{column}), 0)::bigint end"
        " from tieout.statement_partition p where p.run_id = run.run_id)"
    )


def offsets_in(state: str) -> str:
    """Return SQL for the number of log positions in a state of the offset balance: 0 without a balance."""
    return (
        f"(select coalesce(sum((p.offsets ->> '{state}')::bigint), 0)::bigint"
        " from tieout.statement_partition p where p.run_id = run.run_id)"
    )


def count_of(names: Iterable[str]) -> str:
    """Return SQL for the count of names: the larger of class and flag, as `flags` counts a class wherever it holds."""
    return (
        "(select coalesce(sum(most), 0)::bigint from"
        " (select max(c.count) as most from tieout.statement_count c"
        f" where c.run_id = run.run_id and c.name in ({quoted(names)}) group by c.name) counted)"
    )


def quoted(names: Iterable[str]) -> str:
    """Return names, which were checked when the suite was loaded, as SQL literals."""
    return ", ".join(f"'{name}'" for name in names)


def limit_of(value: object) -> Fraction | None:
    """Return a limit as the exact number in the suite, or None for `unlimited`.

    A missing limit is an error, never "no limit": Great Expectations would pass everything.

    >>> limit_of(0.07)
    Fraction(7, 100)

    Raises:
        ValueError: where it is neither a number from 0 on nor `unlimited`.
    """
    if value == UNLIMITED:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError(f"expected a limit from 0 on, or {UNLIMITED!r}; found {value!r}")
    return Fraction(str(value))


def refuse_unknown(names: Iterable[str], of: Collection[str], what: str) -> None:
    """Refuse names that are not in a fixed set, or are repeated: nothing else may get into a query.

    Raises:
        ValueError: where a name is unknown or repeated.
    """
    found = list(names)
    wrong = [name for name in found if name not in of or found.count(name) > 1]
    if wrong:
        raise ValueError(f"{what}: expected one each of {', '.join(sorted(of))}; found {', '.join(wrong)}")
