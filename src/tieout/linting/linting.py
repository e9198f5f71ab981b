"""The linter: compares a contract's declared settings with its guarantee.

Pure except that it reads the settings files that a contract names. Docs: docs/reference/linter.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from tieout.contracts import Contract
from tieout.linting.catalogue import is_exact, known_name, tokens
from tieout.linting.declaring import Declared, declared
from tieout.linting.defaults import DEFAULTS
from tieout.linting.finding import Finding
from tieout.linting.pipeline import SECTIONS, Part, Pipeline, Trouble, Truth
from tieout.linting.placeholders import is_placeholder
from tieout.linting.rule import Rule
from tieout.linting.rules import RULES
from tieout.linting.rules.output import OWN_VALUES, OWN_VALUES_OF_PARTS, TOPIC_OF_SETTING
from tieout.model import BreakClass, Severity
from tieout.verdicts import Effect, effect_of

UNREADABLE: Final = "settings_unreadable"
DECLARATION: Final = {
    UNREADABLE: Severity.CRITICAL,
    "settings_not_understood": Severity.CRITICAL,
    "value_unknown": Severity.CRITICAL,
    "settings_disagree": Severity.CRITICAL,
    "settings_several": Severity.WARNING,
    "setting_twice": Severity.WARNING,
    "file_not_read": Severity.WARNING,
    "value_quoted": Severity.WARNING,
    "client_unknown": Severity.WARNING,
    "word_unknown": Severity.WARNING,
    "setting_misspelt": Severity.WARNING,
    "value_open": Severity.INFO,
    "file_read_as": Severity.INFO,
}
"""The problems of a declaration itself, with their severities."""

_BUDGETS: Final = {
    BreakClass.LOST: "loss_ratio",
    BreakClass.TORN_TRANSACTION: "loss_ratio",
    BreakClass.OUTPUT_DUPLICATE: "duplicate_ratio",
}
_MISSPELT_CUTOFF: Final = 0.85
"""The similarity from which a name counts as a misspelling of another."""

_MISSPELT_AS: Final = ("no setting of this name is known", "{}, if that is meant")
_INERT_ADVICE: Final = {
    '"': (
        "SmallRye takes a key of YAML with dots in it for one name in quotes, which no client knows",
        "{}, each word between its dots as a key of its own: auto: {{offset: {{reset: earliest}}}}",
    ),
    "spring.": (
        "Spring Boot has no property of this name, and takes no notice of it",
        "{} below properties, or Spring's own property, such as spring.kafka.consumer.auto-offset-reset",
    ),
}
"""Reason and advice for names that start with a prefix and that no program reads."""
_LONGEST_NAME: Final = 500
_MIRROR_MAKER: Final = ".connect.mirror.mirror"
_OF_MIRROR_MAKER: Final = re.compile(r"((source|target)\.(cluster\.)?)?(consumer|producer|admin)\..+")
"""Settings of the clients of MirrorMaker's connectors, which in other connectors begin otherwise.

