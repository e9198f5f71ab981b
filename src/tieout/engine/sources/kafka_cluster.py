"""A Kafka cluster as a consumer sees it: the records of its topics, and the states of transactions as far as they show.

What is read is fixed once, when the run begins: from each partition's first offset, or from its first record that is
stamped as late as the ledger's `reach`, to its end, or to the last stable offset for a reader of committed data. A
consumer is shown neither markers nor the state of a transaction. They are inferred where what is not committed is read:
a record that a reader of committed data is not handed is of an aborted transaction, or of an open one from the last
stable offset on; and offsets that nobody is handed are markers, as a log has no others to leave out unless it is
compacted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tieout.brokers import client_settings
from tieout.contracts.times import format_time
from tieout.engine.joining import same
from tieout.engine.kafka.topics import (
    Position,
    Topic,
    TopicPartition,
    described_topic,
    group_positions,
    require_connector,
)
from tieout.engine.limits import LATEST_MILLIS
from tieout.engine.session import SMALL_ROWS
from tieout.engine.sources.failing_offsets import MOST, Span, failing, without
from tieout.engine.sources.kafka_connector import COMMITTED, HEADERS, UNCOMMITTED, loaded
from tieout.engine.sources.removed import behind_holes, removed
from tieout.engine.sources.source import (
    FAULT,
    CutPartition,
    Reading,
    Request,
    cluster_failure,
    hidden_columns,
)
from tieout.engine.sources.written_meanwhile import Writes
from tieout.errors import UnreadableTimeError
from tieout.model import SMALL_BYTES

_NAMED: Final = 5
_ROW_BYTES: Final = SMALL_BYTES // SMALL_ROWS
"""The assumed size of a record: its real size is known only after reading."""
_TIMESTAMP_TYPES: Final = {0: "CreateTime", 1: "LogAppendTime"}


@dataclass(frozen=True)
class Cluster:
    """The cluster of a contract's connection, read for one ledger.

    `unreadable` are the partitions and offsets of records of a topic that the connector fails on, and whether readers
    of committed data are handed them: they are not asked for, and become faulty rows.
    """

    request: Request
    settings: Mapping[str, str]
    unreadable: Mapping[tuple[int, int], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: str, request: Request) -> Cluster:
        """Return the connection's cluster.

        Raises:
            SourceError: where Spark lacks its connector, or the connection is no Kafka's.
            ConnectionNotFoundError: where the connection is not defined.
        """
        require_connector(request.spark, request.place)
        return cls(request, client_settings(connection, request.place))

    def topic(self, name: str) -> Topic | None:
        """Return the topic as the cluster describes it now, None where it has no such topic."""
        reach = self.request.reach
        since = None if reach is None else reach.begins_at
        return described_topic(self.request.spark, self.settings, name, self.request.place, since)

    def positions(self, group: str) -> tuple[Position, ...]:
        """Return the group's committed positions now."""
        return group_positions(self.request.spark, self.settings, group, self.request.place)

    def without(self, name: str) -> Reading:
        """Return the reading of a topic that the cluster does not have."""
        absent = f"{self.settings['bootstrap.servers']}: the cluster has no topic {name}"
        return Reading(None, is_present=False, read_at=self.request.now, notes=(absent,))

    def records(self, topic: Topic, isolation: str) -> DataFrame:
        """Return the topic's records that a reader of that isolation is handed.

        | topic  | partition | offset | key | value | record_timestamp | is_control | end_offset | … |
        |--------|-----------|--------|-----|-------|------------------|------------|------------|---|
        | orders | 0         | 17     | 6b  | 7b7d  | 12:00:01         | false      | 18         | … |
        """
        kinds = F.create_map(*[F.lit(value) for pair in _TIMESTAMP_TYPES.items() for value in pair])
        limits = F.broadcast(self._bounds(topic, topic.partitions).drop("topic"))
        limits = limits.withColumnRenamed("partition", "of_partition")
        raw = self._raw(topic, isolation)
        known = raw.join(limits, F.col("partition") == F.col("of_partition"), how="inner").select(
            *("topic", "topic_id", "partition", "offset", "key", "value"),
            F.coalesce("headers", F.array().cast(HEADERS)).alias("headers"),
            F.col("timestamp").alias("record_timestamp"),
            kinds[F.col("timestampType")].alias("timestamp_type"),
            F.lit(False).alias("is_control"),
            *("log_start_offset", "last_stable_offset", "end_offset", "observed_at", "cleanup_policy"),
            *hidden_columns(),
        )
        lost = [
            (topic.name, topic.topic_id, number, offset, _UNREADABLE.format(topic.name, number, offset))
            for (number, offset), is_committed in sorted(self.unreadable.items())
            if is_committed or isolation == UNCOMMITTED
        ]
        if not lost:
            return known
        return known.unionByName(self.request.spark.createDataFrame(lost, _LOST), allowMissingColumns=True)

    def with_states(self, topic: Topic) -> DataFrame:
        """Return all of the topic's records with `transaction_state`, as far as a consumer can tell.

        A partition without a record has a row that says its bounds.
        """
        all_records = self.records(topic, UNCOMMITTED)
        with self._translated_failures():
            counts = {
                row["partition"]: row["count"] for row in all_records.groupBy("partition").count().collect()
            }
        faulty = Counter(number for number, _ in self.unreadable)
        empty_partitions = [
            part for part in topic.partitions if counts.get(part.number, 0) == faulty[part.number]
        ]
        with_state = all_records.withColumn("transaction_state", F.lit("none"))
        if _may_have_transactions(topic, sum(counts.values())):
            with_state = self._with_transaction_states(topic, all_records)
        return with_state.unionByName(
            self._bounds(topic, empty_partitions).select("*", *hidden_columns()), allowMissingColumns=True
        )

    def cut_partitions(self, topic: Topic) -> tuple[CutPartition, ...]:
        """Return the partitions that lack records: their beginning, or what compaction removed.

        A consumer cannot tell a transaction's marker from a record that compaction removed, so either is a hole.
        """
        cut = tuple(
            removed(topic.name, part.number, part.start, part.begins_at)
            for part in topic.partitions
            if part.start > 0
        )
        if not _is_compacted(topic):
            return cut
        with self._translated_failures():
            return (*cut, *behind_holes(self.records(topic, UNCOMMITTED)))

    def read_through(self, topic: Topic, reading: Callable[[Cluster], Reading]) -> Reading:
        """Return the reading of this cluster; where it fails on a record's time, that of the topic's other records.

        Its rows may be read later: then they fail, and it is `Reading.reread` that finds such records.

        Raises:
            UnreadableTimeError: where they are more than `MOST`.
        """

        def reread() -> Reading:
            return reading(replace(self, unreadable=self._unreadable(topic)))

        try:
            with self._translated_failures():
                return replace(reading(self), reread=reread)
        except UnreadableTimeError:
            return reread()

    def _unreadable(self, topic: Topic) -> dict[tuple[int, int], bool]:
        """Return the topic's records with a time that the connector cannot read, as `unreadable` has them."""
        places = (
            (part, offset)
            for part in topic.partitions
            for offset in failing(
                (part.first, part.end), partial(self._fails, topic, UNCOMMITTED, part.number)
            )
        )
        found = list(islice(places, MOST + 1))
        if len(found) > MOST:
            raise UnreadableTimeError(
                f"{self.request.place}: expected at most {MOST} records of the topic with a timestamp that Spark's "
                "Kafka connector cannot read, more than 292,000 years from 1970, found more. Read the broker's own "
                "files with kind: kafka_segments, which names all such records and judges the others"
            )
        return {
            (part.number, offset): offset < part.stable
            and self._fails(topic, COMMITTED, part.number, offset, offset + 1)
            for part, offset in found
        }

    def _fails(self, topic: Topic, isolation: str, number: int, first: int, end: int) -> bool:
        """Return whether the connector fails on the time of a record in the span of the partition."""
        try:
            with self._translated_failures():
                self._load(topic, {number: (first, end)}, isolation).groupBy().count().collect()
        except UnreadableTimeError:
            return True
        return False

    def reading(self, topic: Topic, rows: DataFrame, isolation: str) -> Reading:
        """Return the rows with what is known of them: how far they reach, and which offsets they are."""
        spans = [(part.number, part.first, _end(part, isolation)) for part in topic.partitions]
        open_since = self._open_since(topic) if isolation == COMMITTED else None
        return Reading(
            rows=rows,
            is_present=True,
            read_at=self.request.now,
            size=sum(max(end - start, 0) for _, start, end in spans) * _ROW_BYTES,
            digests=tuple(
                f"offsets:{start}-{end - 1}  {topic.name}-{number}"
                for number, start, end in spans
                if end > start
            ),
            notes=tuple(_notes(topic, open_since)),
            complete_until=self.request.now if open_since is None else min(open_since, self.request.now),
            writes=partial(self._written, topic),
        )

    def _written(self, topic: Topic) -> Writes:
        """Return what happened to the topic while it was read, so that its rows may be those of two logs."""
        now = described_topic(self.request.spark, self.settings, topic.name, self.request.place)
        if now is None or now.topic_id != topic.topic_id:
            found = "was deleted" if now is None else f"is another one, with the id {now.topic_id},"
            return Writes(
                (f"topic {topic.name}, id {topic.topic_id}, {found} since the run began to read it",)
            )
        ends = {part.number: part.end for part in now.partitions}
        shorter = [part for part in topic.partitions if ends.get(part.number, 0) < part.end]
        return Writes(
            tuple(
                f"{topic.name}-{part.number}: ended at offset {part.end} when the run began, and at "
                f"{ends.get(part.number, 0)} since: its log was truncated while it was read"
                for part in shorter[:_NAMED]
            )
        )

    @contextmanager
    def _translated_failures(self) -> Iterator[None]:
        """Translate a failure of the cluster while the block runs into an error that explains it."""
        try:
            yield
        except Exception as error:
            raise cluster_failure(error, self.request.place) or error from None

    def _with_transaction_states(self, topic: Topic, all_records: DataFrame) -> DataFrame:
        """Return the records with `transaction_state`, derived from what a reader of committed data gets."""
        handed = self._raw(topic, COMMITTED).select(
            F.col("partition").alias("handed_partition"), F.col("offset").alias("handed_offset")
        )
        state = (
            F.when(F.col("handed_offset").isNotNull(), "committed")
            .when(F.col("offset") >= F.col("last_stable_offset"), "open")
            .otherwise("aborted")
        )
        joined = all_records.join(handed, same(("partition", "offset"), "handed_"), how="left")
        return joined.withColumn("transaction_state", state).drop("handed_partition", "handed_offset")

    def _open_since(self, topic: Topic) -> datetime | None:
        """Return the earliest time of a record that is held back by an open transaction, None where there is none.

        Until then a reader of committed data is shown all there is. What lies behind the transaction's first record may
        have an older time than that, its application's own. A time beyond the calendar is its end; one that cannot be
        read may be the earliest.
        """
        unstable = {
            part.number: (part.stable, part.end) for part in topic.partitions if part.stable < part.end
        }
        if any(number in unstable and offset >= unstable[number][0] for number, offset in self.unreadable):
            return datetime.fromtimestamp(0, UTC)
        with self._translated_failures():
            latest, earliest = (F.timestamp_millis(F.lit(millis)) for millis in (LATEST_MILLIS, 0))
            known = F.greatest(F.least("timestamp", latest), earliest)
            found = self._load(topic, unstable, UNCOMMITTED).agg(F.min(known).alias("since")).head()
        since: datetime | None = None if found is None else found["since"]
        return None if since is None else since.astimezone(UTC)

    def _raw(self, topic: Topic, isolation: str) -> DataFrame:
        return self._load(
            topic, {part.number: (part.first, _end(part, isolation)) for part in topic.partitions}, isolation
        )

    def _load(self, topic: Topic, spans: Mapping[int, Span], isolation: str) -> DataFrame:
        """Return the records of these offsets as the connector gives them, without those that it cannot read."""
        remaining = {
            number: without(span, [offset for of, offset in self.unreadable if of == number])
            for number, span in spans.items()
        }
        return loaded(self.request.spark, self.settings, topic.name, remaining, isolation)

    def _bounds(self, topic: Topic, parts: Sequence[TopicPartition]) -> DataFrame:
        """Return one row for each of these partitions with what is known of all its records."""
        same_for_all = (self.request.now, topic.cleanup_policy)
        rows = [
            (topic.name, topic.topic_id, part.number, part.start, part.stable, part.end, *same_for_all)
            for part in parts
        ]
        return self.request.spark.createDataFrame(rows, _BOUNDS)


