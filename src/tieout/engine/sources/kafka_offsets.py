"""The reader of the kind `kafka_offsets`: every position that a group committed, from the topic `__consumer_offsets`.

A commit is one record of that topic; a record without a value deletes a position. A commit in a transaction is none
until the transaction is committed, so those of aborted and open ones are set aside and counted; so are records of the
group's membership. Of a cleaned part of the topic only each partition's last commit is left.

Three forms are read: the topic itself, handed out by its cluster, and its segment files, whose keys and values are
decoded here by Spark's own functions; and what the console consumer prints with `OffsetsMessageFormatter`.

Source: `OffsetCommitKey.json` and `OffsetCommitValue.json` of Apache Kafka 4.3 (group-coordinator).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.contracts import OFFSETS_TOPIC, KafkaOffsetsSource
from tieout.engine.kafka.share_groups import RECORD_TYPES
from tieout.engine.materialising import materialised
from tieout.engine.session import set_to
from tieout.engine.sources.kafka_cluster import Cluster
from tieout.engine.sources.kafka_connector import COMMITTED, INTERNAL_TOPICS
from tieout.engine.sources.kafka_log import CONTENT_COLUMNS, LogSpec
from tieout.engine.sources.kafka_offsets_text import COMMIT_TYPES, LAST_TYPE, read_text
from tieout.engine.sources.kafka_segments import segments_reading
from tieout.engine.sources.share_groups import as_share_group, as_share_group_if_shown
from tieout.engine.sources.source import COUNT, FAULT, HIDDEN, Reading, Request, is_of_spark
from tieout.errors import SourceError
from tieout.model import POSITION_LEDGERS

_LAST_VERSION: Final = 4
_TOPIC_ID_TAG: Final = "010010"
"""One tagged field, number 0, of 16 bytes: the topic's id."""
_COLUMNS: Final = (
    *("consumer_group", "topic", "topic_id", "partition", "committed_offset", "leader_epoch", "committed_at"),
    "metadata",
)
_CUT_KEY: Final = "the key of a commit is cut off"
_NEWER: Final = f"expected a commit of version 0 to {_LAST_VERSION}, found a later one"


def read(spec: KafkaOffsetsSource, request: Request) -> Reading:
    """Return the group's commits, one row each, and its deleted positions as rows without an offset.

    Raises:
        SourceError: where the ledger is neither `committed` nor `mirrored`, for a path that is not on
            a file system of this machine, for a partition with two folders, and where the cluster cannot be asked.
        ConnectionNotFoundError: where the connection is not defined.
    """
    if request.ledger not in POSITION_LEDGERS:
        raise SourceError(f"{request.place}: {spec.kind} is evidence for committed and mirrored only")
    if spec.connection is not None:
        return _from_cluster(spec.connection, spec.group, request)
    paths = spec.path or ()
    return (
        as_share_group_if_shown(read_text(spec, paths, request), request, paths, spec.group)
        if spec.format == "formatter"
        else _from_segments(spec, paths, request)
    )


def partition_of(group: str, partitions: int) -> int:
    """Return the partition of the topic that holds the group's positions: its hash in Java, without the sign.

    >>> partition_of("payments-loader", 50), partition_of("orders", 1)
    (5, 0)
    """
    units = group.encode("utf-16-be")
    total = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        total = (31 * total + (high << 8 | low)) & 0xFFFFFFFF
    return (total & 0x7FFFFFFF) % partitions


def _from_cluster(connection: str, group: str, request: Request) -> Reading:
    """Return the group's commits that a reader of committed data is handed: those in force."""
    return _from_offsets_topic(Cluster.of(connection, request), group, request)


def _from_offsets_topic(cluster: Cluster, group: str, request: Request) -> Reading:
    topic = cluster.topic(OFFSETS_TOPIC)
    if topic is None:
        return cluster.without(OFFSETS_TOPIC)
    number = partition_of(group, len(topic.partitions))
    own = replace(topic, partitions=tuple(part for part in topic.partitions if part.number == number))
    with set_to(request.spark, INTERNAL_TOPICS):
        records = cluster.records(own, COMMITTED).withColumn("transaction_state", F.lit("committed"))
        return _in_force(cluster.reading(own, records, COMMITTED), group)


def share_group_of(cluster: Cluster, group: str, request: Request) -> Reading | None:
    """Return the cluster's reading of a share group, which has no positions; None where nothing shows it to be one.

    Brokers report a group's type only to clients newer than Spark's, so its records are examined instead.
    """
    try:
        found = _from_offsets_topic(cluster, group, request)
    except Exception as error:
        if not isinstance(error, SourceError) and not is_of_spark(error):
            raise
        return None  # a user who may not read that topic gets no answer
    return found if found.is_share_group else None


