"""Settings under one name, and values under one word, where programs know several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tieout.linting.catalogue import known_name

_SAME: Final = {
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
    },
}
"""Other names of a setting; where several are set, the more particular one counts, such as a topic's own: the name
itself, then the later one here."""

LAST_COUNTS: Final = "librdkafka"
"""The program for which none of the names is more particular: what is set last counts."""

_ANY_CASE: Final = {
    "spark": ("checkpointLocation", "failOnDataLoss", "startingOffsets", "kafka.isolation.level")
}
"""Settings that a program knows in whatever case they are written."""

_RETENTION: Final = {"log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
"""Settings that say `retention.ms` in another unit, the one that counts first."""

_TRUTHS: Final = ("enable.idempotence", "enable.auto.commit", "enable.auto.offset.store", "journalSyncData")
"""Settings that some programs take in more words than true and false."""

_WORDS: Final = {
    "-1": {"acks": "all"},
    "largest": {"auto.offset.reset": "latest"},
    "end": {"auto.offset.reset": "latest"},
    "smallest": {"auto.offset.reset": "earliest"},
    "beginning": {"auto.offset.reset": "earliest"},
    "error": {"auto.offset.reset": "none"},
    **{word: dict.fromkeys(_TRUTHS, "true") for word in ("t", "1", "yes", "on", "y")},
    **{word: dict.fromkeys(_TRUTHS, "false") for word in ("f", "0", "no", "off", "n")},
}
"""Values that mean the same as another."""

STYLED: Final = ("kafka-python", "confluent-kafka-dotnet")
"""Clients that write the names of settings in another way than the programs below them."""


def meaning(setting: str, value: str) -> str:
    """Return the value as the rules know it, in lower case.

    >>> meaning("acks", "-1"), meaning("auto.offset.reset", "Smallest")
    ('all', 'earliest')
    """
    lower = value.lower()
    return _WORDS.get(lower, {}).get(setting, lower)


def canonical(
    software: tuple[str, ...], settings: Mapping[str, str], *, is_ordered: bool = False
) -> dict[str, str]:
    """Return the settings under the names that the rules know; `is_ordered` where they are in the order of setting."""
    same = {other: name for program in software for other, name in _SAME.get(program, {}).items()}
    if is_ordered and software == (LAST_COUNTS,):
        known = {same.get(name, name): value for name, value in settings.items()}
    else:
        renamed = {same[name]: settings[name] for name in same if name in settings}
        known = {**renamed, **{name: value for name, value in settings.items() if name not in same}}
    cases = {name.lower(): name for program in software for name in _ANY_CASE.get(program, ())}
    known = {cases.get(name.lower(), name): value for name, value in known.items()}
    if software == ("kafka",):
        for name, unit in _RETENTION.items():
            if name in known and known[name].lstrip("-").isdigit():
                number = int(known[name])  # below 0 it is no number of anything: -1 is no limit in every unit
                known.setdefault("retention.ms", str(number * unit if number > 0 else number))
    return known


def given_twice(
    software: tuple[str, ...], settings: Mapping[str, str], *, is_ordered: bool = False
) -> dict[str, str]:
    """Return the settings that another name gives another value, and that name, where it is open which one counts.

    >>> given_twice(("librdkafka",), {"acks": "all", "request.required.acks": "1"})
    {'acks': 'request.required.acks'}
    >>> given_twice(("librdkafka",), {"acks": "all", "request.required.acks": "1"}, is_ordered=True)
    {}
    """
    if LAST_COUNTS not in software or (is_ordered and software == (LAST_COUNTS,)):
        return {}
    return {
        name: other
        for other, name in _SAME[LAST_COUNTS].items()
        if other in settings
        and name in settings
        and meaning(name, settings[other]) != meaning(name, settings[name])
    }


def restyled(section: str, name: str) -> str:
    """Return the name of a setting as Kafka writes it, from a client that writes names in its own way.

    >>> [restyled("consumer", name) for name in ("enable_auto_commit", "AutoOffsetReset", "x_y")]
    ['enable.auto.commit', 'auto.offset.reset', 'x.y']
    """
    return known_name(section, name) or name.replace("_", ".")
