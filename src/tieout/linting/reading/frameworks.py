"""How frameworks pass settings to clients: their own names of values, their defaults, and when they commit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tieout.linting.catalogue import normalized, tokens
from tieout.linting.reading.places import Place

SPRING_KAFKA: Final = "spring-kafka"
SPRING_CLOUD_STREAM: Final = "spring-cloud-stream"
SMALLRYE_KAFKA: Final = "smallrye-kafka"

_FRAMEWORK_PATHS: Final = {
    SPRING_CLOUD_STREAM: ("spring", "cloud", "stream"),
    SPRING_KAFKA: ("spring", "kafka"),
    SMALLRYE_KAFKA: ("mp", "messaging"),
}
_CLIENT_VALUES: Final = {
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
"""Values of frameworks, and of .NET, and the client's value for each; normalized."""

_OF_PINOT: Final = "stream.kafka.consumer.prop."
_PINOT_VALUES: Final = {"auto.offset.reset": {"smallest": "earliest", "largest": "latest"}}
"""Apache Pinot's words, which it translates for the client. Docs: Apache Pinot, Stream ingestion."""

_DELAYS: Final = ("timeToLive", "sendTimeoutMs")
_DELAY: Final = re.compile(r"(?:PT?)?(\d{1,15})(ms|s|m|h|d)", re.IGNORECASE)
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

FRAMEWORK_DEFAULTS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    SPRING_KAFKA: {"consumer": {"enable.auto.commit": "false"}},
    SPRING_CLOUD_STREAM: {
        "consumer": {"enable.auto.commit": "false", "auto.offset.reset": "earliest"},
        "producer": {"acks": "1"},
    },
    SMALLRYE_KAFKA: {"consumer": {"enable.auto.commit": "false"}, "producer": {"acks": "1"}},
}
"""The defaults that a framework sets for a client. Docs: Spring for Apache Kafka, Message Listener Containers; Spring
Cloud Stream, Kafka Binder (`earliest` is for a consumer with a group); SmallRye Reactive Messaging, Kafka Connector."""

_SPRING_CONSUMER: Final = ("spring", "kafka", "consumer")
_BOUND: Final = ("isolation.level", "enable.auto.commit")
"""Settings that Spring Boot does not pass on as text: an enum and a boolean, accepted in any case and with any
separators. Docs: Spring Boot, Externalized Configuration, Relaxed Binding; KafkaProperties.Consumer."""

_ACK_MODE: Final = "listener.ack-mode"
_COMMITTED_BY_CONTAINER: Final = ("record", "batch", "time", "count", "counttime")
_AFTER_PROCESSING: Final = "after processing"


def framework_of(place: Place) -> str:
    """Return the framework that passes the place's settings to the client; empty if none is known."""
    path = place.path
    for name, prefix in _FRAMEWORK_PATHS.items():
        if any(path[index : index + len(prefix)] == prefix for index in range(len(path))):
            return name
    return ""


def client_settings(place: Place) -> dict[str, str]:
    """Return the place's settings as the client receives them.

    The value of a setting in the client's own style is unchanged: frameworks do not translate it.
    """
    settings = {
        name: _client_value(name, value, place.written.get(name, name))
        for name, value in place.settings.items()
    }
    mode = normalized(settings.pop(_ACK_MODE, ""))
    if mode in _COMMITTED_BY_CONTAINER and not _commits_by_itself(settings):
        settings["commits"] = _AFTER_PROCESSING
    return settings


def _client_value(name: str, value: str, written: str) -> str:
    key = written.rsplit(".", 1)[-1]
    is_as_client = written == name or written.endswith((f".{name}", f"[{name}]"))
    if _OF_PINOT in written:
        return _PINOT_VALUES.get(name, {}).get(value.lower(), value)
    if name in _DELAYS and not is_as_client:
        return _milliseconds(value)
    is_passed_on = is_as_client or ((key.isupper() or "_" in key) and not _is_bound(name, written))
    return value if is_passed_on else _CLIENT_VALUES.get(name, {}).get(normalized(value), value)


def _milliseconds(value: str) -> str:
    """Return a delay in Spring's format in milliseconds, any other text unchanged.

    >>> [_milliseconds(text) for text in ("10s", "PT1M", "500", "soon")]
    ['10000', '60000', '500', 'soon']
    """
    match = _DELAY.fullmatch(value)
    return str(int(match[1]) * _UNITS[match[2].lower()]) if match else value


def _is_bound(name: str, written: str) -> bool:
    """Return whether the setting is one that Spring Boot binds to a type of its own, in any style of its name.

    >>> _is_bound("isolation.level", "SPRING_KAFKA_CONSUMER_ISOLATION_LEVEL")
    True
    >>> _is_bound("isolation.level", "SPRING_KAFKA_CONSUMER_PROPERTIES_ISOLATION_LEVEL")
    False
    """
    segments = (*_SPRING_CONSUMER, *name.split("."))
    return name in _BOUND and tokens(written)[-len(segments) :] == segments


def _commits_by_itself(settings: Mapping[str, str]) -> bool:
    return settings.get("enable.auto.commit", "false").lower() == "true"
