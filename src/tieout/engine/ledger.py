"""The canonical columns of each ledger: what every reader conforms to and every rule may rely on.

Docs: docs/reference/taxonomy.md, section 1. Every column is nullable. A column that the source does not have is null in
every row and missing from `Evidence.present`; rules that need it are `not judged`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tieout.model import Ledger

_STRING, _LONG, _INT, _TIME, _FLAG = StringType(), LongType(), IntegerType(), TimestampType(), BooleanType()

_PLACE: Final[dict[str, DataType]] = {
    "topic": _STRING,
    "topic_id": _STRING,
    "partition": _INT,
    "offset": _LONG,
}
_CONTENT: Final[dict[str, DataType]] = {
    "key_hash": _STRING,
    "payload_hash": _STRING,
    "header_hash": _STRING,
    "record_timestamp": _TIME,
    "content": _STRING,
}
_DELIVERED: Final[dict[str, DataType]] = {
    "message_id": _STRING,
    "producer_session": _STRING,
    **_PLACE,
    "leader_epoch": _INT,
    "effect_key": _STRING,
    "consumer_group": _STRING,
    "consumer_id": _STRING,
    "generation": _LONG,
    "delivery_sequence": _LONG,
    "processed_at": _TIME,
    **_CONTENT,
    "outcome": _STRING,
    "transaction_id": _STRING,
    "transaction_state": _STRING,
}
_SET_ASIDE: Final[dict[str, DataType]] = {
    "message_id": _STRING,
    **_PLACE,
    "payload_hash": _STRING,
    "effect_key": _STRING,
    "consumer_group": _STRING,
    "at": _TIME,
    "reason": _STRING,
    "transaction_state": _STRING,
}
_COMMITTED: Final[dict[str, DataType]] = {
    "consumer_group": _STRING,
    "topic": _STRING,
    "topic_id": _STRING,
    "partition": _INT,
    "first_offset": _LONG,
    "committed_offset": _LONG,
    "is_individual": _FLAG,
    "leader_epoch": _INT,
    "generation": _LONG,
    "committed_at": _TIME,
    "taken_at": _TIME,
    "metadata": _STRING,
}

_COLUMNS: Final[dict[Ledger, dict[str, DataType]]] = {
    Ledger.PRODUCED: {
        "producer_id": _STRING,
        "producer_session": _STRING,
        "sequence": _LONG,
        "transaction_id": _STRING,
        "transaction_state": _STRING,
        "message_id": _STRING,
        "effect_key": _STRING,
        **_PLACE,
        "leader_epoch": _INT,
        "intended_partition": _INT,
        **_CONTENT,
        "attempted_at": _TIME,
        "completed_at": _TIME,
        "is_approximate": _FLAG,
        "outcome": _STRING,
    },
    Ledger.LOG: {
        **_PLACE,
        "leader_epoch": _INT,
        "broker_producer_id": _LONG,
        "producer_epoch": _INT,
        "broker_sequence": _LONG,
        "timestamp_type": _STRING,
        "transaction_state": _STRING,
        "is_control": _FLAG,
        "message_id": _STRING,
        **_CONTENT,
        "log_start_offset": _LONG,
        "last_stable_offset": _LONG,
        "end_offset": _LONG,
        "observed_at": _TIME,
        "cleanup_policy": _STRING,
        "is_sparse": _FLAG,
    },
    Ledger.DELIVERED: _DELIVERED,
    Ledger.READ: {**_DELIVERED, "poll_id": _STRING, "isolation": _STRING},
    Ledger.ASSIGNED: {
        "consumer_group": _STRING,
        "consumer_id": _STRING,
        "generation": _LONG,
        "kind": _STRING,
        "assigned_at": _TIME,
        "partitions": ArrayType(StructType([StructField("topic", _STRING), StructField("partition", _INT)])),
    },
    Ledger.COMMITTED: _COMMITTED,
    Ledger.MIRRORED: _COMMITTED,
    Ledger.FILTERED: _SET_ASIDE,
    Ledger.DEAD_LETTERS: _SET_ASIDE,
    Ledger.STAGED: _SET_ASIDE,
}

SCHEMAS: Final[dict[Ledger, StructType]] = {
    ledger: StructType([StructField(name, kind) for name, kind in columns.items()])
    for ledger, columns in _COLUMNS.items()
}
"""Per ledger the canonical columns and their Spark types, in the order of taxonomy section 1."""

TIME_COLUMN: Final[dict[Ledger, str]] = {
    Ledger.PRODUCED: "attempted_at",
    Ledger.LOG: "record_timestamp",
    Ledger.DELIVERED: "processed_at",
    Ledger.READ: "processed_at",
    Ledger.ASSIGNED: "assigned_at",
    Ledger.COMMITTED: "committed_at",
    Ledger.MIRRORED: "committed_at",
    Ledger.FILTERED: "at",
    Ledger.DEAD_LETTERS: "at",
    Ledger.STAGED: "at",
}
"""The column that says when a row of the ledger happened; a row without it is not covered."""

IDENTITY_COLUMNS: Final[tuple[str, ...]] = ("message_id", "topic", "partition", "offset")
OUTCOMES: Final[frozenset[str]] = frozenset({"acked", "failed", "unknown"})
EFFECT_OUTCOMES: Final[frozenset[str]] = frozenset({"ok", "failed", "unknown"})
UNKNOWN: Final = "unknown"
CONTENT_WORDS: Final[frozenset[str]] = frozenset({UNKNOWN})
"""What a source may write in `content` of a row: its content columns, as far as they are null, are not known."""
_LACKS: Final = "lacks:"
"""The prefix of `content` if a row's file lacks columns that others of its ledger have; no source writes it."""
TRANSACTION_STATES: Final[frozenset[str]] = frozenset({"none", "committed", "aborted", "open"})


def lacking_word(names: Column) -> Column:
    """Return the `content` of a row whose file lacks these content columns, an array."""
    return F.concat(F.lit(f"{_LACKS} "), F.array_join(names, " "))


def is_lacking_contents() -> Column:
    """Return whether a row's `content` says that its file lacks content columns; never null."""
    return F.coalesce(F.startswith("content", F.lit(_LACKS)), F.lit(False))


def is_named_lacking(name: str) -> Column:
    """Return whether a row's `content` says that its file lacks this content column; never null."""
    return is_lacking_contents() & F.array_contains(F.split("content", " "), name)
