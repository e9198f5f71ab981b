"""Kafka's producers: acknowledgement, idempotence, order, transactions."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Part, Pipeline, Truth, both, either, negated
from tieout.linting.rule import Rule
from tieout.linting.rules.broker import longest_transaction
from tieout.linting.rules.output import survives_resending
from tieout.model import BreakClass, Cause, Severity

IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
_MOST_IN_FLIGHT: Final = 5


def is_set_idempotent(part: Part) -> bool:
    """Return whether idempotence, or transactions, which imply it, are set explicitly."""
    return part.has("transactional.id") or _is_set_to(part, "true")


def _is_set_to(part: Part, value: str) -> bool:
    """Return whether idempotence is set to the value; Java accepts `TRUE` too."""
    return part.has("enable.idempotence") and part.is_any("enable.idempotence", value) is True


def _waits_for_all(part: Part) -> Truth:
    if not part.has("acks") and is_set_idempotent(part):
        return True
    return part.is_any("acks", "all")


def _conflicts(part: Part) -> Truth:
    """Return whether acks, retries or requests in flight, as set, are incompatible with idempotence."""
    return either(
        part.has("acks") and negated(part.is_any("acks", "all")),
        part.has("retries") and part.is_any("retries", "0"),
        part.has(IN_FLIGHT) and negated(part.is_below(IN_FLIGHT, _MOST_IN_FLIGHT + 1)),
    )


def is_idempotent(part: Part) -> Truth:
    """Return whether the producer is idempotent: conflicting settings silently disable the default."""
    if part.has("transactional.id"):
        return True
    if part.has("enable.idempotence"):
        return part.is_any("enable.idempotence", "true")
    return both(part.is_any("enable.idempotence", "true"), negated(_conflicts(part)))


def _may_lose_acked(pipeline: Pipeline) -> Truth:
    part = pipeline["producer"]
    return part.is_declared and negated(_waits_for_all(part))


def _may_double(pipeline: Pipeline) -> Truth:
    part = pipeline["producer"]
    if survives_resending(pipeline):
        return False
    return part.is_declared and both(negated(is_idempotent(part)), negated(part.is_any("retries", "0")))


def _may_reorder(pipeline: Pipeline) -> Truth:
    part = pipeline["producer"]
    several = negated(part.is_any(IN_FLIGHT, "1"))
    retries = negated(part.is_any("retries", "0"))
    return part.is_declared and both(negated(is_idempotent(part)), several, retries)


def _refuses(pipeline: Pipeline) -> Truth:
    part = pipeline["producer"]
    if part.has("transactional.id") and _is_set_to(part, "false"):
        return True
    if is_set_idempotent(part):
        return _conflicts(part)
    too_many = part.has(IN_FLIGHT) and negated(part.is_below(IN_FLIGHT, _MOST_IN_FLIGHT + 1))
    is_strict = part.software == ("java",) and part.runs_since("4.0")
    return both(too_many, is_strict, not part.has("enable.idempotence"))


def _restarts_anew(pipeline: Pipeline) -> Truth:
    part = pipeline["producer"]
    if not part.is_declared or part.has("transactional.id") or survives_resending(pipeline):
        return False
    return is_idempotent(part)


def _outlasts_broker(pipeline: Pipeline) -> Truth:
    part, longest = pipeline["producer"], longest_transaction(pipeline)
    if not part.has("transactional.id"):
        return False
    return None if longest is None else negated(part.is_below("transaction.timeout.ms", longest + 1))


RULES: Final = (
    Rule(
        name="producer_acks",
        section="producer",
        setting="acks",
        fires="`0`, `1`, or anything but `all` and `-1`",
        holds=_may_lose_acked,
        classes=(BreakClass.LOST, BreakClass.LOG_TRUNCATION),
        cause=Cause.UNCLEAN_ELECTION,
        failure=(
            "the leader acknowledges what no follower has yet; if it fails then, the next leader does "
            "not have the record. With 0 nothing is acknowledged at all, and a record that never "
            "arrived counts as sent"
        ),
        advice="acks: all, with min.insync.replicas: 2 or more",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Producer Configs: acks",
    ),
    Rule(
        name="producer_idempotence",
        section="producer",
        setting="enable.idempotence",
        fires=(
            "off: set so, by the client's default, or switched off without an error because `acks`, "
            f"`retries` or `{IN_FLIGHT}` are set to what does not go with it"
        ),
        holds=_may_double,
        classes=(BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE),
        cause=Cause.RETRY_WITHOUT_IDEMPOTENCE,
        failure="an acknowledgement is lost or late, the client sends the batch again, and the log has both",
        advice="enable.idempotence: true, said explicitly: then the client refuses what does not go with it",
        severity=Severity.CRITICAL,
        source=(
            "Apache Kafka documentation, Producer Configs: enable.idempotence; Upgrading, notable "
            "changes in 3.0.0"
        ),
    ),
    Rule(
        name="producer_order",
        section="producer",
        setting=IN_FLIGHT,
        fires="more than `1` without idempotence",
        holds=_may_reorder,
        classes=(BreakClass.REORDER_PRODUCER,),
        cause=Cause.SEVERAL_IN_FLIGHT,
        failure=(
            "a batch fails and is sent again while the one after it has arrived: the log has them the "
            "other way round"
        ),
        advice=f"enable.idempotence: true, which keeps the order of up to five, or {IN_FLIGHT}: 1",
        severity=Severity.CRITICAL,
        source=f"Apache Kafka documentation, Producer Configs: {IN_FLIGHT}",
    ),
    Rule(
        name="producer_refuses",
        section="producer",
        setting="enable.idempotence",
        fires=(
            "asked for, by itself or by a `transactional.id`, beside `acks` other than `all`, `retries: "
            f"0` or `{IN_FLIGHT}` above 5; a `transactional.id` without it; from Java's 4.0 on also more "
            "than 5 in flight beside the default"
        ),
        holds=_refuses,
        classes=(),
        cause=None,
        failure="the client does not start: so these are not the settings it runs with",
        advice=f"acks: all, retries above 0, {IN_FLIGHT} of at most 5",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Producer Configs: enable.idempotence; librdkafka, CONFIGURATION.md",
    ),
    Rule(
        name="producer_restart",
        section="producer",
        setting="transactional.id",
        fires="not set, while the producer is idempotent and the output not `keyed by id`",
        holds=_restarts_anew,
        classes=(BreakClass.OUTPUT_DUPLICATE, BreakClass.LOG_DUPLICATE),
        cause=Cause.RESEND,
        failure=(
            "idempotence ends with the producer: one that is started again, or an application that "
            "sends again what timed out, writes the message a second time under another producer id"
        ),
        advice=(
            "a transactional.id that is the same after a restart and no other producer's, or an output "
            "keyed by the message's id (consumer: {output: keyed by id})"
        ),
        severity=Severity.WARNING,
        source="Apache Kafka documentation, Producer Configs: transactional.id; Design, Message Delivery Semantics",
    ),
    Rule(
        name="producer_transaction_timeout",
        section="producer",
        setting="transaction.timeout.ms",
        fires="above the broker's `transaction.max.timeout.ms`",
        holds=_outlasts_broker,
        classes=(),
        cause=None,
        failure="the broker refuses the producer's first transaction (InvalidTxnTimeoutException)",
        advice="transaction.timeout.ms of at most the broker's transaction.max.timeout.ms, 900000 by default",
        severity=Severity.CRITICAL,
        source="Apache Kafka documentation, Producer Configs: transaction.timeout.ms",
    ),
)
