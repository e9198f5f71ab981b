"""A rule of the linter: a condition on the declared settings, and its possible consequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tieout.linting.pipeline import Pipeline, Truth, both
from tieout.model import BreakClass, Cause, Severity

Condition = Callable[[Pipeline], Truth]


@dataclass(frozen=True)
class Rule:
    """A possible problem of a pipeline's settings.

    `fires` is the condition `holds` as text. `severity` applies if one of the `classes` breaks the guarantee: CRITICAL
    if one ordinary failure (a crashed process, a lost response) is enough, or the program refuses to start; WARNING if
    it takes two failures, or an operator's act. `source` is a page of public documentation.
    """

    name: str
    section: str
    setting: str
    fires: str
    holds: Condition
    classes: tuple[BreakClass, ...]
    cause: Cause | None
    failure: str
    advice: str
    severity: Severity
    source: str


def is_any(section: str, setting: str, *values: str) -> Condition:
    """Return the condition that the setting of a declared part, or its default, is one of the values."""
    return lambda pipeline: pipeline[section].is_declared and pipeline[section].is_any(setting, *values)


def is_below(section: str, setting: str, limit: float) -> Condition:
    """Return the condition that the setting of a declared part, or its default, is a number below the limit."""
    return lambda pipeline: pipeline[section].is_declared and pipeline[section].is_below(setting, limit)


def is_missing(section: str, setting: str) -> Condition:
    """Return the condition that a declared part does not set the setting."""
    return lambda pipeline: pipeline[section].is_declared and not pipeline[section].has(setting)


def reads_aborted(section: str, setting: str) -> Condition:
    """Return the condition that a declared part reads aborted records, and the topic has transactions."""

    def holds(pipeline: Pipeline) -> Truth:
        part = pipeline[section]
        return part.is_declared and both(pipeline.has_transactions, part.is_any(setting, "read_uncommitted"))

    return holds
