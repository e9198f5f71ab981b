"""The `log` ledger: every record of a partition, its transaction's state, and the partition's bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.record.messages import fingerprint, id_in, iso_of_ms
from tools.record.segments import Batch, Record


@dataclass(frozen=True)
class Bounds:
    """A partition's bounds as the broker reported them at `observed_at`."""

    log_start_offset: int
    last_stable_offset: int
    end_offset: int
    observed_at: str
    cleanup_policy: str


def transaction_states(batches: Iterable[Batch]) -> dict[int, str]:
    """Return the state of each offset's transaction: `none`, `committed`, `aborted` or `open`.

    A producer id has at most one open transaction in a partition, so its next marker there decides all its
    records since the last one. The epoch is not compared: a newer session's marker has a higher one.
    """
    states: dict[int, str] = {}
    open_offsets: dict[int, list[int]] = {}
    for batch in batches:
        offsets = [record.offset for record in batch.records]
        if batch.is_control:
            outcome = batch.marker.value
            decided = open_offsets.pop(batch.producer_id, [])
            states.update(dict.fromkeys([*decided, *offsets], outcome))
        elif batch.is_transactional:
            open_offsets.setdefault(batch.producer_id, []).extend(offsets)
            states.update(dict.fromkeys(offsets, "open"))
        else:
            states.update(dict.fromkeys(offsets, "none"))
    return states


def log_rows(
    topic: str, partition: int, batches: Iterable[Batch], bounds: Bounds
) -> Iterator[dict[str, object]]:
    """Yield one row per record, each with the partition's bounds."""
    all_batches = tuple(batches)
    states = transaction_states(all_batches)
    for batch in all_batches:
        for record in batch.records:
            yield {
                "topic": topic,
                "partition": partition,
                "offset": record.offset,
                "leader_epoch": batch.leader_epoch,
                "broker_producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "broker_sequence": record.sequence,
                "record_timestamp": iso_of_ms(record.timestamp_ms),
                "timestamp_type": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
                "transaction_state": states[record.offset],
                "is_control": batch.is_control,
                **_content(batch, record),
                **vars(bounds),
            }


def _content(batch: Batch, record: Record) -> dict[str, object]:
    if batch.is_control or record.value is None:
        return {"message_id": None, "key_hash": None, "payload_hash": None}
    return {
        "message_id": id_in(record.value),
        "key_hash": fingerprint(record.key),
        "payload_hash": fingerprint(record.value),
    }
