"""Kafka's share groups: acknowledgement, redelivery, and where a group starts."""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, both
from tieout.linting.rule import Rule, is_any
from tieout.linting.rules.output import redelivers
from tieout.model import BreakClass, Cause, Severity

_GROUP: Final = "Apache Kafka documentation, Group Configs"
_SHARE: Final = "Apache Kafka documentation, Share Consumer Configs"


def _reads_aborted(pipeline: Pipeline) -> Truth:
    part = pipeline["share_group"]
    return part.is_declared and both(
        pipeline.has_transactions, part.is_any("share.isolation.level", "read_uncommitted")
    )


RULES: Final = (
    Rule(
        name="share_group_commits",
        section="share_group",
        setting="commits",
        fires="`before processing`",
        holds=is_any("share_group", "commits", "before processing"),
        classes=(BreakClass.LOST, BreakClass.COMMIT_AHEAD),
        cause=Cause.COMMIT_BEFORE_PROCESS,
        failure="a member dies with records that it has acknowledged: nobody is given them again",
        advice="share.acknowledgement.mode: explicit, and acknowledge each record after its output",
        severity=Severity.CRITICAL,
        source=f"{_SHARE}: share.acknowledgement.mode",
    ),
    Rule(
        name="share_group_redelivery",
        section="share_group",
        setting="output",
        fires="not said to be keyed, nor `commits` to be `with the output`",
        holds=redelivers("share_group"),
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure="a member dies after its output and before its acknowledgement, or is slower than its lock",
        advice="a keyed output, and say so: share_group: {output: keyed by position}",
        severity=Severity.CRITICAL,
        source=f"{_GROUP}: share.record.lock.duration.ms",
    ),
    Rule(
        name="share_group_reset",
        section="share_group",
        setting="share.auto.offset.reset",
        fires="`latest`",
        holds=is_any("share_group", "share.auto.offset.reset", "latest"),
        classes=(BreakClass.LOST,),
        cause=Cause.OFFSET_RESET,
        failure="a new group begins at the end, and what lies before is given to nobody",
        advice="share.auto.offset.reset: earliest, set for the group before its first member joins",
        severity=Severity.WARNING,
        source=f"{_GROUP}: share.auto.offset.reset",
    ),
    Rule(
        name="share_group_isolation",
        section="share_group",
        setting="share.isolation.level",
        fires="`read_uncommitted`, and the topic is written in transactions",
        holds=_reads_aborted,
        classes=(BreakClass.PHANTOM_ABORTED, BreakClass.PHANTOM_UNCOMMITTED, BreakClass.OUTPUT_DUPLICATE),
        cause=Cause.ABORTED_READ,
        failure="a transaction is aborted: its records are in the log, and members are given them",
        advice="share.isolation.level: read_committed, set for the group",
        severity=Severity.CRITICAL,
        source=f"{_GROUP}: share.isolation.level",
    ),
)
