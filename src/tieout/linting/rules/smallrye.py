"""SmallRye Reactive Messaging's Kafka connector, as in Quarkus: failure handling and commits."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, both, either, negated
from tieout.linting.rule import Rule
from tieout.linting.rules.consumer import begins_at_the_end
from tieout.linting.rules.output import survives_rereading
from tieout.model import BreakClass, Cause, Ledger, Severity

FAILURES: Final = "failure-strategy"
COMMITS: Final = "commit-strategy"
QUEUE: Final = "dead-letter-queue.topic"

_DOCS: Final = "SmallRye Reactive Messaging documentation, Kafka Connector, Receiving Kafka Records"


def _is(pipeline: Pipeline, setting: str, *words: str) -> Truth:
    """Return whether a strategy is one of the values; if none is set, it is not, as the defaults differ."""
    part = pipeline["consumer"]
    return part.has(setting) and part.is_any(setting, *words)


def _skips_failures(pipeline: Pipeline) -> Truth:
    """Return whether a failed record's offset is committed; in a transaction the record is read again."""
    retries = both(_is(pipeline, FAILURES, "delayed-retry-topic"), not pipeline["consumer"].has(QUEUE))
    leaves_out = either(_is(pipeline, FAILURES, "ignore"), retries)
    if pipeline["consumer"].is_any("commits", "with the output") is True:
        return False
    return both(leaves_out, None if _is(pipeline, COMMITS, "ignore") is not False else True)


def _parks_failures_unseen(pipeline: Pipeline) -> Truth:
    retries = both(_is(pipeline, FAILURES, "delayed-retry-topic"), pipeline["consumer"].has(QUEUE))
    is_ledger = Ledger.DEAD_LETTERS in pipeline.contract.ledgers
    return both(either(_is(pipeline, FAILURES, "dead-letter-queue"), retries), not is_ledger)


def _retries_later(pipeline: Pipeline) -> Truth:
    return _is(pipeline, FAILURES, "delayed-retry-topic")


def _commits_the_latest(pipeline: Pipeline) -> Truth:
    return _is(pipeline, COMMITS, "latest")


def _commits_nothing(pipeline: Pipeline) -> Truth:
    """Return whether nothing commits, as declared; the application may, if `commits` says so."""
    part = pipeline["consumer"]
    is_by_client = part.is_any("enable.auto.commit", "true")
    return both(_is(pipeline, COMMITS, "ignore"), negated(is_by_client), not part.has("commits"))


def _skips_after_restart(pipeline: Pipeline) -> Truth:
    return both(_commits_nothing(pipeline), begins_at_the_end(pipeline["consumer"], "auto.offset.reset"))


def _repeats_after_restart(pipeline: Pipeline) -> Truth:
    if survives_rereading(pipeline, "consumer"):
        return False
    return both(_commits_nothing(pipeline), pipeline["consumer"].is_any("auto.offset.reset", "earliest"))


RULES: Final = (
    Rule(
        name="smallrye_failures",
        section="consumer",
        setting=FAILURES,
        fires=f"`ignore`, or `delayed-retry-topic` without `{QUEUE}`; `commits` is not `with the output`",
        holds=_skips_failures,
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.POISON,
        failure=(
            "a record whose processing fails, the last retry too, is logged and left out, and its offset committed"
        ),
        advice=f"{FAILURES}: fail, or dead-letter-queue with a queue that the ledger dead_letters shows",
        severity=Severity.CRITICAL,
        source=f"{_DOCS}: Failure Management, Delayed Retry Topic",
    ),
    Rule(
        name="smallrye_dead_letters",
        section="consumer",
        setting=FAILURES,
        fires=(
            f"`dead-letter-queue`, or `delayed-retry-topic` with `{QUEUE}`, and the contract has no ledger "
            "`dead_letters`"
        ),
        holds=_parks_failures_unseen,
        classes=(BreakClass.LOST,),
        cause=Cause.POISON,
        failure="what the connector parks is judged to be lost, because the evidence does not show the queue",
        advice="declare the queue as the ledger dead_letters",
        severity=Severity.WARNING,
        source=f"{_DOCS}: Failure Management, Dead Letter Queue",
    ),
    Rule(
        name="smallrye_retries",
        section="consumer",
        setting=FAILURES,
        fires="`delayed-retry-topic`",
        holds=_retries_later,
        classes=(BreakClass.REORDER_CONSUMER, BreakClass.REORDER_OUTPUT),
        cause=None,
        failure="a record whose processing fails is processed again from another topic, behind later ones",
        advice=f"{FAILURES}: fail or dead-letter-queue, and retry within the processing",
        severity=Severity.CRITICAL,
        source=f"{_DOCS}: Delayed Retry Topic",
    ),
    Rule(
        name="smallrye_commits_latest",
        section="consumer",
        setting=COMMITS,
        fires="`latest`",
        holds=_commits_the_latest,
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure=(
            "where records are processed asynchronously, one that is done is committed before those ahead of it "
            "are; the process dies, and nobody reads these again"
        ),
        advice=f"{COMMITS}: throttled, which is the default and commits no further than all records are done",
        severity=Severity.WARNING,
        source=f"{_DOCS}: Acknowledgement",
    ),
    Rule(
        name="smallrye_commits_nothing_end",
        section="consumer",
        setting=COMMITS,
        fires=(
            "`ignore` without `enable.auto.commit: true`, where reading begins at the end, and `commits` is not said"
        ),
        holds=_skips_after_restart,
        classes=(BreakClass.LOST,),
        cause=Cause.OFFSET_RESET,
        failure=(
            "the connector commits nothing: unless the application does, it begins at the end after each restart, "
            "and what came meanwhile is read by nobody"
        ),
        advice=f"{COMMITS}: throttled; where the application commits, say so: consumer: {{commits: with the output}}",
        severity=Severity.WARNING,
        source=f"{_DOCS}: Acknowledgement",
    ),
    Rule(
        name="smallrye_commits_nothing_start",
        section="consumer",
        setting=COMMITS,
        fires=(
            "`ignore` without `enable.auto.commit: true`, where reading begins at the start, `commits` is not said, "
            "and a second writing changes the output"
        ),
        holds=_repeats_after_restart,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.OFFSET_RESET,
        failure=(
            "the connector commits nothing: unless the application does, it reads the whole topic again after each "
            "restart"
        ),
        advice=f"{COMMITS}: throttled; where the application commits, say so: consumer: {{commits: with the output}}",
        severity=Severity.WARNING,
        source=f"{_DOCS}: Acknowledgement",
    ),
)