def _from_segments(spec: KafkaOffsetsSource, paths: tuple[str, ...], request: Request) -> Reading:
    number = partition_of(spec.group, spec.partitions)
    log = LogSpec(spec.taken_time(request.now), "compact", None, CONTENT_COLUMNS, is_one_partition=True)
    reading = segments_reading(request, paths, OFFSETS_TOPIC, log, only=number)
    if reading.rows is None:
        hint = f"the group's positions are in partition {number} of {spec.partitions} (offsets.topic.num.partitions)"
        return replace(reading, notes=(*reading.notes, hint))
    return _in_force(reading, spec.group)


def _in_force(reading: Reading, group: str) -> Reading:
    """Return the group's commits among the topic's records, and notes about the other records."""
    if reading.rows is None:
        return reading
    decoded = materialised(_decoded(reading.rows))
    notes = (*reading.notes, *_set_aside(decoded, group))
    found = replace(reading, rows=_commits(decoded, group), notes=notes)
    return as_share_group(found, group) if _is_share_group(decoded, group) else found


def _is_share_group(decoded: DataFrame, group: str) -> bool:
    """Return whether the topic has the group's records of a share group: live ones, or deleted ones and no commit."""
    is_of_sharing = F.col("key_type").isin(*RECORD_TYPES)
    found = decoded.where(F.col("is_data") & (F.col("consumer_group") == group)).agg(
        F.count_if(is_of_sharing & ~F.col("is_deleted")).alias("live"),
        F.count_if(is_of_sharing).alias("all"),
        F.count_if("is_commit").alias("commits"),
    )
    counts = found.collect()[0]
    return bool(counts["live"] or (counts["all"] and not counts["commits"]))


def _decoded(records: DataFrame) -> DataFrame:
    """Return the topic's records with the type of their keys and, where it is a commit's, its fields.

    | key_type | is_commit | consumer_group | topic  | partition | committed_offset | committed_at | is_deleted |
    |----------|-----------|----------------|--------|-----------|------------------|--------------|------------|
    | 1        | true      | loader         | orders | 0         | 17               | 179528858968 | false      |
    | 2        | false     | loader         |        |           |                  |              | true       |
    """
    of_deletion = F.when(F.col("is_deleted"), F.unix_millis("record_timestamp"))
    data = F.col(FAULT).isNull() & ~F.col("is_control")
    return _with_value(_with_key(records)).select(
        *("key_type", "is_commit", "is_deleted", "transaction_state", "consumer_group"),
        F.col("commit_topic").alias("topic"),
        "topic_id",
        F.col("commit_partition").alias("partition"),
        *("committed_offset", "leader_epoch", "metadata"),
        F.coalesce(of_deletion, F.col("committed_millis")).alias("committed_at"),
        F.coalesce(data, F.lit(False)).alias("is_data"),
        *HIDDEN[:-1],
        *([COUNT] if COUNT in records.columns else []),
        F.coalesce(F.col(FAULT), F.when(F.col("is_commit"), _wrong())).alias(FAULT),
    )


def _with_key(records: DataFrame) -> DataFrame:
    """Return the records with the fields of their keys: the type, the group and, of a commit, its place."""
    key = F.col("key")
    group_bytes = _number(key, F.lit(3), 2)
    topic_at = group_bytes + 5
    topic_bytes = _number(key, topic_at, 2)
    partition_at = topic_at + 2 + topic_bytes
    key_type = _number(key, F.lit(1), 2)
    return records.withColumns(
        {
            "key_type": key_type,
            "is_commit": F.coalesce(key_type.isin(*COMMIT_TYPES), F.lit(False)),
            "consumer_group": _text(key, F.lit(5), group_bytes),
            "commit_topic": _text(key, topic_at + 2, topic_bytes),
            "commit_partition": _number(key, partition_at, 4),
            "key_end": partition_at + 3,
        }
    )


def _with_value(records: DataFrame) -> DataFrame:
    """Return the records with the fields of their values, decoded as if each were a commit's.

    A value is: version, offset, leader epoch since version 3, metadata with its length before it (a varint of the
    length plus one since version 4), time; behind it, since version 4, tagged fields.
    """
    value = F.col("value")
    measured = records.withColumns(
        {"is_deleted": value.isNull(), "version": _number(value, F.lit(1), 2)}
    ).withColumn("length_at", F.when(F.col("version") >= 3, 4).otherwise(0) + 11)
    length_at, is_flexible = F.col("length_at"), F.col("version") >= 4
    varint_bytes = _varint_bytes(value, length_at)
    text_bytes = F.when(is_flexible, _varint(value, length_at, varint_bytes) - 1)
    measured = measured.withColumns(
        {
            "metadata_at": length_at + F.when(is_flexible, varint_bytes).otherwise(2),
            "metadata_bytes": F.coalesce(text_bytes, _number(value, length_at, 2)),
        }
    ).withColumn("time_at", F.col("metadata_at") + F.col("metadata_bytes"))
    epoch, tags_at = _number(value, F.lit(11), 4), F.col("time_at") + 8
    has_topic_id = is_flexible & (F.hex(_bytes(value, tags_at, 3)) == _TOPIC_ID_TAG)
    metadata = _text(value, F.col("metadata_at"), F.col("metadata_bytes"))
    return measured.withColumns(
        {
            "committed_offset": _number(value, F.lit(3), 8),
            "leader_epoch": F.when((F.col("version") >= 3) & (epoch < 1 << 31), epoch),
            "metadata": F.rtrim(metadata, F.lit("\0")),
            "committed_millis": _number(value, F.col("time_at"), 8),
            "topic_id": F.when(has_topic_id, _uuid(_bytes(value, tags_at + 3, 16))),
        }
    )


