"""The judge: from a statement and its contract to a verdict, its reasons, and the severity of each class.

Pure: knows neither Spark nor the store. Docs: docs/reference/taxonomy.md, section 6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tieout.contracts import Contract
from tieout.model import (
    SET_ASIDE_AND_DELIVERED,
    BreakClass,
    CheckResult,
    CheckStatus,
    Guarantee,
    Ledger,
    Severity,
    Verdict,
)


class Effect(StrEnum):
    """What a class does to a guarantee where it occurs."""

    BROKEN = "broken"
    BUDGET = "budget"
    WARNED = "warned"
    REPORTED = "reported"
    FINE = "fine"


_ALL_BROKEN: Final = (Effect.BROKEN, Effect.BROKEN, Effect.BROKEN)
_ALL_WARNED: Final = (Effect.WARNED, Effect.WARNED, Effect.WARNED)
_BUDGETED: Final = (Effect.BUDGET, Effect.BUDGET, Effect.BUDGET)

_MATRIX: Final[Mapping[str, tuple[Effect, Effect, Effect]]] = {
    BreakClass.LOST: (Effect.BUDGET, Effect.BROKEN, Effect.BROKEN),
    BreakClass.TORN_TRANSACTION: (Effect.BUDGET, Effect.BROKEN, Effect.BROKEN),
    BreakClass.LOG_DUPLICATE: (Effect.REPORTED, Effect.REPORTED, Effect.WARNED),
    BreakClass.OUTPUT_DUPLICATE: (Effect.BROKEN, Effect.BUDGET, Effect.BROKEN),
    BreakClass.REDELIVERY: (Effect.WARNED, Effect.FINE, Effect.FINE),
    BreakClass.PHANTOM_UNKNOWN: _ALL_BROKEN,
    BreakClass.PHANTOM_ABORTED: _ALL_BROKEN,
    BreakClass.PHANTOM_UNCOMMITTED: _ALL_BROKEN,
    BreakClass.CORRUPTED_VALUE: _ALL_BROKEN,
    BreakClass.CORRUPTED_KEY: _ALL_BROKEN,
    BreakClass.CORRUPTED_HEADER: _ALL_BROKEN,
    BreakClass.CORRUPTED_TIMESTAMP: _ALL_BROKEN,
    BreakClass.COMMIT_AHEAD: (Effect.FINE, Effect.BROKEN, Effect.BROKEN),
    BreakClass.COMMIT_REGRESSION: (Effect.BROKEN, Effect.WARNED, Effect.WARNED),
    BreakClass.SKIPPED: _ALL_WARNED,
    BreakClass.COMMIT_OUT_OF_RANGE: _ALL_WARNED,
    BreakClass.COMMIT_STALE: _ALL_WARNED,
    BreakClass.COMMIT_GAP: _ALL_WARNED,
    BreakClass.POSITION_DISAGREEMENT: _ALL_WARNED,
    BreakClass.LOG_IDENTITY_CONFLICT: (Effect.WARNED, Effect.BROKEN, Effect.BROKEN),
    BreakClass.LOG_TRUNCATION: (Effect.WARNED, Effect.BROKEN, Effect.BROKEN),
    BreakClass.LATE: _BUDGETED,
    "OVERDUE": _BUDGETED,
    SET_ASIDE_AND_DELIVERED: (Effect.REPORTED, Effect.REPORTED, Effect.WARNED),
}
"""Per class or flag its effect under at_most_once, at_least_once, exactly_once; ordering decides the rest."""

_COLUMN: Final = {Guarantee.AT_MOST_ONCE: 0, Guarantee.AT_LEAST_ONCE: 1, Guarantee.EXACTLY_ONCE: 2}
_REORDERS: Final = (BreakClass.REORDER_PRODUCER, BreakClass.REORDER_CONSUMER, BreakClass.REORDER_OUTPUT)


@dataclass(frozen=True)
class Judgement:
    """A verdict, its reasons, and the rules that the statement was checked by."""

    verdict: Verdict
    reasons: tuple[str, ...]
    checks: tuple[CheckResult, ...]


def effect_of(contract: Contract, name: str) -> Effect:
    """Return what a class or flag does to the contract's guarantee.

    >>> from tieout.verdicts import Effect
    >>> Effect.BROKEN.value
    'broken'
    """
    if name in _REORDERS:
        return Effect.REPORTED if contract.ordering == "none" else Effect.BROKEN
    if name == BreakClass.MISROUTED:
        return Effect.BROKEN if contract.ordering == "key" else Effect.WARNED
    row = _MATRIX.get(name)
    return Effect.REPORTED if row is None else row[_COLUMN[contract.guarantee]]


def severity_of(contract: Contract, name: str) -> Severity:
    """Return the severity of a break of the class under the contract."""
    effect = effect_of(contract, name)
    if effect == Effect.BROKEN:
        return Severity.CRITICAL
    return Severity.WARNING if effect in (Effect.WARNED, Effect.BUDGET) else Severity.INFO


def severities(contract: Contract) -> dict[str, Severity]:
    """Return the severity of every break class under the contract."""
    return {name.value: severity_of(contract, name) for name in BreakClass}


def severity_of_break(contract: Contract, name: str, flags: Collection[str]) -> str:
    """Return the severity of a break of a class with flags: that of the flag PHANTOM_ABORTED, else the class's."""
    is_aborted = BreakClass.PHANTOM_ABORTED in flags
    return severity_of(contract, BreakClass.PHANTOM_ABORTED if is_aborted else BreakClass(name)).value


