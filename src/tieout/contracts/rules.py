"""The rules between a contract's fields; each yields the path and the reason of every violation.

The rules are those of docs/reference/contract.md and docs/reference/taxonomy.md. A setting without effect is an error:
its author expects an effect.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic_core import PydanticCustomError

from tieout.contracts.columns import CANONICAL_COLUMNS, CONTENT_COLUMNS
from tieout.contracts.durations import format_duration
from tieout.contracts.expressions import half_day_pattern, refusal, refused, with_moment
from tieout.contracts.ledgers import CoverageSpec, ledgers_like_produced
from tieout.contracts.secrets import secrets_in
from tieout.contracts.sources import QUEUES
from tieout.contracts.times import parse_time
from tieout.model import POSITION_LEDGERS, Guarantee, Identity, Ledger

if TYPE_CHECKING:
    from tieout.contracts.contract import Contract

_STAR: Final = re.compile(r"(?:(?:\w+|`[^`]+`)\.)*\*")
_TEXT: Final = re.compile(r"""(['"])([^'"\\]*)\1""")
RULES_ERROR: Final = "contract_rules"

_IGNORED_BUDGETS: Final[dict[Guarantee, frozenset[str]]] = {
    Guarantee.AT_MOST_ONCE: frozenset({"duplicate_ratio"}),
    Guarantee.AT_LEAST_ONCE: frozenset({"loss_ratio"}),
    Guarantee.EXACTLY_ONCE: frozenset({"loss_ratio", "duplicate_ratio"}),
}
_READ_WHOLE: Final = (*POSITION_LEDGERS, Ledger.ASSIGNED)


class Problem(NamedTuple):
    """A violated rule: the path of the field and the reason."""

    path: tuple[str | int, ...]
    reason: str


def did_you_mean(unknown: str, choices: Iterable[str]) -> str:
    """Return `; did you mean x?` for the closest choice, else the list of all choices.

    >>> did_you_mean("colums", ["columns", "where"])
    '; did you mean columns?'
    >>> did_you_mean("q", ["columns", "where"])
    '; expected one of columns, where'
    >>> did_you_mean("COLUMNS", ["columns", "where"])
    '; did you mean columns?'
    """
    names = list(choices)
    close = difflib.get_close_matches(unknown, names, n=1) or difflib.get_close_matches(
        unknown.lower(), names, n=1
    )
    return f"; did you mean {close[0]}?" if close else f"; expected one of {', '.join(names)}"


def rules_error(problems: tuple[Problem, ...]) -> PydanticCustomError:
    """Return one error with all violated rules, as text and as a value for `loading`."""
    lines = "; ".join(f"{'.'.join(map(str, path))}: {reason}" for path, reason in problems)
    return PydanticCustomError(RULES_ERROR, "{lines}", {"lines": lines, "problems": problems})


def broken_rules(contract: Contract) -> tuple[Problem, ...]:
    """Return every rule that the contract breaks, in a fixed order."""
    return tuple(problem for rule in _RULES for problem in rule(contract))


def _after(contract: Contract) -> Iterator[Problem]:
    after = contract.after
    if after is None:
        return
    if after.pipeline == contract.pipeline:
        yield Problem(("after",), "expected the pipeline of another contract, found this contract's own")
    if after.id is None:
        return
    if contract.identity is not Identity.MESSAGE_ID:
        yield Problem(("after", "id"), f"has no effect with identity: {contract.identity}")
    try:
        re.compile(after.id)
    except re.error as error:
        yield Problem(("after", "id"), f"expected a regular expression in Python's syntax, found {error}")


def _grace(contract: Contract) -> Iterator[Problem]:
    least = contract.max_latency + contract.clock_skew
    if contract.grace < least:
        yield Problem(
            ("grace",),
            f"{format_duration(contract.grace)} is shorter than max_latency + clock_skew = "
            f"{format_duration(least)}: a window would be judged before its last message is due",
        )


def _budgets(contract: Contract) -> Iterator[Problem]:
    ignored = _IGNORED_BUDGETS[contract.guarantee]
    for name in sorted(ignored & contract.budgets.model_fields_set):
        if getattr(contract.budgets, name) is not None:
            used = [field for field in type(contract.budgets).model_fields if field not in ignored]
            yield Problem(
                ("budgets", name), f"{contract.guarantee} ignores this budget; it uses {' and '.join(used)}"
            )


def _ledgers(contract: Contract) -> Iterator[Problem]:
    if Ledger.PRODUCED not in contract.ledgers:
        yield Problem(
            ("ledgers",), "the ledger produced is required: without it nothing is known to have been sent"
        )
    if not {Ledger.DELIVERED, Ledger.READ} & set(contract.ledgers):
        yield Problem(("ledgers",), "one of the ledgers delivered and read is required")
    if contract.effects == "read" and Ledger.DELIVERED in contract.ledgers:
        yield Problem(
            ("effects",), "read has no effect beside the ledger delivered, which alone makes effects then"
        )


def _same_rows(contract: Contract) -> Iterator[Problem]:
    """Find ledgers of the consumer's side that are the sends themselves: then nothing could be lost."""
    for ledger in ledgers_like_produced(contract.ledgers):
        if contract.ledgers[ledger].source == contract.ledgers[Ledger.PRODUCED].source:
            yield Problem(
                ("ledgers", ledger.value, "source"),
                "the ledger is the sends themselves: source, where and columns are those of produced; name the rows "
                "that the consumer's side wrote",
            )


def _columns(contract: Contract) -> Iterator[Problem]:
    for ledger, spec in contract.ledgers.items():
        columns = CANONICAL_COLUMNS[ledger]
        for name in spec.columns:
            if name not in columns:
                path = ("ledgers", ledger.value, "columns", name)
                yield Problem(path, f"the ledger {ledger} has no such column{did_you_mean(name, columns)}")


def _groups(contract: Contract) -> Iterator[Problem]:
    """Find ledgers of which every row would be set aside, as a constant says that it is another group's."""
    for ledger, spec in contract.ledgers.items():
        constant = _TEXT.fullmatch(spec.columns.get("consumer_group", "").strip())
        group = contract.group_of(ledger)
        if constant is not None and constant[2] != group:
            yield Problem(
                ("ledgers", ledger.value, "columns", "consumer_group"),
                f"expected the group that is judged, '{group}', found {constant[0]}: every row would be set aside",
            )


def _unknown(contract: Contract) -> Iterator[Problem]:
    for ledger, spec in contract.ledgers.items():
        if spec.unknown is not None and not set(CONTENT_COLUMNS) <= set(CANONICAL_COLUMNS[ledger]):
            path = ("ledgers", ledger.value, "unknown")
            yield Problem(path, f"has no effect: no content of the ledger {ledger} is compared")


def _coverage(contract: Contract) -> Iterator[Problem]:
    for ledger, spec in contract.ledgers.items():
        if isinstance(spec.coverage, CoverageSpec):
            for field, reason in _coverage_problems(ledger, spec.coverage):
                yield Problem(("ledgers", ledger.value, "coverage", *field), reason)


def _coverage_problems(ledger: Ledger, coverage: CoverageSpec) -> Iterator[tuple[tuple[str, ...], str]]:
    if coverage.complete_until is not None and coverage.watermark_file is not None:
        yield (), "expected either complete_until or watermark_file, found both"
    if coverage.complete_until is not None and coverage.complete_until[:4].isdigit():
        try:
            parse_time(coverage.complete_until)
        except ValueError as error:
            yield ("complete_until",), str(error)
    for field in ("producers", "sequences"):
        if getattr(coverage, field) and ledger is not Ledger.PRODUCED:
            yield (field,), f"only the ledger produced has {field}, {ledger} has none"


def _reach(contract: Contract) -> Iterator[Problem]:
    for ledger, spec in contract.ledgers.items():
        if spec.reach is None:
            continue
        path, reach = ("ledgers", ledger.value, "reach"), format_duration(spec.reach)
        if contract.windows == "offsets":
            yield Problem(path, "has no effect with windows: offsets: a range of offsets begins at no time")
        elif ledger in _READ_WHOLE:
            yield Problem(
                path, f"{ledger} is read whole: its last row before a window counts, however old it is"
            )
        elif ledger is Ledger.LOG and spec.source.kind != "kafka":
            yield Problem(
                path,
                f"of the ledger log only a kafka source finds where a time begins, {spec.source.kind} does not",
            )
        elif spec.reach < contract.margin:
            margin = format_duration(contract.margin)
            yield Problem(
                path, f"{reach} is shorter than margin = {margin}, which is read before every window"
            )


def _fold_by(contract: Contract) -> Iterator[Problem]:
    columns = CANONICAL_COLUMNS[Ledger.PRODUCED]
    for ledger, spec in contract.ledgers.items():
        path = ("ledgers", ledger.value, "fold_by")
        if spec.fold_by and ledger is not Ledger.PRODUCED:
            yield Problem(path, f"only the ledger produced has attempts to fold, {ledger} has none")
        elif spec.fold_by and spec.reach is not None:
            yield Problem(
                path, "has no whole attempts beside reach, which may leave out a send and keep its answer"
            )
        elif ledger is Ledger.PRODUCED:
            for name in spec.fold_by:
                if name not in columns:
                    yield Problem(
                        path, f"the ledger {ledger} has no column {name}{did_you_mean(name, columns)}"
                    )


def _identity(contract: Contract) -> Iterator[Problem]:
    if contract.id_scope == "session" and contract.identity is not Identity.MESSAGE_ID:
        yield Problem(("id_scope",), f"session has no effect with identity: {contract.identity}")


def _consumption(contract: Contract) -> Iterator[Problem]:
    if contract.redelivery is not None and not contract.is_queue:
        yield Problem(
            ("redelivery",),
            "has no effect with consumption: log, where no message is locked; for a share group say consumption: queue",
        )

    for ledger, spec in contract.ledgers.items():
        if ledger in POSITION_LEDGERS and spec.source.kind in QUEUES and not contract.is_queue:
            yield Problem(
                ("ledgers", ledger.value, "source", "kind"),
                f"{spec.source.kind} is a queue, whose messages are acknowledged one by one: write consumption: queue "
                "above ledgers, and in redelivery how long a consumer may keep a message",
            )


def _multiplicity(contract: Contract) -> Iterator[Problem]:
    multiplicity = contract.multiplicity
    declared = [name for name in ("effect_key", "count") if getattr(multiplicity, name) is not None]
    if multiplicity.kind == "one_to_many" and len(declared) != 1:
        found = "both" if declared else "neither"
        yield Problem(("multiplicity",), f"one_to_many: expected either effect_key or count, found {found}")
    if multiplicity.kind == "one_to_many" and contract.identity is Identity.CONTENT:
        yield Problem(("multiplicity",), "one_to_many needs ids or positions: equal contents have no parts")
    if multiplicity.kind == "one_to_many" and Ledger.DELIVERED not in contract.ledgers:
        yield Problem(("multiplicity",), "one_to_many needs the ledger delivered: a read is one effect")
    if multiplicity.kind != "one_to_many":
        for name in declared:
            yield Problem(("multiplicity", name), f"has no effect with kind: {multiplicity.kind}")


def _active(contract: Contract) -> Iterator[Problem]:
    first, last = contract.active.from_, contract.active.until
    if first is not None and last is not None and last <= first:
        yield Problem(("active", "until"), "expected a time after active.from")


def _windows(contract: Contract) -> Iterator[Problem]:
    if contract.windows != "offsets":
        return
    if Ledger.LOG not in contract.ledgers:
        yield Problem(("windows",), "offsets needs the ledger log, which shows what lies at every offset")
    if contract.schedule is not None:
        yield Problem(
            ("schedule",),
            "has no effect with windows: offsets: a schedule cuts time, and every run of these names its ranges",
        )


def _alerts(contract: Contract) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for index, route in enumerate(contract.alerts):
        if (route.to, route.connection) in seen:
            yield Problem(("alerts", index), f"alerts {route.to} over {route.connection} a second time")
        seen.add((route.to, route.connection))


def _stars(contract: Contract) -> Iterator[Problem]:
    """Find expressions such as `*` that stand for several columns or fields where one value is needed."""
    for path, text in _row_expressions(contract):
        if _STAR.fullmatch(text.strip()):
            yield Problem(
                path,
                f"expected one value, found {text.strip()}, which stands for all columns; name one of them, or "
                "make one value of all, such as to_json(struct(*))",
            )


def _replay(contract: Contract) -> Iterator[Problem]:
    replay = contract.replay
    if replay is None:
        return
    if replay.value is not None and replay.from_ not in contract.ledgers:
        yield Problem(("replay", "from"), f"the contract has no ledger {replay.from_} to take bodies from")
    if replay.value is None:
        for name in ("key", "headers", "to"):
            if getattr(replay, name) is not None:
                yield Problem(
                    ("replay", name), "has no effect without value: nothing could be produced again"
                )


def _expressions(contract: Contract) -> Iterator[Problem]:
    """Find expressions that use anything but the row's columns, or that change from run to run."""
    texts = [*_row_expressions(contract)]
    if contract.multiplicity.effect_key is not None:
        texts.append((("multiplicity", "effect_key"), contract.multiplicity.effect_key))
    for ledger, spec in contract.ledgers.items():
        if isinstance(spec.coverage, CoverageSpec) and spec.coverage.complete_until is not None:
            until_path = ("ledgers", str(ledger), "coverage", "complete_until")
            texts.append((until_path, with_moment(spec.coverage.complete_until, "''")))
    for path, text in texts:
        reason, pattern = refused(text), half_day_pattern(text)
        if reason is not None:
            yield Problem(path, refusal(reason))
        if pattern is not None:
            yield Problem(
                path,
                f"expected HH, the hour of the day, found {pattern}: h is 1 to 12, and 12:30 without a, which says "
                "which half of the day, is read as 00:30",
            )


def _row_expressions(contract: Contract) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the contract's Spark SQL over a source's rows, each with its path."""
    for ledger, spec in contract.ledgers.items():
        for name, text in spec.columns.items():
            yield ("ledgers", str(ledger), "columns", name), text
        if spec.where is not None:
            yield ("ledgers", str(ledger), "where"), spec.where
    if contract.replay is not None:
        for name in ("key", "value", "headers"):
            text = getattr(contract.replay, name)
            if text is not None:
                yield ("replay", name), text


def _secrets(contract: Contract) -> Iterator[Problem]:
    for path, reason in secrets_in(contract.model_dump(mode="json", by_alias=True)):
        yield Problem(path, reason)


_RULES: Final[tuple[Callable[[Contract], Iterator[Problem]], ...]] = (
    _after,
    _grace,
    _budgets,
    _ledgers,
    _same_rows,
    _columns,
    _groups,
    _stars,
    _unknown,
    _coverage,
    _reach,
    _fold_by,
    _consumption,
    _identity,
    _multiplicity,
    _active,
    _windows,
    _alerts,
    _replay,
    _expressions,
    _secrets,
)
