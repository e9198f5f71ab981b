"""What the first level leaves over has the same statement as the whole window, and what it settles is in order.

The histories come close to being clean: a faultless pipeline with one or two twists, each of which is a known trap; or
they are those of faulty pipelines, and arbitrary rows. `TIEOUT_RANDOM_SEED` chooses others, `TIEOUT_RANDOM_FAMILIES`
more of them; with TIEOUT_WIDTHS=all each is tried with every width of buckets and hashes, as `make fuzz` has it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import cycle
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engine.histories import GRACE_END, WINDOW, contract_for
from tests.engine.judging import scope_together, statements_of
from tests.engine.marking import batches, number_of
from tests.oracle.faults import Faults
from tests.oracle.history import OracleCoverage
from tests.oracle.random_histories import COLUMNS, RANGES, RandomHistory, draw_setting, history_in
from tests.oracle.simulating import Row, Simulation
from tests.oracle.varying import VARIATIONS, Variation

from tieout.engine.keys import POSITION
from tieout.engine.prematch import bucket_scan, prematching, remainder
from tieout.engine.prematch.comparing import compare
from tieout.engine.prematch.fingerprint import LedgerRows, Widths
from tieout.engine.prematch.log_bounds import bounds_of
from tieout.engine.scope import Scope
from tieout.engine.session import suited_to
from tieout.model import Ledger

SEED = os.environ.get("TIEOUT_RANDOM_SEED", "1")
SIZE = 40
PLAIN = 10
"""How many histories have twists, and how many none, for each of the contracts."""
FAMILIES, FAMILY = int(os.environ.get("TIEOUT_RANDOM_FAMILIES", "4")), 30
WIDE, NARROW = (Widths(), bucket_scan.FEW_BUCKETS), (Widths(bucket_bits=1, id_bits=3), 1.0)
"""Widths of buckets and hashes, and up to which share of the buckets no more is looked into than has to be."""
TRIES_ALL = os.environ.get("TIEOUT_WIDTHS") == "all"
NEEDED = frozenset(
    {"topic", "partition", "offset", "attempted_at", "processed_at", "outcome", "record_timestamp"}
)
EPOCH = frozenset({"leader_epoch"})
"""An output that names its leaders is not for the first level where a log may tell that one was replaced."""
STAMP = frozenset({"record_timestamp"})
TOO_RICH = frozenset({"identity", "id_scope", "multiplicity", "effects"})
IDENTITIES: tuple[dict[str, Any], ...] = ({}, {"identity": "position"}, {})
P, L, D, C = Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.COMMITTED
Rows = dict[Ledger, list[Row]]
Twist = Callable[[Random, Rows], None]
NO_TWIST = "no twist"
OWN_TERMS = frozenset({"hidden", "transactional", "messages", "unstamped"})
"""What is said of a history beside its contract: columns that no source has, transactions, how many messages, and which
sides do not say when a record was stamped, if its log does."""
NO_FAULTS = Faults(**dict.fromkeys(Faults.__dataclass_fields__, 0.0))


def _lose(rng: Random, rows: Rows) -> None:
    rows[D].remove(rng.choice(rows[D]))


def _double(rng: Random, rows: Rows) -> None:
    rows[D].append(dict(rng.choice(rows[D])))


def _lose_one_and_double_another(rng: Random, rows: Rows) -> None:
    _lose(rng, rows)
    _double(rng, rows) if rows[D] else None


def _double_both(rng: Random, rows: Rows) -> None:
    """One position sent twice and delivered twice: all sums cancel."""
    sent = rng.choice(rows[P])
    rows[P].append(dict(sent))
    rows[D] += [dict(row) for row in rows[D] if row["message_id"] == sent["message_id"]]


def _resend_both(rng: Random, rows: Rows) -> None:
    """One id at a second position, on both sides: all sums cancel, and every position stands once."""
    sent = rng.choice(rows[P])
    moved = {"offset": sent["offset"] + 40}
    rows[P].append(sent | moved)
    rows[D] += [row | moved for row in rows[D] if row["message_id"] == sent["message_id"]]


def _share_position(rng: Random, rows: Rows) -> None:
    """Two ids at one position, on both sides."""
    sent = rng.choice(rows[P])
    other = {"message_id": sent["message_id"] + "x"}
    rows[P].append(sent | other)
    rows[D] += [row | other for row in rows[D] if row["message_id"] == sent["message_id"]]


def _swap(name: str) -> Twist:
    """Two rows of the output hold each other's value: sums over one column would cancel."""

    def twist(rng: Random, rows: Rows) -> None:
        one, other = rng.choice(rows[D]), rng.choice(rows[D])
        one[name], other[name] = other[name], one[name]

    return twist


