"""Kafka's consumers: isolation, commits, and where reading begins without a position."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Part, Pipeline, Truth, both, negated
from tieout.linting.rule import Rule, is_any
from tieout.linting.rules.output import survives_rereading
from tieout.model import BreakClass, Cause, Guarantee, Severity

_CONSUMER: Final = "Apache Kafka documentation, Consumer Configs"
_SEMANTICS: Final = "Apache Kafka documentation, Design, Message Delivery Semantics"


def _reads_aborted(pipeline: Pipeline) -> Truth:
    part = pipeline["consumer"]
    return part.is_declared and both(
        pipeline.has_transactions, part.is_any("isolation.level", "read_uncommitted")
    )


def _commits_by_itself(pipeline: Pipeline) -> Truth:
    part = pipeline["consumer"]
    return part.is_declared and part.is_any("enable.auto.commit", "true")


def _stores_before_processing(pipeline: Pipeline) -> Truth:
    part = pipeline["consumer"]
    stores = part.is_any("enable.auto.offset.store", "true")
    return both(_commits_by_itself(pipeline), stores)


def _commits_behind_threads(pipeline: Pipeline) -> Truth:
    """Return whether a client auto-commits the offsets of earlier polls, as clients without an offset store do."""
    part = pipeline["consumer"]
    if part.software == ("librdkafka",) or part.has("enable.auto.offset.store"):
        return False
    return both(_commits_by_itself(pipeline), None if "librdkafka" in part.software else True)


def _commits_late(pipeline: Pipeline) -> Truth:
    if survives_rereading(pipeline, "consumer"):
        return False
    return _commits_by_itself(pipeline)


def _commits_after(pipeline: Pipeline) -> Truth:
    if survives_rereading(pipeline, "consumer"):
        return False
    part = pipeline["consumer"]
    return both(part.is_any("commits", "after processing"), negated(_commits_by_itself(pipeline)))


def _declares_no_commits(pipeline: Pipeline) -> Truth:
    part = pipeline["consumer"]
    by_hand = part.is_any("enable.auto.commit", "false")
    return part.is_declared and both(by_hand, not part.has("commits"))


def begins_at_the_end(part: Part, setting: str) -> Truth:
    """Return whether a reader without a position starts at or near the topic's end, by this setting."""
    return (part.text(setting) or "").startswith("by_duration") or part.is_any(setting, "latest")


def _begins_at_the_end(pipeline: Pipeline) -> Truth:
    part = pipeline["consumer"]
    return part.is_declared and begins_at_the_end(part, "auto.offset.reset")


def _begins_anew(pipeline: Pipeline) -> Truth:
    part = pipeline["consumer"]
    if survives_rereading(pipeline, "consumer"):
        return False
    return part.is_declared and part.is_any("auto.offset.reset", "earliest")


def _claims_unsupported_commits(pipeline: Pipeline) -> Truth:
    part = pipeline["consumer"]
    is_promised = pipeline.contract.guarantee is Guarantee.EXACTLY_ONCE
    return part.is_declared and is_promised and not (part.has("output") or part.has("commits"))


