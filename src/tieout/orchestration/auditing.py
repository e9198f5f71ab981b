"""Comparing the windows that a timetable expects with those that were judged: decided from values alone.

Airflow can skip a window silently: docs/reference/gap-audit.md lists the known ways. In every case the window has no
verdict in the store, which is what this module looks for. The state of the window's run in Airflow only explains it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import groupby
from typing import Any, Final, Protocol

from tieout.contracts import Contract
from tieout.model import Window
from tieout.orchestration.windows import judged_from
from tieout.reporting.gap_alerts import UNJUDGED, Gap, WindowState
from tieout.store import JudgedWindow

RUN_LIMIT: Final = timedelta(hours=3)
"""A run that began when its window was due, with its evidence in time, has ended by then."""

ACTIVE: Final = ("queued", "running")
"""The states of an Airflow run that may still give a verdict."""

NOT_QUERIED: Final = "not asked"
"""The state of a run whose state was not queried."""

NOT_JUDGING: Final = frozenset(
    {"description", "owner", "alerts", "schedule", "timezone", "active", "evidence_timeout", "match", "after"}
)
"""The fields of a contract that no verdict depends on."""


@dataclass(frozen=True)
class Finding:
    """The state of one window without a valid verdict; `detail` says why, in words."""

    pipeline: str
    window: Window
    state: WindowState
    detail: str


class AirflowRuns(Protocol):
    """What Airflow knows about the runs of a pipeline's DAG."""

    def is_paused(self, pipeline: str) -> bool | None:
        """Return whether the DAG is paused, or None where there is no such DAG."""

    def state_of(self, pipeline: str, window: Window) -> str | None:
        """Return the state of the run whose logical date is the window's start, None where there is none.

        `NOT_QUERIED` where that would take too long.
        """


@dataclass(frozen=True)
class Audited:
    """The windows of one pipeline that an audit compares.

    `expected` are the windows of its timetable that are due, `judged` the current statement of each window that has
    one, both in their order; `versions` the contracts that those were judged by, by digest.
    """

    contract: Contract
    expected: tuple[Window, ...]
    judged: tuple[JudgedWindow, ...]
    versions: Mapping[str, Mapping[str, Any]]

    @cached_property
    def judged_for_group(self) -> tuple[JudgedWindow, ...]:
        """The statements for the group that the contract names now."""
        return tuple(one for one in self.judged if one.group == self.contract.group)

    @cached_property
    def by_window(self) -> Mapping[Window, list[JudgedWindow]]:
        """The statements of each window, of whatever group."""
        found = defaultdict(list)
        for one in self.judged:
            found[one.window].append(one)
        return found

    def valid_digests(self) -> frozenset[str]:
        """Return the digests of those versions of the contract that judge as it does now."""
        now = self.contract.model_dump(mode="json", by_alias=True, exclude_none=True)
        alike = {digest for digest, version in self.versions.items() if judges_alike(version, now)}
        return frozenset(alike | {self.contract.digest})


def findings_of(audited: Audited, runs: AirflowRuns, now: datetime) -> tuple[Finding, ...]:
    """Return one finding for each window that is not judged by the current contract, in their order.

    A window is `missing` or `failed` without a verdict, `running` while a run of it may still give one in time, `stale`
    where its verdict is by terms that no longer hold, and `superseded` where other windows, such as those of a former
    schedule, were judged that cover all of it.
    """
    checked = {one.window: one for one in audited.judged_for_group if one.is_checked}
    stretches = joined(checked)
    valid = audited.valid_digests()
    found = []
    for window in audited.expected:
        if window in checked:
            state_and_reason = _stale(checked[window], valid, audited.contract.digest)
        elif is_within(window, stretches):
            state_and_reason = WindowState.SUPERSEDED, "judged in windows of other bounds"
        else:
            state_and_reason = _unjudged(audited, window, runs, now)
        found += [Finding(audited.contract.pipeline, window, *state_and_reason)] if state_and_reason else []
    return tuple(found)


def gaps_of(audited: Audited, findings: Iterable[Finding]) -> tuple[Gap, ...]:
    """Return the gaps: neighbouring windows without a verdict, or with a stale one, are one gap."""
    place = {window: number for number, window in enumerate(audited.expected)}
    gaps = []
    for states in (UNJUDGED, frozenset({WindowState.STALE})):
        selected = [finding for finding in findings if finding.state in states]
        stretches = groupby(enumerate(selected), key=lambda pair: place[pair[1].window] - pair[0])
        gaps += [_gap([finding for _, finding in stretch]) for _, stretch in stretches]
    return tuple(gaps)