def _set(ledger: Ledger, name: str, value: Any) -> Twist:
    def twist(rng: Random, rows: Rows) -> None:
        rng.choice(rows[ledger])[name] = value

    return twist


def _set_on_both(name: str, value: Any) -> Twist:
    """A value that both sides agree on: no break of its own."""

    def twist(rng: Random, rows: Rows) -> None:
        sent = rng.choice(rows[P])
        for row in (sent, *(row for row in rows[D] if row["message_id"] == sent["message_id"])):
            row[name] = value

    return twist


def _move_null(rng: Random, rows: Rows) -> None:
    """A value on one side stands in another column on the other, which is null where it was."""
    sent = rng.choice(rows[P])
    sent["payload_hash"], sent["key_hash"] = "v", None
    for row in rows[D]:
        if row["message_id"] == sent["message_id"]:
            row["payload_hash"], row["key_hash"] = None, "v"


def _later(ledger: Ledger, name: str, seconds: int) -> Twist:
    def twist(rng: Random, rows: Rows) -> None:
        row = rng.choice(rows[ledger])
        row[name] = (row[name] or WINDOW.start) + timedelta(seconds=seconds)

    return twist


def _contradict(ledger: Ledger, name: str, value: Any) -> Twist:
    """One row of a transaction of several says otherwise than the rest."""

    def twist(rng: Random, rows: Rows) -> None:
        transactions = [row["transaction_id"] for row in rows[ledger]]
        several = [
            row
            for row in rows[ledger]
            if row["transaction_id"] and transactions.count(row["transaction_id"]) > 1
        ]
        for row in rng.sample(several, min(1, len(several))):
            row[name] = value

    return twist


def _weave(rng: Random, rows: Rows) -> None:
    """Three transactions go on side by side, so that their messages are no neighbours."""
    for place, row in enumerate(rows[P]):
        if row["transaction_id"]:
            row["transaction_id"] = f"t{place % 3}"


def _commit_in_sink(rng: Random, rows: Rows) -> None:
    """Write the output in transactions of the sink, of which some rows leave the state to the others."""
    for place, row in enumerate(rows[D]):
        row |= {
            "transaction_id": f"x{place % 3}",
            "transaction_state": rng.choice(("committed", "committed", None)),
        }


def _commit_all_in_sink(rng: Random, rows: Rows) -> None:
    for place, row in enumerate(rows[D]):
        row |= {"transaction_id": f"x{place % 3}", "transaction_state": "committed"}


def _reorder(name: str) -> Twist:
    def twist(rng: Random, rows: Rows) -> None:
        ledger = D if name == "processed_at" else P
        one, other = rng.choice(rows[ledger]), rng.choice(rows[ledger])
        one[name], other[name] = other[name], one[name]

    return twist


def _records(rows: Rows) -> list[Row]:
    """Return the log's rows that are records; others state the bounds of an empty partition."""
    return [row for row in rows[L] if row.get("offset") is not None]


def _stamp(rows: Rows) -> None:
    """Let both sides say when the log's record of their message was stamped."""
    stamps = {(row["partition"], row["offset"]): row["record_timestamp"] for row in _records(rows)}
    for row in (*rows[P], *rows[D]):
        row["record_timestamp"] = stamps.get((row["partition"], row["offset"]))


