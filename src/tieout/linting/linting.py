"""The linter: a contract's declared settings, held against its guarantee.

Pure but for the settings files that a contract names, which are read. Docs: docs/reference/linter.md.
"""

from __future__ import annotations

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
from tieout.linting.rules.output import OWN_WORDS, WORDS_OF, WORDS_OF_PARTS
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
"""What can be wrong with a declaration itself, and how loudly it is told."""

_BUDGETS: Final = {
    BreakClass.LOST: "loss_ratio",
    BreakClass.TORN_TRANSACTION: "loss_ratio",
    BreakClass.OUTPUT_DUPLICATE: "duplicate_ratio",
}
_ALMOST: Final = 0.85
"""From which likeness on a name is taken for another one misspelt."""

_MISSPELT_AS: Final = ("no setting of this name is known", "{}, if that is meant")
_INERT: Final = {
    '"': (
        "SmallRye takes a key of YAML with dots in it for one name in quotes, which no client knows",
        "{}, each word between its dots as a key of its own: auto: {{offset: {{reset: earliest}}}}",
    ),
    "spring.": (
        "Spring Boot has no property of this name, and takes no notice of it",
        "{} below properties, or Spring's own property, such as spring.kafka.consumer.auto-offset-reset",
    ),
}
"""What is said of a name that is almost a setting's, and what to do; and of names that begin so."""
_LONGEST_NAME: Final = 500
_CONTRACT_PAGE: Final = "docs/reference/linter.md"


def findings(contract: Contract) -> tuple[Finding, ...]:
    """Return what does not go with the contract's guarantee, the severest first, else in the order of the rules.

    Nothing is raised: a settings file that cannot be read is a finding, `settings_unreadable`. A contract without
    settings has no findings, which says nothing about its pipeline.
    """
    known = declared(contract)
    pipelines = tuple(known.pipelines())
    troubles = (*known.troubles, *dict.fromkeys((*_unknown_words(known), *_misspelt(known))))
    found = [
        *(_trouble(trouble) for trouble in troubles),
        *(finding for rule in RULES for finding in _broken(rule, pipelines)),
    ]
    return tuple(sorted(found, key=lambda finding: -finding.severity.rank))


def _broken(rule: Rule, pipelines: tuple[Pipeline, ...]) -> Iterator[Finding]:
    """Yield the rule's findings, one for each value in question, where it holds or may hold and the guarantee cares."""
    severity = _severity(rule, pipelines[0].contract)
    if severity is None:
        return
    held: dict[str | None, tuple[Part, list[Truth]]] = {}
    for pipeline in pipelines:
        part = pipeline[rule.section]
        held.setdefault(part.text(rule.setting), (part, []))[1].append(_holds(rule, pipeline))
    for part, truths in held.values():
        is_certain = len(held) == 1 and all(truth is True for truth in truths)
        if any(truth is not False for truth in truths):
            yield _finding(rule, part, severity, is_certain=is_certain)


def _holds(rule: Rule, pipeline: Pipeline) -> Truth:
    """Return whether the rule holds; not at all where it would speak of a setting of which nothing is known."""
    part = pipeline[rule.section]
    value = part.text(rule.setting)
    if value is None and not part.is_understood:
        return False
    if rule.setting in part.unknown and part.is_client_known and not is_placeholder(value or ""):
        return False
    holds = rule.holds(pipeline)
    is_sure = pipeline.is_understood and (part.is_complete or value is not None)
    return holds if is_sure or not holds else None


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


def _unknown_words(known: Declared) -> Iterator[Trouble]:
    for part in _parts(known):
        for setting, words in (*OWN_WORDS.items(), *WORDS_OF_PARTS.get(part.section, {}).items()):
            value = part.text(setting)
            if value is not None and value.lower() not in words and not is_placeholder(value):
                failure = f"this word means nothing here, so nothing is known of {WORDS_OF[setting]}"
                yield Trouble(
                    "word_unknown", part.section, setting, value, failure, f"one of: {', '.join(words)}"
                )


def _misspelt(known: Declared) -> Iterator[Trouble]:
    """Yield the settings that no program knows and whose names are almost those of one, whose default would count."""
    for part in _parts(known):
        looked_at = {rule.setting for rule in RULES if rule.section == part.section} | set(OWN_WORDS)
        looked_at |= {default.setting for default in DEFAULTS if default.software in part.software}
        for setting, value in part.settings.items():
            meant = None if setting in looked_at else _almost(part.section, setting, looked_at)
            if meant is not None:
                told = (words for begins, words in _INERT.items() if setting.startswith(begins))
                reason, advice = next(told, _MISSPELT_AS)
                failure = f"{reason}, so that {meant} counts as not set"
                yield Trouble("setting_misspelt", part.section, setting, value, failure, advice.format(meant))


def _almost(section: str, setting: str, looked_at: set[str]) -> str | None:
    """Return the setting that is meant by a name: written in another way, below another name, or with a slip."""
    if len(setting) > _LONGEST_NAME or is_exact(section, setting):
        return None
    segments = setting.split(".")
    for start in range(len(segments)):
        name = known_name(section, ".".join(segments[start:]))
        if name in looked_at and (start == 0 or "." in name):
            return name
    by_words = {_in_words(name): name for name in sorted(looked_at)}
    close = get_close_matches(_in_words(setting), by_words, n=1, cutoff=_ALMOST)
    return by_words[close[0]] if close else None


def _in_words(name: str) -> str:
    return ".".join(tokens(name))


def _parts(known: Declared) -> Iterator[Part]:
    for section in SECTIONS:
        yield from known.parts[section]


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
