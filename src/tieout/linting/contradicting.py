"""Settings that a statement contradicts: its incidents cannot happen if the pipeline ran as declared.

A pure function of a contract and a statement as docs/reference/contract.md describes it. Only proven facts count: a
class that no setting excludes, or the cause `unknown`, contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tieout.contracts import Contract
from tieout.linting.declaring import declared
from tieout.linting.finding import Finding
from tieout.linting.pipeline import Pipeline
from tieout.linting.rule import Condition
from tieout.linting.rules.output import survives_rereading
from tieout.linting.rules.producer import is_idempotent
from tieout.model import BreakClass, Cause, Locus, Severity


@dataclass(frozen=True)
class Contradiction:
    """A setting and the incidents that it excludes, by classes, causes and loci; an empty tuple matches any."""

    name: str
    section: str
    setting: str
    claims: str
    is_claimed: Condition
    classes: tuple[BreakClass, ...]
    causes: tuple[Cause, ...] = ()
    loci: tuple[Locus, ...] = ()
    why: str = ""
    source: str = ""

    def excludes(self, incident: Mapping[str, Any]) -> bool:
        """Return whether the setting excludes the incident."""
        return (
            incident["class"] in self.classes
            and (not self.causes or incident["cause"] in self.causes)
            and (not self.loci or incident["locus"] in self.loci)
        )


def _is_safe_from_elections(pipeline: Pipeline) -> bool | None:
    producer, broker = pipeline["producer"], pipeline["broker"]
    return (
        producer.is_any("acks", "all") is True
        and broker.is_below("min.insync.replicas", 2) is False
        and broker.text("unclean.leader.election.enable") == "false"
    )


CONTRADICTIONS: Final = (
    Contradiction(
        name="found_plain_producer",
        section="producer",
        setting="enable.idempotence",
        claims="the producer is idempotent",
        is_claimed=lambda pipeline: pipeline["producer"].is_declared and is_idempotent(pipeline["producer"]),
        classes=(BreakClass.LOG_DUPLICATE, BreakClass.OUTPUT_DUPLICATE, BreakClass.REORDER_PRODUCER),
        causes=(Cause.RETRY_WITHOUT_IDEMPOTENCE, Cause.SEVERAL_IN_FLIGHT),
        why="the log has records of these messages without a producer id, which an idempotent producer always has",
        source="Apache Kafka documentation, Producer Configs: enable.idempotence",
    ),
    Contradiction(
        name="found_aborted_read",
        section="consumer",
        setting="isolation.level",
        claims="the consumer reads committed records only",
        is_claimed=lambda pipeline: (
            pipeline["consumer"].is_declared
            and pipeline["consumer"].is_any("isolation.level", "read_committed")
        ),
        classes=(BreakClass.PHANTOM_ABORTED, BreakClass.PHANTOM_UNCOMMITTED, BreakClass.OUTPUT_DUPLICATE),
        causes=(Cause.ABORTED_READ,),
        why="effects came from records whose transaction was aborted",
        source="Apache Kafka documentation, Consumer Configs: isolation.level",
    ),
    Contradiction(
        name="found_uncommitted_read",
        section="consumer",
        setting="isolation.level",
        claims="the consumer reads committed records only",
        is_claimed=lambda pipeline: (
            pipeline["consumer"].is_declared
            and pipeline["consumer"].is_any("isolation.level", "read_committed")
        ),
        classes=(BreakClass.PHANTOM_UNCOMMITTED,),
        why="effects came from records whose transaction was still open",
        source="Apache Kafka documentation, Consumer Configs: isolation.level",
    ),
    Contradiction(
        name="found_commit_first",
        section="consumer",
        setting="commits",
        claims="positions are committed after the output, or with it",
        is_claimed=lambda pipeline: pipeline["consumer"].is_any(
            "commits", "after processing", "with the output"
        ),
        classes=(BreakClass.LOST,),
        causes=(Cause.COMMIT_BEFORE_PROCESS,),
        why="a run of losses ends where a commit stood that was made before its messages were processed",
        source="docs/reference/taxonomy.md, section 4",
    ),
    Contradiction(
        name="found_process_first",
        section="consumer",
        setting="commits",
        claims="positions are committed before the output, or with it",
        is_claimed=lambda pipeline: pipeline["consumer"].is_any(
            "commits", "before processing", "with the output"
        ),
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        causes=(Cause.PROCESS_BEFORE_COMMIT,),
        why="a run of messages was put out again from where the commits stood",
        source="docs/reference/taxonomy.md, section 4",
    ),
    Contradiction(
        name="found_second_output",
        section="consumer",
        setting="output",
        claims="a record that is read again leaves the output as it was",
        is_claimed=lambda pipeline: survives_rereading(pipeline, "consumer"),
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        loci=(Locus.CONSUMER_OR_SINK,),
        why="one position has two effects",
        source="docs/reference/taxonomy.md, section 4",
    ),
    Contradiction(
        name="found_lost_leader",
        section="broker",
        setting="unclean.leader.election.enable",
        claims="acks=all, two replicas in sync and clean elections keep what was acknowledged",
        is_claimed=_is_safe_from_elections,
        classes=(BreakClass.LOST, BreakClass.LOG_TRUNCATION, BreakClass.LOG_IDENTITY_CONFLICT),
        causes=(Cause.UNCLEAN_ELECTION,),
        loci=(Locus.BROKER,),
        why="a newer leader's records hold positions that were acknowledged to others",
        source="Apache Kafka documentation, Design, Replication; Broker Configs: unclean.leader.election.enable",
    ),
)


def contradictions(contract: Contract, statement: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return one CRITICAL finding for each declared setting that the statement's incidents contradict.

    `value` is the declared value, None for a default. Raises nothing. A statement without incidents, or a contract
    without settings, has no contradictions.
    """
    pipelines = tuple(declared(contract, query_clusters=False).pipelines())
    return tuple(
        finding
        for contradiction in CONTRADICTIONS
        if all(contradiction.is_claimed(pipeline) is True for pipeline in pipelines)
        for finding in _contradicted(contradiction, pipelines[0], statement)
    )


def _contradicted(
    contradiction: Contradiction, pipeline: Pipeline, statement: Mapping[str, Any]
) -> Iterator[Finding]:
    incidents = [incident for incident in statement["incidents"] if contradiction.excludes(incident)]
    if not incidents:
        return
    part, first = pipeline[contradiction.section], incidents[0]
    breaks = sum(incident["breaks"] for incident in incidents)
    place = f"{first['topic']}-{first['partition']}"
    observed = f"{breaks} {first['class']} in {len(incidents)} incidents, the first in {place}"
    yield Finding(
        rule=contradiction.name,
        severity=Severity.CRITICAL,
        section=contradiction.section,
        setting=contradiction.setting,
        value=part.text(contradiction.setting),
        default="; ".join(default.words for default in part.defaults(contradiction.setting)),
        classes=tuple(name for name in contradiction.classes if any(i["class"] == name for i in incidents)),
        cause=next((cause for cause in contradiction.causes if cause == first["cause"]), None),
        failure=f"declared: {contradiction.claims}. Found: {observed}; {contradiction.why}",
        advice="correct the declaration, or find what runs with other settings than these",
        source=contradiction.source,
        file=part.files.get(contradiction.setting),
    )