def _lose_record(rng: Random, rows: Rows) -> None:
    """The log lacks what was acknowledged and delivered."""
    rows[L].remove(rng.choice(_records(rows)))


def _retry_in_log(rng: Random, rows: Rows) -> None:
    """A record stands a second time at the end of its partition, which nobody was told."""
    record = rng.choice(_records(rows))
    last = max(row["offset"] for row in _records(rows) if row["partition"] == record["partition"])
    rows[L].append(record | {"offset": last + 1})


def _write_over(rng: Random, rows: Rows) -> None:
    """The log shows two records at one position, of two leaders."""
    record = rng.choice(_records(rows))
    rows[L].append(record | {"leader_epoch": 3, "message_id": "x"})


def _elect(rng: Random, rows: Rows) -> None:
    """From some record on the leader is another one."""
    since = rng.choice(_records(rows))
    for row in _records(rows):
        is_later = row["partition"] == since["partition"] and row["offset"] >= since["offset"]
        row["leader_epoch"] = 1 if is_later else 0


def _state_apart(rng: Random, rows: Rows) -> None:
    """The bounds stand in rows of their own, the records have none."""
    stated = ("log_start_offset", "last_stable_offset", "end_offset", "observed_at", "cleanup_policy")
    bounds = [{name: row.get(name) for name in ("topic", "partition", *stated)} for row in rows[L]]
    for row in rows[L]:
        row.update(dict.fromkeys(stated))
    rows[L] += [row for number, row in enumerate(bounds) if row not in bounds[:number]]


def _age(rng: Random, rows: Rows) -> None:
    """The log's first records are gone; its start says so, or nobody does."""
    first = rng.choice(_records(rows))
    start, stated = first["offset"], rng.choice((None, first["offset"]))
    gone = [row for row in _records(rows) if row["partition"] == first["partition"] and row["offset"] < start]
    rows[L][:] = [row for row in rows[L] if row not in gone]
    for row in rows[L]:
        if row["partition"] == first["partition"]:
            row["log_start_offset"] = stated


def _shift_log(rng: Random, rows: Rows) -> None:
    """The broker's clock moves its records to the window's edge or beyond."""
    by = timedelta(seconds=rng.choice((-3600, -1800, 1800, 3000, 3600)))
    records = [row for row in _records(rows) if row["record_timestamp"] is not None]
    for row in rng.sample(records, rng.randint(0, len(records))):
        row["record_timestamp"] += by


def _commit_back(rng: Random, rows: Rows) -> None:
    for row in rows.get(C, [])[-1:]:
        rows[C].append(
            row | {"committed_offset": 0, "committed_at": row["committed_at"] + timedelta(seconds=1)}
        )


def _commit_beyond(rng: Random, rows: Rows) -> None:
    """The last commit lies above the log's end."""
    row = {"topic": rows[P][0]["topic"], "partition": 0, "consumer_group": None, "leader_epoch": None}
    rows[C] = [one for one in rows.get(C, []) if one["partition"] != 0]
    rows[C].append(row | {"committed_offset": 70, "committed_at": WINDOW.end - timedelta(seconds=1)})


def _nothing(rng: Random, rows: Rows) -> None:
    return


