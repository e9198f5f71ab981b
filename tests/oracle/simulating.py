"""A small pipeline that really runs, and goes wrong: producers, a broker's log, a consumer group, an output.

Every row of evidence is a by-product of something that happened in the simulation, so that a history is plausible as
a whole. The faults are those of the taxonomy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.engine.histories import GRACE_END, GROUP, START, TOPIC
from tests.oracle.faults import Faults

Row = dict[str, Any]

_BOUNDARY_SECONDS = (-1, 0, 0, 3599, 3600, 3600)
_KEYS = (None, "k1", "k1", "k2")


@dataclass
class Simulation:
    """One run: `run` fills the ledgers; the log is kept per partition as rows in order of offset.

    `payloads` are the contents that messages share, none: each has its own; `fan_out` the effect keys of one message.
    """

    rng: Random
    faults: Faults
    partitions: int
    is_transactional: bool
    is_compacted: bool
    payloads: tuple[str, ...] = ()
    fan_out: tuple[str | None, ...] = (None,)
    produced: list[Row] = field(default_factory=list)
    log: dict[int, list[Row]] = field(default_factory=dict)
    delivered: list[Row] = field(default_factory=list)
    read: list[Row] = field(default_factory=list)
    committed: list[Row] = field(default_factory=list)
    filtered: list[Row] = field(default_factory=list)
    dead_letters: list[Row] = field(default_factory=list)
    staged: list[Row] = field(default_factory=list)
    bounds: dict[int, Row] = field(default_factory=dict)

    def happens(self, probability: float) -> bool:
        """Return whether something of this probability happens now."""
        return self.rng.random() < probability

    def run(self, message_count: int) -> None:
        """Produce, spoil the log, consume."""
        times = sorted(self._send_time() for _ in range(message_count))
        transaction = 0
        left = 0
        for number, time in enumerate(times):
            if self.is_transactional and left == 0:
                transaction, left = transaction + 1, self.rng.randint(1, 3)
            self._send(f"m{number}", time, f"t{transaction}" if self.is_transactional else None)
            left -= 1
            if self.is_transactional and (left == 0 or number == message_count - 1):
                self._end_transaction(f"t{transaction}", time + timedelta(seconds=5))
                left = 0
        self._spoil_log()
        is_far_behind = self.rng.random() < 0.5
        if is_far_behind:
            self._age_log()
        for partition in range(self.partitions):
            self._consume(partition)
        if not is_far_behind:
            self._age_log()
        while self.happens(self.faults.phantom):
            self._phantom()

    # -- producers -----------------------------------------------------------------------------------------------

    def _send_time(self) -> datetime:
        if self.rng.random() < 0.2:
            return START + timedelta(seconds=self.rng.choice(_BOUNDARY_SECONDS))
        return START + timedelta(seconds=self.rng.randrange(-15 * 60, 70 * 60, 30))

    def _send(self, name: str, time: datetime, transaction: str | None) -> None:
        partition = self.rng.randrange(self.partitions)
        key = self.rng.choice(_KEYS)
        session = "s1" if transaction else self.rng.choice(("s1", "s1", "s2"))
        payload = self.rng.choice(self.payloads) if self.payloads else f"h-{name}"
        if self.happens(self.faults.reused_id) and self.produced:
            name = self.rng.choice(self.produced)["message_id"]
        attempts = 2 if self.happens(self.faults.resent) else 1
        for _ in range(attempts):
            self._attempt(name, payload, key, partition, session, time, transaction)
            time += timedelta(seconds=self.rng.choice((1, 30, 600, 3600)))
            session = session if transaction else self.rng.choice((session, "s2"))

    def _attempt(
        self,
        name: str,
        payload: str,
        key: str | None,
        partition: int,
        session: str,
        time: datetime,
        transaction: str | None,
    ) -> None:
        outcome = "acked"
        if self.happens(self.faults.failed):
            outcome = "failed"
        elif self.happens(self.faults.unknown):
            outcome = "unknown"
        is_written = (
            outcome == "acked"
            or (outcome == "unknown" and self.rng.random() < 0.6)
            or (outcome == "failed" and self.happens(self.faults.failed_but_written))
        )
        offset = None
        for _ in range(2 if is_written and self.happens(self.faults.retried_in_the_log) else int(is_written)):
            offset = self._append(name, payload, key, partition, time, transaction)
        row = {
            "producer_id": "p1",
            "producer_session": session,
            "sequence": len(self.produced),
            "message_id": name,
            "topic": TOPIC,
            "partition": partition if outcome == "acked" else None,
            "intended_partition": partition,
            "offset": offset if outcome == "acked" else None,
            "key_hash": key,
            "payload_hash": payload,
            "attempted_at": time,
            "completed_at": None
            if outcome == "unknown"
            else time + timedelta(seconds=self.rng.choice((0, 1, 20, 1500))),
            "outcome": outcome,
            "transaction_id": transaction,
            "transaction_state": None,
        }
        self.produced.append(row)

    def _append(
        self,
        name: str,
        payload: str,
        key: str | None,
        partition: int,
        time: datetime,
        transaction: str | None,
    ) -> int:
        records = self.log.setdefault(partition, [])
        offset = records[-1]["offset"] + 1 if records else 0
        is_changed = self.happens(self.faults.corrupted_in_the_log)
        records.append(
            {
                "topic": TOPIC,
                "partition": partition,
                "offset": offset,
                "message_id": name,
                "key_hash": key,
                "payload_hash": "changed" if is_changed else payload,
                "record_timestamp": time,
                "transaction_state": "open" if transaction else "none",
                "is_control": False,
                "_transaction": transaction,
            }
        )
        return offset

    def _end_transaction(self, transaction: str, time: datetime) -> None:
        sent = sum(row["transaction_id"] == transaction for row in self.produced)
        written = {
            record["message_id"]
            for records in self.log.values()
            for record in records
            if record["_transaction"] == transaction
        }
        is_incomplete = len(written) < sent and any(
            row["outcome"] != "acked" for row in self.produced if row["transaction_id"] == transaction
        )
        state = "aborted" if is_incomplete or self.happens(self.faults.aborted) else "committed"
        stated: str | None = state
        if self.happens(self.faults.unresolved):
            state = self.rng.choice(("open", "committed", "aborted"))
            stated = None
        for row in self.produced:
            if row["transaction_id"] == transaction:
                row["transaction_state"] = stated
        for partition, records in self.log.items():
            mine = [record for record in records if record["_transaction"] == transaction]
            for record in mine:
                record["transaction_state"] = state
            if mine and state != "open":
                records.append(
                    {
                        "topic": TOPIC,
                        "partition": partition,
                        "offset": records[-1]["offset"] + 1,
                        "record_timestamp": time,
                        "transaction_state": state,
                        "is_control": True,
                        "_transaction": transaction,
                    }
                )

    # -- the log -------------------------------------------------------------------------------------------------

    def _spoil_log(self) -> None:
        for partition in range(self.partitions):
            records = self.log.setdefault(partition, [])
            end = records[-1]["offset"] + 1 if records else 0
            self.bounds[partition] = {"log_start_offset": 0, "end_offset": end}
            if records and self.happens(self.faults.overwritten):
                records[-1] |= {"message_id": self.rng.choice(("m0", "x1")), "payload_hash": "h-x1"}
            if records and self.happens(self.faults.lost_by_the_broker):
                lost = self.rng.choice(records)
                if lost is records[-1]:
                    self.bounds[partition]["end_offset"] = lost["offset"]
                records.remove(lost)

    def _age_log(self) -> None:
        """Compact and expire, before or after the consumer had its chance."""
        for partition, records in self.log.items():
            if self.is_compacted:
                newest = {
                    record.get("key_hash"): record["offset"] for record in records if _is_committed(record)
                }
                self.log[partition] = [
                    record
                    for record in records
                    if record.get("key_hash") is None
                    or record["offset"] >= newest.get(record["key_hash"], 0)
                    or self.rng.random() < 0.3
                ]
            if records and self.happens(self.faults.expired):
                start = self.rng.randint(0, self.bounds[partition]["end_offset"])
                self.bounds[partition]["log_start_offset"] = start
                self.log[partition] = [one for one in self.log[partition] if one["offset"] >= start]

    def log_rows(self, has_ids: bool) -> list[Row]:
        """Return the log as rows with their bounds, and a row of bounds alone for an empty partition."""
        rows: list[Row] = []
        for partition in range(self.partitions):
            records = self.log.get(partition, [])
            end = self.bounds[partition]["end_offset"]
            opened = [record["offset"] for record in records if record["transaction_state"] == "open"]
            bounds = {
                **self.bounds[partition],
                "last_stable_offset": min(opened, default=end),
                "observed_at": GRACE_END + timedelta(minutes=self.rng.choice((0, 0, 60))),
                "cleanup_policy": "compact" if self.is_compacted else "delete",
            }
            for record in records or [{"topic": TOPIC, "partition": partition}]:
                row = {name: value for name, value in record.items() if not name.startswith("_")}
                rows.append({**row, **bounds} if has_ids else {**row, **bounds, "message_id": None})
        return rows

    # -- the consumer --------------------------------------------------------------------------------------------

    def _consume(self, partition: int) -> None:
        records = list(self.log.get(partition, []))
        opened = [record["offset"] for record in records if record["transaction_state"] == "open"]
        is_committed_only = not self.happens(self.faults.reads_uncommitted)
        stable = min(opened, default=None) if is_committed_only else None
        stops_at = None
        if records and self.happens(self.faults.stops_early):
            stops_at = self.rng.randint(0, records[-1]["offset"])
        highest = 0
        clock = START - timedelta(minutes=20)
        for record in records:
            if stable is not None and record["offset"] >= stable:
                break
            if stops_at is not None and record["offset"] >= stops_at:
                break
            clock = max(clock, record["record_timestamp"]) + timedelta(seconds=self.rng.choice((0, 1, 5)))
            highest = record["offset"] + 1
            if record["is_control"] or (is_committed_only and record["transaction_state"] == "aborted"):
                continue
            self._process(record, clock, is_committed_only)
            if self.rng.random() < 0.5:
                self._commit(partition, highest, clock)
        if highest:
            self._commit(partition, highest, clock + timedelta(seconds=1))

    def _commit(self, partition: int, following: int, time: datetime) -> None:
        if self.happens(self.faults.commits_ahead):
            following += self.rng.randint(1, 2)
        if self.happens(self.faults.commits_back):
            following = max(0, following - self.rng.randint(1, 3))
        self.committed.append(
            {
                "consumer_group": GROUP,
                "topic": TOPIC,
                "partition": partition,
                "committed_offset": following,
                "committed_at": time,
            }
        )

    def _process(self, record: Row, time: datetime, is_committed_only: bool) -> None:
        place = {name: record.get(name) for name in ("message_id", "topic", "partition", "offset")}
        content = {name: record.get(name) for name in ("key_hash", "payload_hash")}
        common = {**place, **content, "consumer_group": GROUP, "consumer_id": "c1", "generation": 1}
        isolation = "read_committed" if is_committed_only else "read_uncommitted"
        self.read.append({**common, "processed_at": time, "outcome": "ok", "isolation": isolation})
        if self.happens(self.faults.skipped):
            return
        if self.happens(self.faults.set_aside):
            side = self.rng.choice((self.filtered, self.dead_letters))
            side.append({**place, "payload_hash": record["payload_hash"], "at": time, "reason": "test"})
            return
        if self.happens(self.faults.staged):
            self.staged.append(
                {**place, "payload_hash": record["payload_hash"], "at": time, "reason": "test"}
            )
            return
        if self.happens(self.faults.late):
            time += self.rng.choice((timedelta(minutes=10), timedelta(minutes=11), timedelta(hours=1)))
        if self.happens(self.faults.failed_effect):
            self.delivered.append({**common, "processed_at": time, "outcome": "failed"})
        if self.happens(self.faults.uncertain):
            key = self.rng.choice(self.fan_out)
            self.delivered.append({**common, "effect_key": key, "processed_at": time, "outcome": "unknown"})
            if self.rng.random() < 0.5:
                return
        for key in self.fan_out:
            if len(self.fan_out) == 1 or not self.happens(self.faults.partial):
                time = self._deliver({**common, "effect_key": key}, time)

    def _deliver(self, row: Row, time: datetime) -> datetime:
        """Write the row, or more of it, and return when that was done."""
        count = 2 if self.happens(self.faults.doubled) else 1
        for _ in range(count):
            changed = {"payload_hash": "changed"} if self.happens(self.faults.corrupted_effect) else {}
            self.delivered.append({**row, **changed, "processed_at": time, "outcome": "ok"})
            time += timedelta(seconds=self.rng.choice((0, 1, 60)))
        return time

    def _phantom(self) -> None:
        self.delivered.append(
            {
                "message_id": self.rng.choice(("ghost", "ghost2", None)),
                "payload_hash": self.rng.choice(("h-ghost", *self.payloads)),
                "topic": TOPIC,
                "partition": self.rng.choice((None, 0)),
                "offset": None,
                "consumer_group": self.rng.choice((GROUP, GROUP, "other")),
                "processed_at": self._send_time(),
                "outcome": "ok",
            }
        )


def _is_committed(record: Row) -> bool:
    return not record["is_control"] and record["transaction_state"] in ("none", "committed")
