"""The setting that caused a fault of Streams, Connect, Spark, Storm, Flink or Pulsar is a finding; a survivor has none.

Each row is a fault that `tests/integration/systems` plays on the real engine, with the files that the application was
started with, and beside them those of the configuration that survives it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.unit.linting.contracts import FILES, contract

from tieout.linting import Finding, findings

Parts = dict[str, dict[str, str]]
"""By part of the pipeline its declaration; the value of `file` is what the file holds."""


@dataclass(frozen=True)
class Fault:
    """One row: the settings of the application that failed, those of the survivor, and the rules between them."""

    failing: Parts
    surviving: Parts
    rules: frozenset[str]


def rules(*names: str) -> frozenset[str]:
    """Return the names as a set."""
    return frozenset(names)


STREAMS = "application.id=orders\nbootstrap.servers=127.0.0.1:9092\nnum.stream.threads=1\n"
EXACT = STREAMS + "processing.guarantee=exactly_once_v2\n"
READER = "group.id=reader\nenable.auto.commit=false\nauto.offset.reset=none\n"
WORKER = "bootstrap.servers=127.0.0.1:9092\noffset.flush.interval.ms=10000\n"
STANDALONE = WORKER + "offset.storage.file.filename=/var/lib/connect/offsets.dat\n"
DISTRIBUTED = (
    WORKER + "group.id=cluster\noffset.storage.topic=connect-offsets\nconfig.storage.topic=connect-configs\n"
)
EXACT_WORKER = DISTRIBUTED + "exactly.once.source.support=enabled\n"
SOURCE = "name=lines\nconnector.class=FileStreamSource\nfile=/data/in.txt\ntopic=lines\n"
EXACT_SOURCE = SOURCE + "exactly.once.support=required\ntransaction.boundary=interval\n"
SINK = "name=ranges\nconnector.class=org.example.RangeFileSink\ntopics=orders\nflush.size=4\n"
QUEUE = "errors.tolerance=all\nerrors.deadletterqueue.topic.name=orders-dlq\n"
COMMITTED = "consumer.override.isolation.level=read_committed\n"
TABLE = "name=table\nconnector.class=io.confluent.connect.jdbc.JdbcSinkConnector\ntopics=orders\n"
QUERY = {
    "subscribe": "orders",
    "startingOffsets": "earliest",
    "kafka.isolation.level": "read_committed",
    "checkpointLocation": "/data/checkpoint",
}
LEVEL = "isolation.level=read_committed\nspark.streaming.kafka.allowNonConsecutiveOffsets=true\n"
DIRECT = "enable.auto.commit=false\nauto.offset.reset=none\n" + LEVEL
RETENTION = "execution.checkpointing.externalized-checkpoint-retention="
JOB_START = "execution.checkpointing.interval=60000\nproperties.isolation.level=read_committed\n"
JOB = JOB_START + RETENTION + "RETAIN_ON_CANCELLATION\n"
EXACT_JOB = JOB + "sink.delivery-guarantee=exactly-once\nsink.transactional-id-prefix=orders\n"
PATIENT_JOB = EXACT_JOB + "properties.transaction.timeout.ms=900000\n"
WITH_OUTPUT = {"commits": "with the output"}
BROKER = "clusterName=main\nbrokerServicePort=6650\nacknowledgmentAtBatchIndexLevelEnabled=true\n"
DEDUPLICATING = BROKER + "brokerDeduplicationEnabled=true\n"


def _worker(worker: str, connector: str, **said: str) -> Parts:
    return {"connect": {"file": worker}, "connector": {"file": connector, **said}}


def _query(options: dict[str, str], **said: str) -> Parts:
    return {"spark": {"client": "spark-4.1", "file": json.dumps(options), **said}}


def _direct(parameters: str, **said: str) -> Parts:
    return {"spark": {"client": "spark-4.1", "api": "dstreams", "file": parameters, **said}}


def _job(configuration: str) -> Parts:
    return {"flink": {"client": "flink-2.2", "file": configuration}}


def _pulsar(broker: str, **said: str) -> Parts:
    known = {"client": "pulsar-3.0", "file": broker, "producerName": "web", "sendTimeoutMs": "0"}
    return {"pulsar": {**known, **said}}


def _storm(guarantee: str, **said: str) -> Parts:
    named = {name.replace("_", "."): value for name, value in said.items()}
    return {"storm": {"processing.guarantee": guarantee, **named}}


def _without(name: str) -> dict[str, str]:
    return {key: value for key, value in QUERY.items() if key != name}


FAULTS = {
    "streams: killed when output is ahead of commits": Fault(
        {"streams": {"client": "streams-4.3", "file": STREAMS}},
        {"streams": {"client": "streams-4.3", "file": EXACT}},
        rules("streams_guarantee"),
    ),
    "streams: read_uncommitted behind it": Fault(
        {
            "streams": {"file": EXACT},
            "consumer": {"client": "java-4.3", "file": READER, "commits": "with the output"},
        },
        {
            "streams": {"file": EXACT},
            "consumer": {
                "client": "java-4.3",
                "file": READER + "isolation.level=read_committed\n",
                "commits": "with the output",
            },
        },
        rules("consumer_isolation"),
    ),
    "streams: does not start": Fault(
        {"streams": {"client": "streams-4.3", "file": EXACT + "commit.interval.ms=30000\n"}},
        {
            "streams": {
                "client": "streams-4.3",
                "file": EXACT + "commit.interval.ms=30000\nproducer.transaction.timeout.ms=30000\n",
            }
        },
        rules("streams_commit_interval"),
    ),
    "connect: FileStreamSink killed before its flush": Fault(
        _worker(STANDALONE, "name=out\nconnector.class=FileStreamSink\ntopics=orders\nfile=/data/out.txt\n"),
        _worker(STANDALONE, SINK + "resume=names\n", **WITH_OUTPUT),
        rules("connect_file_sink"),
    ),
    "connect: files named after another flush size": Fault(
        _worker(STANDALONE, SINK + "resume=group\n", commits="after processing"),
        _worker(STANDALONE, SINK + "resume=names\n", **WITH_OUTPUT),
        rules("connect_sink"),
    ),
    "connect: rows inserted again": Fault(
        _worker(DISTRIBUTED, TABLE + "insert.mode=insert\n"),
        _worker(DISTRIBUTED, TABLE + "insert.mode=upsert\npk.mode=kafka\n"),
        rules("connect_jdbc_insert"),
    ),
    "connect: rows upserted without a key": Fault(
        _worker(DISTRIBUTED, TABLE + "insert.mode=upsert\n"),
        _worker(DISTRIBUTED, TABLE + "insert.mode=upsert\npk.mode=record_key\n"),
        rules("connect_jdbc_insert"),
    ),
    "connect: records that cannot be converted are dropped": Fault(
        _worker(DISTRIBUTED, SINK + "errors.tolerance=all\n", **WITH_OUTPUT),
        _worker(DISTRIBUTED, SINK + QUEUE, **WITH_OUTPUT),
        rules("connect_tolerance"),
    ),
    "connect: a sink of aborted records": Fault(
        {"producer": {"transactional.id": "a", "client": "java-4.3"}, **_worker(DISTRIBUTED, SINK, **WITH_OUTPUT)},
        {
            "producer": {"transactional.id": "a", "client": "java-4.3"},
            **_worker(DISTRIBUTED, SINK + COMMITTED, **WITH_OUTPUT),
        },
        rules("connect_sink_isolation"),
    ),
    "connect: standalone source killed before its flush": Fault(
        _worker(STANDALONE, SOURCE + "producer.override.enable.idempotence=true\n"),
        _worker(EXACT_WORKER, EXACT_SOURCE),
        rules("connect_source_support", "connect_standalone_offsets"),
    ),
    "connect: a standalone worker that is said to be exact": Fault(
        _worker(
            STANDALONE + "exactly.once.source.support=enabled\n",
            EXACT_SOURCE + "producer.override.enable.idempotence=true\n",
        ),
        _worker(EXACT_WORKER, EXACT_SOURCE),
        rules("connect_source_support", "connect_standalone_offsets"),
    ),
    "connect: distributed source without exactly-once support": Fault(
        _worker(DISTRIBUTED, SOURCE),
        _worker(EXACT_WORKER, EXACT_SOURCE),
        rules("connect_source_support", "connect_source_idempotence"),
    ),
    "connect: a cluster that is only preparing": Fault(
        _worker(DISTRIBUTED + "exactly.once.source.support=preparing\n", EXACT_SOURCE),
        _worker(EXACT_WORKER, EXACT_SOURCE),
        rules("connect_source_support", "connect_source_idempotence", "connect_source_refused"),
    ),
    "connect: a source that nobody asked whether it can": Fault(
        _worker(EXACT_WORKER, SOURCE),
        _worker(EXACT_WORKER, EXACT_SOURCE),
        rules("connect_source_unchecked"),
    ),
    "flink: stopped for longer than its transactions last": Fault(
        _job(EXACT_JOB + "properties.transaction.timeout.ms=5000\n"),
        _job(PATIENT_JOB),
        rules("flink_transaction_expires"),
    ),
    "flink: killed between two checkpoints": Fault(
        _job(JOB + "sink.delivery-guarantee=at-least-once\n"), _job(PATIENT_JOB), rules("flink_sink_twice")
    ),
    "flink: started again without a checkpoint": Fault(
        _job(PATIENT_JOB.replace("RETAIN_ON", "DELETE_ON")), _job(PATIENT_JOB),
        rules("flink_retention"),
    ),
    "pulsar: a producer's successor sends again": Fault(
        _pulsar(BROKER, output="keyed by position"),
        _pulsar(DEDUPLICATING, output="keyed by position"),
        rules("pulsar_deduplication"),
    ),
    "pulsar: killed between output and acknowledgement": Fault(
        _pulsar(DEDUPLICATING), _pulsar(DEDUPLICATING, output="keyed by id"), rules("pulsar_redelivery")
    ),
    "pulsar: a part of a batch acknowledged": Fault(
        _pulsar(DEDUPLICATING.replace("Enabled=true\nbroker", "Enabled=false\nbroker")),
        _pulsar(DEDUPLICATING, output="keyed by id"),
        rules("pulsar_redelivery", "pulsar_batch_acknowledgement"),
    ),
    "pulsar: expired": Fault(
        _pulsar(DEDUPLICATING + "ttlDurationDefaultInSeconds=60\n", output="keyed by id"),
        _pulsar(DEDUPLICATING, output="keyed by id"),
        rules("pulsar_ttl"),
    ),
    "spark: halted after the write of a batch": Fault(
        _query(QUERY, sink="foreachBatch"),
        _query(QUERY, sink="foreachBatch", output="keyed by position"),
        rules("spark_sink"),
    ),
    "spark: its checkpoint deleted": Fault(
        _query(_without("checkpointLocation"), sink="file"),
        _query(QUERY, sink="file"),
        rules("spark_checkpoint"),
    ),
    "spark: overrun by retention": Fault(
        _query({**QUERY, "failOnDataLoss": "false"}, sink="file"),
        _query({**QUERY, "failOnDataLoss": "true"}, sink="file"),
        rules("spark_data_loss"),
    ),
    "spark: reads aborted records": Fault(
        {"producer": {"transactional.id": "a", "client": "java-4.3"}, **_query(_without("kafka.isolation.level"))},
        {"producer": {"transactional.id": "a", "client": "java-4.3"}, **_query(QUERY)},
        rules("spark_isolation"),
    ),
    "spark: a consumer's settings in a query": Fault(
        _query({**QUERY, "kafka.enable.auto.commit": "true"}), _query(QUERY), rules("spark_refused")
    ),
    "storm: killed between a write and its commit, or slower than the timeout": Fault(
        _storm("AT_LEAST_ONCE"), _storm("AT_LEAST_ONCE", output="keyed by position"), rules("storm_replays")
    ),
    "storm: killed between a commit and a write": Fault(
        _storm("AT_MOST_ONCE"), _storm("AT_LEAST_ONCE", output="keyed by id"), rules("storm_at_most_once")
    ),
    "storm: a bolt fails, and there is no acker": Fault(
        _storm("AT_LEAST_ONCE", topology_acker_executors="0", output="keyed by id"),
        _storm("AT_LEAST_ONCE", topology_acker_executors="1", output="keyed by id"),
        rules("storm_ackers"),
    ),
    "storm: Trident killed between a state's update and the end of its batch": Fault(
        {"storm": {"trident.state": "non-transactional"}},
        {"storm": {"trident.state": "opaque"}},
        rules("storm_trident_state"),
    ),
    "storm: a batch that comes again with more messages": Fault(
        {"storm": {"trident.state": "transactional", "trident.spout": "opaque"}},
        {"storm": {"trident.state": "opaque", "trident.spout": "opaque"}},
        rules("storm_trident_spout"),
    ),
    "dstreams: results before offsets": Fault(
        _direct(DIRECT, commits="after processing"), _direct(DIRECT, **WITH_OUTPUT), rules("spark_direct_output")
    ),
    "dstreams: offsets before results": Fault(
        _direct(DIRECT, commits="before processing"), _direct(DIRECT, **WITH_OUTPUT), rules("spark_commits_before")
    ),
    "dstreams: the consumer commits by itself": Fault(
        _direct("auto.offset.reset=none\n" + LEVEL, output="keyed by id"),
        _direct(DIRECT, output="keyed by id"),
        rules("spark_direct_auto_commit"),
    ),
    "dstreams: begins at the end": Fault(
        _direct("enable.auto.commit=false\n" + LEVEL, **WITH_OUTPUT),
        _direct(DIRECT, **WITH_OUTPUT),
        rules("spark_direct_reset"),
    ),
}  # fmt: skip


def lint(parts: Parts, folder: Path) -> dict[str, Finding]:
    """Return the findings about an exactly-once pipeline with these parts, by rule; their files are written."""
    settings: dict[str, Any] = {}
    for section, said in parts.items():
        settings[section] = dict(said)
        if "file" in said:
            name = f"{section}.json" if said["file"].startswith("{") else f"{section}.properties"
            (folder / name).write_text(said["file"])
            settings[section]["file"] = name
    ledgers = {
        name: {"source": {**FILES, "path": name}} for name in ("produced", "delivered", "dead_letters")
    }
    found = findings(contract(settings, base=folder, ledgers=ledgers))
    return {finding.rule: finding for finding in found if finding.rule != "broker_unsaid"}


@pytest.mark.parametrize("name", FAULTS)
def test_the_setting_that_caused_a_fault_is_a_finding(name: str, tmp_path: Path) -> None:
    """Nothing else is: each finding is certain, and names the file or what the contract says."""
    fault = FAULTS[name]

    found = lint(fault.failing, tmp_path)

    assert set(found) == fault.rules
    assert all(found[rule].is_certain for rule in fault.rules)


@pytest.mark.parametrize("name", FAULTS)
def test_the_configuration_that_survives_has_none(name: str, tmp_path: Path) -> None:
    """The same application, set so that the same fault leaves its output whole."""
    assert not set(lint(FAULTS[name].surviving, tmp_path))
