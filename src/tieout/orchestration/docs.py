"""The documentation of a pipeline's DAG on Airflow's pages, written from its contract."""

from __future__ import annotations

from collections.abc import Iterable

from tieout.contracts import Contract
from tieout.contracts.durations import format_duration
from tieout.errors import ContractError

_PROMISES = {
    "at_most_once": "no message has more than one effect; losses stay within the budget",
    "at_least_once": "every accepted message has an effect; further effects stay within the budget",
    "exactly_once": "every accepted message has exactly one effect",
}

_TASKS = (
    (
        "window",
        "fixes the window and the contract's version; waits for the grace, for late evidence and for the hop before",
        "it is empty, reversed, not over",
    ),
    (
        "reconcile",
        "one Spark job: accounts for every message",
        "a ledger, Spark or PostgreSQL is out of reach",
    ),
    (
        "check",
        "Great Expectations on the stored rows; can only worsen the verdict",
        "it cannot be carried out",
    ),
    (
        "alert",
        "sends what is to be told, also after a failure above",
        "not by a dead receiver: `tieout_upkeep` goes on",
    ),
    ("verdict", "decides the run: KEPT and PENDING succeed", "BROKEN, UNKNOWN, or no result at all"),
)

_HOW_TO = """
**Judge windows again, or for the first time**: *Trigger* → *Backfill*, choose from and to, and *All Runs* to
repeat windows that were judged before. The DAG must not be paused. A run's logical date is its window's
start.

**Judge another window**: *Trigger* with `window_start` and `window_end`, and no logical date.

PENDING is not a failure: messages were in flight. `tieout_upkeep` judges the window again as time passes.
"""


def pipeline_doc(contract: Contract) -> str:
    """Return a pipeline's documentation in Markdown: promise, evidence, limits, tasks, what to do."""
    facts = [
        ("guarantee", f"**{contract.guarantee}**: {_PROMISES[contract.guarantee]}"),
        ("consumer group or output", f"`{contract.group}`"),
        ("identity, ordering", f"{contract.identity}, {contract.ordering}"),
        ("windows", _windows(contract)),
        *([("after", f"`{contract.after.pipeline}`")] if contract.after else []),
        ("late after", format_duration(contract.max_latency)),
        ("budgets", _budgets(contract)),
        ("alerts", _alerts(contract)),
        ("owner", contract.owner or "nobody named"),
        ("contract", f"`{contract.digest[:12]}` in `{contract.base_dir}`"),
    ]
    ledgers = [
        (ledger, spec.source.kind, _coverage(spec.coverage)) for ledger, spec in contract.ledgers.items()
    ]
    return "\n".join(
        [
            f"### {contract.pipeline}\n\n{contract.description}\n",
            _table(("", ""), facts),
            _table(("ledger", "source", "covers"), ledgers),
            _table(("task", "what it does", "fails when"), _TASKS),
            _HOW_TO,
        ]
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def error_doc(error: ContractError) -> str:
    """Return the documentation of the DAG for an unusable contract file."""
    return (
        f"### This contract cannot be used\n\n```\n{error}\n```\n\n"
        "Correct the file: the pipeline's DAG takes this one's place within a minute. The other pipelines "
        "keep running. `tieout check FILE` says the same on the command line."
    )


def _windows(contract: Contract) -> str:
    grace = format_duration(contract.grace)
    if contract.schedule is None:
        return f"only as triggered, judged {grace} after their end"
    bounds = [
        f"{word} {bound.isoformat()}"
        for word, bound in (("from", contract.active.from_), ("until", contract.active.until))
        if bound is not None
    ]
    return " ".join([f"`{contract.schedule}` ({contract.timezone}), judged {grace} after their end", *bounds])


def _budgets(contract: Contract) -> str:
    given = contract.budgets.model_dump(exclude_none=True)
    return ", ".join(f"{name} ≤ {limit:g}" for name, limit in given.items()) or "none: counted and warned of"


def _alerts(contract: Contract) -> str:
    routes = (f"{route.to} `{route.connection}` from {route.at}" for route in contract.alerts)
    return ", ".join(routes) or "none"


def _coverage(coverage: object) -> str:
    if coverage is None:
        return "as far as its reader knows"
    return coverage if isinstance(coverage, str) else "as its own rows or a watermark say"