_OF_READERS_IN_ORDER: Final = (BreakClass.LOST, BreakClass.COMMIT_AHEAD, BreakClass.SKIPPED)
"""Classes of messages that a group has passed; a share group may still deliver such a message to a member."""
_DISPOSED: Final = {BreakClass.LOST.value: "lost", BreakClass.IN_FLIGHT.value: "in_flight"}
"""The sums of messages that decide a verdict like their class."""


@dataclass(frozen=True)
class _Found:
    """What the judge reads from a statement."""

    contract: Contract
    statement: Mapping[str, Any]

    def count(self, name: str) -> int:
        """Return how often the class or flag occurs; `flags` counts a class wherever it holds, primary or not.

        A message that is lost or in flight counts here even where its class is that of a phantom in another window.
        """
        count = max(int(self.statement["classes"].get(name, 0)), int(self.statement["flags"].get(name, 0)))
        disposition = _DISPOSED.get(name)
        return count if disposition is None else max(count, self.total(disposition))

    def unconfirmed(self, name: str) -> int:
        """Return how many of these lie outside the coverage of a ledger that shows them."""
        return int(self.statement["unconfirmed"].get(name, 0))

    def why_unconfirmed(self, name: str) -> str:
        """Return in words why these are not confirmed: mostly because coverage is missing."""
        is_share_group = any(
            coverage.get("is_share_group") for coverage in self.statement["coverage"].values()
        )
        if is_share_group and not self.contract.is_queue and name in _OF_READERS_IN_ORDER:
            return (
                "of a share group or a queue, where messages are acknowledged one by one (consumption: queue)"
            )
        return "where the evidence does not cover"

    def undecided(self, name: str) -> int:
        """Return for how many messages complete evidence does not decide whether the class holds."""
        return int(self.statement.get("undecided", {}).get(name, 0))

    def total(self, name: str) -> int:
        """Return a count of the statement over all its partitions."""
        return sum(int(row[name]) for row in self.statement["partitions"])

    @property
    def possible_effects(self) -> int:
        """How many uncertain rows may each be an extra effect; partitions without any omit the count."""
        return sum(int(row.get("possible_effects", 0)) for row in self.statement["partitions"])

    @property
    def unverifiable(self) -> int:
        """How many messages, effects or positions of the log are unverifiable: the largest of the counts."""
        rows = self.statement["partitions"]
        positions = sum(int(row["offsets"]["unverifiable"]) for row in rows if row["offsets"] is not None)
        messages = max(self.count(BreakClass.UNVERIFIABLE), self.total("unverifiable"))
        return max(messages, self.total("unverifiable_effects"), positions)

    def failing(self, name: str) -> int:
        """Return how often the class is confirmed, less the breaks that the contract's annotations explain."""
        confirmed = self.count(name) - self.unconfirmed(name)
        if name == BreakClass.COMMIT_REGRESSION:
            return confirmed - int(self.statement["flags"].get("annotated", 0))
        return confirmed


