"""The linter: a contract's declared settings, held against its guarantee.

Pure but for the settings files that a contract names, which are read. Docs: docs/reference/linter.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from tieout.contracts import Contract
from tieout.linting.declaring import Pipeline, Trouble, declared
from tieout.linting.defaults import DEFAULTS
from tieout.linting.finding import Finding
from tieout.linting.rule import Rule
from tieout.linting.rules import RULES
from tieout.linting.rules.output import OWN_WORDS, WORDS_OF, WORDS_OF_PARTS
from tieout.model import BreakClass, Severity
from tieout.verdicts import Effect, effect_of

UNREADABLE: Final = "settings_unreadable"
DECLARATION: Final = {
    UNREADABLE: Severity.CRITICAL,
    "settings_disagree": Severity.CRITICAL,
    "client_unknown": Severity.WARNING,
    "word_unknown": Severity.WARNING,
    "setting_misspelt": Severity.WARNING,
}
"""What can be wrong with a declaration itself, and how loudly it is told."""

_BUDGETS: Final = {
    BreakClass.LOST: "loss_ratio",
    BreakClass.TORN_TRANSACTION: "loss_ratio",
    BreakClass.OUTPUT_DUPLICATE: "duplicate_ratio",
}
_ALMOST: Final = 0.9
"""From which likeness on a name is taken for another one misspelt: one letter in ten."""

_CONTRACT_PAGE: Final = "docs/reference/linter.md"


def findings(contract: Contract) -> tuple[Finding, ...]:
    """Return what does not go with the contract's guarantee, the severest first, else in the order of the rules.

    Nothing is raised: a settings file that cannot be read is a finding, `settings_unreadable`. A contract without
    settings has no findings, which says nothing about its pipeline.
    """
    pipeline = declared(contract)
    found = [
        *(
            _trouble(trouble)
            for trouble in (*pipeline.troubles, *_unknown_words(pipeline), *_misspelt(pipeline))
        ),
        *(finding for rule in RULES for finding in _broken(rule, pipeline)),
    ]
    return tuple(sorted(found, key=lambda finding: -finding.severity.rank))


def _broken(rule: Rule, pipeline: Pipeline) -> Iterator[Finding]:
    """Yield the rule's finding where it holds, or may hold, and the guarantee cares."""
    holds = rule.holds(pipeline)
    severity = _severity(rule, pipeline.contract)
    if holds is False or severity is None:
        return
    part = pipeline[rule.section]
    is_certain = holds is True
    yield Finding(
        rule=rule.name,
        severity=severity if is_certain or severity is Severity.INFO else Severity.WARNING,
        section=rule.section,
        setting=rule.setting,
        value=part.text(rule.setting),
        default="; ".join(default.words for default in part.defaults(rule.setting)),
        classes=rule.classes,
        cause=rule.cause,
        failure=rule.failure,
        advice=rule.advice,
        source=rule.source,
        file=part.files.get(rule.setting),
        is_certain=is_certain,
    )


def _severity(rule: Rule, contract: Contract) -> Severity | None:
    """Return how loudly a rule is told: its own severity where a class of it breaks the guarantee.

    INFO where the guarantee warns of one, or a declared budget bounds it; None where the guarantee allows them all:
    that an at-least-once pipeline writes twice is what its contract says.
    """
    if not rule.classes or any(effect_of(contract, name) is Effect.BROKEN for name in rule.classes):
        return rule.severity
    return Severity.INFO if any(_matters(contract, name) for name in rule.classes) else None


def _matters(contract: Contract, name: BreakClass) -> bool:
    effect = effect_of(contract, name)
    if effect is Effect.BUDGET:
        return getattr(contract.budgets, _BUDGETS.get(name, ""), None) is not None
    return effect is Effect.WARNED


def _unknown_words(pipeline: Pipeline) -> Iterator[Trouble]:
    for part in pipeline.parts.values():
        for setting, words in (*OWN_WORDS.items(), *WORDS_OF_PARTS.get(part.section, {}).items()):
            value = part.text(setting)
            if value is not None and value.lower() not in words and "${" not in value:
                failure = f"this word means nothing here, so nothing is known of {WORDS_OF[setting]}"
                yield Trouble(
                    "word_unknown", part.section, setting, value, failure, f"one of: {', '.join(words)}"
                )


def _misspelt(pipeline: Pipeline) -> Iterator[Trouble]:
    """Yield the settings that no rule knows and whose names are almost those of one, whose default would count."""
    for part in pipeline.parts.values():
        known = {rule.setting for rule in RULES if rule.section == part.section} | set(OWN_WORDS)
        known |= {default.setting for default in DEFAULTS if default.software in part.software}
        for setting, value in part.settings.items():
            meant = [] if setting in known else get_close_matches(setting, known, n=1, cutoff=_ALMOST)
            if meant:
                failure = f"no setting of this name is known, so that {meant[0]} counts as not set"
                yield Trouble(
                    "setting_misspelt", part.section, setting, value, failure, f"{meant[0]}, if that is meant"
                )


def _trouble(trouble: Trouble) -> Finding:
    return Finding(
        rule=trouble.rule,
        severity=DECLARATION[trouble.rule],
        section=trouble.section,
        setting=trouble.setting,
        value=trouble.value,
        default="",
        classes=(),
        cause=None,
        failure=trouble.failure,
        advice=trouble.advice,
        source=_CONTRACT_PAGE,
    )
