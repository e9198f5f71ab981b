"""Settings that are given within a text, such as `"acks=1,retries=3"`, which nobody here takes apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tieout.linting.catalogue import is_telling, known_name
from tieout.linting.reading.entries import Entry, segments_of
from tieout.linting.reading.places import is_of_another
from tieout.linting.values import LOOKED_AT, is_free

_GIVEN: Final = re.compile(
    r"""\bname["']?\s*[:=]\s*["']?(?P<variable>[A-Z][A-Z0-9_]+)
      | (?<![\w.-]) (?:-D|--?)? (?P<name>[A-Za-z][\w.\[\]-]{0,200}) ["']? \s* [:=]""",
    re.VERBOSE,
)
"""A name before a colon or an equals sign, and a variable of Kubernetes, whose value stands on a line of its own."""


def mentions(section: str, entries: Iterable[Entry]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of each text that gives settings of the part that rules look at, and which these are.

    The value of a setting that is known itself is no such text, nor is what stands below another part's name.
    """
    for entry in entries:
        if setting_in(section, entry.segments) is None and not is_of_another(section, entry.segments):
            given = tuple(dict.fromkeys(_given(section, entry.value)))
            if given:
                yield entry.written, given


def _given(section: str, text: str) -> Iterator[str]:
    r"""Yield the settings that the text gives.

    >>> list(_given("producer", "-Dacks=1 and 'enable.idempotence': x, acksome=1, acks too"))
    ['acks', 'enable.idempotence']
    >>> list(_given("producer", '- name: KAFKA_ACKS\n  value: "1"'))
    ['acks']
    """
    for found in _GIVEN.finditer(text):
        setting = setting_in(section, segments_of(found["variable"] or found["name"]))
        if setting is not None:
            yield setting


def setting_in(section: str, segments: tuple[str, ...]) -> str | None:
    """Return the setting that the end of a name is, if it is one that rules look at; else None.

    >>> setting_in("producer", ("kafka", "acks")), setting_in("producer", ("kafka", "linger.ms"))
    ('acks', None)
    """
    names = (known_name(section, ".".join(segments[at:])) for at in range(len(segments)))
    return next((name for name in names if name is not None and _is_looked_at(section, name)), None)


def _is_looked_at(section: str, name: str) -> bool:
    """Return whether a rule looks at the setting, and other programs do not use its name for anything else."""
    return name in LOOKED_AT[section] and (is_telling(section, name) or not is_free(section, name))
