"""Names of settings that look as if they set one, and that the framework around them takes no notice of."""

from __future__ import annotations

from typing import Final

from tieout.linting.catalogue import known_name, squashed
from tieout.linting.reading.entries import Entry, is_variable
from tieout.linting.values import LOOKED_AT

_HANDED_ON: Final = (
    (("spring", "kafka"), frozenset(("properties",))),
    (
        ("spring", "cloud", "stream"),
        frozenset(("configuration", "consumerproperties", "producerproperties", "streamsproperties")),
    ),
)
"""Below which words Spring hands names on to the client as they are written: no other way of writing them counts.

Docs: Spring Boot, Messaging, Additional Kafka Properties; Spring Cloud Stream, Kafka Binder, Configuration Options.
"""

_SPRING: Final = ("spring", "kafka")
_BOUND_BY_SPRING: Final = {
    "consumer": frozenset(("autooffsetreset", "enableautocommit", "groupid", "isolationlevel")),
    "producer": frozenset(("acks", "retries", "transactionidprefix")),
    "streams": frozenset(("applicationid", "replicationfactor")),
}
"""Of the settings that rules look at, those that Spring Boot has as its own, without separators.

It takes no notice of others, nor of `auto.offset.reset` in the place of `auto-offset-reset`. Docs: Spring Boot, Common
Application Properties, Integration.
"""

_SMALLRYE: Final = ("mp", "messaging")


def unknown_to_spring(section: str, entry: Entry) -> str | None:
    """Return the name, from `spring` on, of a setting that Spring Boot takes no notice of; None of any other."""
    names = entry.segments
    begin = next((at for at in range(len(names)) if names[at : at + 2] == _SPRING), len(names))
    bound, rest = _BOUND_BY_SPRING.get("".join(names[begin + 2 : begin + 3])), names[begin + 3 :]
    if bound is None or not rest or rest[0] == "properties":
        return None
    name = ".".join(rest)
    is_one = len(rest) == 1 or is_variable(entry)
    is_looked_at = known_name(section, name) in LOOKED_AT[section]
    return ".".join(names[begin:]) if is_looked_at and not (is_one and squashed(name) in bound) else None


def is_in_quotes(entry: Entry) -> bool:
    """Return whether SmallRye takes the name for one in quotes, which no client knows: a key of YAML with dots in it.

    Below other keys alone, so that lines of properties are none. Docs: quarkusio/quarkus, issues 11744 and 23387.
    """
    is_dotted = entry.root < entry.leaf < len(entry.segments) - 1 and not is_variable(entry)
    path = entry.segments[entry.root : entry.leaf]
    return is_dotted and any(path[at : at + len(_SMALLRYE)] == _SMALLRYE for at in (0, 1))


def handed_on_from(segments: tuple[str, ...]) -> int:
    """Return where the name begins that a framework hands on as it is written; its length where there is none.

    >>> handed_on_from(("spring", "kafka", "consumer", "properties", "isolation-level"))
    4
    """
    for words, holders in _HANDED_ON:
        if segments[: len(words)] == words:
            held = (at + 1 for at, segment in enumerate(segments) if squashed(segment) in holders)
            return next(held, len(segments))
    return len(segments)