TWISTS: tuple[Twist, ...] = (
    _nothing, _nothing, _nothing, _nothing,
    _lose, _double, _lose_one_and_double_another, _double_both, _resend_both, _share_position, _move_null, _commit_back,
    _swap("payload_hash"), _swap("message_id"), _swap("offset"), _swap("key_hash"), _swap("partition"),
    _set(D, "payload_hash", "other"), _set(D, "payload_hash", None), _set(P, "payload_hash", None),
    _set(D, "message_id", None), _set(P, "message_id", None), _set(D, "offset", None), _set(P, "offset", -1),
    _set(D, "outcome", "unknown"), _set(D, "outcome", "failed"),
    _set(P, "outcome", "unknown"), _set(P, "outcome", "failed"),
    _set(D, "consumer_group", "other"), _set(D, "consumer_group", None),
    _set(D, "transaction_id", "t"), _set(P, "transaction_id", "t"), _set(P, "intended_partition", 7),
    _set(D, "processed_at", None), _set(P, "attempted_at", None), _set(P, "completed_at", None),
    _set_on_both("payload_hash", None), _set_on_both("key_hash", "k"), _set_on_both("payload_hash", ""),
    _later(D, "processed_at", 1200), _later(D, "processed_at", -4000), _later(P, "attempted_at", -3600),
    _later(D, "processed_at", -300), _later(D, "processed_at", -2), _set(P, "is_approximate", True),
    _reorder("processed_at"), _reorder("sequence"),
)  # fmt: skip


OF_LOG: tuple[Twist, ...] = (
    _nothing, _lose, _lose, _lose_record, _retry_in_log, _write_over, _elect, _state_apart, _age, _shift_log,
    _set(L, "payload_hash", "other"), _set(L, "payload_hash", None), _set(L, "key_hash", "other"),
    _set(L, "message_id", "other"), _set(L, "message_id", None), _set(L, "record_timestamp", None),
    _set(L, "transaction_state", "committed"), _set(L, "transaction_state", "aborted"), _set(L, "is_control", True),
    _set(L, "offset", 99), _set(L, "partition", 5), _set(L, "end_offset", 2), _set(L, "log_start_offset", 3),
    _set(L, "observed_at", None), _commit_beyond, *(_later(ledger, "record_timestamp", 5) for ledger in (P, L, D)),
    _set(L, "broker_producer_id", 7), _set(L, "topic", "other"),
)  # fmt: skip


OF_TRANSACTIONS: tuple[Twist, ...] = (
    _lose, _lose, _double, _commit_in_sink, _commit_all_in_sink, _set(D, "payload_hash", "other"),
    *(_contradict(P, "transaction_state", state) for state in (None, "none", "open", "aborted", "committed")),
    *(_contradict(P, "outcome", outcome) for outcome in ("failed", "unknown")),
    *(_set(D, "transaction_state", state) for state in ("none", "open", "aborted", "committed")),
)  # fmt: skip


TRAPS: tuple[Twist, ...] = (
    _lose, _double, _lose_one_and_double_another, _double_both, _resend_both, _share_position, _move_null,
    _set(D, "payload_hash", "other"), _set(D, "payload_hash", None), _set(D, "message_id", "other"),
    _set(D, "offset", 99), _set(D, "partition", 5), _set(D, "topic", "other"),
    _set(D, "outcome", "unknown"), _set(D, "outcome", "failed"),
    _set(P, "outcome", "unknown"), _set(P, "outcome", "failed"),
    _set(D, "consumer_group", "other"), _set(D, "transaction_id", "t"),
    _set(P, "intended_partition", 7), _set(D, "processed_at", None), _set(P, "attempted_at", None),
    _later(D, "processed_at", 1200), _later(D, "processed_at", -3000), _set(P, "offset", -1), _set(D, "offset", None),
)  # fmt: skip
"""Twists each of which always leaves something that must be looked at."""
TRAPS_OF_LOG: tuple[Twist, ...] = (
    _lose_record, _retry_in_log, _write_over,
    *(_set(L, "payload_hash", value) for value in ("other", None)), _set(L, "message_id", "other"),
    _set(L, "transaction_state", "aborted"), _set(L, "is_control", True), _set(L, "record_timestamp", None),
    _set(L, "offset", 99), _set(L, "partition", 5), _set(L, "topic", "other"),
)  # fmt: skip
"""The same of a log between the sides."""
UNRESOLVED: tuple[Twist, ...] = (_set(P, "transaction_id", "t"),)
UNDECIDED = tuple(_set(P, "transaction_state", state) for state in (None, "none", "open", "aborted"))
"""Such twists where there are no transactions, and where all is written in them."""


