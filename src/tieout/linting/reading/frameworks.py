"""What frameworks do with the settings that they pass on: their own words for values, and what they commit when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tieout.linting.catalogue import squashed, tokens
from tieout.linting.reading.places import Place

SPRING_KAFKA: Final = "spring-kafka"
SPRING_CLOUD_STREAM: Final = "spring-cloud-stream"
SMALLRYE_KAFKA: Final = "smallrye-kafka"

_PATHS: Final = {
    SPRING_CLOUD_STREAM: ("spring", "cloud", "stream"),
    SPRING_KAFKA: ("spring", "kafka"),
    SMALLRYE_KAFKA: ("mp", "messaging"),
}
_MEANINGS: Final = {
    "isolation.level": {"readcommitted": "read_committed", "readuncommitted": "read_uncommitted"},
    "acks": {"leader": "1", "none": "0", "all": "all"},
    "enable.auto.commit": {
        "yes": "true",
        "on": "true",
        "1": "true",
        "no": "false",
        "off": "false",
        "0": "false",
    },
    "auto.offset.reset": {"latest": "latest", "earliest": "earliest", "none": "none", "error": "error"},
    "subscriptionType": {"keyshared": "Key_Shared"},
    "persistent": {"nonpersistent": "false", "persistent": "true"},
}
"""Words of frameworks, and of .NET, that mean a value; without case and separators."""

_DELAYS: Final = ("timeToLive", "sendTimeoutMs")
_DELAY: Final = re.compile(r"(?:PT?)?(\d{1,15})(ms|s|m|h|d)", re.IGNORECASE)
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

SETS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    SPRING_KAFKA: {"consumer": {"enable.auto.commit": "false"}},
    SPRING_CLOUD_STREAM: {
        "consumer": {"enable.auto.commit": "false", "auto.offset.reset": "earliest"},
        "producer": {"acks": "1"},
    },
    SMALLRYE_KAFKA: {"consumer": {"enable.auto.commit": "false"}, "producer": {"acks": "1"}},
}
"""What a framework sets where nobody else does: Spring for Apache Kafka, Message Listener Containers; Spring Cloud
Stream, Kafka Binder (`earliest` is for a consumer with a group); SmallRye Reactive Messaging, Kafka Connector."""

_SPRING_CONSUMER: Final = ("spring", "kafka", "consumer")
_BOUND: Final = ("isolation.level", "enable.auto.commit")
"""Settings that Spring Boot does not hand on as text: an enum and a truth, which it takes in any case and with any
separators. Docs: Spring Boot, Externalized Configuration, Relaxed Binding; KafkaProperties.Consumer."""

_ACK_MODE: Final = "listener.ack-mode"
_COMMITTED_BY_CONTAINER: Final = ("record", "batch", "time", "count", "counttime")
_AFTER_PROCESSING: Final = "after processing"


def framework_of(place: Place) -> str:
    """Return the framework that hands the place's settings to the client; empty where none is known."""
    path = place.path
    for name, words in _PATHS.items():
        if any(path[at : at + len(words)] == words for at in range(len(path))):
            return name
    return ""


def in_client_words(place: Place) -> dict[str, str]:
    """Return the place's settings as the client is given them.

    A value whose setting is written as a client writes it is left as it is: nobody translates it.
    """
    settings = {
        name: _meant(name, value, place.written.get(name, name)) for name, value in place.settings.items()
    }
    mode = squashed(settings.pop(_ACK_MODE, ""))
    if mode in _COMMITTED_BY_CONTAINER and not _commits_by_itself(settings):
        settings["commits"] = _AFTER_PROCESSING
    return settings


def _meant(name: str, value: str, written: str) -> str:
    key = written.rsplit(".", 1)[-1]
    is_as_client = written == name or written.endswith((f".{name}", f"[{name}]"))
    if name in _DELAYS and not is_as_client:
        return _milliseconds(value)
    is_passed_on = is_as_client or ((key.isupper() or "_" in key) and not _is_bound(name, written))
    return value if is_passed_on else _MEANINGS.get(name, {}).get(squashed(value), value)


def _milliseconds(value: str) -> str:
    """Return a delay as Spring takes it in milliseconds, one that it does not take as it is.

    >>> [_milliseconds(text) for text in ("10s", "PT1M", "500", "soon")]
    ['10000', '60000', '500', 'soon']
    """
    found = _DELAY.fullmatch(value)
    return str(int(found[1]) * _UNITS[found[2].lower()]) if found else value


def _is_bound(name: str, written: str) -> bool:
    """Return whether Spring Boot takes the value for one of its own kinds, in whatever way the name is written.

    >>> _is_bound("isolation.level", "SPRING_KAFKA_CONSUMER_ISOLATION_LEVEL")
    True
    >>> _is_bound("isolation.level", "SPRING_KAFKA_CONSUMER_PROPERTIES_ISOLATION_LEVEL")
    False
    """
    words = (*_SPRING_CONSUMER, *name.split("."))
    return name in _BOUND and tokens(written)[-len(words) :] == words


def _commits_by_itself(settings: Mapping[str, str]) -> bool:
    return settings.get("enable.auto.commit", "false").lower() == "true"
