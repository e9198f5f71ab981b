"""What became of each message: positions, frontier, deadline and disposition (taxonomy sections 1 to 3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from tests.oracle.acknowledging import individual_topics, is_acknowledged, was_passed
from tests.oracle.aside import set_aside_by
from tests.oracle.certainty import poll_outcome
from tests.oracle.compaction import is_compacted, may_be_compacted_late, tombstones_of
from tests.oracle.history import (
    BEGINNING,
    History,
    Place,
    Position,
    Row,
    contradict,
    is_data,
    known,
    position,
    state_of,
    undated_last,
)
from tests.oracle.matching import Matched, is_before_its_sends, turn
from tests.oracle.messages import Attempt, Message, Unmatched
from tests.oracle.pairing import in_time, payload_of
from tests.oracle.queues import due_at, is_acknowledged_in_full, is_missing_by_id, is_queue

from tieout.model import Identity, Ledger


@dataclass
class Fates:
    """Answers every question about a message that depends on all the others."""

    history: History
    matched: Matched

    # -- positions ---------------------------------------------------------------------------------------------

    def asserted(self, message: Message) -> dict[Position, datetime | None]:
        """Return the positions that accepted attempts and reads of the message assert, and since when.

        Of several times it is the latest that the log covers, if it covers one.
        """
        asserted: list[tuple[Position, datetime | None]] = []
        for row in message.reads:
            at = position(row)
            record = self.history.records.get(at) if at else None
            if at and (record is None or is_data(record)):
                asserted.append((at, row.get("processed_at")))
        if message.is_accepted:
            for attempt in message.attempts:
                at = position(attempt.row)
                if at and attempt.outcome != "failed":
                    asserted.append((at, attempt.done_at))
        found: dict[Position, datetime | None] = {}
        for at, since in asserted:
            if at not in found or self.history.log_covers(at, since):
                found[at] = since
        return found

    def positions(self, message: Message) -> set[Position]:
        """Return the message's visible and asserted positions, without those that another message has."""
        logged = known(position(record) for record in message.records if is_data(record))
        return (logged | set(self.asserted(message))) - message.denied

    def first_position(self, message: Message) -> Position | None:
        """Return the lowest position of the partition that counts (interpretation 14).

        Where it was sent to it belongs, whoever's record the log shows there.
        """
        sent = {
            position(one.row) for one in message.attempts if message.is_accepted and one.outcome != "failed"
        }
        positions = self.positions(message) | {at for at in sent if at is not None} or set(message.denied)
        if not positions:
            return None
        # Of attempts of one moment the one in the first partition comes first: the order of rows decides nothing.
        attempts = sorted(
            message.attempts, key=lambda attempt: (undated_last(attempt.at), repr(position(attempt.row)))
        )
        placed = [attempt for attempt in attempts if position(attempt.row) in positions]
        acked = [attempt for attempt in placed if attempt.outcome == "acked"]
        for attempt in acked or placed:
            at = position(attempt.row)
            return min(other for other in positions if at and other[:2] == at[:2])
        return min(positions)

    def place(self, message: Message) -> tuple[str | None, int | None]:
        """Return the partition in which the message counts (interpretation 16)."""
        first = self.first_position(message)
        if first is not None:
            return first[:2]
        for effect in self.ordered_effects(message):
            if effect.get("topic") is not None and effect.get("partition") is not None:
                return effect["topic"], effect["partition"]
        row = message.earliest.row
        intended = row.get("intended_partition")
        return row.get("topic"), row.get("partition") if intended is None else intended

    def copies(self, message: Message) -> set[Position]:
        """Return the positions at which the message demonstrably was written (interpretation 31)."""
        visible = {position(record) for record in message.records if self.history.is_visible(record)}
        unseen = {
            at for at, since in self.asserted(message).items() if not self.history.log_covers(at, since)
        }
        return known(visible) | (unseen - message.denied)

    # -- effects -----------------------------------------------------------------------------------------------

    def ordered_effects(self, message: Message) -> list[Row]:
        """Return the message's effects, the earliest first."""
        return sorted(message.effects, key=turn)

    def first_effects(self, message: Message) -> list[Row]:
        """Return the effects that the multiplicity asks for; the rest are further ones."""
        multiplicity = self.history.contract.multiplicity
        effects = self.ordered_effects(message)
        if multiplicity.kind != "one_to_many":
            return effects[:1]
        if multiplicity.count is not None:
            return effects[: multiplicity.count]
        first: dict[Any, Row] = {}
        for row in effects:
            first.setdefault(row.get("effect_key"), row)
        return list(first.values())

    def expected_effects(self, message: Message) -> int:
        """Return how many effects the message of a fan-out has to have (72)."""
        multiplicity = self.history.contract.multiplicity
        if multiplicity.count is not None:
            return multiplicity.count
        keys = message.values("effect_key") | known(row.get("effect_key") for row in message.effects)
        return max(len(keys), 1)

    def repeats(self, message: Message) -> int:
        """Return how many times over the message has the effects that it may have once."""
        effects, multiplicity = message.effects, self.history.contract.multiplicity
        if multiplicity.kind != "one_to_many":
            return len(effects)
        if multiplicity.count is not None:
            return -(-len(effects) // multiplicity.count)
        keys = [row.get("effect_key") for row in effects]
        return max((keys.count(key) for key in keys), default=0)

    def lone_uncertain(self, message: Message) -> list[Row]:
        """Return the uncertain rows that may be an effect which the message lacks, rather than one too many (71)."""
        multiplicity = self.history.contract.multiplicity
        if multiplicity.kind == "one_to_many" and multiplicity.count is not None:
            return message.uncertain if len(message.effects) < multiplicity.count else []
        if multiplicity.kind == "one_to_many":
            got = known(row.get("effect_key") for row in message.effects)
            return [row for row in message.uncertain if row.get("effect_key") not in got]
        return [] if message.effects else message.uncertain

    def further_effects(self, message: Message) -> list[Row]:
        """Return the effects beyond those that the multiplicity asks for."""
        first = {id(row) for row in self.first_effects(message)}
        return [row for row in self.ordered_effects(message) if id(row) not in first]

    def is_fully_delivered(self, message: Message) -> bool:
        """Return whether every effect that the multiplicity asks for is there."""
        multiplicity = self.history.contract.multiplicity
        if multiplicity.kind == "one_to_many" and multiplicity.count is not None:
            return len(message.effects) >= multiplicity.count
        if multiplicity.kind == "one_to_many":
            expected = message.values("effect_key")
            got = known(row.get("effect_key") for row in message.effects)
            return bool(message.effects) and expected <= got and not self.lone_uncertain(message)
        return bool(message.effects)

    # -- deadline and coverage ---------------------------------------------------------------------------------

    def deadline(self, message: Message) -> datetime | None:
        """Return when an effect had to be there (interpretation 15)."""
        attempts = sorted(
            message.attempts, key=lambda attempt: (undated_last(attempt.at), undated_last(attempt.done_at))
        )
        acked = [attempt for attempt in attempts if attempt.outcome == "acked"]
        unknown = [attempt for attempt in attempts if attempt.outcome == "unknown"]
        chosen: Attempt = acked[0] if acked else (unknown or attempts)[-1]
        if chosen.done_at is None:
            return None
        return chosen.done_at + self.history.contract.max_latency + self.history.skew

    def due_by(self, message: Message) -> datetime | None:
        """Return until when the message may be without effect: its deadline, of a queue also by locks and acks."""
        contract = self.history.contract
        allowed_latency = contract.max_latency + self.history.skew
        deadline = self.deadline(message)
        if not is_queue(contract) or deadline is None:
            return deadline
        since = due_at(self.history, message, self.positions(message), deadline - allowed_latency)
        return None if since is None else since + allowed_latency

    def is_old_enough(self, message: Message) -> bool:
        """Return whether both ends cover the message up to its deadline."""
        began, deadline = message.began_at, self.due_by(message)
        if began is None or deadline is None or not self.history.covers(Ledger.PRODUCED, began, began):
            return False
        return self.history.accounts(began - self.history.skew, deadline)

    def evidence_is_missing(self, message: Message) -> bool:
        """Return whether no effect means nothing, and not because it is too early (interpretation 25)."""
        history, began, deadline = self.history, message.began_at, self.due_by(message)
        if began is None or deadline is None or not history.covers(Ledger.PRODUCED, began, began):
            return True
        return not history.accounts(began - history.skew, min(deadline, history.grace_end))

    # -- frontier ----------------------------------------------------------------------------------------------

    @cached_property
    def progress(self) -> list[tuple[Place, int, datetime | None]]:
        """Every proof that the group went past an offset of a partition as its log is now, and when."""
        found: list[tuple[Place, int, datetime | None]] = []
        for row in self.history.rows(Ledger.COMMITTED):
            if row.get("committed_offset") is not None and row.get("partition") is not None:
                place = row["topic"], row["partition"]
                found.append((place, self.held_back(row) - 1, row.get("committed_at")))
        if is_queue(self.history.contract):
            return found  # nothing is jumped over: only what is acknowledged was passed
        return found + [(at[:2], self.passed(at, row), row.get("processed_at")) for at, row in self.in_hand]

    @cached_property
    def in_hand(self) -> list[tuple[Position, Row]]:
        """Every effect and every read whose poll succeeded, with the position that it shows the group to have had."""
        found = [
            (self.position_of(message, row), row)
            for message in self.matched.messages
            for row in message.effects + [row for row in message.reads if self.is_handed(row)]
        ]
        reads = [row for row in self.history.rows(Ledger.READ) if self.is_handed(row)]
        found += [(position(row), row) for row in [row for row, _ in self.matched.unmatched_effects] + reads]
        return [(at, row) for at, row in found if at is not None]

    def position_of(self, message: Message, row: Row) -> Position | None:
        """Return where an effect or read of the message comes from.

        One that does not say so comes from the message's first position, unless the message is in several partitions.
        """
        named = position(row)
        if named is not None:
            return named
        of_rows = known(position(one) for one in message.records + message.effects)
        places = {at[:2] for at in of_rows | set(self.asserted(message))}
        return self.first_position(message) if len(places) < 2 else None

    @cached_property
    def doubtful_progress(self) -> list[tuple[Place, int, datetime | None]]:
        """Every poll of unknown outcome, with how far it may have come, and when."""
        rows = [row for row in self.history.rows(Ledger.READ) if self.certainty_of(row) == "unknown"]
        return [
            (at[:2], self.passed(at, row), row.get("processed_at")) for row in rows if (at := position(row))
        ]

    def is_handed(self, read: Row) -> bool:
        """Return whether the poll is known to have succeeded: one that failed, or may have, moves no frontier."""
        return self.certainty_of(read) == "ok"

    def certainty_of(self, read: Row) -> str:
        """Return what came of the poll: ok, unknown or failed."""
        return poll_outcome(self.history, read)

    def held_back(self, commit: Row) -> int:
        """Return the committed offset, but not beyond the first record of a newer leader than the commit's."""
        place = commit["topic"], commit["partition"]
        return int(min(commit["committed_offset"], self.history.epoch_end(place, commit.get("leader_epoch"))))

    def passed(self, at: Position, row: Row) -> int:
        """Return how far the row shows the group to have come, but not beyond a newer leader's first record (55)."""
        if position(row) is None:
            return at[2]
        return int(min(at[2], self.history.epoch_end(at[:2], row.get("leader_epoch")) - 1))

    def frontier(self, place: Place, message: Message) -> int:
        """Return the highest offset known as passed, before the first position where nothing is known.

        What came before the message's sends did not pass it: it is of an earlier life of the topic (26).
        """
        since = (
            offset
            for offset, when in self._progress_by_place.get(place, [])
            if not is_before_its_sends(self.history, message, when)
        )
        return max(since, default=-1)

    @cached_property
    def _progress_by_place(self) -> dict[Place, list[tuple[int, datetime | None]]]:
        found: dict[Place, list[tuple[int, datetime | None]]] = {}
        for place, offset, when in self.progress:
            found.setdefault(place, []).append((offset, when))
        return found

    @cached_property
    def individual_topics(self) -> frozenset[str]:
        """The topics whose messages the group acknowledges one by one."""
        return individual_topics(self.history)

    def committed_past(self, message: Message, at: Position) -> bool:
        """Return whether a commit of the group covers the message's position."""
        if at[0] in self.individual_topics:
            return is_acknowledged(self, message, at)
        return any(
            (row.get("topic"), row.get("partition")) == at[:2]
            and self.held_back(row) > at[2]
            and not is_before_its_sends(self.history, message, row.get("committed_at"))
            for row in self.history.rows(Ledger.COMMITTED)
            if row.get("committed_offset") is not None
        )

    # -- disposition -------------------------------------------------------------------------------------------

    def log_lacks(self, message: Message) -> bool:
        """Return whether the log covers every position asserted for the message and has it at none."""
        asserted = self.asserted(message)
        if not asserted or any(state_of(record) != "aborted" for record in message.records):
            return False
        return all(
            self.history.log_covers(at, since) or self.went_unread(message, at)
            for at, since in asserted.items()
        )

    def went_unread(self, message: Message, at: Position) -> bool:
        """Return whether the position's topic was deleted before the group is known to have come that far (86)."""
        return self.history.is_gone(at[0]) and not was_passed(self, message, at)

    def is_gone(self, message: Message) -> bool:
        """Return whether every position of the message went with its topic, unread."""
        positions = self.positions(message)
        return bool(positions) and all(self.went_unread(message, at) for at in positions)

    def is_expired(self, message: Message) -> bool:
        """Return whether every position of the message lies below the log's start."""
        positions = self.positions(message)
        return bool(positions) and all(self.history.is_expired(at) for at in positions)

    def is_due(self, message: Message) -> bool:
        """Return whether an effect must be there by now (taxonomy section 2)."""
        return self.is_old_enough(message) and self.is_passed(message)

    def is_passed(self, message: Message) -> bool:
        """Return whether the group has been at every position of the message, or there is none to be at."""
        positions = self.positions(message)
        if is_queue(self.history.contract):
            if self.is_unplaced(message) and self.history.has(Ledger.COMMITTED):
                deadline = self.deadline(message)
                allowed_latency = self.history.contract.max_latency + self.history.skew
                return is_missing_by_id(self.history, message, deadline and deadline - allowed_latency)
            return is_acknowledged_in_full(self.history, message, positions, self.log_lacks)
        passed = all(was_passed(self, message, at) or self.went_unread(message, at) for at in positions)
        return passed or self.log_lacks(message) or self.is_expired(message)

    @cached_property
    def vanished_tombstones(self) -> list[tuple[Position, Any, datetime]]:
        """Return position, key and time of each acked send of a null payload whose record is gone (28)."""
        return tombstones_of(self)

    def is_unplaced(self, message: Message) -> bool:
        """Return whether a send that did not fail shows neither a position nor an effect."""
        if message.outcome == "failed" or message.effects or message.records:
            return False
        return not self.positions(message) and not message.denied

    def may_have_nameless_effect(self, message: Message) -> bool:
        """Return whether an effect that nobody sent may be this message's: one of them does not say who it is (20)."""
        if self.history.contract.identity is Identity.CONTENT:
            return any(
                None in (payload_of(message), row.get("payload_hash"))
                and any(
                    not contradict(message.attempts[0].row.get("topic"), one) for one in self._topics(row)
                )
                for row, _ in self.matched.unmatched_effects
            )
        if not self.is_unplaced(message):
            return False
        by_position = self.history.contract.identity is Identity.POSITION
        return any(
            (by_position or message.message_id is None or self._name_of(row) is None)
            and any(
                not contradict(attempt.row.get("topic"), row.get("topic")) for attempt in message.attempts
            )
            for row, why in self.matched.unmatched_effects
            if why is not Unmatched.STRAY
        )

    def _topics(self, effect: Row) -> set[Any]:
        """Return where the log has the effect's payload, else the topic that the effect itself shows (68)."""
        payload = effect.get("payload_hash")
        logged = {
            record["topic"]
            for record in self.matched.unattempted_records
            if payload is not None and record.get("payload_hash") == payload
        }
        return logged or {effect.get("topic")}

    def _name_of(self, row: Row) -> Any:
        """Return the id that the row, or the record at its position, shows."""
        at = position(row)
        record = self.history.records.get(at) if at else None
        return row.get("message_id") or (record or {}).get("message_id")

    def disposition(self, message: Message) -> str:
        """Return the accepted message's one disposition, the first that holds."""
        aside = {Ledger.DEAD_LETTERS: "dead_lettered", Ledger.FILTERED: "filtered"}
        by = set_aside_by(self.history, message)
        rules = (
            (lambda: message.has_early_effect, "unverifiable"),
            (lambda: self.is_fully_delivered(message), "delivered"),
            (lambda: by is not None, aside.get(by or Ledger.FILTERED, "")),
            (lambda: self._is_doubtful(message) or self.evidence_is_missing(message), "unverifiable"),
            (lambda: bool(message.pending_aside) and self.is_due(message), "unverifiable"),
            (lambda: not message.pending_aside and may_be_compacted_late(self, message), "unverifiable"),
            (lambda: not message.pending_aside and is_compacted(self, message), "compacted"),
            (lambda: not self.is_due(message) or self.may_be_elsewhere(message), "in_flight"),
            (lambda: message.may_have_earlier_effect, "unverifiable"),
        )
        return next((name for holds, name in rules if holds()), "lost")

    def _is_doubtful(self, message: Message) -> bool:
        """Return whether a row may be the effect that the message lacks."""
        is_doubtful = bool(self.lone_uncertain(message) or message.strays) or message.has_ambiguous_effect
        is_doubtful = is_doubtful or self.may_have_nameless_effect(message)
        return is_doubtful or message in self._equals_of_others(message)[0]

    def may_be_elsewhere(self, message: Message) -> bool:
        """Return whether an equal message's effect lies where the group has not been, so may be this one's (77)."""
        return message in self._equals_of_others(message)[1]

    def _equals_of_others(self, message: Message) -> tuple[list[Message], list[Message]]:
        """Return the equals whose effect may be that of one older than the output, and of one elsewhere (77)."""
        payload = payload_of(message)
        if self.history.contract.identity is not Identity.CONTENT or payload is None:
            return [], []
        equals = [one for one in self.matched.messages if payload_of(one) == payload and one.is_accepted]
        older = [one for one in equals if one.effects and not self._is_shown(one)]
        ahead = [one for one in equals if one.effects and self._is_shown(one) and not self.is_passed(one)]
        left = [one for one in in_time(equals) if not one.effects and self.is_due(one)]
        return left[: len(older)], left[len(older) : len(older) + len(ahead)]

    def _is_shown(self, message: Message) -> bool:
        """Return whether the output reaches back to the message."""
        since = message.began_at
        return since is not None and self.history.covers_from(self.history.output, since - self.history.skew)

    def fate(self, message: Message) -> str:
        """Return the accepted message's disposition; else `failed`, or what an unproven one amounts to."""
        if message.is_accepted:
            return self.disposition(message)
        return "failed" if message.outcome == "failed" else "unproven"

    def window_position(self, message: Message) -> Position | None:
        """Return the position that says whose window of offsets the message is (78)."""
        return self.first_position(message) or min(known(map(position, message.effects)), default=None)

    def earliest_time(self, message: Message) -> datetime:
        """Return when the message began, for ordering."""
        return message.began_at or BEGINNING
