"""The reader of the kind `kafka_consumer_groups`: a group's positions as they are, from its cluster or Kafka's tool.

Of the tool two forms are read: the table of `--describe`, and the CSV of `--reset-offsets --to-current --dry-run
--export`. Neither these nor a cluster say when a position was committed, so the rows are current positions without a
time: what compares commits is not judged. A partition whose position is `-` has none, and no row; neither has a member
without partitions, of which the table says `-` for topic and partition as well.

Source: `ConsumerGroupCommand` of Apache Kafka 4.3; Kafka documentation, "Managing Consumer Groups" (Basic Operations).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tieout.contracts import KafkaConsumerGroupsSource
from tieout.engine.sources.kafka import Cluster, hidden_columns
from tieout.engine.sources.lines import text_reading
from tieout.engine.sources.source import BLOCK, FAULT, FILE, HIDDEN, ROW, TEXT, Reading, Request
from tieout.errors import SourceError
from tieout.model import Ledger

_HEADER: Final = r"^\s*(GROUP\s+)?TOPIC\s+PARTITION\s.*\bCURRENT-OFFSET\b"
_REMARK: Final = (
    r"^(Consumer group .* has no active members\.|Warning: Consumer group .* is rebalancing\.)\s*$"
)
_CSV: Final = "`1` STRING, `2` STRING, `3` STRING, `4` STRING"
_HELD: Final = (
    "consumer_group STRING, topic STRING, partition INT, committed_offset BIGINT, leader_epoch INT, "
    "log_end_offset BIGINT"
)
_WHOLE: Final = r"^[0-9]{1,18}$"
_NO_ROW: Final = "expected a row of the table or of the export, with a topic, a partition and an offset"


def read(spec: KafkaConsumerGroupsSource, request: Request) -> Reading:
    """Return the positions, one row a partition; a line of text that is neither form is an unreadable row.

    Raises:
        SourceError: where the contract uses the source for another ledger than `committed`, and where the cluster
            cannot be asked.
        ConnectionNotFoundError: where the connection is not defined.
    """
    if request.ledger is not Ledger.COMMITTED:
        raise SourceError(f"{request.place}: {spec.kind} is evidence for committed only")
    if spec.connection is not None:
        return _from_cluster(spec.connection, str(spec.group), request)
    taken_at = spec.taken_time(request.now)
    return text_reading(request, spec.path or (), taken_at, lambda lines: _positions(lines, spec.group))


def _from_cluster(connection: str, group: str, request: Request) -> Reading:
    cluster = Cluster.of(connection, request)
    held = cluster.positions(group)
    rows = [(group, one.topic, one.partition, one.offset, one.leader_epoch, one.end) for one in held]
    return Reading(
        rows=request.spark.createDataFrame(rows, _HELD).select("*", *hidden_columns()),
        is_present=True,
        read_at=request.now,
        notes=() if held else (f"the cluster knows no position of the group {group}",),
        complete_until=request.now,
    )


def _positions(lines: DataFrame, group: str | None) -> DataFrame:
    """Return the lines' positions, and `HIDDEN`.

    | line                            | consumer_group | topic  | partition | committed_offset | log_end_offset |
    |---------------------------------|----------------|--------|-----------|------------------|----------------|
    | `loader orders 0 17 20 3 - - -` | loader         | orders | 0         | 17               | 20             |
    | `orders,0,17`                   | (the source's) | orders | 0         | 17               |                |
    """
    header = F.last(F.when(F.col(TEXT).rlike(_HEADER), F.col(TEXT)), ignorenulls=True)
    order = Window.partitionBy(FILE).orderBy(BLOCK, ROW)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    fields = F.from_csv(TEXT, _CSV, {"mode": "PERMISSIVE"})
    rows = (
        lines.withColumn("names", _words(header.over(so_far)))
        .where(~F.col(TEXT).rlike(_HEADER) & ~F.col(TEXT).rlike(_REMARK))
        .withColumns({"words": _words(F.col(TEXT)), "fields": fields})
        .withColumn("fields", F.array_compact(F.array(*(F.col("fields")[name] for name in "1234"))))
    )
    placed = rows.select(
        _either("GROUP", F.coalesce(_field(-4), F.lit(group).cast(StringType()))).alias("consumer_group"),
        _either("TOPIC", _field(-3)).alias("topic"),
        _either("PARTITION", _field(-2)).alias("partition"),
        _either("CURRENT-OFFSET", _field(-1)).alias("committed_offset"),
        _known(_cell("LEADER-EPOCH")).alias("leader_epoch"),
        _known(_cell("LOG-END-OFFSET")).alias("log_end_offset"),
        *HIDDEN[:-1],
    )
    is_row = (
        F.col("topic").isNotNull()
        & F.col("partition").rlike(_WHOLE)
        & (F.col("committed_offset").rlike(_WHOLE) | (F.col("committed_offset") == "-"))
    )
    is_idle = F.array("topic", "partition", "committed_offset") == F.array(*[F.lit("-")] * 3)
    fault = F.when(~F.coalesce(is_row | is_idle, F.lit(False)), _NO_ROW)
    is_kept = F.col(FAULT).isNotNull() | (F.col("committed_offset") != "-")
    return placed.withColumn(FAULT, fault).where(is_kept)


def _words(line: Column) -> Column:
    return F.split(F.trim(line), r"\s+")


def _cell(name: str) -> Column:
    """Return the word that stands below the name in the table's header; null where either is missing."""
    place = F.array_position("names", name)
    return F.when(place > 0, F.try_element_at("words", place.cast("int")))


def _field(place: int) -> Column:
    """Return the field of an exported line, counted from its end; null where it has none."""
    return F.try_element_at("fields", F.lit(place))


def _either(name: str, field: Column) -> Column:
    """Return the table's cell where a header came before, else the export's field."""
    return F.when(F.col("names").isNotNull(), _cell(name)).otherwise(field)


def _known(cell: Column) -> Column:
    return F.when(cell.rlike(_WHOLE), cell)