def judge(contract: Contract, statement: Mapping[str, Any]) -> Judgement:
    """Return the verdict on a statement that has everything but its verdict, reasons and checks.

    BROKEN for a confirmed failing break or an exceeded budget; else UNKNOWN where something could not be decided; else
    PENDING while something is in flight; else KEPT.
    """
    found = _Found(contract, statement)
    checks = (*_class_checks(found), *_budget_checks(found), *_evidence_checks(found))
    broken = [
        f"{c.rule}: {c.observed}, {c.limit}" for c in checks if _is(c, CheckStatus.FAIL, Severity.CRITICAL)
    ]
    unknown = [f"{c.rule}: {c.observed}, {c.limit}" for c in checks if c.status == CheckStatus.ERROR]
    pending = found.count(BreakClass.IN_FLIGHT)
    if broken:
        return Judgement(Verdict.BROKEN, (*broken, *unknown), checks)
    if unknown:
        return Judgement(Verdict.UNKNOWN, tuple(unknown), checks)
    if pending:
        overdue = found.count("OVERDUE")
        late = f", {overdue} of them overdue" if overdue else ""
        return Judgement(Verdict.PENDING, (f"{pending} messages are in flight{late}",), checks)
    return Judgement(Verdict.KEPT, (), checks)


def _is(check: CheckResult, status: CheckStatus, severity: Severity) -> bool:
    return check.status == status and check.severity == severity


def _class_checks(found: _Found) -> Iterable[CheckResult]:
    """Return one check per class that the guarantee forbids, or allows with a warning."""
    names = [*_MATRIX, *_REORDERS, BreakClass.MISROUTED]
    for name in names:
        effect = effect_of(found.contract, name)
        if effect not in (Effect.BROKEN, Effect.WARNED):
            continue
        count = found.failing(name)
        status = CheckStatus.FAIL if count else CheckStatus.PASS
        severity = severity_of(found.contract, name)
        limit = "none allowed" if effect == Effect.BROKEN else "none expected"
        yield CheckResult(str(name).lower(), severity, status, str(count), limit)
        unconfirmed = found.unconfirmed(name)
        if unconfirmed and effect == Effect.BROKEN:
            observed = f"{unconfirmed} {found.why_unconfirmed(name)}"
            yield CheckResult(
                f"{str(name).lower()}_unconfirmed", severity, CheckStatus.ERROR, observed, limit
            )
        undecided = found.undecided(name)
        if undecided and effect == Effect.BROKEN:
            observed = f"{undecided} of which the evidence does not tell"
            yield CheckResult(f"{str(name).lower()}_undecided", severity, CheckStatus.ERROR, observed, limit)


