"""Settings that are assigned within a text, such as `"acks=1,retries=3"`, which is not parsed further."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tieout.linting.catalogue import is_distinctive, known_name
from tieout.linting.reading.entries import Entry, segments_of
from tieout.linting.reading.places import is_of_another
from tieout.linting.values import CHECKED_SETTINGS, is_free

_ASSIGNMENT: Final = re.compile(
    r"""\bname["']?\s*[:=]\s*["']?(?P<variable>[A-Z][A-Z0-9_]+)
      | (?<![\w.-]) (?:-D|--?)? (?P<name>[A-Za-z][\w.\[\]-]{0,200}) ["']? \s* [:=]""",
    re.VERBOSE,
)
"""A name before a colon or an equals sign, or a variable of Kubernetes, whose value is on a line of its own."""


def mentions(section: str, entries: Iterable[Entry]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of each text that assigns checked settings of the part, and these settings.

    The value of a known setting is no such text, nor is a value below another part's name.
    """
    for entry in entries:
        if setting_in(section, entry.segments) is None and not is_of_another(section, entry.segments):
            settings = tuple(dict.fromkeys(_assigned(section, entry.value)))
            if settings:
                yield entry.written, settings


def _assigned(section: str, text: str) -> Iterator[str]:
    r"""Yield the settings that the text assigns.

    >>> list(_assigned("producer", "-Dacks=1 and 'enable.idempotence': x, acksome=1, acks too"))
    ['acks', 'enable.idempotence']
    >>> list(_assigned("producer", '- name: KAFKA_ACKS\n  value: "1"'))
    ['acks']
    """
    for match in _ASSIGNMENT.finditer(text):
        setting = setting_in(section, segments_of(match["variable"] or match["name"]))
        if setting is not None:
            yield setting


def setting_in(section: str, segments: tuple[str, ...]) -> str | None:
    """Return the checked setting at the end of a name, or None.

    >>> setting_in("producer", ("kafka", "acks")), setting_in("producer", ("kafka", "linger.ms"))
    ('acks', None)
    """
    names = (known_name(section, ".".join(segments[index:])) for index in range(len(segments)))
    return next((name for name in names if name is not None and _is_checked(section, name)), None)


def _is_checked(section: str, name: str) -> bool:
    """Return whether a rule checks the setting, and other programs do not use its name for something else."""
    return name in CHECKED_SETTINGS[section] and (is_distinctive(section, name) or not is_free(section, name))