def judges_alike(contract: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two contracts in canonical form judge every window alike.

    >>> judges_alike({"guarantee": "at_least_once", "owner": "a"}, {"guarantee": "at_least_once", "owner": "b"})
    True
    """
    names = (contract.keys() | other.keys()) - NOT_JUDGING
    return all(contract.get(name) == other.get(name) for name in names)


def joined(windows: Iterable[Window]) -> tuple[Window, ...]:
    """Return windows, ordered by start, as separate stretches; windows that meet or overlap are joined."""
    found: list[Window] = []
    for window in windows:
        if found and window.start <= found[-1].end:
            found[-1] = Window(found[-1].start, max(found[-1].end, window.end))
        else:
            found.append(window)
    return tuple(found)


def is_within(window: Window, stretches: Sequence[Window]) -> bool:
    """Return whether one of the ordered, separate stretches holds all of the window."""
    place = bisect_right(stretches, window.start, key=lambda one: one.start)
    return place > 0 and window.end <= stretches[place - 1].end


def _stale(one: JudgedWindow, valid: frozenset[str], digest: str) -> tuple[WindowState, str] | None:
    if one.contract_digest in valid:
        return None
    reason = f"judged by contract {one.contract_digest[:12]}, which is {digest[:12]} now"
    if one.has_later_run:
        reason += "; a later run does not count, because its evidence reaches less far"
    return WindowState.STALE, reason


def _unjudged(audited: Audited, window: Window, runs: AirflowRuns, now: datetime) -> tuple[WindowState, str]:
    """Return why a window has no verdict, as far as the store and Airflow show."""
    contract = audited.contract
    state, is_paused = runs.state_of(contract.pipeline, window), runs.is_paused(contract.pipeline)
    stored = audited.by_window.get(window, [])
    unchecked = [one for one in stored if one.group == contract.group]
    due = judged_from(window, contract.grace) + contract.evidence_timeout
    began = max([due, *(one.published_at for one in unchecked)])
    if state in ACTIVE and now < began + RUN_LIMIT and not is_paused:
        return WindowState.RUNNING, f"Airflow's run of it is {state}"
    reasons = [
        *(f"run {one.run_id} was stored and never checked" for one in unchecked),
        *(f"judged for the group {one.group} only" for one in stored if one not in unchecked),
        _airflow_reason(state, is_paused),
    ]
    has_failed = bool(unchecked) or state == "failed"
    return WindowState.FAILED if has_failed else WindowState.MISSING, "; ".join(reasons)


def _airflow_reason(state: str | None, is_paused: bool | None) -> str:
    if is_paused is None:
        return "Airflow has no DAG of the pipeline: is its contract file still there and valid?"
    paused = "; the DAG is paused" if is_paused else ""
    if state is None:
        return f"Airflow has no run of it{paused}"
    if state == NOT_QUERIED:
        return f"older than those Airflow is asked about{paused}"
    if state == "success":
        return f"Airflow's run of it succeeded without judging it{paused}"
    return f"Airflow's run of it is {state}{paused}"


def _gap(findings: Sequence[Finding]) -> Gap:
    return Gap(
        is_stale=findings[0].state is WindowState.STALE,
        window=Window(findings[0].window.start, findings[-1].window.end),
        states=Counter(finding.state for finding in findings),
        details=Counter(finding.detail for finding in findings),
    )


def table_of(findings: Sequence[Finding], most: int = 200) -> str:
    """Return the findings as a table for a log: at most `most` rows, and how many are left out.

    >>> table_of(())
    'every window that is due was judged'
    """
    if not findings:
        return "every window that is due was judged"
    head = ("pipeline", "window", "until", "state", "why")
    rows = [
        (
            one.pipeline,
            f"{one.window.start:%Y-%m-%d %H:%M}",
            f"{one.window.end:%m-%d %H:%M}",
            one.state,
            one.detail,
        )
        for one in findings[:most]
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
    return "\n".join(lines + ([f"… and {len(findings) - most} more"] if len(findings) > most else []))
