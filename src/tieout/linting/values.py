"""The settings that rules check, and the values that each program accepts for them.

With any other value the program refuses to start, or uses another value than is written. Verified with Kafka's own
client 3.9 and librdkafka 2.16; from the documentation of the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tieout.linting.versions import Versions

_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,19}")
_LEADING_NUMBER: Final = re.compile(r"\s*[-+]?[0-9]")
_INT: Final = 2_147_483_647
_LONG: Final = 9_223_372_036_854_775_807
_DURATION: Final = re.compile(
    r"\d+\s*(ns|nano|nanos|nanosecond|nanoseconds|µs|micro|micros|microsecond|microseconds|ms|milli|millis|millisecond|"
    r"milliseconds|s|sec|secs|second|seconds|m|min|minute|minutes|h|hour|hours|d|day|days)?|P[0-9DTHMS.]+",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Kind:
    """The accepted values of a setting: a description, a test, and the first version that accepts them."""

    expected: str
    accepts: Callable[[str], bool]
    since: str = ""
    is_free: bool = False


def _one_of(*choices: str, in_any_case: bool = False) -> Kind:
    lower_case = {choice.lower() for choice in choices}

    def accepts(value: str) -> bool:
        return value.lower() in lower_case if in_any_case else value in choices

    *first, last = choices
    return Kind(f"{', '.join(first)} or {last}" if first else last, accepts)


def _whole(least: int, most: int = _LONG) -> Kind:
    def accepts(value: str) -> bool:
        return _WHOLE.fullmatch(value) is not None and least <= int(value) <= most

    return Kind(f"a whole number of at least {least}", accepts)


def _matching(expected: str, pattern: re.Pattern[str], since: str = "") -> Kind:
    return Kind(expected, lambda value: pattern.fullmatch(value) is not None, since)


_ANY_TEXT: Final = Kind("any text", lambda _: True, is_free=True)
_NAME: Final = Kind("a name", lambda _: True, is_free=True)
"""Text of which a rule checks only that it is not empty."""

_BOOLEAN: Final = _one_of("true", "false", in_any_case=True)
_LOOSE_BOOLEAN: Final = _one_of(
    "true", "false", "yes", "no", "on", "off", "t", "f", "y", "n", "1", "0", in_any_case=True
)
_LEVELS: Final = ("read_committed", "read_uncommitted")
_LEVEL: Final = _one_of(*_LEVELS)
_DURATION_KIND: Final = _matching("a duration, such as 10 s", _DURATION)

Kinds = Mapping[str, tuple[Kind, ...]]
"""The accepted kinds of values by program; the empty name stands for all other programs."""


def _all(*kinds: Kind) -> Kinds:
    return {"": kinds}


_C_BOOLEAN: Final = _one_of("true", "false", "t", "f", "1", "0", in_any_case=True)
_PYTHON_BOOLEAN: Final = _one_of("true", "false", "1", "0", in_any_case=True)
_BOOLEANS: Final[Kinds] = {
    "java": (_BOOLEAN,),
    "librdkafka": (_C_BOOLEAN,),
    "kafka-python": (_PYTHON_BOOLEAN,),
}


def _c_number(least: int) -> Kind:
    """Return the kind of numbers as C parses them: characters after the number are ignored."""
    return Kind(
        f"a whole number of at least {least}",
        lambda value: (
            _LEADING_NUMBER.match(value) is not None and not (least >= 0 and value.strip()[0] == "-")
        ),
    )


def _numbers(least: int, *python_kinds: Kind) -> Kinds:
    return {
        "java": (_whole(least, _INT),),
        "librdkafka": (_c_number(least),),
        "kafka-python": (_whole(least), *python_kinds),
    }


_ACKS: Final = _one_of("all", "-1", "0", "1")
_RESETS: Final = (
    _one_of("latest", "earliest", "none"),
    _matching("by_duration: and a duration", re.compile(r"by_duration:P[0-9DTHMS.]+"), since="4.0"),
)

CHECKED_SETTINGS: Final[Mapping[str, Mapping[str, Kinds]]] = {
    "producer": {
        "acks": {
            "java": (_ACKS,),
            "librdkafka": (_one_of("all", in_any_case=True), _whole(-1, 1000)),
            "kafka-python": (_ACKS,),
        },
        "enable.idempotence": _BOOLEANS,
        "retries": _numbers(0, _one_of("inf")),
        "max.in.flight.requests.per.connection": _numbers(1),
        "transactional.id": _all(_NAME),
        "transaction.timeout.ms": _numbers(0),
        "request.required.acks": _all(_one_of("all", in_any_case=True), _whole(-1, 1000)),
        "message.send.max.retries": _all(_c_number(0)),
        "max.in.flight": _all(_c_number(1)),
    },
    "consumer": {
        "isolation.level": {
            "java": (_LEVEL,),
            "librdkafka": (_one_of(*_LEVELS, in_any_case=True),),
            "kafka-python": (_LEVEL,),
        },
        "enable.auto.commit": _BOOLEANS,
        "enable.auto.offset.store": {"librdkafka": (_C_BOOLEAN,)},
        "auto.offset.reset": {
            "java": _RESETS,
            "librdkafka": (
                _one_of(
                    "smallest", "earliest", "beginning", "largest", "latest", "end", "error", in_any_case=True
                ),
            ),
            "kafka-python": (_one_of("latest", "earliest", "none", "smallest", "largest"),),
        },
        "listener.ack-mode": _all(_ANY_TEXT),
        # of SmallRye's connector, which takes strategies that users write as well
        "failure-strategy": _all(_ANY_TEXT),
        "commit-strategy": _all(_ANY_TEXT),
        "dead-letter-queue.topic": _all(_NAME),
        "max.in.flight": _all(_c_number(1)),
    },
    "share_group": {
        "share.acknowledgement.mode": _all(_one_of("implicit", "explicit")),
        "share.auto.offset.reset": _all(
            _one_of("latest", "earliest"),
            _matching("by_duration: and a duration", re.compile(r"by_duration:P[0-9DTHMS.]+")),
        ),
        "share.isolation.level": _all(_LEVEL),
    },
    "broker": {
        "min.insync.replicas": _all(_whole(1, _INT)),
        "unclean.leader.election.enable": _all(_BOOLEAN),
        "replication.factor": _all(_whole(1, _INT)),
        "default.replication.factor": _all(_whole(1, _INT)),
        "offsets.topic.replication.factor": _all(_whole(1, _INT)),
        "transaction.state.log.replication.factor": _all(_whole(1, _INT)),
        "offsets.retention.minutes": _all(_whole(1, _INT)),
        "transaction.max.timeout.ms": _all(_whole(1, _INT)),
        "retention.ms": _all(_whole(-1)),
        "log.retention.ms": _all(_whole(-1)),
        "log.retention.minutes": _all(_whole(-1, _INT)),
        "log.retention.hours": _all(_whole(-1, _INT)),
    },
    "connect": {
        "exactly.once.source.support": _all(_one_of("disabled", "preparing", "enabled", in_any_case=True)),
        "offset.flush.interval.ms": _all(_whole(0)),
        "offset.storage.file.filename": _all(_NAME),
        "producer.acks": _all(_ACKS),
        "producer.enable.idempotence": _all(_BOOLEAN),
        "consumer.auto.offset.reset": _all(*_RESETS),
        "consumer.isolation.level": _all(_LEVEL),
    },
    "connector": {
        "name": _all(_NAME),
        "connector.class": _all(_ANY_TEXT),
        "exactly.once.support": _all(_one_of("requested", "required", in_any_case=True)),
        # of sinks that write with JDBC; what they take differs from one to the next
        "insert.mode": _all(_ANY_TEXT),
        "pk.mode": _all(_ANY_TEXT),
        "primary.key.mode": _all(_ANY_TEXT),
        "topics": _all(_NAME),
        "topics.regex": _all(_NAME),
        "errors.tolerance": _all(_one_of("none", "all")),
        "errors.deadletterqueue.topic.name": _all(_NAME),
        "producer.override.acks": _all(_ACKS),
        "producer.override.enable.idempotence": _all(_BOOLEAN),
        "consumer.override.auto.offset.reset": _all(*_RESETS),
        "consumer.override.isolation.level": _all(_LEVEL),
    },
    "streams": {
        # two of them were removed in 4.0, which is a rule of its own
        "processing.guarantee": _all(
            _one_of("at_least_once", "exactly_once", "exactly_once_beta", "exactly_once_v2")
        ),
        "deserialization.exception.handler": _all(_ANY_TEXT),
        "default.deserialization.exception.handler": _all(_ANY_TEXT),
        "production.exception.handler": _all(_ANY_TEXT),
        "default.production.exception.handler": _all(_ANY_TEXT),
        "processing.exception.handler": _all(_ANY_TEXT),
        "replication.factor": _all(_whole(-1, _INT)),
        "commit.interval.ms": _all(_whole(0)),
        "producer.transaction.timeout.ms": _all(_whole(0, _INT)),
        "producer.acks": _all(_ACKS),
        "main.consumer.auto.offset.reset": _all(*_RESETS),
    },
    "flink": {
        "execution.checkpointing.interval": _all(_DURATION_KIND),
        "execution.checkpointing.mode": _all(_one_of("EXACTLY_ONCE", "AT_LEAST_ONCE", in_any_case=True)),
        "execution.checkpointing.externalized-checkpoint-retention": _all(
            _one_of(
                "RETAIN_ON_CANCELLATION",
                "DELETE_ON_CANCELLATION",
                "NO_EXTERNALIZED_CHECKPOINTS",
                in_any_case=True,
            )
        ),
        "sink.delivery-guarantee": _all(
            _one_of(
                "none", "at-least-once", "exactly-once", "at_least_once", "exactly_once", in_any_case=True
            )
        ),
        "sink.semantic": _all(_one_of("none", "at-least-once", "exactly-once", in_any_case=True)),
        "sink.transactional-id-prefix": _all(_NAME),
        "properties.transaction.timeout.ms": _all(_whole(0, _INT)),
        "properties.isolation.level": _all(_LEVEL),
    },
    "spark": {
        "checkpointLocation": _all(_NAME),
        "spark.sql.streaming.checkpointLocation": _all(_NAME),
        "failOnDataLoss": _all(_BOOLEAN),
        "startingOffsets": _all(
            _one_of("earliest", "latest", in_any_case=True),
            _matching("offsets as JSON", re.compile(r'\s*\{\s*(".*)?\}\s*', re.DOTALL)),
        ),
        "kafka.isolation.level": _all(_LEVEL),
        "spark.streaming.kafka.allowNonConsecutiveOffsets": _all(_BOOLEAN),
        "kafka.enable.auto.commit": _all(_BOOLEAN),
        "kafka.auto.offset.reset": _all(_one_of("latest", "earliest", "none")),
        # of DStreams, whose parameters are those of Kafka's own consumer
        "enable.auto.commit": _all(_BOOLEAN),
        "auto.offset.reset": _all(_one_of("latest", "earliest", "none")),
        "isolation.level": _all(_LEVEL),
        "sink": _all(_ANY_TEXT),
        "api": _all(_ANY_TEXT),
    },
    "storm": {
        "processing.guarantee": _all(
            _one_of("AT_LEAST_ONCE", "AT_MOST_ONCE", "NO_GUARANTEE", in_any_case=True)
        ),
        "topology.acker.executors": _all(_whole(0, _INT)),
        "topology.message.timeout.secs": _all(_whole(1, _INT)),
        "enable.auto.commit": _all(_BOOLEAN),
        "trident.state": _all(_ANY_TEXT),
        "trident.spout": _all(_ANY_TEXT),
    },
    "pulsar": {
        "brokerDeduplicationEnabled": _all(_BOOLEAN),
        "producerName": _all(_NAME),
        "sendTimeoutMs": _all(_whole(0)),
        "topic": _all(_ANY_TEXT),
        "ttlDurationDefaultInSeconds": _all(_whole(0)),
        "journalSyncData": _all(_LOOSE_BOOLEAN),
        "managedLedgerDefaultAckQuorum": _all(_whole(1, _INT)),
        "acknowledgmentAtBatchIndexLevelEnabled": _all(_BOOLEAN),
        "subscriptionType": _all(
            _one_of("Exclusive", "Failover", "Shared", "Key_Shared", "KeyShared", in_any_case=True)
        ),
    },
    "activemq": {
        "acknowledgement": _all(_ANY_TEXT),
        "persistent": _all(_BOOLEAN),
        "memoryPersistenceAdapter": _all(_NAME),
        "useAsyncSend": _all(_BOOLEAN),
        "receipt": _all(_BOOLEAN),
        "journalDiskSyncStrategy": _all(_one_of("always", "periodic", "never", in_any_case=True)),
        "enableJournalDiskSyncs": _all(_BOOLEAN),
        "timeToLive": _all(_whole(0)),
        "dropAll": _all(_BOOLEAN),
        "ignoreMissingJournalfiles": _all(_BOOLEAN),
    },
}


OWN_SETTINGS: Final = ("commits", "output")
"""Tieout's own settings, which every part may have."""


def kinds_of(section: str, setting: str, software: tuple[str, ...]) -> tuple[Kind, ...]:
    """Return the kinds of values that the programs accept for the setting; none if they are not known."""
    kinds = CHECKED_SETTINGS[section].get(setting, {})
    return tuple(kind for program in software for kind in kinds.get(program, kinds.get("", ())))


def refusal(
    section: str, setting: str, value: str, software: tuple[str, ...], versions: Versions
) -> str | None:
    """Return the values that the programs accept, if none of them accepts this one; else None."""
    kinds = [kind for kind in kinds_of(section, setting, software) if versions.overlap(kind.since, "")]
    if not kinds or any(kind.accepts(value) for kind in kinds):
        return None
    return " or ".join(dict.fromkeys(kind.expected for kind in kinds))


def is_name_only(section: str, setting: str) -> bool:
    """Return whether rules check only that the setting has a value, not which."""
    return (_NAME,) in CHECKED_SETTINGS[section].get(setting, {}).values()


def is_free(section: str, setting: str) -> bool:
    """Return whether some program accepts any text for the setting."""
    return any(
        kind.is_free for kinds in CHECKED_SETTINGS[section].get(setting, {}).values() for kind in kinds
    )