def budgets_of(contract: Contract, statement: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """Return for each budget of the guarantee the observed ratio and its limit, None for no limit.

    The ratio 0/0 is 0; x/0 is infinite, written as None. Lost or overdue messages that are not confirmed count in no
    budget.
    """
    found, limits = _Found(contract, statement), contract.budgets
    budgets = {}
    for name in _budgets_known(contract.guarantee):
        part, whole, doubtful = _parts_of(found)[name]
        confirmed = part - doubtful
        budgets[name] = {
            "observed": _ratio(confirmed, whole),
            "limit": getattr(limits, name),
            "numerator": confirmed,
        }
    return budgets


def _parts_of(found: _Found) -> dict[str, tuple[int, int, int]]:
    """Return the part and the whole of each budget, and how much of the part is not confirmed."""
    first, further = found.total("first_effects"), found.total("further_effects")
    accepted, lost = found.total("accepted"), found.total("lost")
    overdue = found.unconfirmed("OVERDUE")
    return {
        "loss_ratio": (
            lost,
            accepted - found.total("in_flight"),
            min(lost, found.unconfirmed(BreakClass.LOST)),
        ),
        "duplicate_ratio": (further, first, 0),
        "late_ratio": (found.count(BreakClass.LATE) + found.count("OVERDUE"), accepted, overdue),
    }


def _budgets_known(guarantee: Guarantee) -> tuple[str, ...]:
    return {
        Guarantee.AT_MOST_ONCE: ("loss_ratio", "late_ratio"),
        Guarantee.AT_LEAST_ONCE: ("duplicate_ratio", "late_ratio"),
        Guarantee.EXACTLY_ONCE: ("late_ratio",),
    }[guarantee]


def _ratio(part: int, whole: int) -> float | None:
    """Return the ratio; 0/0 is 0, and None stands for x/0, which exceeds any limit.

    >>> _ratio(0, 0), _ratio(1, 4), _ratio(1, 0)
    (0.0, 0.25, None)
    """
    if part == 0:
        return 0.0
    return part / whole if whole else None


def _budget_checks(found: _Found) -> Iterable[CheckResult]:
    """Return one check per budget: critical above its limit, a warning above 0 where it has none."""
    for name, budget in budgets_of(found.contract, found.statement).items():
        observed, limit = budget["observed"], budget["limit"]
        text = "infinite" if observed is None else f"{observed:.6g}"
        if limit is None:
            status = CheckStatus.FAIL if budget["numerator"] else CheckStatus.PASS
            yield CheckResult(name, Severity.WARNING, status, text, "no limit declared")
            continue
        exceeded = budget["observed"] is None or budget["observed"] > limit
        yield CheckResult(
            name,
            Severity.CRITICAL,
            CheckStatus.FAIL if exceeded else CheckStatus.PASS,
            text,
            f"at most {limit:g}",
        )
        part, whole, doubtful = _parts_of(found)[name]
        worst = _ratio(part, whole)
        if doubtful and not exceeded and (worst is None or worst > limit):
            observed_text = f"{doubtful} where the evidence does not cover"
            yield CheckResult(
                f"{name}_unconfirmed",
                Severity.CRITICAL,
                CheckStatus.ERROR,
                observed_text,
                f"at most {limit:g}",
            )


def _evidence_checks(found: _Found) -> Iterable[CheckResult]:
    """Return the checks that the evidence suffices: where it does not, they end in `error`, never in `fail`."""
    statement, contract = found.statement, found.contract
    for ledger, coverage in statement["coverage"].items():
        yield _evidence_check(
            f"coverage_{ledger}", coverage["covers"], coverage["gap"] or "covers", "must cover the window"
        )
    unexplained = found.total("unexplained")
    yield _evidence_check("unexplained", unexplained == 0, f"{unexplained} offsets", "none allowed")
    unverifiable = found.unverifiable
    yield _evidence_check(
        "unverifiable",
        unverifiable == 0,
        f"{unverifiable} messages, effects or offsets",
        "none allowed",
    )
    errors = statement["identity_errors"]
    yield _evidence_check("identities", not errors, "; ".join(errors[:3]) or "hold", "every sum must add up")
    possible = found.count("POSSIBLE_DUPLICATE")
    if effect_of(contract, BreakClass.OUTPUT_DUPLICATE) == Effect.BROKEN:
        yield _evidence_check("possible_duplicate", possible == 0, f"{possible} messages", "none allowed")
    limit = contract.budgets.duplicate_ratio
    if contract.guarantee == Guarantee.AT_LEAST_ONCE and limit is not None:
        further = found.total("further_effects") + max(possible, found.possible_effects)
        worst = _ratio(further, found.total("first_effects"))
        fits = possible == 0 or (worst is not None and worst <= limit)
        yield _evidence_check(
            "possible_duplicate",
            fits,
            f"{possible} messages",
            "must be within the budget even if all are doubled",
        )
    if contract.guarantee == Guarantee.EXACTLY_ONCE and Ledger.DELIVERED not in contract.ledgers:
        is_known = contract.effects == "read"
        yield _evidence_check(
            "effects",
            is_known,
            "only reads are known",
            "needs output rows, or `effects: read` in the contract",
        )


def _evidence_check(rule: str, holds: bool, observed: str, limit: str) -> CheckResult:
    status = CheckStatus.PASS if holds else CheckStatus.ERROR
    return CheckResult(rule, Severity.CRITICAL, status, observed, limit)


def final_verdict(verdict: Verdict, results: Sequence[CheckResult]) -> Verdict:
    """Return the verdict after independent checks, which can only worsen it.

    A critical check that fails makes it BROKEN; one that could not be carried out, or no check at all, UNKNOWN.

    >>> final_verdict(Verdict.KEPT, [])
    <Verdict.UNKNOWN: 'UNKNOWN'>
    """
    if verdict == Verdict.BROKEN or any(_is(r, CheckStatus.FAIL, Severity.CRITICAL) for r in results):
        return Verdict.BROKEN
    if not results or any(r.status == CheckStatus.ERROR for r in results):
        return Verdict.UNKNOWN
    return verdict