def _wrong() -> Column:
    """Return the fault of a commit's record, null where it has none."""
    is_whole_key = F.octet_length("key") == F.col("key_end")
    is_whole_value = F.octet_length("value") >= F.col("time_at") + 7
    return (
        F.when(~F.coalesce(is_whole_key, F.lit(False)), _CUT_KEY)
        .when(F.col("is_deleted"), None)
        .when(F.col("version") > _LAST_VERSION, _NEWER)
        .when(~F.coalesce(is_whole_value, F.lit(False)), "the value of a commit is cut off")
        .when(
            F.col("committed_offset").isNull(),
            "committed_offset: expected an offset, found a negative number",
        )
        .when(F.col("committed_millis").isNull(), "committed_at: expected a time, found a negative number")
    )


def _commits(decoded: DataFrame, group: str) -> DataFrame:
    """Return the group's commits that are in force, its deletions, and the rows that cannot be read."""
    is_ours = F.col("is_commit") & F.col("is_data") & (F.col("consumer_group") == group)
    in_force = F.col("transaction_state").isin("none", "committed")
    is_another_s = F.col("is_commit") & (F.col("consumer_group") != group) & (F.col(FAULT) != _CUT_KEY)
    is_faulty = F.col(FAULT).isNotNull() & ~F.coalesce(is_another_s, F.lit(False))
    return decoded.where(is_faulty | (is_ours & in_force)).select(
        *_COLUMNS, *HIDDEN, *([COUNT] if COUNT in decoded.columns else [])
    )


def _set_aside(decoded: DataFrame, group: str) -> tuple[str, ...]:
    """Return notes about the records that are no commit of the group in force."""
    is_commit, is_ours = F.col("is_commit"), F.col("consumer_group") == group
    counts = decoded.where("is_data").agg(
        F.count_if(is_commit & is_ours).alias("commits"),
        F.count_if(is_commit & is_ours & (F.col("transaction_state") == "aborted")).alias("aborted"),
        F.count_if(is_commit & is_ours & (F.col("transaction_state") == "open")).alias("open"),
        F.count_if(is_commit & is_ours & F.col("is_deleted")).alias("deleted"),
        F.count_if(~is_commit & (F.col("key_type") <= LAST_TYPE)).alias("memberships"),
        F.count_if(~is_commit & (F.col("key_type") > LAST_TYPE)).alias("unknown"),
    )
    found = counts.head()
    if found is None:
        return ()
    texts = {
        "aborted": "commits in aborted transactions, set aside",
        "open": "commits in transactions that are still open, set aside",
        "deleted": "positions that were deleted",
        "memberships": "records about memberships, passed over",
        "unknown": f"records of a type above {LAST_TYPE}, which is not known, passed over",
    }
    notes = [f"{found[name]} {what}" for name, what in texts.items() if found[name]]
    return (*([] if found["commits"] else [f"no commit of the group {group}"]), *notes)


def _bytes(data: Column, place: Column, count: int | Column) -> Column:
    """Return so many bytes from the place on, counted from 1."""
    return F.substring(data, place, F.lit(count) if isinstance(count, int) else count)


def _number(data: Column, place: Column, count: int) -> Column:
    """Return the number without a sign that so many bytes hold, the highest first; null behind the end."""
    return F.conv(F.hex(_bytes(data, place, count)), 16, 10).try_cast("bigint")


def _text(data: Column, place: Column, count: Column) -> Column:
    return _bytes(data, place, count).cast("string")


def _varint_bytes(data: Column, place: Column) -> Column:
    """Return how many bytes the number at the place has: each but the last has its highest bit set; three at most."""
    one, two = _number(data, place, 1), _number(data, place + 1, 1)
    return F.when(one < 128, 1).when(two < 128, 2).otherwise(3)


def _varint(data: Column, place: Column, count: Column) -> Column:
    """Return the number without a sign at the place, seven bits a byte, the lowest first."""
    first, second, third = (_number(data, place + at, 1) for at in range(3))
    two = (first - 128) + second * 128
    return F.when(count == 1, first).when(count == 2, two).otherwise(two - 128 * 128 + third * 128 * 128)


def _uuid(data: Column) -> Column:
    """Return the id as Kafka prints it: base 64 for addresses, without padding."""
    return F.rtrim(F.translate(F.base64(data), "+/", "-_"), F.lit("="))