RULES: Final = (
    Rule(
        name="consumer_isolation",
        section="consumer",
        setting="isolation.level",
        fires=(
            "`read_uncommitted`, and the topic is written in transactions (a `transactional.id`, "
            "Connect's exactly-once sources, Streams' exactly-once)"
        ),
        holds=_reads_aborted,
        classes=(BreakClass.PHANTOM_ABORTED, BreakClass.PHANTOM_UNCOMMITTED, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.ABORTED_READ,
        failure=(
            "a transaction is aborted, by its producer or because that died: its records are in the "
            "log, and the consumer processes them"
        ),
        advice="isolation.level: read_committed. It is the default of librdkafka, and of no other client",
        severity=Severity.CRITICAL,
        source=f"{_CONSUMER}: isolation.level; librdkafka, CONFIGURATION.md",
    ),
    Rule(
        name="consumer_auto_commit_store",
        section="consumer",
        setting="enable.auto.offset.store",
        fires="`true` beside `enable.auto.commit: true`",
        holds=_stores_before_processing,
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure=(
            "the position is stored when a record is handed out; the timer commits it, the process "
            "dies, and nobody reads that record again"
        ),
        advice=(
            "enable.auto.offset.store: false, and store each offset after its output; or "
            "enable.auto.commit: false"
        ),
        severity=Severity.CRITICAL,
        source="librdkafka, CONFIGURATION.md: enable.auto.offset.store",
    ),
    Rule(
        name="consumer_auto_commit_threads",
        section="consumer",
        setting="enable.auto.commit",
        fires="`true`, with a client that commits at a poll what earlier polls returned",
        holds=_commits_behind_threads,
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure=(
            "records handed to other threads are committed at the next poll, whether they were "
            "processed or not; the process dies, and nobody reads them again"
        ),
        advice="enable.auto.commit: false, and commit after the output",
        severity=Severity.WARNING,
        source=f"{_CONSUMER}: enable.auto.commit",
    ),
    Rule(
        name="consumer_auto_commit_twice",
        section="consumer",
        setting="enable.auto.commit",
        fires="`true`, with an output that a second writing changes",
        holds=_commits_late,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure="the process dies after an output and before the timer's next commit: its successor does it again",
        advice="keep the position with the output, or key the output (consumer: {output: keyed by position})",
        severity=Severity.CRITICAL,
        source=f"{_CONSUMER}: enable.auto.commit, auto.commit.interval.ms",
    ),
    Rule(
        name="consumer_commits_before",
        section="consumer",
        setting="commits",
        fires="`before processing`",
        holds=is_any("consumer", "commits", "before processing"),
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure=(
            "the process dies after the commit and before the output: its successor begins behind what "
            "nobody wrote"
        ),
        advice=(
            "commit after the output (commits: after processing), or in one transaction with it "
            "(commits: with the output)"
        ),
        severity=Severity.CRITICAL,
        source=_SEMANTICS,
    ),
    Rule(
        name="consumer_commits_after",
        section="consumer",
        setting="commits",
        fires="`after processing`, with an output that a second writing changes",
        holds=_commits_after,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure="the process dies after the output and before the commit: its successor writes it again",
        advice="keep the position with the output (commits: with the output), or key it (output: keyed by position)",
        severity=Severity.CRITICAL,
        source=_SEMANTICS,
    ),
    Rule(
        name="consumer_commits_unsaid",
        section="consumer",
        setting="commits",
        fires="not said, while the application commits by itself (`enable.auto.commit: false`)",
        holds=_declares_no_commits,
        classes=(BreakClass.LOST, BreakClass.OUTPUT_DUPLICATE),
        cause=None,
        failure=(
            "whether output or commit comes first decides between loss and repetition when the process "
            "dies; the settings do not tell"
        ),
        advice="consumer: {commits: after processing}, before processing or with the output",
        severity=Severity.INFO,
        source=_SEMANTICS,
    ),
    Rule(
        name="consumer_output_unsaid",
        section="consumer",
        setting="output",
        fires="not said, nor `commits`, while the guarantee is `exactly_once`",
        holds=_claims_unsupported_commits,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure=(
            "Kafka's transactions end at Kafka: an output elsewhere is written again when its writer "
            "dies, unless it keeps the position with the rows or is keyed"
        ),
        advice=(
            "say what the output does with a record that comes twice: consumer: {output: keyed by id}, "
            "keyed by position or appended"
        ),
        severity=Severity.WARNING,
        source=_SEMANTICS,
    ),
    Rule(
        name="consumer_reset_latest",
        section="consumer",
        setting="auto.offset.reset",
        fires="`latest`, or `by_duration`",
        holds=_begins_at_the_end,
        classes=(BreakClass.LOST,),
        cause=Cause.OFFSET_RESET,
        failure=(
            "without a position (a new group, an expired one, one beyond a truncated log) the group "
            "begins at the end, and what lies before was read by nobody"
        ),
        advice="auto.offset.reset: none, and decide by hand; or earliest, where the output stands a second reading",
        severity=Severity.WARNING,
        source=f"{_CONSUMER}: auto.offset.reset",
    ),
    Rule(
        name="consumer_reset_earliest",
        section="consumer",
        setting="auto.offset.reset",
        fires="`earliest`, with an output that a second writing changes",
        holds=_begins_anew,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.OFFSETS_EXPIRED,
        failure="without a position (an expired group, one beyond a truncated log) the whole topic is read again",
        advice="auto.offset.reset: none, or an output that is keyed",
        severity=Severity.WARNING,
        source=f"{_CONSUMER}: auto.offset.reset",
    ),
)
