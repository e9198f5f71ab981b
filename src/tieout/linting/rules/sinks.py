"""Kafka Connect's sinks that are known by their class: how they write a record that is delivered twice.

For every other sink the contract must declare it (`output`, `commits`).
"""

from __future__ import annotations

from typing import Final

from tieout.linting.pipeline import Pipeline, Truth, both, either, negated
from tieout.linting.rule import Rule
from tieout.model import BreakClass, Cause, Severity

FILE_SINK: Final = "filestreamsink"
JDBC_SINK: Final = "jdbcsink"
_KEY_MODES: Final = ("pk.mode", "primary.key.mode")
_KEYED: Final = ("kafka", "record_key", "record_value", "record_header")


def is_sink(pipeline: Pipeline) -> bool:
    """Return whether the connector is a sink: like Connect, by the topics that only a sink names."""
    connector = pipeline["connector"]
    return connector.has("topics") or connector.has("topics.regex")


def is_known_sink(pipeline: Pipeline) -> bool:
    """Return whether this module has a rule for the sink, so that its output need not be declared."""
    return is_sink(pipeline) and (_class(pipeline) == FILE_SINK or _inserts_by_mode(pipeline))


def _class(pipeline: Pipeline) -> str:
    """Return the connector's class without package and suffix, like Connect's plugin aliases."""
    name = (pipeline["connector"].text("connector.class") or "").rsplit(".", 1)[-1]
    return name.removesuffix("Connector").lower()


def _inserts_by_mode(pipeline: Pipeline) -> bool:
    """Return whether the sink is a known JDBC sink, or any sink that is set to insert."""
    return _class(pipeline) == JDBC_SINK or pipeline["connector"].is_any("insert.mode", "insert") is True


def _appends(pipeline: Pipeline) -> Truth:
    return is_sink(pipeline) and _class(pipeline) == FILE_SINK


def _inserts(pipeline: Pipeline) -> Truth:
    if not is_sink(pipeline) or not _inserts_by_mode(pipeline):
        return False
    connector = pipeline["connector"]
    is_keyed = either(*(connector.is_any(mode, *_KEYED) for mode in _KEY_MODES))
    return negated(both(connector.is_any("insert.mode", "upsert"), is_keyed))


RULES: Final = (
    Rule(
        name="connect_file_sink",
        section="connector",
        setting="connector.class",
        fires="`FileStreamSink`, whatever is said of its output",
        holds=_appends,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure=(
            "the sink appends to its file and keeps no position there: a worker that dies before "
            "offset.flush.interval.ms is over appends again what it appended since"
        ),
        advice="a sink that keeps positions with its output, or keys it; Kafka's file sink is an example to learn from",
        severity=Severity.CRITICAL,
        source=(
            "Apache Kafka, connect/file/src/main/java/org/apache/kafka/connect/file/FileStreamSinkTask.java "
            "(opens with CREATE and APPEND)"
        ),
    ),
    Rule(
        name="connect_jdbc_insert",
        section="connector",
        setting="insert.mode",
        fires=(
            "anything but `upsert` with a `pk.mode` (Debezium: `primary.key.mode`) other than `none`, of a JDBC sink "
            "(`JdbcSinkConnector` of Confluent, Aiven or Debezium); or `insert` of any sink"
        ),
        holds=_inserts,
        classes=(BreakClass.OUTPUT_DUPLICATE,),
        cause=Cause.PROCESS_BEFORE_COMMIT,
        failure=(
            "a record that is read again, because a worker died before its offset was committed, is inserted "
            "again; where the table has a key, the task stops at it"
        ),
        advice="insert.mode: upsert with pk.mode: kafka, record_key or record_value",
        severity=Severity.CRITICAL,
        source=(
            "Confluent documentation, JDBC Sink Connector, Idempotent writes and Configuration: insert.mode; "
            "Debezium documentation, Debezium connector for JDBC: insert.mode, primary.key.mode"
        ),
    ),
)