def _some_twists(rng: Random, *, is_transactional: bool, has_log: bool) -> list[Twist]:
    """Return one or two twists; half of them tell the history otherwise, before anything is taken from it."""
    of_log = rng.choices(OF_LOG, k=rng.choice((1, 2))) if has_log else []
    varied: list[Variation] = [rng.choice(VARIATIONS) for _ in range(rng.choice((0, 1, 1, 2)))]
    of_transactions: list[Twist] = []
    if is_transactional:
        of_transactions = [
            rng.choice((_weave, _nothing)),
            *rng.choices(OF_TRANSACTIONS, k=rng.choice((1, 2))),
        ]
    others = [
        rng.choice(TWISTS)
        for _ in range(rng.choice((0, 1, 1) if varied or of_transactions or of_log else (1, 1, 2)))
    ]
    return [*varied, *of_transactions, *of_log, *others]


def _twisted(
    rng: Random, twists: Sequence[Twist], ledgers: tuple[Ledger, ...], terms: dict[str, Any], name: str
) -> RandomHistory:
    simulation = Simulation(
        rng, NO_FAULTS, rng.randint(1, 2), is_transactional="transactional" in terms, is_compacted=False
    )
    simulation.run(rng.randint(*terms.get("messages", (3, 7))))
    made: Rows = {
        P: simulation.produced,
        L: simulation.log_rows(has_ids=True),
        D: simulation.delivered,
        C: simulation.committed,
    }
    rows = {ledger: [dict(row) for row in made[ledger]] for ledger in ledgers}
    if L in ledgers:
        _stamp(rows)
    for twist in twists:
        if rows[P] and rows[D] and (L not in rows or _records(rows)):
            twist(rng, rows)
    # Columns that ask for a sort of everything are there in half of the runs only.
    hidden = terms.get("hidden", frozenset())
    present = {
        ledger: COLUMNS[ledger]
        - RANGES
        - hidden
        - (EPOCH if ledger is D and L in ledgers else frozenset())
        - (STAMP if ledger in terms.get("unstamped", ()) else frozenset())
        for ledger in ledgers
    }
    shown = {
        ledger: [{n: v for n, v in row.items() if n in present[ledger]} for row in rows[ledger]]
        for ledger in ledgers
    }
    contract = contract_for([*ledgers], {n: v for n, v in terms.items() if n not in OWN_TERMS})
    coverage = dict.fromkeys(ledgers, OracleCoverage(None, GRACE_END, True, True))
    return RandomHistory(name, contract, WINDOW, shown, coverage, present)


def _histories() -> Iterator[RandomHistory]:
    clean = frozenset({"sequence", "key_hash", "consumer_id", "generation"})
    of_transactions = {"transactional": True, "messages": (6, 12)}
    # So many that some are neither at an end of the log nor beside one.
    with_log = {"messages": (16, 28)}
    settings = (
        ((P, D), {"identity": "position", "hidden": clean, "clock_skew": "1s"}),
        ((P, D, C), {"ordering": "partition"}),
        ((P, D, C), of_transactions),
        ((P, D), of_transactions | {"hidden": clean | {"transaction_state"}}),
        ((P, L, D), with_log | {"identity": "position", "hidden": clean, "unstamped": (P, D)}),
        ((P, L, D, C), with_log | {"clock_skew": "1s", "unstamped": (P,)}),
        ((P, L, D), with_log),
    )
    for number, (ledgers, terms) in enumerate(settings):
        for member in range(SIZE + PLAIN):
            name = f"{SEED}/{number}/{member}" if member < SIZE else f"{SEED}/{number}/{member}/{NO_TWIST}"
            rng = Random(name)  # noqa: S311 - repeatable, not secret
            twists: list[Twist] = []
            if member < SIZE:
                is_transactional = "transactional" in terms
                twists = _some_twists(rng, is_transactional=is_transactional, has_log=L in ledgers)
            history = _twisted(rng, twists, ledgers, terms, name)
            if _is_lasting(history):
                yield history


