"""Names that look like settings but that the enclosing framework ignores."""

from __future__ import annotations

from typing import Final

from tieout.linting.catalogue import known_name, normalized
from tieout.linting.reading.entries import Entry, is_variable
from tieout.linting.values import CHECKED_SETTINGS

_PASSED_THROUGH: Final = (
    (("spring", "kafka"), frozenset(("properties",))),
    (
        ("spring", "cloud", "stream"),
        frozenset(("configuration", "consumerproperties", "producerproperties", "streamsproperties")),
    ),
)
"""Keys below which Spring passes names to the client as written: no other style is recognized.

Docs: Spring Boot, Messaging, Additional Kafka Properties; Spring Cloud Stream, Kafka Binder, Configuration Options.
"""

_SPRING: Final = ("spring", "kafka")
_BOUND_BY_SPRING: Final = {
    "consumer": frozenset(("autooffsetreset", "enableautocommit", "groupid", "isolationlevel")),
    "producer": frozenset(("acks", "retries", "transactionidprefix")),
    "streams": frozenset(("applicationid", "replicationfactor")),
}
"""The checked settings that are properties of Spring Boot itself, normalized.

It ignores others, and also `auto.offset.reset` instead of `auto-offset-reset`. Docs: Spring Boot, Common Application
Properties, Integration.
"""

_SMALLRYE: Final = ("mp", "messaging")


def unknown_to_spring(section: str, entry: Entry) -> str | None:
    """Return the name, from `spring` on, of a setting that Spring Boot ignores; None for any other."""
    segments = entry.segments
    start = next(
        (index for index in range(len(segments)) if segments[index : index + 2] == _SPRING), len(segments)
    )
    bound, suffix = _BOUND_BY_SPRING.get("".join(segments[start + 2 : start + 3])), segments[start + 3 :]
    if bound is None or not suffix or suffix[0] == "properties":
        return None
    name = ".".join(suffix)
    is_single = len(suffix) == 1 or is_variable(entry)
    is_checked = known_name(section, name) in CHECKED_SETTINGS[section]
    return (
        ".".join(segments[start:]) if is_checked and not (is_single and normalized(name) in bound) else None
    )


def is_in_quotes(entry: Entry) -> bool:
    """Return whether SmallRye treats the name as quoted, which no client knows: a YAML key with dots in it.

    Only below other keys, so not in properties files. Docs: quarkusio/quarkus, issues 11744 and 23387.
    """
    is_dotted = entry.root < entry.leaf < len(entry.segments) - 1 and not is_variable(entry)
    path = entry.segments[entry.root : entry.leaf]
    return is_dotted and any(path[index : index + len(_SMALLRYE)] == _SMALLRYE for index in (0, 1))


def passed_through_from(segments: tuple[str, ...]) -> int:
    """Return the index at which the name starts that a framework passes on as written; the length if there is none.

    >>> passed_through_from(("spring", "kafka", "consumer", "properties", "isolation-level"))
    4
    """
    for prefix, holders in _PASSED_THROUGH:
        if segments[: len(prefix)] == prefix:
            starts = (index + 1 for index, segment in enumerate(segments) if normalized(segment) in holders)
            return next(starts, len(segments))
    return len(segments)