_BOUNDS: Final = (
    "topic STRING, topic_id STRING, partition INT, log_start_offset BIGINT, last_stable_offset BIGINT, "
    "end_offset BIGINT, observed_at TIMESTAMP, cleanup_policy STRING"
)
_LOST: Final = f"topic STRING, topic_id STRING, partition INT, offset BIGINT, {FAULT} STRING"
_UNREADABLE: Final = (
    "{}-{}: offset {}: record_timestamp: expected milliseconds within 292,000 years of 1970, found others"
)


def _may_have_transactions(topic: Topic, records: int) -> bool:
    """Return whether some of so many records that are in the topic may be of a transaction.

    Each transaction that ended has left a marker, and a marker is an offset without a record. In a compacted log any
    offset may lack its record, so there it always may.
    """
    is_unstable = any(part.stable < part.end for part in topic.partitions)
    return (
        _is_compacted(topic)
        or is_unstable
        or records < sum(part.end - part.first for part in topic.partitions)
    )


def _is_compacted(topic: Topic) -> bool:
    """Return whether the topic may be compacted: it is, or the cluster does not say."""
    return topic.cleanup_policy is None or "compact" in topic.cleanup_policy


def _end(part: TopicPartition, isolation: str) -> int:
    """Return the offset at which a reader of that isolation stops (exclusive)."""
    return part.stable if isolation == COMMITTED else part.end


def _notes(topic: Topic, open_since: datetime | None) -> Iterator[str]:
    yield f"cluster {topic.cluster_id}, topic id {topic.topic_id}"
    if topic.cleanup_policy is None:
        yield "the cluster does not tell this user the topic's cleanup policy: compaction is not judged"
    if open_since is not None:
        yield f"a transaction is open since {format_time(open_since)}; readers of committed data see nothing behind it"
