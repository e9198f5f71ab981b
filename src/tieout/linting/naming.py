"""Canonical names and values of settings for which programs accept several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tieout.linting.catalogue import known_name

_ALIASES: Final = {
    "librdkafka": {
        "request.required.acks": "acks",
        "message.send.max.retries": "retries",
        "max.in.flight": "max.in.flight.requests.per.connection",
    },
    "kafka": {"default.replication.factor": "replication.factor", "log.retention.ms": "retention.ms"},
    "spark": {"spark.sql.streaming.checkpointLocation": "checkpointLocation"},
    "flink": {"sink.semantic": "sink.delivery-guarantee"},
    "streams": {
        "acks": "producer.acks",
        "auto.offset.reset": "main.consumer.auto.offset.reset",
        "consumer.auto.offset.reset": "main.consumer.auto.offset.reset",
        "default.deserialization.exception.handler": "deserialization.exception.handler",
        "default.production.exception.handler": "production.exception.handler",
    },
}
"""Other names of a setting; if several are set, the more specific one counts, such as the topic's: the name itself,
then the later one here."""

LAST_COUNTS: Final = "librdkafka"
"""The program for which neither name is more specific: the last one set counts."""

_CASE_INSENSITIVE: Final = {
    "spark": ("checkpointLocation", "failOnDataLoss", "startingOffsets", "kafka.isolation.level")
}
"""Settings whose names are case-insensitive."""

_RETENTION: Final = {"log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
"""Settings equal to `retention.ms` in another unit (milliseconds per unit), by precedence."""

_BOOLEANS: Final = ("enable.idempotence", "enable.auto.commit", "enable.auto.offset.store", "journalSyncData")
"""Boolean settings for which some programs accept other words than true and false."""

_EQUIVALENT_VALUES: Final = {
    "-1": {"acks": "all"},
    "largest": {"auto.offset.reset": "latest"},
    "end": {"auto.offset.reset": "latest"},
    "smallest": {"auto.offset.reset": "earliest"},
    "beginning": {"auto.offset.reset": "earliest"},
    "error": {"auto.offset.reset": "none"},
    **{word: dict.fromkeys(_BOOLEANS, "true") for word in ("t", "1", "yes", "on", "y")},
    **{word: dict.fromkeys(_BOOLEANS, "false") for word in ("f", "0", "no", "off", "n")},
}
"""Values that are equivalent to the canonical one."""

STYLED: Final = ("kafka-python", "confluent-kafka-dotnet")
"""Clients with their own style of setting names."""


def meaning(setting: str, value: str) -> str:
    """Return the canonical value, in lower case.

    >>> meaning("acks", "-1"), meaning("auto.offset.reset", "Smallest")
    ('all', 'earliest')
    """
    lower = value.lower()
    return _EQUIVALENT_VALUES.get(lower, {}).get(setting, lower)


def canonical(
    software: tuple[str, ...], settings: Mapping[str, str], *, is_ordered: bool = False
) -> dict[str, str]:
    """Return the settings under their canonical names; `is_ordered` says that their order is the file's."""
    aliases = {alias: name for program in software for alias, name in _ALIASES.get(program, {}).items()}
    if is_ordered and software == (LAST_COUNTS,):
        renamed_settings = {aliases.get(name, name): value for name, value in settings.items()}
    else:
        renamed = {aliases[name]: settings[name] for name in aliases if name in settings}
        renamed_settings = {
            **renamed,
            **{name: value for name, value in settings.items() if name not in aliases},
        }
    cases = {name.lower(): name for program in software for name in _CASE_INSENSITIVE.get(program, ())}
    renamed_settings = {cases.get(name.lower(), name): value for name, value in renamed_settings.items()}
    if software == ("kafka",):
        for name, unit in _RETENTION.items():
            if name in renamed_settings and renamed_settings[name].lstrip("-").isdigit():
                number = int(
                    renamed_settings[name]
                )  # a negative number has no unit: -1 is no limit in every unit
                renamed_settings.setdefault("retention.ms", str(number * unit if number > 0 else number))
    return renamed_settings


def set_twice(
    software: tuple[str, ...], settings: Mapping[str, str], *, is_ordered: bool = False
) -> dict[str, str]:
    """Return the settings with two values under two names, and the second name, if precedence is not known.

    >>> set_twice(("librdkafka",), {"acks": "all", "request.required.acks": "1"})
    {'acks': 'request.required.acks'}
    >>> set_twice(("librdkafka",), {"acks": "all", "request.required.acks": "1"}, is_ordered=True)
    {}
    """
    if LAST_COUNTS not in software or (is_ordered and software == (LAST_COUNTS,)):
        return {}
    return {
        name: alias
        for alias, name in _ALIASES[LAST_COUNTS].items()
        if alias in settings
        and name in settings
        and meaning(name, settings[alias]) != meaning(name, settings[name])
    }


def restyled(section: str, name: str) -> str:
    """Return the name of a setting in Kafka's style, from a client with its own style.

    >>> [restyled("consumer", name) for name in ("enable_auto_commit", "AutoOffsetReset", "x_y")]
    ['enable.auto.commit', 'auto.offset.reset', 'x.y']
    """
    return known_name(section, name) or name.replace("_", ".")