Source: `MirrorConnectorConfig` of Apache Kafka 4.3 (connect/mirror).
"""
_CONTRACT_PAGE: Final = "docs/reference/linter.md"


def findings(contract: Contract) -> tuple[Finding, ...]:
    """Return the settings in conflict with the contract's guarantee, by severity, then in the order of the rules.

    Raises nothing: a settings file that cannot be read is a finding, `settings_unreadable`. A contract without
    settings has no findings, which proves nothing about its pipeline.
    """
    declaration = declared(contract)
    pipelines = tuple(declaration.pipelines())
    troubles = (
        *declaration.troubles,
        *dict.fromkeys((*_unknown_values(declaration), *_misspelt(declaration))),
    )
    results = [
        *(_finding_of_trouble(trouble) for trouble in troubles),
        *(finding for rule in RULES for finding in _broken(rule, pipelines)),
    ]
    return tuple(sorted(results, key=lambda finding: -finding.severity.rank))


def _broken(rule: Rule, pipelines: tuple[Pipeline, ...]) -> Iterator[Finding]:
    """Yield one finding for each value with which the rule holds or may hold, if it affects the guarantee."""
    severity = _severity(rule, pipelines[0].contract)
    if severity is None:
        return
    by_value: dict[str | None, tuple[Part, list[Truth]]] = {}
    for pipeline in pipelines:
        part = pipeline[rule.section]
        by_value.setdefault(part.text(rule.setting), (part, []))[1].append(_holds(rule, pipeline))
    for part, truths in by_value.values():
        is_certain = len(by_value) == 1 and all(truth is True for truth in truths)
        if any(truth is not False for truth in truths):
            yield _finding(rule, part, severity, is_certain=is_certain)


def _holds(rule: Rule, pipeline: Pipeline) -> Truth:
    """Return whether the rule holds; False if nothing is known of its setting."""
    part = pipeline[rule.section]
    value = part.text(rule.setting)
    if value is None and not part.is_understood:
        return False
    if rule.setting in part.unknown and part.is_client_known and not is_placeholder(value or ""):
        return False
    truth = rule.holds(pipeline)
    is_certain = pipeline.is_understood and (part.is_complete or value is not None)
    return truth if is_certain or not truth else None


def _finding(rule: Rule, part: Part, severity: Severity, *, is_certain: bool) -> Finding:
    return Finding(
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
    """Return the severity of a rule's findings: its own if one of its classes breaks the guarantee.

    INFO if the guarantee warns of one, or a declared budget limits it; None if the guarantee allows them all, as
    at-least-once allows duplicates.
    """
    if not rule.classes or any(effect_of(contract, name) is Effect.BROKEN for name in rule.classes):
        return rule.severity
    return Severity.INFO if any(_is_reported(contract, name) for name in rule.classes) else None


def _is_reported(contract: Contract, name: BreakClass) -> bool:
    effect = effect_of(contract, name)
    if effect is Effect.BUDGET:
        return getattr(contract.budgets, _BUDGETS.get(name, ""), None) is not None
    return effect is Effect.WARNED


def _unknown_values(declaration: Declared) -> Iterator[Trouble]:
    for part in _parts(declaration):
        for setting, allowed in (*OWN_VALUES.items(), *OWN_VALUES_OF_PARTS.get(part.section, {}).items()):
            value = part.text(setting)
            if value is not None and value.lower() not in allowed and not is_placeholder(value):
                failure = f"this word means nothing here, so nothing is known of {TOPIC_OF_SETTING[setting]}"
                yield Trouble(
                    "word_unknown", part.section, setting, value, failure, f"one of: {', '.join(allowed)}"
                )


def _misspelt(declaration: Declared) -> Iterator[Trouble]:
    """Yield the unknown settings whose names resemble that of a checked one, whose default then applies."""
    for part in _parts(declaration):
        checked = {rule.setting for rule in RULES if rule.section == part.section} | set(OWN_VALUES)
        checked |= {default.setting for default in DEFAULTS if default.software in part.software}
        is_mirroring = _MIRROR_MAKER in (part.text("connector.class") or "").lower()
        for setting, value in part.settings.items():
            if is_mirroring and _OF_MIRROR_MAKER.fullmatch(setting):
                continue
            intended = None if setting in checked else _intended_setting(part.section, setting, checked)
            if intended is not None:
                matching = (texts for prefix, texts in _INERT_ADVICE.items() if setting.startswith(prefix))
                reason, advice = next(matching, _MISSPELT_AS)
                failure = f"{reason}, so that {intended} counts as not set"
                yield Trouble(
                    "setting_misspelt", part.section, setting, value, failure, advice.format(intended)
                )


def _intended_setting(section: str, setting: str, checked: set[str]) -> str | None:
    """Return the checked setting that a name probably means: other style, extra prefix, or a spelling mistake."""
    if len(setting) > _LONGEST_NAME or is_exact(section, setting):
        return None
    segments = setting.split(".")
    for start in range(len(segments)):
        name = known_name(section, ".".join(segments[start:]))
        if name in checked and (start == 0 or "." in name):
            return name
    names_by_words = {_dotted_words(name): name for name in sorted(checked)}
    close = get_close_matches(_dotted_words(setting), names_by_words, n=1, cutoff=_MISSPELT_CUTOFF)
    return names_by_words[close[0]] if close else None


def _dotted_words(name: str) -> str:
    return ".".join(tokens(name))


def _parts(declaration: Declared) -> Iterator[Part]:
    for section in SECTIONS:
        yield from declaration.parts[section]


def _finding_of_trouble(trouble: Trouble) -> Finding:
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