def _is_lasting(history: RandomHistory) -> bool:
    """Return whether the history's log, if it has one, is neither compacted nor cut: such windows are matched whole."""
    ends: dict[Any, int] = {}
    for row in history.rows.get(L, ()):
        place, offset = (row.get("topic"), row.get("partition")), row.get("offset")
        if "compact" in (row.get("cleanup_policy") or ""):
            return False
        ends[place] = max(ends.get(place, -1), -1 if offset is None else offset)
    for row in history.rows.get(L, ()):
        is_open = row.get("transaction_state") == "open"
        first = row.get("offset") if is_open else row.get("last_stable_offset")
        if first is not None and first <= ends[row.get("topic"), row.get("partition")]:
            return False
    return True


def _eligible() -> Iterator[RandomHistory]:
    """Yield histories of faulty pipelines, and of arbitrary rows, whose contracts the first level understands."""
    for number in range(FAMILIES):
        rng = Random(f"{SEED}/eligible/{number}")  # noqa: S311 - repeatable, not secret
        drawn = draw_setting(rng, is_wild=number % 3 == 2)
        ledgers = ((P, D, C), (P, D), (P, L, D, C), (P, L, D))[number % 4]
        terms = {name: value for name, value in drawn.terms.items() if name not in TOO_RICH} | IDENTITIES[
            number % 3
        ]
        everything = OracleCoverage(None, GRACE_END, True, True)
        coverage = {ledger: drawn.coverage.get(ledger, everything) for ledger in ledgers}
        lacking = {ledger: names - NEEDED for ledger, names in drawn.lacking.items()}
        lacking[C] = lacking.get(C, frozenset()) | RANGES
        if L in ledgers:
            lacking[D] = lacking.get(D, frozenset()) | EPOCH
        setting = replace(drawn, terms=terms, ledgers=ledgers, coverage=coverage, absent=(), lacking=lacking)
        for member in range(FAMILY):
            history = history_in(setting, rng, f"{SEED}/eligible/{number}/{member}")
            if _is_lasting(history):
                yield history


def _remaining(
    spark: SparkSession, histories: Sequence[RandomHistory], widths: Widths
) -> tuple[Scope, remainder.Remainder] | None:
    """Return what the first level leaves of histories that share all but their rows; None where it is not for them."""
    scope = scope_together(spark, histories)
    present = {ledger: evidence.present for ledger, evidence in scope.evidence.items()}
    if not prematching.is_eligible(scope.contract, present):
        return None
    sides = {
        ledger: LedgerRows(scope.rows(ledger), present[ledger], {})
        for ledger in (P, L, D)
        if ledger in present
    }
    compared = compare(scope.contract, WINDOW, sides, widths)
    found = remainder.remainder_of(scope, compared, lambda _step: None, max_share=float("inf"))
    assert found is not None
    return prematching.scope_of_remainder(scope, compared, found, _bounds(scope)), found


def _orders_across_partitions(history: RandomHistory) -> bool:
    """Return whether the history orders keys that lie in several partitions: `levels` matches such windows in full."""
    places: dict[tuple[Any, Any], set[Any]] = {}
    for row in (row for ledger in (P, L, D) for row in history.rows.get(ledger, [])):
        if row.get("key_hash") is not None and row.get("partition") is not None:
            places.setdefault((row.get("topic"), row["key_hash"]), set()).add(row["partition"])
    return history.contract.ordering == "key" and any(len(found) > 1 for found in places.values())


def _bounds(scope: Scope) -> DataFrame | None:
    return bounds_of(scope) if L in scope.evidence else None


def _unclean(found: remainder.Remainder) -> set[int]:
    """Return the numbers of the histories that are not all clean."""
    assert found.unclean is not None
    return {number for row in found.unclean.collect() if (number := number_of(row["topic"])) is not None}


