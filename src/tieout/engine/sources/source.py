"""The request to a reader, and its result: the source's own rows and the facts known about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, TimestampType

from tieout.engine.evidence import EARLIEST_PLAUSIBLE
from tieout.engine.session import is_full, is_of_lost_executor, is_out_of_memory
from tieout.engine.sources.inputs import Inputs
from tieout.engine.sources.named_columns import is_path, paths_in
from tieout.engine.sources.written_meanwhile import Writes
from tieout.errors import SourceError, SourceUnreachableError, UnreadableTimeError
from tieout.model import Ledger

FILE: Final = "_tieout_file"
"""The URI of the file that the row is in; null where the source is no file."""
TEXT: Final = "_tieout_text"
"""The original line of the row, from which its line number is found; null where there are no lines."""
BLOCK: Final = "_tieout_block"
"""The position in the file where the part of one task begins."""
ROW: Final = "_tieout_row"
"""A number that rises with the rows of one part."""
FAULT: Final = "_tieout_fault"
"""Why the row could not be read; null for a good one."""
COUNT: Final = "_tieout_count"
"""How many rows a faulty one stands for, one where it is null; not every reader adds it."""
LACKS: Final = "_tieout_lacks"
"""The columns, of `Request.content_columns`, that the row's file lacks and others have; not every reader adds it."""
UNSURE: Final = "_tieout_unsure"
"""The columns of the row, an array, that may not be what was written; not every reader adds it."""
HIDDEN: Final = (FILE, TEXT, BLOCK, ROW, FAULT)
"""The columns that every reader adds to those of its source, and that end with conforming."""
_RESERVED: Final = "_tieout_"
_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'")


@dataclass(frozen=True)
class Reach:
    """From which time on a ledger is read; rows that are not known to be older may be handed over all the same.

    What has no time, or an unset clock's, is always read: it keeps the ledger from covering.

    `column` is the source's own column that becomes the ledger's time as it is, None where an expression makes it.
    """

    begins_at: datetime
    column: str | None = None

    def may_hold(self, time: Column) -> Column:
        """Return whether a row of that time is read: not where it is older, unless it is an unset clock's."""
        is_unset = time < F.lit(EARLIEST_PLAUSIBLE)
        return time.isNull() | is_unset | (time >= F.lit(self.begins_at))


def is_reserved(name: str) -> bool:
    """Return whether a column of a source has a name of the readers' own, such as `FAULT`: such a column is not read.

    Whoever writes evidence may choose names: with one of these a row would say itself whether it is a faulty one.

    >>> is_reserved("_Tieout_count"), is_reserved("tieout_count")
    (True, False)
    """
    return name.lower().startswith(_RESERVED)


def hidden_columns() -> tuple[Column, ...]:
    """Return `HIDDEN` for rows that are in no file."""
    texts = {FILE: StringType(), TEXT: StringType(), BLOCK: LongType(), ROW: LongType(), FAULT: StringType()}
    return tuple(F.lit(None).cast(kind).alias(name) for name, kind in texts.items())


def within_reach(rows: DataFrame, reach: Reach | None) -> DataFrame:
    """Return the rows without those that a time column shows to be older; a format with statistics skips them."""
    column = None if reach is None or reach.column is None else reach.column.lower()
    times = {field.name.lower() for field in rows.schema if isinstance(field.dataType, TimestampType)}
    if reach is None or column is None or column not in times:
        return rows
    return rows.where(reach.may_hold(F.col(f"`{column}`")))


@dataclass(frozen=True)
class Request:
    """One ledger to be read: from where, for which ledger, and relative to which folder.

    `text_columns` names the source columns that become canonical ones without an expression. A reader of text
    hands them over as the text they were, so that no guess at a type changes an id such as `00123`. `expressions` are
    all that is worked out of the others, or None where that is not known. `number_columns` are those of `text_columns`
    that become numbers, times or flags alone. A reader that can leaves out what lies before `reach`. `group` is the
    contract's. `content_columns` are those, in lower case, that what a message carries is made of. `takes_dates` says
    whether a date is a time, which it is where the window is a day or longer. `is_by_position`: a row without position
    is no known message. `topic_names` has the contract's name for each other spelling of a topic.
    """

    spark: SparkSession
    ledger: Ledger
    base_dir: Path
    now: datetime
    text_columns: frozenset[str] = frozenset()
    reach: Reach | None = None
    expressions: tuple[str, ...] | None = None
    group: str | None = None
    content_columns: frozenset[str] = frozenset()
    number_columns: frozenset[str] = frozenset()
    takes_dates: bool = True
    is_by_position: bool = False
    topic_names: Mapping[str, str] = field(default_factory=dict)

    def needs(self, column: str) -> bool:
        """Return whether a source column is used, or might be: an expression with its name in it may mean another."""
        if self.expressions is None or column.lower() in {name.lower() for name in self.text_columns}:
            return True
        name = column.replace("`", "``").lower()
        return any("*" in text or name in text.lower() for text in self.expressions)

    def uses(self, column: str) -> bool:
        """Return whether a canonical column is the source column, or an expression has its very name in it."""
        if self.expressions is None or column.lower() in {name.lower() for name in self.text_columns}:
            return True
        name = re.compile(rf"(?<!\w){re.escape(column.replace('`', '``'))}(?!\w)", re.IGNORECASE)
        return any("*" in text or name.search(_LITERAL.sub(" ", text)) for text in self.expressions)

    def is_as_it_is(self, column: str) -> bool:
        """Return whether a source column becomes canonical ones as it is, and no expression uses it."""
        is_plain = column.lower() in {name.lower() for name in self.text_columns}
        computed = [text for text in self.expressions or () if not is_path(text)]
        return is_plain and not any("*" in text or paths_in(text, [column]) for text in computed)

    @property
    def place(self) -> str:
        """Where the contract describes the source, for errors."""
        return f"ledgers.{self.ledger}.source"


