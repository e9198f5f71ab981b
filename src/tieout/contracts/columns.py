"""The canonical column names of each ledger, for checking contracts without Spark.

The engine's schemas add their types; a test checks that the two lists are equal.
"""

from __future__ import annotations

from typing import Final

from tieout.model import Ledger

_PLACE: Final = ("topic", "topic_id", "partition", "offset")
CONTENT_COLUMNS: Final = ("payload_hash", "key_hash", "header_hash", "record_timestamp")
"""The parts of a message that must not change between producer and consumer."""
_CONTENT: Final = ("key_hash", "payload_hash", "header_hash", "record_timestamp", "content")
_EXCLUDED: Final = (
    *("message_id", *_PLACE, "payload_hash", "effect_key"),
    *("consumer_group", "at", "reason", "transaction_state"),
)
_DELIVERED: Final = (
    "message_id",
    "producer_session",
    *_PLACE,
    "leader_epoch",
    "effect_key",
    "consumer_group",
    "consumer_id",
    "generation",
    "delivery_sequence",
    "processed_at",
    *_CONTENT,
    "outcome",
    "transaction_id",
    "transaction_state",
)
_COMMITTED: Final = (
    "consumer_group",
    "topic",
    "topic_id",
    "partition",
    "first_offset",
    "committed_offset",
    "is_individual",
    "leader_epoch",
    "generation",
    "committed_at",
    "taken_at",
    "metadata",
)

CANONICAL_COLUMNS: Final[dict[Ledger, tuple[str, ...]]] = {
    Ledger.PRODUCED: (
        "producer_id",
        "producer_session",
        "sequence",
        "transaction_id",
        "transaction_state",
        "message_id",
        "effect_key",
        *_PLACE,
        "leader_epoch",
        "intended_partition",
        *_CONTENT,
        "attempted_at",
        "completed_at",
        "is_approximate",
        "outcome",
    ),
    Ledger.LOG: (
        *_PLACE,
        "leader_epoch",
        "broker_producer_id",
        "producer_epoch",
        "broker_sequence",
        "timestamp_type",
        "transaction_state",
        "is_control",
        "message_id",
        *_CONTENT,
        "log_start_offset",
        "last_stable_offset",
        "end_offset",
        "observed_at",
        "cleanup_policy",
        "is_sparse",
    ),
    Ledger.DELIVERED: _DELIVERED,
    Ledger.READ: (*_DELIVERED, "poll_id", "isolation"),
    Ledger.ASSIGNED: ("consumer_group", "consumer_id", "generation", "kind", "assigned_at", "partitions"),
    Ledger.COMMITTED: _COMMITTED,
    Ledger.MIRRORED: _COMMITTED,
    Ledger.FILTERED: _EXCLUDED,
    Ledger.DEAD_LETTERS: _EXCLUDED,
    Ledger.STAGED: _EXCLUDED,
}
"""The columns of each ledger in the order of the engine's schema (docs/reference/taxonomy.md, section 1)."""