def _clean(spark: SparkSession, histories: Sequence[RandomHistory], widths: Widths) -> set[int]:
    """Return the places of the histories whose messages are all clean."""
    found: set[int] = set()
    for batch in batches(histories):
        with suited_to(spark, is_small=True):
            remaining = _remaining(spark, batch.histories, widths)
            assert remaining is not None
            unclean = _unclean(remaining[1])
        found |= {place for number, place in enumerate(batch.places) if number not in unclean}
    return found


@pytest.mark.parametrize(
    ("terms", "ledgers", "twists"),
    [
        ({}, (P, D, C), (*TRAPS, *UNRESOLVED)),
        ({"transactional": True}, (P, D, C), (*TRAPS, *UNDECIDED)),
        ({}, (P, L, D, C), (*TRAPS, *TRAPS_OF_LOG)),
    ],
    ids=["plain", "transactional", "with a log"],
)
def test_no_trap_is_clean(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    terms: dict[str, Any],
    ledgers: tuple[Ledger, ...],
    twists: tuple[Twist, ...],
) -> None:
    """What a single twist leaves is not clean wherever it happens; without a twist most is clean."""
    # A log's ends remain where any of its topics has a message that is not clean: they may be clean.
    monkeypatch.setattr(remainder, "ends_of_log", lambda scope: scope.rows(L).select(*POSITION).limit(0))
    plain = [_twisted(Random(f"plain/{n}"), [], ledgers, terms, f"plain/{n}") for n in range(5)]  # noqa: S311 - repeatable
    traps = [
        _twisted(Random(f"{place}/{n}"), [trap], ledgers, terms, f"{trap.__qualname__}/{place}/{n}")  # noqa: S311
        for place, trap in enumerate(twists)
        for n in range(2)
    ]

    clean = _clean(spark, plain + traps, Widths())

    assert [traps[place - len(plain)].name for place in clean if place >= len(plain)] == []
    assert len(clean) >= 3, (
        "a pipeline without faults may still be late or slow to commit, but mostly is neither"
    )


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("drawn", "share", "widths"),
    [(_histories, 0, (WIDE, NARROW)), (_histories, 1, (NARROW, WIDE)), (_eligible, None, (NARROW,))],
    ids=["nearly clean", "nearly clean as well", "faulty"],
)
def test_what_is_left_has_the_statement_of_the_whole(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    drawn: Callable[[], Iterator[RandomHistory]],
    share: int | None,
    widths: Sequence[tuple[Widths, float]],
) -> None:
    """Whatever the width of buckets and hashes: the same sums, classes, flags, breaks, incidents and proof.

    The many are two shares, which two processes can try; the widths take turns, each with a log and without.
    """
    every = [history for history in drawn() if not _orders_across_partitions(history)]
    shared = batches(every)[share::2] if share is not None else batches(every)
    turns = cycle([widths] if TRIES_ALL else [(one,) for one in widths])
    wrong, tried, compared = {}, 0, 0
    for batch, its in zip(shared, turns, strict=False):
        whole = None
        tried += len(its) * len(batch.places)
        for width, few_buckets in its:
            monkeypatch.setattr(bucket_scan, "FEW_BUCKETS", few_buckets)
            with suited_to(spark, is_small=True):
                remaining = _remaining(spark, batch.histories, width)
                if remaining is None:
                    break
                found = statements_of(remaining[0], batch.histories)
                whole = whole or statements_of(scope_together(spark, batch.histories), batch.histories)
            compared += len(batch.places)
            wrong |= {
                f"{history.name}, {width}": _differences(one, other)
                for history, one, other in zip(batch.histories, found, whole, strict=True)
                if one != other
            }

    assert wrong == {}, f"{len(wrong)} of {compared} histories differ"
    assert compared > tried / 2


def _differences(found: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    return {name: (found[name], whole[name]) for name in whole if found[name] != whole[name]}