@dataclass(frozen=True)
class CutPartition:
    """A partition that lacks records: `reason` says which, `begins_at` since when it is complete.

    `begins_at` is None where no record is left, or the first one has no plausible time.
    """

    reason: str
    begins_at: datetime | None


@dataclass(frozen=True)
class Reading:
    """What a reader found: rows in the source's own columns with `HIDDEN`, and facts about its inputs.

    `rows` is None where there is nothing whose columns could be known. `unparsed_inputs` counts whole inputs that
    could not be read; no tolerance covers them. `complete_until` is the time up to which the source itself says it is
    complete, `complete_from` since when, None where always; `presumed_from` since when unless the contract declares the
    ledger complete, where nothing says what was removed; `read_at` when its content was fixed. `taken_at` is when a
    table said what the rows say, where that is known to the moment. `size` counts the inputs' bytes. `reread` reads
    again without the inputs, or the records of a topic, that cannot be read to their end, after a job over all of them
    failed. `is_columnar`: rereading some columns of the inputs costs no parsing. `copies` are the paths of files with
    the same bytes as another one, each with a sentence that says so. `is_share_group`: the source shows that the
    contract's group is a share group. `cut_partitions` are the partitions of which something was removed. `writes`
    finds, after the rows were read, the inputs that no longer match their digests.
    """

    rows: DataFrame | None
    is_present: bool
    read_at: datetime
    size: int = 0
    digests: tuple[str, ...] = ()
    unparsed_inputs: int = 0
    notes: tuple[str, ...] = ()
    complete_until: datetime | None = None
    complete_from: datetime | None = None
    presumed_from: datetime | None = None
    cut_partitions: tuple[CutPartition, ...] = ()
    reread: Callable[[], Reading] | None = field(default=None, compare=False)
    is_columnar: bool = False
    copies: tuple[tuple[str, str], ...] = ()
    taken_at: datetime | None = None
    is_share_group: bool = False
    writes: Callable[[], Writes] = field(default=Writes, compare=False)


def unread(inputs: Inputs, read_at: datetime) -> Reading:
    """Return the reading of files that are absent, or that all cannot be read."""
    return Reading(
        rows=None,
        is_present=bool(inputs.files),
        read_at=read_at,
        digests=inputs.digests,
        unparsed_inputs=len(inputs.faults),
        notes=inputs.notes,
    )


_OF_KAFKA: Final = ("org.apache.spark.sql.kafka010", "org.apache.kafka")
_OVERFLOW: Final = "java.lang.ArithmeticException"
_REFUSED: Final = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(\w+(?:Authorization|Authentication)Exception)"
)
_Spec_contra = TypeVar("_Spec_contra", contravariant=True)


def is_of_spark(error: Exception) -> bool:
    """Return whether Spark failed on its input; PySpark raises some of these errors as errors of the gateway.

    It did not where a disk was full, Java had no memory left or an executor ended: then the job fails, and may be tried
    again.
    """
    is_of_machine = is_full(error) or is_out_of_memory(error) or is_of_lost_executor(error)
    return isinstance(error, PySparkException | Py4JJavaError) and not is_of_machine


def name_of_failure(error: Exception) -> str:
    """Return the name of Spark's error without its message, which may show values of the evidence.

    >>> name_of_failure(ValueError("order 17"))
    'ValueError'
    """
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getName())
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return condition or type(error).__name__


def cluster_failure(error: Exception, place: str) -> SourceError | None:
    """Return the error to raise where Spark's Kafka connector or its client failed, None where something else did.

    The connector turns each record's milliseconds into microseconds, checked for overflow, before anything can look
    at them (`KafkaRecordToRowConverter.scala` of apache/spark). That is an `UnreadableTimeError`: the reader of topics
    then looks for such records and reads the others.
    """
    if not isinstance(error, PySparkException | Py4JJavaError) or not any(
        package in str(error) for package in _OF_KAFKA
    ):
        return None
    if _OVERFLOW in str(error):
        return UnreadableTimeError(
            f"{place}: a record of the topic has a timestamp that Spark's Kafka connector cannot read: "
            "expected milliseconds within 292,000 years of 1970, found more. Read the broker's own files with "
            "kind: kafka_segments, which names such records and judges the others"
        )
    if not is_of_spark(error):
        return None
    if refused := _REFUSED.search(str(error)):
        return SourceError(
            f"{place}.connection: the cluster describes the topic to this user and does not let them read it "
            f"({refused[1]}): expected the rights to DESCRIBE and to READ it, and to READ the consumer groups "
            "spark-kafka-…; grant them on the brokers, or name another connection"
        )
    return SourceUnreachableError(
        f"{place}: the cluster did not hand out the offsets that were its topic's when the run began: "
        "retention cut them off, or a broker left meanwhile; judge the window again once the topic is there"
    )


class Reader(Protocol[_Spec_contra]):
    """Reads one kind of source as its contract describes it."""

    def __call__(self, spec: _Spec_contra, request: Request) -> Reading:
        """Return what the source holds.

        Raises:
            SourceError: where the source cannot be read as described.
        """
